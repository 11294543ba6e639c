"""Ties at the border: expected nDCG against random order and brute force over the collection."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whencount import ties
from whencount.errors import InputError
from whencount.measures import (
    Borders,
    Judgements,
    mean_quality,
    ndcg,
    open_borders,
    tie_expected_ndcg,
)
from whencount.scoring import CONFIGURATIONS, Parameters
from whencount.search import Rankings, search
from whencount.ties import complete_borders
from whencount.vectors import SparseVectors


def rankings(scores: list[float], found: int | None = None) -> Rankings:
    """One query whose documents stand in the order of their positions."""
    array = np.array(scores, dtype=np.float64)[None, None, None]
    depth = array.shape[-1]
    found = depth if found is None else found
    positions = np.where(np.arange(depth) < found, np.arange(depth), -1).astype(np.int32)
    return Rankings(positions[None, None, None], array, np.full((1, 1, 1), found, np.int32))


def judge(relevant: dict[int, int], documents: int) -> Judgements:
    return Judgements.from_positions(
        np.zeros(len(relevant), int),
        np.array(list(relevant)),
        np.array(list(relevant.values())),
        1,
        documents,
    )


def test_expected_ndcg_is_the_mean_over_all_orders_of_each_tie() -> None:
    scores = [5.0, 4.0, 4.0, 4.0, 2.0, 2.0, 1.0]
    judgements = judge({1: 2, 3: 1, 5: 3, 6: 1}, 7)
    ranked = rankings(scores)
    counts = ranked.counts
    qualities = []
    for first in permutations([1, 2, 3]):
        for second in permutations([4, 5]):
            order = np.array([0, *first, *second, 6], np.int32)[None, None, None]
            qualities.append(ndcg(order, counts, judgements, cutoff=5))
    ours = tie_expected_ndcg(ranked, judgements, cutoff=5)
    assert ours.item() == pytest.approx(np.mean(qualities), abs=1e-14)


def test_without_ties_the_expected_ndcg_has_the_bits_of_the_ranked_one() -> None:
    judgements = judge({0: 1, 4: 2}, 6)
    ranked = rankings([6.0, 5.0, 4.0, 3.0, 2.0, 2.0])
    ours = tie_expected_ndcg(ranked, judgements, cutoff=4)
    assert ours == ndcg(ranked.positions, ranked.counts, judgements, cutoff=4)


def test_ranks_past_the_count_belong_to_no_tie() -> None:
    judgements = judge({1: 1}, 6)
    ranked = rankings([2.0, 2.0, 0.0, 0.0, 0.0], found=2)
    expected = (1 + 1 / np.log2(3)) / 2
    assert tie_expected_ndcg(ranked, judgements, cutoff=3).item() == pytest.approx(expected)
    assert not open_borders(ranked, cutoff=3).any()


def test_tie_past_the_end_of_the_ranking_needs_its_size() -> None:
    judgements = judge({0: 1, 9: 1}, 50)
    ranked = rankings([3.0, 2.0, 2.0, 2.0])
    assert open_borders(ranked, cutoff=2).item()
    with pytest.raises(InputError, match="reach past the end of 1 rankings of depth 4"):
        tie_expected_ndcg(ranked, judgements, cutoff=2)
    # Forty documents tie below rank 1; one of them is relevant.
    borders = Borders(np.full((1, 1, 1), 40), np.full((1, 1, 1), 1.0))
    second = 1 / np.log2(3)
    assert tie_expected_ndcg(ranked, judgements, 2, borders).item() == pytest.approx(
        (1 + second / 40) / (1 + second), abs=1e-15
    )


def test_tie_below_the_border_is_no_concern_of_the_cutoff() -> None:
    ranked = rankings([4.0, 3.0, 2.0, 2.0])
    assert not open_borders(ranked, cutoff=2).any()


def codes(random: np.random.Generator, prefix: str, rows: int) -> SparseVectors:
    """Discrete codes: 3 sub-spaces of 4 codes with weight 1, as pooled PQ; some rows are empty."""
    dense = np.zeros((rows, 12), dtype=np.float32)
    for row in range(rows):
        if random.random() < 0.95:
            dense[row, random.integers(0, 4, size=3) + np.array([0, 4, 8])] = 1.0
    return SparseVectors.from_dense([f"{prefix}{row}" for row in range(rows)], dense)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=15, deadline=None)
def test_shallow_rankings_completed_equal_rankings_of_the_whole_collection(seed: int) -> None:
    random = np.random.default_rng(seed)
    documents, queries = codes(random, "d", 90), codes(random, "q", 7)
    pairs = random.choice(7 * 90, size=60, replace=False)
    judgements = Judgements.from_positions(
        pairs // 90, pairs % 90, random.integers(-1, 3, size=60), 7, 90
    )
    parameters = [Parameters(), Parameters(0.6, 0.5)]
    shallow = search(documents, queries, parameters, depth=6)
    whole = search(documents, queries, parameters, depth=90)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ties, "_ROWS_PER_BLOCK", int(random.integers(1, 100)))
        borders = complete_borders(documents, queries, shallow, judgements, parameters, cutoff=5)
    concerned = open_borders(shallow, cutoff=5) & judgements.evaluated
    assert concerned.any()
    np.testing.assert_array_equal(borders.sizes > 0, concerned)
    np.testing.assert_allclose(
        tie_expected_ndcg(shallow, judgements, 5, borders),
        tie_expected_ndcg(whole, judgements, 5),
        atol=1e-13,
    )


def test_completion_follows_the_override_of_document_frequency_and_the_configurations() -> None:
    random = np.random.default_rng(4)
    documents, queries = codes(random, "d", 80), codes(random, "q", 5)
    judgements = Judgements.from_positions(
        np.repeat(np.arange(5), 8), np.tile(np.arange(8) * 9, 5), np.ones(40), 5, 80
    )
    frequency = random.permutation(np.arange(12) * 6.5)
    chosen = (CONFIGURATIONS[4], CONFIGURATIONS[7])
    results = [
        search(documents, queries, depth=depth, configurations=chosen, document_frequency=frequency)
        for depth in (4, 80)
    ]
    borders = complete_borders(
        documents,
        queries,
        results[0],
        judgements,
        configurations=chosen,
        document_frequency=frequency,
        cutoff=3,
    )
    assert borders.sizes.any()
    np.testing.assert_allclose(
        mean_quality(tie_expected_ndcg(results[0], judgements, 3, borders), judgements),
        mean_quality(tie_expected_ndcg(results[1], judgements, 3), judgements),
        atol=1e-13,
    )
