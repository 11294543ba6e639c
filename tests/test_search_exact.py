"""The search against brute force: same order, same scores, whatever the threads and blocks."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from oracle import defined_keys, every_ranking, textbook_scores, vectors

from whencount.engine import cpu
from whencount.engine.index import Index
from whencount.errors import InputError
from whencount.scoring import CONFIGURATIONS, Configuration, Parameters
from whencount.search import CollectionStatistics, Rankings, collection_statistics, search
from whencount.vectors import SparseVectors

Array = NDArray[Any]
GRID = tuple(Parameters(k1, b) for k1, b in product((0.6, 1.2, 2.4), (0.0, 0.5, 0.75)))
EXTREMES = (Parameters(0.0, 0.0), Parameters(0.0, 1.0), Parameters(5.0, 1.0), Parameters(1.2, 0.0))


def random_collection(
    seed: int, kind: str, documents: int, vocabulary: int, queries: int
) -> tuple[Array, Array]:
    """Dense documents and queries: continuous values, few values, or 8 equal values each."""
    random = np.random.default_rng(seed)
    shape = (documents + queries, vocabulary)
    dense: Array
    if kind == "continuous":
        dense = random.gamma(0.7, 1.0, shape) * (random.random(shape) < 0.2)
    elif kind == "counts":
        dense = random.integers(1, 4, shape) * 0.37 * (random.random(shape) < 0.2)
    else:
        dense = np.zeros(shape)
        stages = vocabulary // 8
        code = random.integers(0, stages, (shape[0], 8)) + stages * np.arange(8)
        np.put_along_axis(dense, code, 0.7310586, axis=1)
    dense = dense.astype(np.float32)
    dense[random.random(len(dense)) < 0.1] = 0  # empty documents and queries
    copies = random.random(len(dense)) < 0.2  # documents that say the same
    dense[copies] = dense[random.integers(0, len(dense), copies.sum())]
    return dense[:documents], dense[documents:]


def same(left: Rankings, right: Rankings) -> bool:
    """Whether two results agree in every bit."""
    return all(
        np.array_equal(getattr(left, name), getattr(right, name))
        for name in ("positions", "scores", "counts")
    )


def assert_ranks_as_defined(
    found: Rankings,
    documents: Array,
    queries: Array,
    parameters: tuple[Parameters, ...],
    depth: int,
    document_frequency: Array | None = None,
) -> None:
    expected = every_ranking(
        documents, queries, parameters, depth, document_frequency=document_frequency
    )
    for cell, number, query in np.ndindex(found.counts.shape):
        order = expected[cell][number][query]
        count = found.counts[cell, number, query]
        assert count == len(order)
        np.testing.assert_array_equal(found.positions[cell, number, query, :count], order)
        assert (found.positions[cell, number, query, count:] == -1).all()
        assert (found.scores[cell, number, query, count:] == 0).all()


def assert_scores_as_printed(
    found: Rankings,
    documents: Array,
    queries: Array,
    parameters: tuple[Parameters, ...],
    document_frequency: Array | None = None,
) -> None:
    for cell, number in np.ndindex(found.counts.shape[:2]):
        scores = textbook_scores(
            documents, queries, CONFIGURATIONS[number], parameters[cell], document_frequency
        )
        for query, count in enumerate(found.counts[cell, number]):
            order = found.positions[cell, number, query, :count]
            np.testing.assert_allclose(
                found.scores[cell, number, query, :count], scores[query, order], rtol=2e-12
            )
            best = np.sort(scores[query])[::-1][:count]
            np.testing.assert_allclose(scores[query, order], best, rtol=2e-12)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    kind=st.sampled_from(["continuous", "counts", "codes"]),
    documents=st.integers(1, 300),
    depth=st.sampled_from([1, 3, 10, 100, 1000]),
    block=st.sampled_from([1, 7, 64, 256, 4096]),
    parameters=st.sampled_from([(Parameters(),), EXTREMES, GRID]),
    threads=st.sampled_from([1, 2]),
)
def test_rankings_equal_brute_force(
    seed: int,
    kind: str,
    documents: int,
    depth: int,
    block: int,
    parameters: tuple[Parameters, ...],
    threads: int,
) -> None:
    dense, wanted = random_collection(seed, kind, documents, 48, 4)
    index = Index.build(vectors(dense), block_documents=block)
    found = search(index, vectors(wanted), parameters, depth=depth, threads=threads)
    assert_ranks_as_defined(found, dense, wanted, parameters, depth)
    assert_scores_as_printed(found, dense, wanted, parameters)


@pytest.mark.parametrize("kind", ["continuous", "counts", "codes"])
def test_threads_and_blocks_change_no_bit(kind: str) -> None:
    dense, wanted = random_collection(3, kind, 5000, 64, 12)
    results = [
        search(Index.build(vectors(dense), block), vectors(wanted), GRID, depth=20, threads=threads)
        for block in (100, 512, 4096)
        for threads in (1, 2, 3)
    ]
    for other in results[1:]:
        assert same(results[0], other)
    assert_ranks_as_defined(results[0], dense, wanted, GRID, 20)


def test_thousands_of_equal_documents_rank_by_position() -> None:
    random = np.random.default_rng(0)
    kinds = np.abs(random.normal(size=(3, 32))).astype(np.float32)
    which = random.integers(0, 3, 9000)
    documents = vectors(kinds[which])
    for configuration, positions, counts in zip(
        CONFIGURATIONS,
        *(getattr(search(documents, vectors(kinds[:2]), depth=50), name)[0]
          for name in ("positions", "counts")),
        strict=True,
    ):  # fmt: skip
        best = defined_keys(kinds[which], kinds[:2], configuration, Parameters()).argmax(axis=1)
        for query in range(2):
            same_kind = np.flatnonzero(which == which[best[query]])
            assert counts[query] == 50
            np.testing.assert_array_equal(positions[query], same_kind[:50])


@pytest.mark.parametrize("documents", [60, 6000])
def test_equal_values_make_saturation_and_length_idle_to_the_last_bit(documents: int) -> None:
    dense, wanted = random_collection(11, "codes", documents, 64, 40)
    found = search(vectors(dense), vectors(wanted), GRID, depth=100)
    plain, scaled = found.positions[0, 0], found.positions[0, 4]
    for cell, number in product(range(len(GRID)), range(8)):
        expected = scaled if CONFIGURATIONS[number].idf else plain
        np.testing.assert_array_equal(found.positions[cell, number], expected)


def test_a_uniform_document_frequency_makes_idf_idle() -> None:
    dense, wanted = random_collection(5, "counts", 2000, 48, 20)
    uniform = np.full(48, 137.5)
    found = search(vectors(dense), vectors(wanted), GRID, depth=30, document_frequency=uniform)
    np.testing.assert_array_equal(found.positions[:, 4:], found.positions[:, :4])
    assert_scores_as_printed(found, dense, wanted, GRID, uniform)


def test_without_b_length_is_idle_and_without_k1_it_is_idle_under_saturation() -> None:
    dense, wanted = random_collection(6, "continuous", 2000, 48, 20)
    found = search(vectors(dense), vectors(wanted), EXTREMES, depth=30)
    for without, with_length in ((0, 1), (2, 3), (4, 5), (6, 7)):
        for cell in (0, 3):
            np.testing.assert_array_equal(
                found.scores[cell, without], found.scores[cell, with_length]
            )
    np.testing.assert_array_equal(found.positions[1, 2], found.positions[1, 3])


def test_a_document_frequency_override_is_what_idf_sees() -> None:
    dense, wanted = random_collection(8, "continuous", 700, 48, 6)
    shuffled = np.random.default_rng(1).permutation((dense > 0).sum(axis=0))
    found = search(vectors(dense), vectors(wanted), depth=25, document_frequency=shuffled)
    assert_ranks_as_defined(found, dense, wanted, (Parameters(),), 25, shuffled)


def test_a_configuration_alone_ranks_as_among_eight() -> None:
    dense, wanted = random_collection(9, "continuous", 900, 48, 6)
    together = search(vectors(dense), vectors(wanted), GRID, depth=25)
    for number, configuration in enumerate(CONFIGURATIONS):
        alone = search(
            vectors(dense), vectors(wanted), GRID, depth=25, configurations=[configuration]
        )
        for name in ("positions", "scores", "counts"):
            np.testing.assert_array_equal(
                getattr(alone, name)[:, 0], getattr(together, name)[:, number]
            )


def test_more_cells_than_one_pass_holds_rank_as_each_alone() -> None:
    dense, wanted = random_collection(10, "counts", 400, 48, 5)
    cells = tuple(Parameters(k1, b) for k1 in (0.3, 0.9, 2.0, 7.0) for b in (0.1, 0.4, 0.8, 1.0))
    together = search(vectors(dense), vectors(wanted), cells, depth=10)
    for number, cell in enumerate(cells):
        alone = search(vectors(dense), vectors(wanted), [cell], depth=10)
        np.testing.assert_array_equal(alone.positions[0], together.positions[number])
        np.testing.assert_array_equal(alone.scores[0], together.scores[number])


@pytest.mark.parametrize("power", [-38.0, -30.0, -12.0, 12.0, 30.0, 38.0])
def test_values_near_the_ends_of_float32_lose_no_document(power: float) -> None:
    dense, wanted = random_collection(12, "continuous", 300, 48, 5)
    dense = (dense.astype(np.float64) * 10.0**power).clip(0, 3e38).astype(np.float32)
    found = search(vectors(dense), vectors(wanted), depth=300)
    assert_ranks_as_defined(found, dense, wanted, (Parameters(),), 300)
    overlap = (wanted.astype(np.float64) @ (dense > 0).T) > 0
    np.testing.assert_array_equal(found.counts[0], np.tile(overlap.sum(axis=1), (8, 1)))


def test_a_wide_range_of_values_in_one_collection_loses_no_document() -> None:
    dense, wanted = random_collection(13, "continuous", 500, 48, 8)
    powers = np.random.default_rng(0).uniform(-14, 14, dense.shape)
    dense = (dense.astype(np.float64) * 10.0**powers).astype(np.float32)
    wanted = (wanted.astype(np.float64) * 10.0 ** powers[:8]).astype(np.float32)
    small = np.isfinite(dense) & (dense < 1e-14)
    dense[small] = 0
    index = Index.build(vectors(dense))
    for depth in (5, 500):
        found = search(index, vectors(wanted), depth=depth)
        assert_ranks_as_defined(found, dense, wanted, (Parameters(),), depth)


def test_no_documents_no_queries_and_empty_ones_give_nothing() -> None:
    nothing = vectors(np.zeros((3, 5), dtype=np.float32))
    full = vectors(np.eye(5, dtype=np.float32))
    none = full.slice(0, 0)
    for documents, queries in ((nothing, full), (full, nothing), (none, full), (nothing, nothing)):
        found = search(documents, queries, GRID, depth=4)
        assert found.counts.shape == (9, 8, len(queries))
        assert not found.counts.any()
        assert (found.positions == -1).all()
        assert not found.scores.any()
    assert search(full, none, depth=4).positions.shape == (1, 8, 0, 4)


def test_fewer_documents_than_depth_are_not_padded() -> None:
    found = search(vectors(np.eye(5, dtype=np.float32)), vectors(np.eye(5, dtype=np.float32)))
    assert (found.counts == 1).all()
    np.testing.assert_array_equal(found.positions[0, :, :, 0], np.tile(np.arange(5), (8, 1)))


def test_features_in_no_document_count_for_nothing() -> None:
    documents = np.array([[1, 2, 0, 0], [2, 1, 0, 0]], dtype=np.float32)
    queries = np.array([[1, 0, 9, 0], [0, 0, 9, 9]], dtype=np.float32)
    found = search(vectors(documents), vectors(queries))
    assert_ranks_as_defined(found, documents, queries, (Parameters(),), 100)
    assert not found.counts[0, :, 1].any()


def test_small_lists_of_candidates_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    dense, wanted = random_collection(14, "continuous", 3000, 48, 30)
    usual = search(vectors(dense), vectors(wanted), depth=40, threads=2)
    monkeypatch.setattr(cpu, "CANDIDATE_BYTES", 1)  # one query at a time
    assert same(usual, search(vectors(dense), vectors(wanted), depth=40, threads=2))


def row(features: list[int], values: list[float], vocabulary: int = 4) -> SparseVectors:
    return SparseVectors(
        np.array(["x"], dtype=object),
        np.array([0, len(features)]),
        np.array(features, dtype=np.int32),
        np.array(values, dtype=np.float32),
        vocabulary,
    )


@pytest.mark.parametrize(
    ("features", "values", "words"),
    [
        ([0, 4], [1.0, 1.0], "feature 4, outside 0..3"),
        ([0, -1], [1.0, 1.0], "feature -1, outside 0..3"),
        ([0, 1], [1.0, np.nan], "feature 1: weight nan"),
        ([0, 1], [np.inf, 1.0], "feature 0: weight inf"),
        ([0, 1], [1.0, 0.0], "feature 1: weight 0.0"),
        ([2, 2], [1.0, 1.0], "feature 2 twice"),
    ],
)
def test_damaged_vectors_are_refused_by_name(
    features: list[int], values: list[float], words: str
) -> None:
    good = row([0], [1.0])
    with pytest.raises(InputError, match=f"document 'x'.*{words}"):
        search(row(features, values), good)
    with pytest.raises(InputError, match=f"query 'x'.*{words}"):
        search(good, row(features, values))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"depth": 0}, "depth 0"),
        ({"threads": 0}, "0 threads"),
        ({"configurations": []}, "no configurations"),
        ({"document_frequency": np.ones(3)}, "shape"),
        ({"document_frequency": np.full(4, 2.0)}, "between 0 and"),
        ({"document_frequency": np.full(4, np.nan)}, "between 0 and"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        search(row([0], [1.0]), row([0], [1.0]), **options)


def test_queries_of_another_vocabulary_are_refused() -> None:
    with pytest.raises(InputError, match="vocabulary of 5 features and documents of 4"):
        search(row([0], [1.0]), row([0], [1.0], vocabulary=5))


def test_collection_statistics_follow_the_definitions() -> None:
    dense, _ = random_collection(1, "continuous", 400, 48, 1)
    for source in (vectors(dense), Index.build(vectors(dense), 64)):
        found = collection_statistics(source)
        assert found.documents == 400
        np.testing.assert_array_equal(found.document_frequency, (dense > 0).sum(axis=0))
        np.testing.assert_allclose(found.lengths, dense.sum(axis=1, dtype=np.float64), rtol=1e-14)
        np.testing.assert_array_equal(found.peaks, dense.max(axis=1))
        assert found.average_length == pytest.approx(dense.sum(dtype=np.float64) / 400, rel=1e-14)


def test_statistics_of_shards_merge_to_those_of_the_whole() -> None:
    dense, _ = random_collection(2, "continuous", 400, 48, 1)
    whole, parts = vectors(dense), [(0, 1), (1, 137), (137, 137), (137, 400)]
    merged = CollectionStatistics.merge(
        [collection_statistics(whole.slice(*part)) for part in parts]
    )
    expected = collection_statistics(whole)
    assert merged.documents == expected.documents
    assert merged.average_length == expected.average_length
    for name in ("document_frequency", "lengths", "peaks"):
        np.testing.assert_array_equal(getattr(merged, name), getattr(expected, name))


def test_rankings_name_their_configurations_by_bits() -> None:
    documents = np.array([[3, 0, 0], [1, 1, 1]], dtype=np.float32)
    found = search(
        vectors(documents), vectors(np.array([[1, 1, 0]], dtype=np.float32)),
        configurations=[Configuration.parse("000"), Configuration.parse("010")],
    )  # fmt: skip
    # Inner products 3 and 2; saturated 2.2 * 3 / 4.2 = 1.571 and 2 * 2.2 / 2.2 = 2.
    np.testing.assert_array_equal(found.positions[0, :, 0, :2], [[0, 1], [1, 0]])
    np.testing.assert_allclose(found.scores[0, 1, 0, :2], [2.0, 2.2 * 3 / 4.2], rtol=1e-12)
