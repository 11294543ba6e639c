"""Baked files, read back and searched by engines that know nothing of corrections."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import scipy.sparse
from click.testing import CliRunner

from whencount.cli.bake import _FORMATS, bake
from whencount.errors import InputError
from whencount.exporting.baking import Baking
from whencount.exporting.baking import bake as library
from whencount.exporting.formats import FORMATS, Names, qdrant, rank_features
from whencount.scoring import CONFIGURATIONS, Configuration, Parameters
from whencount.search import search
from whencount.vectors import SparseVectors

PARAMETERS = Parameters(0.9, 0.6)


def draw(seed: int, rows: int, prefix: str, width: int = 40) -> SparseVectors:
    """Some vectors are empty, and ids and weights are of every kind."""
    random = np.random.default_rng(seed)
    dense = random.gamma(0.7, 2.0, (rows, width)) * (random.random((rows, width)) < 0.25)
    dense[rows // 2] = 0
    return SparseVectors.from_dense([f'{prefix}"{n}é' for n in range(rows)], dense)


@pytest.fixture(scope="module")
def documents() -> SparseVectors:
    return draw(0, 90, "d")


@pytest.fixture(scope="module")
def queries() -> SparseVectors:
    return draw(1, 12, "q")


@pytest.fixture(scope="module")
def names() -> Names:
    return Names(np.array([f"term.{n} %ü" for n in range(40)], dtype=object))


def best(
    documents: SparseVectors, queries: SparseVectors, configuration: Configuration
) -> list[dict[str, float]]:
    """{document id: score} of our engine, for every document with a score, per query."""
    found = search(
        documents, queries, (PARAMETERS,), configurations=(configuration,), depth=len(documents)
    )
    return [
        {
            str(documents.ids[at]): float(score)
            for at, score in zip(
                found.positions[0, 0, row, :count], found.scores[0, 0, row, :count], strict=True
            )
        }
        for row, count in enumerate(found.counts[0, 0])
    ]


def agree(ours: dict[str, float], theirs: dict[str, float], slack: float = 0.0) -> None:
    """Both top tens have the same scores, so that only documents of equal score may differ."""
    mine = sorted(ours.values(), reverse=True)[:10]
    order = sorted(theirs, key=lambda name: -theirs[name])[: len(mine)]
    np.testing.assert_allclose([theirs[name] for name in order], mine, rtol=2e-5, atol=slack)
    np.testing.assert_allclose([ours[name] for name in order], mine, rtol=2e-5, atol=2 * slack)


def vectors_of(path: Path) -> dict[str, dict[str, float]]:
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return {line["id"]: line["vector"] for line in lines}


def products(documents: dict[str, dict[str, float]], query: dict[str, float]) -> dict[str, float]:
    found = {
        name: sum(query[term] * weight for term, weight in vector.items() if term in query)
        for name, vector in documents.items()
    }
    return {name: score for name, score in found.items() if score > 0}


@pytest.mark.parametrize("configuration", CONFIGURATIONS, ids=str)
@pytest.mark.parametrize("into_documents", [True, False])
def test_a_plain_inner_product_of_baked_files_is_the_corrected_score(
    documents: SparseVectors,
    queries: SparseVectors,
    names: Names,
    configuration: Configuration,
    into_documents: bool,
    tmp_path: Path,
) -> None:
    baking = Baking([documents], names, configuration, PARAMETERS, into_documents)
    out, asked = tmp_path / "d.jsonl", tmp_path / "q.jsonl"
    report = library(baking, "jsonl", out, queries, asked)
    assert (report.documents, report.weights) == (90, documents.nonzeros)
    assert report.largest_error == report.largest_bound == 0
    stored, wanted = vectors_of(out), vectors_of(asked)
    assert list(stored) == list(documents.ids)
    for ours, query in zip(best(documents, queries, configuration), wanted.values(), strict=True):
        theirs = products(stored, query)
        assert set(theirs) == set(ours)
        for name, score in ours.items():
            assert theirs[name] == pytest.approx(score, rel=2e-5)


def _npz(path: Path, queries: SparseVectors) -> list[dict[str, float]]:
    matrix = scipy.sparse.load_npz(path)
    ids = path.with_suffix(".ids.txt").read_text(encoding="utf-8").splitlines()
    wanted = scipy.sparse.csr_matrix(
        (queries.values, queries.features, queries.indptr), (len(queries), matrix.shape[1])
    )
    scores = (wanted @ matrix.T).toarray()
    return [{ids[at]: float(row[at]) for at in np.flatnonzero(row)} for row in scores]


def _parquet(path: Path, queries: SparseVectors) -> list[dict[str, float]]:
    table = pq.read_table(path).to_pydict()
    stored = {
        name: dict(zip(map(str, indices), values, strict=True))
        for name, indices, values in zip(
            table["id"], table["indices"], table["values"], strict=True
        )
    }
    return [products(stored, query) for query in _by_number(queries)]


def _milvus(path: Path, queries: SparseVectors) -> list[dict[str, float]]:
    table = pq.read_table(path).to_pydict()
    stored = {
        name: json.loads(text) for name, text in zip(table["id"], table["sparse"], strict=True)
    }
    return [products(stored, query) for query in _by_number(queries)]


def _rank_features(path: Path, queries: SparseVectors) -> list[dict[str, float]]:
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    stored = {
        action["index"]["_id"]: document[rank_features.FIELD]
        for action, document in zip(lines[::2], lines[1::2], strict=True)
    }
    assert all("." not in name for one in stored.values() for name in one)
    asked = [
        {rank_features.feature_name(f"term.{number} %ü"): w for number, w in query.items()}
        for query in _by_number(queries)
    ]
    return [products(stored, query) for query in asked]


def _qdrant(path: Path, queries: SparseVectors) -> list[dict[str, float]]:
    """A real client with its in-process engine."""
    from qdrant_client import QdrantClient, models

    client = QdrantClient(":memory:")
    client.create_collection(
        "baked",
        vectors_config={},
        sparse_vectors_config={qdrant.VECTOR: models.SparseVectorParams()},
    )
    points = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    client.upsert("baked", [models.PointStruct(**point) for point in points])
    found = []
    for row in range(len(queries)):
        low, high = queries.indptr[row], queries.indptr[row + 1]
        vector = models.SparseVector(
            indices=queries.features[low:high].tolist(), values=queries.values[low:high].tolist()
        )
        hits = client.query_points(
            "baked", query=vector, using=qdrant.VECTOR, limit=len(points), with_payload=True
        ).points
        found.append(
            {hit.payload["id"]: hit.score for hit in hits if hit.payload and hit.score > 0}
        )
    return found


def _by_number(queries: SparseVectors) -> list[dict[str, float]]:
    edges = zip(queries.indptr[:-1], queries.indptr[1:], strict=True)
    return [
        dict(
            zip(map(str, queries.features[a:b].tolist()), queries.values[a:b].tolist(), strict=True)
        )
        for a, b in edges
    ]


ENGINES: dict[str, Callable[[Path, SparseVectors], list[dict[str, float]]]] = {
    "npz": _npz,
    "parquet": _parquet,
    "milvus": _milvus,
    "rank-features": _rank_features,
    "qdrant": _qdrant,
}


@pytest.mark.parametrize("file_format", ENGINES)
@pytest.mark.parametrize("bits", [None, 8])
def test_every_format_gives_the_same_top_ten_in_another_engine(
    documents: SparseVectors,
    queries: SparseVectors,
    names: Names,
    file_format: str,
    bits: int | None,
    tmp_path: Path,
) -> None:
    configuration = Configuration.parse("111")
    out = tmp_path / f"baked{FORMATS[file_format].suffix}"
    baking = Baking([documents.slice(0, 50), documents.slice(50, 90)], names, configuration,
                    PARAMETERS, True, bits)  # fmt: skip
    report = library(baking, file_format, out, queries)
    step = report.step or 1.0
    slack = report.largest_bound or 0.0
    assert (slack > 0) == (bits is not None)
    ours = best(documents, queries, configuration)
    for mine, theirs in zip(ours, ENGINES[file_format](out, queries), strict=True):
        agree(mine, {name: score * step for name, score in theirs.items()}, slack)


def test_bm25s_ranks_baked_documents_as_we_do(
    documents: SparseVectors, queries: SparseVectors, names: Names, tmp_path: Path
) -> None:
    """bm25s sums the scores of a query's terms, so queries weigh 1 here."""
    import bm25s

    configuration = Configuration.parse("111")
    ones = SparseVectors(
        queries.ids,
        queries.indptr,
        queries.features,
        np.ones_like(queries.values),
        queries.vocabulary_size,
    )
    out = tmp_path / "baked.npz"
    library(Baking([documents], names, configuration, PARAMETERS), "npz", out)
    by_feature = scipy.sparse.csc_matrix(scipy.sparse.load_npz(out))
    engine = bm25s.BM25()
    engine.scores = {
        "data": by_feature.data.astype(np.float32),
        "indices": by_feature.indices.astype(np.int32),
        "indptr": by_feature.indptr.astype(np.int64),
        "num_docs": len(documents),
    }
    engine.nonoccurrence_array = None
    engine.vocab_dict = {str(n): n for n in range(by_feature.shape[1])}
    for row, mine in enumerate(best(documents, ones, configuration)):
        asked = ones.features[ones.indptr[row] : ones.indptr[row + 1]]
        scores = engine.get_scores_from_ids(asked.tolist())
        theirs = {str(documents.ids[at]): float(scores[at]) for at in np.flatnonzero(scores)}
        agree(mine, theirs)


def test_pisa_searches_the_baked_index(
    documents: SparseVectors, queries: SparseVectors, names: Names, tmp_path: Path
) -> None:
    from whencount.exporting import pisa, steps_of

    try:
        pisa.native()
    except InputError as error:
        pytest.skip(str(error))
    configuration = Configuration.parse("011")
    out = tmp_path / "baked.ciff"
    report = library(Baking([documents], names, configuration, PARAMETERS, True, 8), "ciff", out,
                     queries)  # fmt: skip
    assert (tmp_path / "baked.ciff.features.txt").read_text(encoding="utf-8").splitlines() == (
        [f"term.{n} %ü" for n in range(40)]
    )
    engine = pisa.Pisa(out, tmp_path / "pisa")
    whole = steps_of([queries], 8)
    prepared = engine.prepare(whole.round(queries))
    assert report.step is not None
    assert prepared is not None


def test_a_bound_holds_for_every_score(
    documents: SparseVectors, queries: SparseVectors, names: Names, tmp_path: Path
) -> None:
    configuration = Configuration.parse("111")
    for bits in (3, 8, 12):
        out = tmp_path / f"{bits}.jsonl"
        baking = Baking([documents], names, configuration, PARAMETERS, True, bits)
        report = library(baking, "jsonl", out, queries, tmp_path / "q.jsonl")
        assert report.step is not None
        assert report.largest_bound is not None
        assert 0 < report.largest_error <= report.step
        stored, wanted = vectors_of(out), vectors_of(tmp_path / "q.jsonl")
        assert {type(w) for v in stored.values() for w in v.values()} == {int}
        off = []
        for ours, query in zip(
            best(documents, queries, configuration), wanted.values(), strict=True
        ):
            theirs = products(stored, query)
            off += [abs(theirs[name] * report.step - score) for name, score in ours.items()]
        assert max(off) <= report.largest_bound * (1 + 1e-5)


def write_jsonl(vectors: SparseVectors, path: Path) -> None:
    lines = [
        json.dumps({"id": name, "vector": vector})
        for name, vector in zip(vectors.ids, _by_number(vectors), strict=True)
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.fixture
def files(documents: SparseVectors, queries: SparseVectors, tmp_path: Path) -> dict[str, str]:
    write_jsonl(documents, tmp_path / "docs.jsonl")
    write_jsonl(queries, tmp_path / "queries.jsonl")
    return {"documents": str(tmp_path / "docs.jsonl"), "queries": str(tmp_path / "queries.jsonl")}


def run(*arguments: str) -> Any:
    return CliRunner().invoke(bake, list(arguments))


def test_the_command_writes_queries_where_idf_goes_into_them(
    files: dict[str, str], tmp_path: Path
) -> None:
    out = tmp_path / "out.jsonl"
    done = run(
        "--documents", files["documents"], "--queries", files["queries"], "--configuration", "111",
        "--idf", "queries", "--out", str(out), "--json",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["documents"] == 90
    assert len(vectors_of(tmp_path / "out.jsonl.queries.jsonl")) == 12


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--configuration", "112"], "112"),
        (["--configuration", "111", "--idf", "queries"], "--queries"),
        (["--configuration", "011", "--format", "ciff"], "whole numbers"),
        (["--configuration", "011", "--k1", "-1"], "k1"),
        (["--configuration", "011", "--queries-out", "q.jsonl"], "needs --queries"),
    ],
)
def test_bad_options_are_refused_and_nothing_is_written(
    files: dict[str, str], tmp_path: Path, arguments: list[str], sentence: str
) -> None:
    before = set(tmp_path.iterdir())
    done = run("--documents", files["documents"], "--out", str(tmp_path / "o"), *arguments)
    assert done.exit_code != 0
    said = f"{done.output}{done.exception or ''}"
    assert sentence in said
    assert set(tmp_path.iterdir()) == before


def test_the_command_names_every_format() -> None:
    assert list(_FORMATS) == list(FORMATS)
