"""A small OLMoE trained from scratch: the same bytes again, also after a kill."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from expert_text import SIZES, prepared_text

from whencount.errors import InputError
from whencount.experts import training_state
from whencount.experts.trained import read_training, train_model
from whencount.experts.training import (
    learning_rate,
    new_model,
    packed_sequences,
    train,
)
from whencount.experts.training_options import TrainingOptions
from whencount.language_models import load_language_model

OPTIONS = TrainingOptions.of(SIZES)
# Trains as the fixture does, and is killed where nothing can be cleaned up.
KILLED = """
import os, signal, sys
import pandas as pd
from pathlib import Path
from expert_text import SIZES
from whencount.experts import training_state
from whencount.experts.trained import train_model

training_state._SECONDS_BETWEEN = 0.0
save = training_state.TrainingState.save

def save_and_die(self, path):
    save(self, path)
    if self.step == 7:
        os.kill(os.getpid(), signal.SIGKILL)

training_state.TrainingState.save = save_and_die
text, out, parts = map(Path, sys.argv[1:])
train_model("toy", pd.read_parquet(text), SIZES, out, threads=1, checkpoints=parts)
"""


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    return prepared_text(tmp_path_factory.mktemp("text") / "sentences.jsonl")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, text: pd.DataFrame) -> Path:
    out = tmp_path_factory.mktemp("model") / "toy"
    train_model("toy", text, SIZES, out, threads=1, about="sentences")
    return out


def test_a_killed_training_goes_on_to_the_same_bytes(
    trained: Path, text: pd.DataFrame, tmp_path: Path
) -> None:
    table, out, parts = tmp_path / "text.parquet", tmp_path / "toy", tmp_path / "parts"
    text.to_parquet(table)
    parts.mkdir()
    command = [sys.executable, "-c", KILLED, str(table), str(out), str(parts)]
    done = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, check=False)
    assert done.returncode == -9, done.stderr.decode()
    assert not out.exists()
    train_model("toy", text, SIZES, out, threads=1, about="sentences", checkpoints=parts)
    assert contents(out) == contents(trained)


def test_a_damaged_checkpoint_begins_anew(
    trained: Path, text: pd.DataFrame, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "training.safetensors").write_bytes(b"half a checkpoint")
    out = tmp_path / "toy"
    train_model("toy", text, SIZES, out, threads=1, about="sentences", checkpoints=tmp_path)
    assert "is damaged" in capsys.readouterr().err
    assert contents(out) == contents(trained)


def test_two_threads_train_the_same_bytes_as_one(
    trained: Path, text: pd.DataFrame, tmp_path: Path
) -> None:
    out = tmp_path / "toy"
    train_model("toy", text, SIZES, out, threads=2, about="sentences")
    assert contents(out) == contents(trained)


def test_a_state_is_taken_up_whole(tmp_path: Path) -> None:
    def made() -> tuple[Any, training_state.TrainingState]:
        model = new_model(OPTIONS, seed=3)
        optimiser = torch.optim.AdamW(model.parameters(), lr=0.01)
        return model, training_state.TrainingState(dict(model.named_parameters()), optimiser)

    model, state = made()
    for parameter in model.parameters():
        parameter.grad = torch.full_like(parameter, 0.5)
    state._optimiser.step()
    state.step = 1
    state.add(2.5, 3.0)
    state.save(tmp_path / "state.safetensors")
    other, taken = made()
    assert taken.restore(tmp_path / "state.safetensors")
    assert taken.step == 1
    for one, two in zip(model.parameters(), other.parameters(), strict=True):
        assert torch.equal(one, two)
        held, kept = state._optimiser.state[one], taken._optimiser.state[two]
        assert all(torch.equal(held[name], kept[name]) for name in ("exp_avg", "exp_avg_sq"))


def test_what_is_written_loads_and_has_the_validation_loss_of_its_table(
    trained: Path, text: pd.DataFrame
) -> None:
    loaded = load_language_model({"source": "folder", "path": str(trained)}, threads=1)
    table = read_training(trained)
    assert table["step"].tolist() == [4, 8, 12]
    assert table["tokens"].tolist() == [256, 512, 768]
    end = loaded.tokenizer.eos_token_id
    validation = [loaded.encode(one) for one in text.loc[text["part"] == "validation", "text"]]
    sequences = packed_sequences(validation, end, OPTIONS.context)[:64]
    with torch.inference_mode():
        logits = loaded.model(input_ids=torch.from_numpy(sequences)).logits.double()
    chances = torch.log_softmax(logits[:, :-1], dim=-1)
    wanted = torch.from_numpy(sequences)[:, 1:, None]
    loss = -float(chances.gather(2, wanted).mean())
    assert table["validation"].iloc[-1] == pytest.approx(loss, abs=1e-5)
    # Uniform guessing over the vocabulary costs ln(300).
    assert loss < math.log(OPTIONS.vocabulary) - 1


def test_the_card_says_what_the_model_is(trained: Path) -> None:
    card = (trained / "README.md").read_text(encoding="utf-8")
    loaded = load_language_model({"source": "folder", "path": str(trained)}, threads=1)
    size = sum(one.numel() for one in loaded.model.parameters())
    assert f"| parameters | {size:,} |" in card
    assert "no version of\nOLMoE-1B-7B" in card
    assert "| text | sentences," in card


def test_the_learning_rate_rises_to_its_peak_and_falls_by_half_a_cosine() -> None:
    options = TrainingOptions(tokens=256 * 8 * 100, warmup=0.1, learning_rate=0.5)
    assert learning_rate(0, options) == pytest.approx(0.05)
    assert learning_rate(9, options) == 0.5
    assert learning_rate(55, options) == pytest.approx(0.25)
    assert learning_rate(99, options) == pytest.approx(0.25 * (1 + math.cos(math.pi * 89 / 90)))


def test_documents_are_packed_with_the_end_before_each() -> None:
    packed = packed_sequences([[5, 6, 7], [8], [9, 10, 11]], end=0, context=4)
    assert packed.tolist() == [[0, 5, 6, 7], [0, 8, 0, 9]]


def test_each_epoch_reads_every_sequence_once() -> None:
    from whencount.experts.training import _rows

    for epoch in (0, 3):
        seen = np.concatenate([_rows(12, 4, epoch * 3 + place, seed=5) for place in range(3)])
        assert sorted(seen) == list(range(12))
    assert list(_rows(12, 4, 0, 5)) != list(_rows(12, 4, 3, 5))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"hidden": 20, "heads": 4}, "even number of dimensions"),
        ({"batch": 3}, "even number"),
        ({"active": 9}, "of 8 experts cannot be active"),
        ({"vocabulary": 200}, "bytes alone need 258"),
        ({"depth": 3}, "unknown key 'depth'"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        TrainingOptions.of(SIZES | wrong)


def test_too_little_text_is_refused() -> None:
    model = new_model(OPTIONS, seed=0)
    short = np.zeros((3, OPTIONS.context), dtype=np.int64)
    with pytest.raises(InputError, match="3 sequences of 16 tokens"):
        train(model, short, short, OPTIONS, seed=0, threads=1)


def test_a_loss_that_is_no_number_is_refused() -> None:
    model = new_model(OPTIONS, seed=0)
    with torch.no_grad():
        model.model.norm.weight.fill_(float("nan"))
    ids = np.zeros((8, OPTIONS.context), dtype=np.int64)
    with pytest.raises(InputError, match="not a finite number; lower the learning rate"):
        train(model, ids, ids, OPTIONS, seed=0, threads=1)
