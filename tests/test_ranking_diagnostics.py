"""Tier 3 against its formulas, written plainly."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from whencount import ranking_diagnostics
from whencount.attribution import shapley
from whencount.cells import score_cells
from whencount.measures import Judgements
from whencount.naming import Cell
from whencount.ranking_diagnostics import (
    TIER_3,
    disruption,
    pseudo_columns,
    pseudo_labels,
    ranking_statistics,
    score_profile,
)
from whencount.scoring import SWITCHES
from whencount.search import Rankings
from whencount.vectors import SparseVectors


def rankings(
    positions: NDArray[np.int32], counts: NDArray[np.int32], scores: NDArray[np.float64]
) -> Rankings:
    valid = np.arange(positions.shape[-1]) < counts[..., None]
    return Rankings(
        np.where(valid, positions, -1).astype(np.int32), np.where(valid, scores, 0.0), counts
    )


def random_rankings(seed: int, documents: int = 25, depth: int = 20) -> Rankings:
    random = np.random.default_rng(seed)
    shape = (2, 8, 6)
    positions = np.stack(
        [random.permutation(documents)[:depth] for _ in range(math.prod(shape))]
    ).reshape(*shape, depth)
    counts = random.integers(0, depth + 1, size=shape).astype(np.int32)
    scores = -np.sort(-random.random((*shape, depth)), axis=-1)
    return rankings(positions.astype(np.int32), counts, scores)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=20, deadline=None)
def test_disruption_equals_its_definition(seed: int) -> None:
    found = random_rankings(seed)
    ours = disruption(found)
    for cell in range(2):
        for number in range(3):
            bit = 4 >> number
            terms = []
            for query in range(6):
                for off in range(8):
                    if off & bit:
                        continue
                    tops = [
                        set(found.positions[cell, side, query, :10].tolist()) - {-1}
                        for side in (off, off | bit)
                    ]
                    longer = max(map(len, tops))
                    terms.append(1 - len(tops[0] & tops[1]) / longer if longer else 0.0)
            assert ours[cell, number] == pytest.approx(np.mean(terms), abs=1e-12)


def test_switch_that_changes_no_ranking_disrupts_nothing() -> None:
    found = random_rankings(3)
    same = Rankings(*(np.repeat(array[:, ::2], 2, axis=1) for array in vars(found).values()))
    assert (disruption(same)[:, SWITCHES.index("length")] == 0).all()
    assert (disruption(same)[:, SWITCHES.index("idf")] > 0).all()


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=20, deadline=None)
def test_score_profile_equals_its_definition(seed: int) -> None:
    found = random_rankings(seed)
    spread, drop = score_profile(found, depth=15)
    for cell, configuration in np.ndindex(2, 8):
        spreads, drops = [], []
        for query in range(6):
            count = min(int(found.counts[cell, configuration, query]), 15)
            if count == 0:
                continue
            scores = found.scores[cell, configuration, query, :count]
            spreads.append(scores.std() / abs(scores.mean()))
            drops.append((scores[0] - scores[:10][-1]) / abs(scores[0]))
        if spreads:
            assert spread[cell, configuration] == pytest.approx(np.mean(spreads), abs=1e-12)
            assert drop[cell, configuration] == pytest.approx(np.mean(drops), abs=1e-12)
        else:
            assert math.isnan(spread[cell, configuration])


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=20, deadline=None)
def test_pseudo_labels_equal_binary_ndcg_with_an_ideal_of_ten(seed: int) -> None:
    found = random_rankings(seed)
    random = np.random.default_rng(seed + 1)
    reference = np.stack([random.permutation(25)[:12] for _ in range(6)]).astype(np.int32)
    reference[1, 4:] = -1
    reference[2] = -1
    ours = pseudo_labels(found, reference)
    weights = [1 / math.log2(rank + 2) for rank in range(10)]
    for cell, configuration in np.ndindex(2, 8):
        qualities = []
        for query in (0, 1, 3, 4, 5):
            relevant = set(reference[query, :10].tolist()) - {-1}
            count = int(found.counts[cell, configuration, query])
            top = found.positions[cell, configuration, query, : min(count, 10)]
            gained = sum(
                weight
                for document, weight in zip(top, weights, strict=False)
                if document in relevant
            )
            qualities.append(gained / sum(weights))
        assert ours[cell, configuration] == pytest.approx(np.mean(qualities), abs=1e-12)


def test_reference_that_found_nothing_gives_no_pseudo_label() -> None:
    assert np.isnan(pseudo_labels(random_rankings(0), np.full((6, 10), -1, np.int32))).all()


def test_rankings_of_fewer_configurations_or_other_queries_are_refused() -> None:
    found = random_rankings(0)
    fewer = Rankings(found.positions[:, :4], found.scores[:, :4], found.counts[:, :4])
    with pytest.raises(ValueError, match="rankings of 4 configurations"):
        disruption(fewer)
    with pytest.raises(ValueError, match="a reference of 5 queries"):
        pseudo_labels(found, np.zeros((5, 10), np.int32))


def test_blocks_of_queries_do_not_change_a_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    found = random_rankings(7)
    references = {"bm25": np.arange(60, dtype=np.int32).reshape(6, 10) % 25}
    whole = ranking_statistics(found, references)
    monkeypatch.setattr(ranking_diagnostics, "_SCORES_PER_BLOCK", 1)
    assert ranking_statistics(found, references) == whole


K1, B = 0.9, 0.6


def plain_rankings(
    documents: NDArray[np.float64], queries: NDArray[np.float64], depth: int
) -> list[list[list[tuple[int, float]]]]:
    """(document, score) by configuration and query, from the formulas of the study, section 1."""
    count = len(documents)
    frequency = (documents > 0).sum(axis=0)
    lengths = documents.sum(axis=1)
    rankings = []
    for configuration in range(8):
        idf, saturation, length = (configuration & bit for bit in (4, 2, 1))
        weight = np.ones(documents.shape[1])
        if idf:
            weight = np.log(1 + (count - frequency + 0.5) / (frequency + 0.5))
        factor = np.ones(count)
        if length:
            factor = 1 - B + B * lengths / lengths.mean()
        term = documents / factor[:, None]
        if saturation:
            term = (K1 + 1) * documents / (documents + K1 * factor[:, None])
        scores = (queries * weight) @ term.T
        lists = []
        for row in scores:
            # Equal on paper, unequal in the last bits: twelve digits decide, then the position.
            found = [(float(f"{score:.12g}"), place) for place, score in enumerate(row) if score]
            found.sort(key=lambda pair: (-pair[0], pair[1]))
            lists.append([(place, score) for score, place in found[:depth]])
        rankings.append(lists)
    return rankings


def plain_tier_3(
    rankings: list[list[list[tuple[int, float]]]], reference: NDArray[np.int32]
) -> dict[str, float]:
    """Study, section 7, one query after the other."""
    result = {}
    queries = range(len(reference))
    for switch, bit in zip(SWITCHES, (4, 2, 1), strict=True):
        terms = []
        for off in (number for number in range(8) if not number & bit):
            for query in queries:
                one, two = (
                    {document for document, _ in rankings[side][query][:10]}
                    for side in (off, off | bit)
                )
                longer = max(len(one), len(two))
                terms.append(1 - len(one & two) / longer if longer else 0.0)
        result[f"disruption_{switch}"] = float(np.mean(terms))
    ideal = sum(1 / math.log2(rank + 1) for rank in range(1, 11))
    for number in range(8):
        name = f"{number:03b}"
        lists = [[score for _, score in rankings[number][query]] for query in queries]
        lists = [scores for scores in lists if scores]
        result[f"score_spread_{name}"] = float(
            np.mean([np.std(scores[:100]) / abs(np.mean(scores[:100])) for scores in lists])
        )
        result[f"score_drop_{name}"] = float(
            np.mean([(scores[0] - scores[:10][-1]) / abs(scores[0]) for scores in lists])
        )
        result[f"pseudo_bm25_{name}"] = float(
            np.mean(
                [
                    sum(
                        1 / math.log2(rank + 2)
                        for rank, (document, _) in enumerate(rankings[number][query][:10])
                        if document in reference[query]
                    )
                    / ideal
                    for query in queries
                    if (reference[query] >= 0).any()
                ]
            )
        )
    return result


@pytest.mark.parametrize("kind", ["ties", "real values"])
def test_columns_of_a_row_equal_the_study_computed_query_by_query(kind: str) -> None:
    random = np.random.default_rng(3)
    shape = (150, 12)
    values = random.integers(1, 3, shape) if kind == "ties" else random.lognormal(size=shape)
    documents = np.where(random.random(shape) < 0.25, values, 0).astype(np.float32)
    queries = np.where(random.random((9, 12)) < 0.2, 1, 0).astype(np.float32)
    queries[0] = 0  # an empty query
    documents[:, 3] = 0
    documents[5:9, 3] = 1
    queries[1] = 0
    queries[1, 3] = 1  # four documents at most
    reference = np.stack([random.permutation(150)[:10] for _ in range(9)]).astype(np.int32)
    reference[2] = -1  # the reference found nothing
    reference[4, 3:] = -1
    vectors = [
        SparseVectors.from_dense([f"{name}{row}" for row in range(len(dense))], dense)
        for name, dense in (("d", documents), ("q", queries))
    ]
    cell = Cell("native", K1, B)
    tables = []
    for judged in ([3, 4], [6, 7, 8]):  # what is judged must not matter
        judgements = Judgements.from_positions(
            np.array(judged), np.array([7] * len(judged)), np.ones(len(judged)), 9, 150
        )
        results = score_cells(
            [vectors[0]], vectors[1], judgements, [cell], references={"bm25": reference}, depth=120
        )
        tables.append(
            {name: results[cell].row[name] for name in (*TIER_3, *pseudo_columns("bm25"))}
        )
    expected = plain_tier_3(
        plain_rankings(documents.astype(float), queries.astype(float), 120), reference
    )
    assert tables[0] == tables[1]
    assert tables[0] == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert all(value > 0 for value in expected.values())


def test_tier_3_says_that_equal_values_leave_saturation_and_length_nothing_to_do() -> None:
    """As pooled PQ: eight equal values per document, so no ranking can change; large ties."""
    random = np.random.default_rng(0)

    def codes(count: int, prefix: str) -> SparseVectors:
        chosen = random.integers(0, 6, (count, 8)) + 6 * np.arange(8)
        return SparseVectors.from_coo(
            [f"{prefix}{row}" for row in range(count)],
            np.repeat(np.arange(count), 8),
            chosen.reshape(-1),
            np.full(count * 8, np.float32(1 / 0.37)),
            48,
        )

    documents, queries = codes(300, "d"), codes(40, "q")
    judgements = Judgements.from_positions(
        np.arange(40), random.integers(0, 300, 40), np.ones(40), 40, 300
    )
    reference = random.integers(0, 300, (40, 10)).astype(np.int32)
    cell = Cell("32/128", 1.2, 0.75)
    results = score_cells([documents], queries, judgements, [cell], references={"dense": reference})
    row = results[cell].row
    assert row["disruption_saturation"] == row["disruption_length"] == 0.0
    assert row["disruption_idf"] > 0
    phi = shapley([row[name] for name in pseudo_columns("dense")])
    assert phi[1] == phi[2] == 0.0
    assert phi[0] != 0.0


def test_columns_of_tier_3_come_in_the_order_of_the_tables_page() -> None:
    references = {name: np.zeros((6, 10), np.int32) for name in ("rrf", "dense", "bm25")}
    columns = list(ranking_statistics(random_rankings(0), references)[0])
    assert columns[:3] == ["disruption_idf", "disruption_saturation", "disruption_length"]
    assert columns[3] == "score_spread_000"
    assert columns[10:12] == ["score_spread_111", "score_drop_000"]
    assert columns[19::8] == ["pseudo_bm25_000", "pseudo_dense_000", "pseudo_rrf_000"]
    assert len(columns) == 3 + 16 + 24
