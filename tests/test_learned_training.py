"""Training of small SPLADE models: pairs, start, FLOPS, and a training that was broken off."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from whencount.economics import flops_gradient
from whencount.errors import InputError
from whencount.learned_config import check_learned_sparse
from whencount.learned_sparse.comparing import costs_beside, training_lines
from whencount.learned_sparse.pairs import Pair, cloze_pairs
from whencount.learned_sparse.starting import SmallModel, word_pieces, write_small_model
from whencount.learned_sparse.study import encode_texts, train_model
from whencount.learned_sparse.training import SpladeOptions, read_log, train_splade
from whencount.vectors import SparseVectors

SUBJECTS = ("saturation", "frequency", "length", "index", "query", "vector", "tokens", "weights")
VERBS = ("lowers", "raises", "counts", "stores", "compares", "keeps", "drops", "shifts")
OPTIONS = {"steps": 6, "batch": 4, "max_tokens": 24, "learning_rate": 0.002}
START = {"vocabulary": 300, "width": 64, "layers": 1}


def passages(count: int = 40) -> list[tuple[str, str]]:
    random = np.random.default_rng(0)
    found = []
    for number in range(count):
        first, second, third = random.choice(8, 3)
        found.append(
            (
                f"p{number}",
                f"The {SUBJECTS[first]} of a document {VERBS[second]} its score number {number}."
                f" A long {SUBJECTS[third]} {VERBS[first]} the other {SUBJECTS[second]}."
                f" Nothing else {VERBS[third]} here, says note {number}.",
            )
        )
    return found


def test_a_pair_is_a_sentence_and_the_rest_of_its_passage() -> None:
    texts = dict(passages())
    pairs = list(cloze_pairs(texts.items(), 0))
    assert pairs == list(cloze_pairs(texts.items(), 0))
    assert pairs != list(cloze_pairs(texts.items(), 1))
    assert len(pairs) == 40
    whole = 0
    for pair, text in zip(pairs, texts.values(), strict=True):
        assert pair.query in text
        assert 4 <= len(pair.query.split()) <= 24
        whole += pair.query in pair.passage
    assert 0 < whole < 20
    assert list(cloze_pairs([("a", "one sentence of words alone"), ("b", "")], 0)) == []


def test_a_vocabulary_of_the_same_texts_is_the_same() -> None:
    texts = [text for _, text in passages()]
    first, second = word_pieces(texts, 300), word_pieces(texts, 300)
    assert first.get_vocab() == second.get_vocab()
    ids = first("The saturation lowers", add_special_tokens=True)["input_ids"]
    assert ids[0] == first.cls_token_id
    assert ids[-1] == first.sep_token_id
    assert first.unk_token_id not in ids
    # A word that was never seen falls apart into characters.
    assert first.tokenize("tins") == ["t", "##i", "##n", "##s"]
    with pytest.raises(InputError, match="too many for a vocabulary"):
        word_pieces(texts, 20)


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("start")
    write_small_model((text for _, text in passages()), SmallModel(**START), 0, folder)
    return folder


@pytest.fixture(scope="module")
def trained(start: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("trained") / "model"
    pairs = list(cloze_pairs(passages(), 0))
    train_splade(start, pairs, SpladeOptions(documents=0.1, queries=0.1, **OPTIONS), 0, out)  # type: ignore[arg-type]
    return out


def test_the_weight_of_flops_rises_with_the_square_of_the_step(trained: Path) -> None:
    lines = [line for line in read_log(trained) if "base_loss" in line]
    assert [line["step"] for line in lines] == [1, 2, 3, 4, 5, 6]
    # A third of six steps: the warm-up has one, so the weight is whole from the second step on.
    weights = [line["document_regularizer_weight"] for line in lines]
    assert weights[0] == 0
    assert weights[1:] == [0.1] * 5
    table = training_lines({"m": lines})
    assert table["step"].tolist() == [1, 2, 3, 4, 5, 6]
    assert (table["document_regularizer_loss"].iloc[1:] > 0).all()


def test_a_training_that_was_broken_off_ends_in_the_same_bytes(
    start: Path, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sentence_transformers.sparse_encoder import SparseEncoderTrainer

    pairs = list(cloze_pairs(passages(), 0))
    options = SpladeOptions(documents=0.1, queries=0.1, **OPTIONS)  # type: ignore[arg-type]
    step, taken = SparseEncoderTrainer.training_step, 0

    def breaking(self: Any, *arguments: Any, **named: Any) -> Any:
        nonlocal taken
        taken += 1
        if taken == 4:
            raise KeyboardInterrupt
        return step(self, *arguments, **named)

    monkeypatch.setattr(SparseEncoderTrainer, "training_step", breaking)
    parts = tmp_path / "parts"
    with pytest.raises(KeyboardInterrupt):
        train_splade(start, pairs, options, 0, tmp_path / "model", checkpoints=parts)
    assert not (tmp_path / "model").exists()
    monkeypatch.undo()
    train_splade(start, pairs, options, 0, tmp_path / "model", checkpoints=parts)
    names = ("model.safetensors", "training.json")
    for name in names:
        assert (tmp_path / "model" / name).read_bytes() == (trained / name).read_bytes(), name


def test_flops_make_posting_work_fall(tmp_path: Path) -> None:
    """The same training without and with a strong regulariser, on the texts it has seen."""
    sides = {}
    for name, weight in (("plain", 0.0), ("flops", 3.0)):
        options = {**OPTIONS, "steps": 20, "start": START, "documents": weight, "queries": weight}
        train_model(passages(), options, 0, tmp_path / name)
        for side in ("passage", "query"):
            texts: Any = passages()
            encode_texts(
                texts,
                {"training": options},
                side,
                tmp_path / f"{name}.{side}",
                tmp_path / name,  # type: ignore[arg-type]
            )
        sides[name] = tuple(
            SparseVectors.load(tmp_path / f"{name}.{side}") for side in ("passage", "query")
        )
    table = costs_beside(sides, "plain", "c")  # type: ignore[arg-type]
    lines = {(one["model"], one["cut"]): one for one in table.to_dict("records")}
    assert set(lines) == {("plain", "none"), ("flops", "none"), ("flops", "equal")}
    assert lines["flops", "none"]["posting_work"] < lines["plain", "none"]["posting_work"]
    assert lines["flops", "none"]["document_nnz"] < lines["plain", "none"]["document_nnz"]
    with pytest.raises(InputError, match="no model 'other'"):
        costs_beside(sides, "other", "c")  # type: ignore[arg-type]


def test_the_gradient_of_flops_presses_frequent_features_more() -> None:
    pressed = flops_gradient([2.0, 0.05])
    assert pressed[0] / pressed[1] == pytest.approx(40.0)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"pooling": "mean"}, "choose max or sum"),
        ({"documents": -1.0}, "negative"),
        ({"batch": 1}, "at least 2"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        SpladeOptions(**options)


def test_too_few_pairs_and_bad_sizes_are_refused(start: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="fewer than a batch"):
        train_splade(start, [Pair("a b", "c")], SpladeOptions(), 0, tmp_path / "m")
    with pytest.raises(InputError, match="multiple of 64"):
        SmallModel(width=100)
    with pytest.raises(InputError, match="train the model again"):
        read_log(tmp_path)


def test_a_configuration_names_one_way_to_a_model() -> None:
    base: dict[str, Any] = {
        "collections": {"c": {"source": "limit"}},
        "families": {"primary": {}},
        "learned_sparse": {"models": {"m": {"training": {}}}},
    }
    check_learned_sparse(base)
    assert base["learned_sparse"]["baseline"] == "m"
    assert base["learned_sparse"]["collections"] == ["c"]
    base["learned_sparse"]["models"]["m"]["checkpoint"] = {}
    with pytest.raises(InputError, match="and not both"):
        check_learned_sparse(base)
