"""Reciprocal rank fusion against exact fractions."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from itertools import groupby

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whencount.errors import InputError
from whencount.references import Run, fuse

Lists = dict[int, list[int]]  # query position: document positions, best first


def run_of(lists: Lists) -> Run:
    rows = [
        (query, document, rank)
        for query in sorted(lists)
        for rank, document in enumerate(lists[query], start=1)
    ]
    table = np.array(rows, dtype=np.int32).reshape(-1, 3)
    queries, documents, ranks = (np.ascontiguousarray(column) for column in table.T)
    return Run(queries, documents, ranks, (100 - ranks).astype(np.float64))


def plain(runs: list[Lists], k: int, depth: int) -> dict[int, list[tuple[int, Fraction]]]:
    """Cormack, Clarke and Buettcher (2009) in fractions: no rounding, so ties are true ties."""
    scores: dict[int, dict[int, Fraction]] = defaultdict(lambda: defaultdict(Fraction))
    for lists in runs:
        for query, documents in lists.items():
            for rank, document in enumerate(documents[:depth], start=1):
                scores[query][document] += Fraction(1, k + rank)
    return {
        query: sorted(found.items(), key=lambda pair: (-pair[1], pair[0]))[:depth]
        for query, found in scores.items()
        if found
    }


def check(runs: list[Lists], k: int, depth: int) -> None:
    fused = fuse([run_of(lists) for lists in runs], k=k, depth=depth)
    expected = plain(runs, k, depth)
    rows = zip(*vars(fused).values(), strict=True)
    found = {int(query): list(part) for query, part in groupby(rows, key=lambda row: row[0])}
    assert list(found) == sorted(expected)
    for query, pairs in expected.items():
        assert [int(row[1]) for row in found[query]] == [document for document, _ in pairs]
        assert [int(row[2]) for row in found[query]] == list(range(1, len(pairs) + 1))
        scores = [float(row[3]) for row in found[query]]
        assert scores == pytest.approx([float(score) for _, score in pairs], rel=1e-14)
        for place in range(1, len(pairs)):
            assert (scores[place] == scores[place - 1]) == (pairs[place][1] == pairs[place - 1][1])


ranked = st.lists(st.integers(0, 12), unique=True, max_size=12)
lists_of = st.dictionaries(st.integers(0, 4), ranked, max_size=5)


@given(st.lists(lists_of, min_size=1, max_size=3), st.sampled_from([0, 1, 60]), st.integers(1, 15))
@settings(max_examples=300, deadline=None)
def test_fusion_equals_the_sum_in_fractions(runs: list[Lists], k: int, depth: int) -> None:
    check(runs, k, depth)


def test_fused_scores_tie_exactly_where_fractions_do_over_a_hundred_ranks() -> None:
    """Every order of a hundred ranks against another: symmetrical and accidental ties."""
    random = np.random.default_rng(0)
    runs: list[Lists] = [
        {query: random.permutation(130)[:100].tolist() for query in range(40)} for _ in range(3)
    ]
    check(runs[:2], 60, 100)
    check(runs, 60, 100)


def test_documents_with_the_same_ranks_in_another_order_stand_by_position() -> None:
    fused = fuse([run_of({0: [9, 4, 7]}), run_of({0: [4, 9, 2]}), run_of({1: [3]})])
    assert fused.document_positions.tolist() == [4, 9, 2, 7, 3]
    assert fused.scores[0] == fused.scores[1] == 1 / 61 + 1 / 62
    assert fused.scores[2] == fused.scores[3] == 1 / 63
    assert fused.ranks.tolist() == [1, 2, 3, 4, 1]


def test_fusion_of_one_run_keeps_its_order() -> None:
    fused = fuse([run_of({2: [5, 1, 3], 7: [0]})], depth=2)
    assert fused.query_positions.tolist() == [2, 2, 7]
    assert fused.document_positions.tolist() == [5, 1, 0]


def test_runs_without_a_document_fuse_to_an_empty_run() -> None:
    assert len(fuse([run_of({}), run_of({})])) == 0


@pytest.mark.parametrize(("k", "depth"), [(-1, 10), (60, 0)])
def test_fusion_refuses_what_has_no_meaning(k: int, depth: int) -> None:
    with pytest.raises(InputError, match="reciprocal rank fusion needs"):
        fuse([run_of({})], k=k, depth=depth)
    with pytest.raises(InputError, match="no run to fuse"):
        fuse([])
