"""Configurations folded into whole-number weights, CIFF, and engines that prune."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from whencount.engine.storage import open_index, write_index
from whencount.errors import InputError
from whencount.exporting import (
    CiffFile,
    Steps,
    folding_of,
    score_bound,
    steps_of,
    write_ciff,
    write_json_lines,
)
from whencount.exporting.impacts import largest_score
from whencount.exporting.ties import Best, best
from whencount.scoring import CONFIGURATIONS, Configuration, Parameters
from whencount.search import search
from whencount.vectors import SparseVectors

SCIFACT = Path(__file__).parents[1] / ".." / "shared" / "data" / "scifact"
INNER = Configuration.parse("000")


def random_vectors(
    rows: int, nonzeros: int, vocabulary: int, seed: int, levels: int = 0
) -> SparseVectors:
    """Vectors of falling feature popularity; values of a few levels make many ties."""
    random = np.random.default_rng(seed)
    popularity = 1.0 / np.arange(1, vocabulary + 1)
    chosen = random.random((rows, vocabulary)) < np.minimum(
        1.0, nonzeros * popularity / popularity.sum()
    )
    chosen[::97] = False  # some have nothing at all
    row, feature = np.nonzero(chosen)
    value = random.lognormal(0.0, 1.0, len(row))
    if levels:
        value = random.integers(1, levels + 1, len(row)).astype(np.float64)
    return SparseVectors.from_coo(
        [f"d{one}" for one in range(rows)], row, feature, value, vocabulary
    )


def shards_of(vectors: SparseVectors, *cuts: int) -> list[SparseVectors]:
    edges = [0, *cuts, len(vectors)]
    return [vectors.slice(low, high) for low, high in pairwise(edges)]


def exported(
    folder: Path, documents: SparseVectors, whole: list[SparseVectors], block: int = 64
) -> Path:
    write_index(folder / "index", whole, block)
    write_ciff(folder / "index.ciff", open_index(folder / "index"), documents.ids.tolist())
    return folder / "index.ciff"


def ours(documents: SparseVectors, queries: SparseVectors, k: int) -> Best:
    """Our exact search of whole-number weights, with scores as the whole numbers they are."""

    def ask(numbers: Any, depth: int) -> tuple[Any, Any]:
        chosen = SparseVectors.concatenate(
            [queries.slice(one, one + 1) for one in numbers.tolist()]
        )
        found = search(documents, chosen, depth=depth, configurations=(INNER,), threads=1)
        return found.positions[0, 0], found.scores[0, 0]

    return best(ask, len(queries), k, len(documents))


def brute(documents: SparseVectors, queries: SparseVectors, k: int) -> Best:
    """All products in whole numbers, sorted."""
    dense = np.zeros((2, max(len(documents), len(queries)), documents.vocabulary_size), np.int64)
    for side, vectors in enumerate((documents, queries)):
        rows = np.repeat(np.arange(len(vectors)), vectors.row_sizes())
        dense[side, rows, vectors.features] = vectors.values.astype(np.int64)
    scores = dense[1, : len(queries)] @ dense[0, : len(documents)].T
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    top = np.take_along_axis(scores, order, axis=1)
    return Best(np.where(top > 0, order, -1), top)


def same(found: Best, expected: Best) -> None:
    np.testing.assert_array_equal(found.scores, expected.scores)
    np.testing.assert_array_equal(found.positions, expected.positions)


@pytest.mark.parametrize("idf_in_documents", [False, True])
@pytest.mark.parametrize("configuration", CONFIGURATIONS, ids=str)
def test_the_inner_product_of_folded_weights_is_the_configuration(
    configuration: Configuration, idf_in_documents: bool
) -> None:
    documents = random_vectors(400, 12, 80, seed=1)
    queries = random_vectors(20, 5, 80, seed=2)
    parameters = Parameters(0.9, 0.4)
    folding = folding_of(
        shards_of(documents, 150, 151), configuration, parameters, idf_in_documents=idf_in_documents
    )
    folded = SparseVectors.concatenate([*folding.documents(shards_of(documents, 150, 151))])
    found = search(folded, folding.queries(queries), configurations=(INNER,), depth=400)
    expected = search(documents, queries, (parameters,), configurations=(configuration,), depth=400)
    np.testing.assert_array_equal(found.counts, expected.counts)
    np.testing.assert_allclose(found.scores, expected.scores, rtol=3e-6)


@pytest.mark.parametrize("bits", [2, 8, 12])
def test_rounding_stays_within_its_bounds(bits: int) -> None:
    documents = random_vectors(400, 12, 80, seed=3)
    queries = random_vectors(20, 5, 80, seed=4)
    steps, own = steps_of([documents], bits), steps_of([queries], 8)
    whole, asked = steps.round(documents), own.round(queries)
    assert whole.values.min() >= 1
    assert whole.values.max() == 2**bits - 1
    assert whole.nonzeros == documents.nonzeros
    assert 0 < steps.error(documents) <= steps.bound
    exact = search(documents, queries, configurations=(INNER,), depth=400)
    rough = search(whole, asked, configurations=(INNER,), depth=400)
    bounds = score_bound(queries, float(documents.values.max()), steps.bound, own.bound)
    for query in range(len(queries)):
        scores: list[dict[int, float]] = []
        for found in (exact, rough):
            count = int(found.counts[0, 0, query])
            scores.append(
                dict(
                    zip(
                        found.positions[0, 0, query, :count].tolist(),
                        found.scores[0, 0, query, :count].tolist(),
                        strict=True,
                    )
                )
            )
        assert scores[0].keys() == scores[1].keys()
        for position, score in scores[0].items():
            assert abs(scores[1][position] * steps.step * own.step - score) <= bounds[query]


def test_a_ciff_file_holds_the_index_whatever_its_blocks_and_shards(tmp_path: Path) -> None:
    documents = random_vectors(500, 12, 80, seed=5)
    whole = steps_of([documents], 8).round(documents)
    path = exported(tmp_path, documents, shards_of(whole, 10, 333))
    (tmp_path / "other").mkdir()
    other = exported(tmp_path / "other", documents, [whole], block=256)
    assert path.read_bytes() == other.read_bytes()
    source = CiffFile(path)
    assert (source.header.documents, source.header.tokens) == (500, int(whole.values.sum()))
    found = []
    for term, positions, weights in source.lists():
        found += [
            (int(one), int(term), int(two)) for one, two in zip(positions, weights, strict=True)
        ]
    rows = np.repeat(np.arange(len(whole)), whole.row_sizes())
    expected = zip(
        rows.tolist(), whole.features.tolist(), whole.values.astype(int).tolist(), strict=True
    )
    assert sorted(found) == sorted(expected)
    lengths = np.bincount(rows, whole.values, minlength=500).astype(int).tolist()
    assert [*source.records()] == [(f"d{one}", length) for one, length in enumerate(lengths)]


def test_large_gaps_and_weights_survive_ciff(tmp_path: Path) -> None:
    rows = np.array([0, 199, 40_000, 69_999])
    values = np.array([1, 127, 128, 65_535])
    documents = SparseVectors.from_coo(
        [f"é{one}" for one in range(70_000)], rows, np.zeros(4, int), values, 3
    )
    path = exported(tmp_path, documents, [documents], block=4096)
    source = CiffFile(path)
    ((term, positions, weights),) = source.lists()
    assert int(term) == 0
    assert positions.tolist() == rows.tolist()
    assert weights.tolist() == values.tolist()
    assert [*source.records()][199] == ("é199", 127)


def test_the_reference_reader_of_ciff_reads_ours(tmp_path: Path) -> None:
    toolkit: Any = pytest.importorskip("ciff_toolkit.read", reason="ciff-toolkit is not installed")
    documents = random_vectors(300, 8, 40, seed=6)
    whole = steps_of([documents], 8).round(documents)
    path = exported(tmp_path, documents, [whole])
    with toolkit.CiffReader(path) as reader:
        header = reader.read_header()
        lists = [*reader.read_postings_lists()]
        records = [*reader.read_documents()]
    assert (header.version, header.num_docs, header.total_docs) == (1, 300, 300)
    assert header.num_postings_lists == len(lists)
    assert header.average_doclength == pytest.approx(whole.values.sum() / 300)
    for own, (term, positions, weights) in zip(lists, CiffFile(path).lists(), strict=True):
        assert (own.term, own.df, own.cf) == (term, len(positions), int(weights.sum()))
        assert [one.tf for one in own.postings] == weights.tolist()
        gaps = np.diff(positions, prepend=0).tolist()
        assert [one.docid for one in own.postings] == gaps
    assert [one.collection_docid for one in records] == documents.ids.tolist()


def test_json_lines_are_read_back_as_they_were_written(tmp_path: Path) -> None:
    from whencount.vector_files import read_vectors

    documents, queries = random_vectors(120, 6, 40, seed=12), random_vectors(9, 3, 40, seed=13)
    whole = [steps_of([one], 6).round(one) for one in (documents, queries)]
    paths = tmp_path / "documents.jsonl", tmp_path / "queries.jsonl"
    write_json_lines(paths[0], shards_of(whole[0], 50))
    write_json_lines(paths[1], [whole[1]])
    read = read_vectors(*paths)
    for found, expected in zip((read.documents, read.queries), whole, strict=True):
        assert found.ids.tolist() == expected.ids.tolist()
        assert found.row_sizes().tolist() == expected.row_sizes().tolist()
        assert found.values.tolist() == expected.values.tolist()
    same(ours(read.documents, read.queries, 10), ours(whole[0], whole[1], 10))
    with pytest.raises(InputError, match="no whole numbers"):
        write_json_lines(tmp_path / "floats.jsonl", [documents])
    assert not (tmp_path / "floats.jsonl").exists()


def test_bad_input_is_refused(tmp_path: Path) -> None:
    documents = random_vectors(50, 5, 20, seed=7)
    with pytest.raises(InputError, match="17 bits"):
        steps_of([documents], 17)
    with pytest.raises(InputError, match="nothing to export"):
        steps_of([documents.slice(0, 1)])
    with pytest.raises(InputError, match="no whole numbers"):
        exported(tmp_path, documents, [documents])
    assert not (tmp_path / "index.ciff").exists()
    folding = folding_of([documents], INNER)
    with pytest.raises(InputError, match="49 documents, but statistics of 50"):
        [*folding.documents([documents.slice(0, 49)])]
    with pytest.raises(InputError, match="cannot be read as CIFF"):
        CiffFile(tmp_path / "none.ciff")
    (tmp_path / "whole").mkdir()
    path = exported(tmp_path / "whole", documents, [Steps(1.0, 8).round(documents)])
    (tmp_path / "cut.ciff").write_bytes(path.read_bytes()[:-40])
    source = CiffFile(tmp_path / "cut.ciff")
    assert [*source.lists()]
    with pytest.raises(InputError, match="no whole CIFF file"):
        [*source.records()]


def test_a_tie_at_the_border_is_completed_before_it_is_cut() -> None:
    scores = np.array([[3, 2, 2, 2, 2, 1, 0], [5, 0, 0, 0, 0, 0, 0]])

    def backwards(numbers: Any, depth: int) -> tuple[Any, Any]:
        """An engine that prefers late documents among equals."""
        own = scores[numbers]
        places = np.lexsort((-np.arange(7)[None].repeat(len(own), 0), -own), axis=-1)[:, :depth]
        found = np.take_along_axis(own, places, axis=1)
        return np.where(found > 0, places, -1), found

    result = best(backwards, 2, 2, 7)
    assert result.positions.tolist() == [[0, 1], [0, -1]]
    assert result.scores.tolist() == [[3, 2], [5, 0]]


@pytest.mark.parametrize("levels", [0, 2])
def test_our_search_of_whole_numbers_is_the_product_of_whole_numbers(levels: int) -> None:
    documents = random_vectors(600, 10, 60, seed=8, levels=levels)
    queries = random_vectors(30, 4, 60, seed=9, levels=levels)
    whole = documents if levels else steps_of([documents], 8).round(documents)
    asked = queries if levels else steps_of([queries], 8).round(queries)
    same(ours(whole, asked, 10), brute(whole, asked, 10))


@pytest.fixture(scope="module")
def pisa() -> Any:
    from whencount.exporting import pisa as module

    try:
        module.native()
    except InputError as error:
        pytest.skip(str(error))
    return module


@pytest.mark.parametrize("levels", [0, 2])
@pytest.mark.parametrize("bits", ["000", "011", "111"])
def test_pruning_returns_our_top_k(pisa: Any, tmp_path: Path, bits: str, levels: int) -> None:
    documents = random_vectors(3000, 14, 300, seed=10, levels=levels)
    queries = random_vectors(60, 6, 300, seed=11, levels=levels)
    folding = folding_of([documents], Configuration.parse(bits))
    folded = SparseVectors.concatenate([*folding.documents([documents])])
    asked = folding.queries(queries)
    whole, asked = steps_of([folded]).round(folded), steps_of([asked]).round(asked)
    assert largest_score(whole, asked) < 1 << 24
    engine = pisa.Pisa(exported(tmp_path, documents, [whole]), tmp_path / "pisa", block=16)
    expected = ours(whole, asked, 10)
    same(expected, brute(whole, asked, 10))
    for algorithm in pisa.ALGORITHMS:
        same(engine.search(asked, 10, algorithm), expected)
    if levels:
        tied = expected.scores[:, -1] == ours(whole, asked, 11).scores[:, -1]
        assert tied.mean() > 0.1, "few rankings end inside a tie, so little was tested"


def test_pruning_returns_our_top_k_on_scifact(pisa: Any, tmp_path: Path) -> None:
    if not SCIFACT.is_dir():
        pytest.skip(f"{SCIFACT} is not here")
    from whencount.collections import open_collection, prepare
    from whencount.references.lexical import count_terms

    prepared = prepare(
        open_collection("scifact", {"source": "beir", "path": str(SCIFACT)}), tmp_path / "scifact"
    )
    documents, queries = count_terms(prepared)
    queries = queries.slice(0, 40)
    folding = folding_of([documents], Configuration.parse("111"))
    folded = SparseVectors.concatenate([*folding.documents([documents])])
    asked = folding.queries(queries)
    whole, asked = steps_of([folded]).round(folded), steps_of([asked]).round(asked)
    engine = pisa.Pisa(exported(tmp_path, documents, [whole]), tmp_path / "pisa")
    expected = ours(whole, asked, 10)
    for algorithm in ("maxscore", "block_max_wand", "block_max_maxscore"):
        same(engine.search(asked, 10, algorithm), expected)
    # What rounding costs, told apart from what pruning does: nothing.
    exact = search(documents, queries, configurations=(Configuration.parse("111"),), depth=10)
    kept = [
        len({*one} & {*two}) / 10
        for one, two in zip(
            exact.positions[0, 0].tolist(), expected.positions.tolist(), strict=True
        )
    ]
    assert np.mean(kept) > 0.9
