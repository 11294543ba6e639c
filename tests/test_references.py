"""Text BM25 and dense search against independent implementations; run files."""

from __future__ import annotations

import gzip
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from whencount.collections import Document, PreparedCollection, Query, open_collection, prepare
from whencount.errors import InputError
from whencount.references import (
    Run,
    bm25,
    dense,
    quality,
    read_run,
    read_trec_run,
    tokenize,
    write_run,
    write_trec_run,
)
from whencount.scoring import Parameters

SHARED = Path(__file__).parents[1] / ".." / "shared" / "data"
shared_data = pytest.mark.skipif(not SHARED.is_dir(), reason="the shared data are not here")


class Small:
    """A collection in memory."""

    def __init__(self, documents: list[str], queries: list[str]) -> None:
        self._documents = [Document(f"d{n}", text) for n, text in enumerate(documents)]
        self.queries = [Query(f"q{n}", text) for n, text in enumerate(queries)]

    def document_batches(self) -> list[list[Document]]:
        middle = len(self._documents) // 2
        return [self._documents[:middle], self._documents[middle:]]

    def __len__(self) -> int:
        return len(self._documents)


def test_words_keep_indic_vowel_signs_and_fold_case() -> None:
    assert tokenize("हिन्दी में, ক্ষুদ্র!") == ["हिन्दी", "में", "ক্ষুদ্র"]
    assert tokenize("Straße STRASSE") == ["strasse", "strasse"]
    assert tokenize("Cafe\u0301 caf\u00e9") == ["caf\u00e9", "caf\u00e9"]
    assert tokenize("snake_case x²-3") == ["snake", "case", "x²", "3"]
    assert tokenize(" .;— ") == []


texts = st.lists(
    st.lists(st.sampled_from(["ab", "c", "dd", "eee", "f", "g"]), max_size=8).map(" ".join),
    min_size=1,
    max_size=12,
)


@given(texts, texts, st.floats(0, 3), st.floats(0, 1))
@settings(max_examples=40, deadline=None)
def test_bm25_is_the_formula(documents: list[str], queries: list[str], k1: float, b: float) -> None:
    """Against the definition of the study's section 1, term by term in float64."""
    run = bm25(Small(documents, queries), Parameters(k1, b), depth=5, threads=1)
    words = [text.split() for text in documents]
    average = sum(len(text) for text in words) / len(words)
    for number, query in enumerate(queries):
        scores = np.zeros(len(words))
        for term in query.split():
            frequency = sum(1 for text in words if term in text)
            weight = np.log(1 + (len(words) - frequency + 0.5) / (frequency + 0.5))
            for place, text in enumerate(words):
                count = len([word for word in text if word == term])
                if count:
                    length = 1 - b + b * len(text) / average
                    scores[place] += weight * (k1 + 1) * count / (count + k1 * length)
        mine = run.query_positions == number
        expected = min(5, int(np.count_nonzero(scores)))
        assert run.ranks[mine].tolist() == list(range(1, expected + 1))
        np.testing.assert_allclose(run.scores[mine], scores[run.document_positions[mine]], 1e-9)
        best = np.sort(scores)[::-1][:expected]
        np.testing.assert_allclose(run.scores[mine], best, rtol=1e-9)


def test_equal_scores_stand_by_position() -> None:
    run = bm25(Small(["owl", "x", "owl", "owl"], ["owl"]), threads=1)
    assert run.document_positions.tolist() == [0, 2, 3]


@pytest.fixture(scope="module")
def scifact(tmp_path_factory: pytest.TempPathFactory) -> PreparedCollection:
    options = {"source": "beir", "path": str(SHARED / "scifact")}
    folder = tmp_path_factory.mktemp("prepared") / "scifact"
    return prepare(open_collection("scifact", options), folder)


def ndcg_of(run: Run, collection: Any) -> float:
    """Mean nDCG@10 by pytrec_eval over all queries with a relevant judgement."""
    pytrec_eval = pytest.importorskip("pytrec_eval")
    qrels: dict[str, dict[str, int]] = {}
    judged = collection.qrels
    for query, document, relevance in zip(
        judged.query_ids, judged.document_ids, judged.relevance.tolist(), strict=True
    ):
        qrels.setdefault(query, {})[document] = relevance
    ranked: dict[str, dict[str, float]] = {query: {} for query in qrels}
    queries = collection.query_ids[run.query_positions]
    documents = collection.document_ids[run.document_positions]
    for query, document, rank in zip(queries, documents, run.ranks.tolist(), strict=True):
        ranked[query][document] = float(-rank)
    values = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut.10"}).evaluate(ranked)
    relevant = [query for query, found in qrels.items() if max(found.values()) > 0]
    return float(np.mean([values.get(q, {"ndcg_cut_10": 0.0})["ndcg_cut_10"] for q in relevant]))


@shared_data
def test_bm25_of_scifact_agrees_with_bm25s(scifact: PreparedCollection) -> None:
    bm25s = pytest.importorskip("bm25s")
    run = bm25(scifact, Parameters(0.9, 0.4), depth=20, threads=2)
    positions, scores, _ = run.matrices(len(scifact.queries), 20)
    words = [tokenize(document.text) for document in scifact.documents()]
    asked = [tokenize(query.text) for query in scifact.queries]
    other = bm25s.BM25(method="lucene", k1=0.9, b=0.4)
    other.index(words, show_progress=False)
    found, theirs = other.retrieve(asked, k=20, show_progress=False)
    # Its numerator lacks k1 + 1, which changes no order; its scores are float32.
    np.testing.assert_allclose(scores / 1.9, theirs, rtol=2e-5, atol=1e-5)
    distinct = np.diff(theirs, axis=1).min(axis=1, initial=0) <= 0
    agree = [
        len(set(a) & set(b)) for a, b in zip(positions[distinct], found[distinct], strict=True)
    ]
    assert np.mean(agree) >= 19.9


@shared_data
def test_bm25_of_scifact_is_as_good_as_published(
    scifact: PreparedCollection, tmp_path: Path
) -> None:
    """Published BM25 baselines on SciFact lie at .665 to .679; unstemmed ones a little lower."""
    run = bm25(scifact, threads=2)
    assert 0.655 <= ndcg_of(run, scifact) <= 0.690
    path = tmp_path / "bm25.scifact.parquet"
    write_run(run, scifact, path)
    (row,) = quality([path], {"scifact": scifact}).to_dict("records")
    assert (row["reference"], row["collection"], row["queries"]) == ("bm25", "scifact", 300)
    assert row["ndcg_10"] == pytest.approx(ndcg_of(run, scifact), abs=1e-12)
    assert row["recall_100"] > row["ndcg_10"]


@shared_data
def test_bm25_of_hindi_needs_its_vowel_signs(tmp_path: Path) -> None:
    options = {"source": "beir", "path": str(SHARED / "xquad-r-hi")}
    hindi = prepare(open_collection("hi", options), tmp_path / "hi")
    assert ndcg_of(bm25(hindi, threads=2), hindi) >= 0.70


def exact_cosine(documents: NDArray[Any], queries: NDArray[Any]) -> NDArray[Any]:
    def unit(rows: NDArray[Any]) -> NDArray[Any]:
        wide = rows.astype(np.float64)
        norms = np.linalg.norm(wide, axis=1, keepdims=True)
        return wide / np.where(norms > 0, norms, 1.0)

    return np.asarray(unit(queries) @ unit(documents).T)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_dense_is_exact_over_blocks_and_shards(
    dtype: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    import importlib

    module = importlib.import_module("whencount.references.dense")
    monkeypatch.setattr(module, "_DOCUMENTS_AT_ONCE", 37)
    monkeypatch.setattr(module, "_QUERIES_AT_ONCE", 6)
    monkeypatch.setattr(module, "_RESCORED_AT_ONCE", 50)
    random = np.random.default_rng(0)
    documents: NDArray[Any] = random.normal(size=(500, 24)).astype(dtype)
    documents[7] = 0
    queries: NDArray[Any] = random.normal(size=(20, 24)).astype(dtype)
    expected = exact_cosine(documents, queries)
    run = dense(documents, queries, depth=30)
    positions, scores, counts = run.matrices(20, 30)
    assert (counts == 30).all()
    np.testing.assert_array_equal(positions, np.argsort(-expected, axis=1)[:, :30])
    np.testing.assert_allclose(scores, np.take_along_axis(expected, positions, 1), rtol=1e-12)
    sharded = dense([documents[:111], documents[111:111], documents[111:]], queries, depth=30)
    for name in ("query_positions", "document_positions", "ranks", "scores"):
        np.testing.assert_array_equal(getattr(run, name), getattr(sharded, name))


def test_identical_states_tie_exactly_and_stand_by_position() -> None:
    random = np.random.default_rng(1)
    row = random.normal(size=(1, 384)).astype(np.float32)
    documents = np.concatenate([random.normal(size=(300, 384)).astype(np.float32), row])
    documents = documents[[*range(300), *[300] * 40]]
    order = random.permutation(len(documents))
    run = dense(documents[order], row, depth=25)
    copies = np.sort(np.flatnonzero(order >= 300))
    assert run.document_positions.tolist() == copies[:25].tolist()
    assert len(set(run.scores.tolist())) == 1


def test_dense_reads_memory_mapped_files_and_keeps_negative_cosines(tmp_path: Path) -> None:
    np.save(tmp_path / "states.npy", -np.eye(3, dtype=np.float16))
    documents = np.load(tmp_path / "states.npy", mmap_mode="r")
    run = dense(documents, np.eye(3, dtype=np.float32)[:1], depth=100)
    assert run.document_positions.tolist() == [1, 2, 0]
    assert run.scores.tolist() == [0.0, 0.0, -1.0]


def test_dense_refuses_what_has_no_order() -> None:
    good = np.ones((3, 4), dtype=np.float32)
    bad = good.copy()
    bad[1, 2] = np.nan
    with pytest.raises(InputError, match="document 2 is not finite"):
        dense(bad, good)
    with pytest.raises(InputError, match="one number of columns"):
        dense(good, good[:, :3])
    with pytest.raises(InputError, match="depth 0"):
        dense(good, good, depth=0)
    with pytest.raises(InputError, match="no document"):
        dense(good[:0], good)


def run_of(scores: list[list[float]]) -> Run:
    rows = [(q, d, d + 1, s) for q, line in enumerate(scores) for d, s in enumerate(line)]
    columns = list(zip(*rows, strict=True)) if rows else [(), (), (), ()]
    return Run(
        np.array(columns[0], dtype=np.int32),
        np.array(columns[1], dtype=np.int32)[::-1],
        np.array(columns[2], dtype=np.int32),
        np.array(columns[3], dtype=np.float64),
    )


def names(size: int) -> Any:
    return SimpleNamespace(
        query_ids=np.array([f"q{n}" for n in range(size)], dtype=object),
        document_ids=np.array([f"d{n}" for n in range(size)], dtype=object),
    )


@given(st.lists(st.floats(-1e38, 1e38), min_size=1, max_size=30))
@settings(max_examples=60, deadline=None)
def test_a_trec_run_keeps_its_order_in_float32(
    tmp_path_factory: pytest.TempPathFactory, scores: list[float]
) -> None:
    scores = sorted(scores, reverse=True)
    path = tmp_path_factory.mktemp("run") / "run.trec"
    run = run_of([scores])
    write_trec_run(run, names(len(scores)), path, "name")
    lines = [line.split() for line in path.read_text().splitlines()]
    printed = np.array([float(line[4]) for line in lines], dtype=np.float32)
    assert (np.diff(printed) < 0).all()
    np.testing.assert_allclose(printed, scores, rtol=1e-4, atol=1e-37)
    frame = read_trec_run(path)
    assert frame["document_id"].tolist() == [f"d{n}" for n in run.document_positions]
    assert frame["rank"].tolist() == run.ranks.tolist()


def test_equal_scores_reach_trec_eval_in_our_order(tmp_path: Path) -> None:
    pytrec_eval = pytest.importorskip("pytrec_eval")
    run = run_of([[1.0, 1.0, 1.0]])
    write_trec_run(run, names(3), tmp_path / "run.gz", "x")
    with gzip.open(tmp_path / "run.gz", "rt") as stream:
        ranked = pytrec_eval.parse_run(stream)
    qrels = {"q0": {f"d{run.document_positions[0]}": 1}}
    values = pytrec_eval.RelevanceEvaluator(qrels, {"recip_rank"}).evaluate(ranked)
    assert values["q0"]["recip_rank"] == 1.0


def test_an_id_with_white_space_cannot_stand_in_a_trec_run(tmp_path: Path) -> None:
    named = names(1)
    named.document_ids = np.array(["Geneva Durben"], dtype=object)
    with pytest.raises(InputError, match="'Geneva Durben' holds white space"):
        write_trec_run(run_of([[1.0]]), named, tmp_path / "run", "x")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("q Q0 d 1 2.5\n", "line 1: found 5 columns"),
        ("q Q0 d 1 2.5 x\nq Q0 e two 1 x\n", "line 2: rank 'two'"),
        ("q Q0 d 1 nan x\n", "line 1: score 'nan' is not finite"),
        ("q Q0 d 1 2 x\nq Q0 d 2 1 x\n", "line 2.*'d' already on line 1"),
        ("", "is empty"),
    ],
)
def test_bad_run_files_are_named_by_line(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "run").write_text(text)
    with pytest.raises(InputError, match=message):
        read_trec_run(tmp_path / "run")


def test_a_run_comes_back_from_parquet(tmp_path: Path) -> None:
    run = run_of([[3.0, 2.0], [], [1.5]])
    write_run(run, names(3), tmp_path / "run.parquet")
    again = read_run(tmp_path / "run.parquet", names(3))
    for name in ("query_positions", "document_positions", "ranks", "scores"):
        np.testing.assert_array_equal(getattr(run, name), getattr(again, name))
    with pytest.raises(InputError, match="'q2' is not in the collection"):
        read_run(tmp_path / "run.parquet", names(2))


def test_a_study_without_references_has_an_empty_table() -> None:
    frame = quality([], {})
    assert list(frame.columns) == ["reference", "collection", "queries", "ndcg_10", "recall_100"]
    assert len(frame) == 0
