"""SPLADE vectors are those of the formula, and SPLADE-doc queries are their tokens."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from test_sparse_encoder import TEXTS, save_model

from whencount.economics import log_saturation
from whencount.errors import InputError
from whencount.learned_sparse.encoding import load_splade, splade_vectors
from whencount.vectors import SparseVectors


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Holds `language_model`, plain, and `model`, which the library saved with max pooling."""
    root = tmp_path_factory.mktemp("splade")
    save_model(root, "max")
    (root / "language_model" / "idf.json").write_text(json.dumps({"rare": 3.5, "page": 0.25}))
    return root


def options(path: Path) -> dict[str, Any]:
    return {"source": "folder", "path": str(path), "device": "cpu", "max_tokens": 64, "batch": 3}


def dense(vectors: SparseVectors) -> NDArray[np.float64]:
    found = np.zeros((len(vectors), vectors.vocabulary_size))
    found[np.repeat(np.arange(len(vectors)), vectors.row_sizes()), vectors.features] = (
        vectors.values
    )
    return found


@pytest.mark.parametrize("pooling", ["max", "sum"])
@pytest.mark.parametrize("name", ["language_model", "model"])
def test_vectors_are_those_of_the_formula(folder: Path, name: str, pooling: Any) -> None:
    from transformers import AutoTokenizer, BertForMaskedLM

    encoder = load_splade(options(folder / name), pooling=pooling)
    (found,) = splade_vectors(encoder, TEXTS, "passage")
    assert found.ids.tolist() == [text_id for text_id, _ in TEXTS]
    tokenizer = AutoTokenizer.from_pretrained(folder / "language_model")
    model = BertForMaskedLM.from_pretrained(folder / "language_model")
    model.train(False)
    for row, (_, text) in zip(dense(found), TEXTS, strict=True):
        tokens = tokenizer(text, return_tensors="pt", truncation=True, max_length=64)
        with torch.inference_mode():
            logits = model(**tokens).logits[0].numpy()
        weights = log_saturation(logits)
        expected = weights.max(axis=0) if pooling == "max" else weights.sum(axis=0)
        np.testing.assert_allclose(row, expected, rtol=1e-4, atol=1e-5)


def test_truncation_keeps_the_largest_weights(folder: Path) -> None:
    encoder = load_splade(options(folder / "model"))
    (whole,) = splade_vectors(encoder, TEXTS, "passage")
    (cut,) = splade_vectors(encoder, TEXTS, "passage", 3)
    assert int(whole.row_sizes().max()) > 3
    np.testing.assert_array_equal(dense(cut), dense(whole.cap(3)))


@pytest.mark.parametrize(
    ("queries", "rare", "page", "length"), [("tokens", 1, 1, 1), ("idf", 3.5, 0.25, 0)]
)
def test_queries_of_splade_doc_are_their_distinct_tokens(
    folder: Path, queries: Any, rare: float, page: float, length: float
) -> None:
    from transformers import AutoTokenizer

    encoder = load_splade(options(folder / "language_model"), queries=queries)
    texts = [("q0", "rare page rare"), ("q1", ""), ("q2", "length page")]
    (found,) = splade_vectors(encoder, texts, "query")
    ids = AutoTokenizer.from_pretrained(folder / "language_model").get_vocab()
    expected = np.zeros((3, encoder.vocabulary_size))
    expected[0, [ids["rare"], ids["page"]]] = rare, page
    expected[2, [ids["length"], ids["page"]]] = length, page
    np.testing.assert_array_equal(dense(found), expected)
    (empty,) = splade_vectors(encoder, [("q", "")], "query")
    assert empty.nonzeros == 0
    (documents,) = splade_vectors(encoder, TEXTS, "passage")
    (usual,) = splade_vectors(load_splade(options(folder / "language_model")), TEXTS, "passage")
    np.testing.assert_array_equal(dense(documents), dense(usual))


def test_wrong_choices_are_refused(folder: Path) -> None:
    with pytest.raises(InputError, match="choose max or sum"):
        load_splade(options(folder / "model"), pooling="mean")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"no idf\.json"):
        load_splade(options(folder / "model"), queries="idf")
