"""The index of late interaction on disk: searched as plain loops would, counted, timed, refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from whencount.errors import InputError
from whencount.index_costs import measuring
from whencount.index_costs.sources import open_source
from whencount.late_interaction.index import IndexWriter, LateIndex, write_queries
from whencount.late_interaction.maxsim import DocumentTokens
from whencount.late_interaction.pools import PairScores
from whencount.late_interaction.queries import QueryTokens
from whencount.late_interaction.residual import ResidualCodec, fit_centroids
from whencount.measures import Judgements, mean_quality, ndcg
from whencount.scoring import CONFIGURATIONS, Parameters

WIDTH, DOCUMENTS, QUERIES = 16, 60, 9
PARTS = ("vectors.npy", "packed2.npy", "packed1.npy", "means.npy")
KEYS = {
    "representation": "late_exact",
    "kind": "late_interaction",
    "collection": "made",
    "corpus": "made",
}


def unit(rows: NDArray[np.float64]) -> NDArray[np.float32]:
    found: NDArray[np.float32] = rows / np.linalg.norm(rows, axis=-1, keepdims=True)
    return found.astype(np.float16).astype(np.float32)


def texts(seed: int, count: int, least: int) -> list[NDArray[np.float32]]:
    random = np.random.default_rng(seed)
    return [unit(random.standard_normal((random.integers(least, 7), WIDTH))) for _ in range(count)]


@pytest.fixture(scope="module")
def documents() -> list[NDArray[np.float32]]:
    return texts(1, DOCUMENTS, 0)


@pytest.fixture(scope="module")
def asked() -> list[NDArray[np.float32]]:
    return [*texts(2, QUERIES - 1, 1), np.empty((0, WIDTH), dtype=np.float32)]


@pytest.fixture(scope="module")
def codecs(documents: list[NDArray[np.float32]]) -> dict[int, ResidualCodec]:
    sample = np.concatenate(documents)
    book = fit_centroids(sample, 8, 0)
    return {bits: ResidualCodec.fit(sample, book, bits) for bits in (1, 2)}


@pytest.fixture(scope="module")
def index(
    documents: list[NDArray[np.float32]],
    asked: list[NDArray[np.float32]],
    codecs: dict[int, ResidualCodec],
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    folder = tmp_path_factory.mktemp("index")
    writer = IndexWriter(folder, WIDTH, codecs, whole=True)
    for low in range(0, DOCUMENTS, 25):
        part = documents[low : low + 25]
        offsets = np.concatenate([[0], np.cumsum([len(one) for one in part])]).astype(np.int64)
        block = DocumentTokens(torch.from_numpy(np.concatenate(part)), offsets)
        writer.append(block, {bits: codec.encode(block.states) for bits, codec in codecs.items()})
    writer.close()
    states = torch.zeros((QUERIES, 7, WIDTH))
    for row, one in enumerate(asked):
        states[row, : len(one)] = torch.from_numpy(one)
    write_queries(QueryTokens(states, (states != 0).any(dim=2)), folder)
    return folder


def stored(part: str, text: NDArray[np.float32], codecs: dict[int, ResidualCodec]) -> torch.Tensor:
    """What an index keeps of a document, made without one."""
    states = torch.from_numpy(text)
    if part.startswith("packed"):
        codec = codecs[int(part[6])]
        return codec.decode(codec.encode(states))
    if part == "means.npy":
        mean = states.mean(dim=0, keepdim=True) if len(text) else torch.zeros((1, WIDTH))
        return torch.nn.functional.normalize(mean, dim=1).half().float()
    return states


def naive(
    part: str,
    documents: list[NDArray[np.float32]],
    asked: list[NDArray[np.float32]],
    codecs: dict[int, ResidualCodec],
) -> NDArray[np.float64]:
    found = np.zeros((len(asked), len(documents)))
    for q, query in enumerate(asked):
        vectors = query
        if part == "means.npy" and len(query):
            mean = query.mean(axis=0, keepdims=True)
            vectors = mean / np.linalg.norm(mean)
        for d, document in enumerate(documents):
            kept = stored(part, document, codecs).numpy()
            found[q, d] = sum(max((float(v @ row) for row in kept), default=-1.0) for v in vectors)
    return found


@pytest.mark.parametrize("part", PARTS)
def test_every_form_of_the_index_ranks_as_plain_loops_do(
    index: Path,
    documents: list[NDArray[np.float32]],
    asked: list[NDArray[np.float32]],
    codecs: dict[int, ResidualCodec],
    part: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("whencount.late_interaction.index._TOKENS_AT_ONCE", 40)
    scores = naive(part, documents, asked, codecs)
    positions, found = LateIndex(index, part).search(0, QUERIES - 1, 10)
    order = np.argsort(-scores[:-1], axis=1, kind="stable")[:, :10]
    expected = np.take_along_axis(scores[:-1], order, axis=1)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    np.testing.assert_allclose(np.take_along_axis(scores[:-1], positions, 1), expected, atol=1e-5)


def test_payloads_are_those_of_the_formulas(
    index: Path, documents: list[NDArray[np.float32]]
) -> None:
    tokens = sum(map(len, documents))
    book = 8 * WIDTH * 2
    expected = {
        "vectors.npy": tokens * WIDTH * 2,
        "packed2.npy": tokens * (4 + WIDTH * 2 // 8) + book,
        "packed1.npy": tokens * (4 + WIDTH // 8) + book,
        "means.npy": DOCUMENTS * WIDTH * 2,
    }
    assert {part: LateIndex(index, part).payload_bytes for part in PARTS} == expected


def test_costs_and_quality_of_an_index(
    index: Path,
    documents: list[NDArray[np.float32]],
    asked: list[NDArray[np.float32]],
    codecs: dict[int, ResidualCodec],
    tmp_path: Path,
) -> None:
    judged = np.arange(QUERIES)
    judgements = Judgements.from_positions(
        judged, judged * 5, np.ones(QUERIES, np.int64), QUERIES, DOCUMENTS
    )
    arguments = ([index], index, "vectors.npy", judgements, KEYS, ["native"], Parameters())
    rows, _ = measuring.costs(*arguments, tmp_path, threads=1)
    (row,) = rows.to_dict("records")
    tokens = [len(one) for one in documents]
    queried = [len(one) for one in asked]
    assert row["document_nnz"] == pytest.approx(np.mean(tokens) * WIDTH)
    assert row["document_nnz_sd"] == pytest.approx(np.std(tokens) * WIDTH)
    products = sum(tokens) * np.mean(queried) * WIDTH
    assert row["posting_work"] == pytest.approx(products)
    scores = naive("vectors.npy", documents, asked, codecs)
    order = np.argsort(-scores, axis=1, kind="stable")[:, :10].astype(np.int32)
    counts = np.array([10] * (QUERIES - 1) + [0], dtype=np.int32)
    expected = mean_quality(ndcg(order, counts, judgements), judgements)
    assert [row[f"q{one}"] for one in CONFIGURATIONS] == pytest.approx([float(expected)] * 8)


@pytest.mark.parametrize("part", PARTS)
def test_queries_are_timed_and_know_one_score(index: Path, tmp_path: Path, part: str) -> None:
    frame = measuring.times(
        [index],
        index,
        part,
        QUERIES,
        {"representation": "late", "collection": "made"},
        ["native"],
        Parameters(),
        tmp_path,
        sample=3,
        rounds=1,
        threads=1,
    )
    (row,) = frame.to_dict("records")
    assert np.isnan(row["eight_median_ms"])
    assert row["full_median_ms"] > 0


def test_a_part_that_is_not_there_is_named(index: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no whole index of late interaction"):
        LateIndex(index, "packed4.npy")
    with pytest.raises(InputError, match="make it again"):
        open_source([tmp_path], tmp_path, "vectors.npy", (None, None))


def test_scores_of_all_pairs_lie_on_disk(tmp_path: Path) -> None:
    pairs = PairScores(tmp_path, ("one", "two"), 3, 10)
    random = np.random.default_rng(0)
    expected = random.standard_normal((3, 10)).astype(np.float32)
    for low in range(0, 10, 4):
        pairs.put("two", low, expected[:, low : low + 4])
    np.testing.assert_array_equal(pairs.read("two"), expected)
    assert not pairs.read("one").any()
