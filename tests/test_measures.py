"""Per-query measures against trec_eval, and their edges."""

from __future__ import annotations

import math

import numpy as np
import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from whencount.collections.model import Qrels
from whencount.errors import InputError
from whencount.measures import (
    Judgements,
    border_tied,
    mean_quality,
    ndcg,
    recall,
    tie_share,
)


def rows(*triples: tuple[str, str, int]) -> Qrels:
    return Qrels.from_rows(triples)


def ids(prefix: str, count: int) -> NDArray[np.object_]:
    return np.array([f"{prefix}{number}" for number in range(count)], dtype=object)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_ndcg_and_recall_equal_trec_eval(seed: int) -> None:
    random = np.random.default_rng(seed)
    queries, documents, depth = 6, int(random.integers(3, 30)), int(random.integers(1, 25))
    query_ids, document_ids = ids("q", queries), ids("d", documents)
    qrels: dict[str, dict[str, int]] = {}
    for query in query_ids:
        # Ids beyond the collection are judged too, and relevance may be negative.
        judged = random.choice(documents + 4, size=random.integers(1, documents + 4), replace=False)
        qrels[query] = {f"d{number}": int(random.integers(-2, 4)) for number in judged}
    triples = [(q, d, r) for q, judged in qrels.items() for d, r in judged.items()]
    judgements = Judgements.from_qrels(rows(*triples), query_ids, document_ids)

    positions = np.full((2, 3, queries, depth), -1, dtype=np.int32)
    counts = random.integers(0, min(depth, documents) + 1, size=(2, 3, queries)).astype(np.int32)
    for index in np.ndindex(counts.shape):
        found = counts[index]
        positions[index][:found] = random.permutation(documents)[:found]

    ours = ndcg(positions, counts, judgements)
    our_recall = recall(positions, counts, judgements, cutoff=5)
    # trec_eval itself crashes on a query whose relevances are all negative.
    answerable = {query: judged for query, judged in qrels.items() if max(judged.values()) > 0}
    oracle = pytrec_eval.RelevanceEvaluator(answerable, {"ndcg_cut.10", "recall.5"})
    for cell, configuration in np.ndindex(2, 3):
        run = {
            query_ids[query]: {
                document_ids[document]: float(depth - rank)
                for rank, document in enumerate(
                    positions[cell, configuration, query, : counts[cell, configuration, query]]
                )
            }
            for query in range(queries)
        }
        result = oracle.evaluate(run)
        for query in range(queries):
            mine = ours[cell, configuration, query]
            if query_ids[query] not in answerable:
                assert math.isnan(mine)
                assert math.isnan(our_recall[cell, configuration, query])
            elif counts[cell, configuration, query] == 0:
                assert mine == 0.0
            else:
                theirs = result[query_ids[query]]
                assert mine == pytest.approx(theirs["ndcg_cut_10"], abs=1e-12)
                assert our_recall[cell, configuration, query] == pytest.approx(
                    theirs["recall_5"], abs=1e-12
                )


def test_ideal_counts_relevant_documents_that_the_collection_lacks() -> None:
    judgements = Judgements.from_qrels(
        rows(("q0", "d0", 1), ("q0", "elsewhere", 2)),
        ids("q", 1),
        ids("d", 2),
    )
    quality = ndcg(np.array([[0]], np.int32), np.array([1], np.int32), judgements)
    assert quality[0] == pytest.approx(1 / (2 + 1 / math.log2(3)), abs=1e-15)
    assert judgements.unknown_documents == 1


def test_query_without_positive_judgement_has_no_ndcg_and_is_left_out_of_the_mean() -> None:
    judgements = Judgements.from_qrels(
        rows(("q0", "d0", 0), ("q1", "d1", 1), ("q9", "d1", 1)),
        ids("q", 3),
        ids("d", 2),
    )
    positions = np.array([[0, 1], [1, 0], [0, 1]], np.int32)
    quality = ndcg(positions, np.full(3, 2, np.int32), judgements)
    np.testing.assert_array_equal(quality, [np.nan, 1.0, np.nan])
    np.testing.assert_array_equal(judgements.judged, [True, True, False])
    assert judgements.unknown_queries == 1
    assert mean_quality(quality, judgements) == 1.0


def test_judged_query_with_an_empty_ranking_scores_zero() -> None:
    judgements = Judgements.from_qrels(rows(("q0", "d0", 1)), ids("q", 1), ids("d", 2))
    quality = ndcg(np.full((1, 5), -1, np.int32), np.zeros(1, np.int32), judgements)
    assert quality[0] == 0.0


def test_positions_past_the_count_are_not_looked_at() -> None:
    judgements = Judgements.from_qrels(rows(("q0", "d1", 1)), ids("q", 1), ids("d", 2))
    positions = np.array([[0, 1]], np.int32)
    assert ndcg(positions, np.array([1], np.int32), judgements)[0] == 0.0


def test_pair_judged_twice_alike_counts_once_and_differently_is_refused() -> None:
    twice = rows(("q0", "d0", 1), ("q0", "d0", 1), ("q0", "d1", 1))
    judgements = Judgements.from_qrels(twice, ids("q", 1), ids("d", 2))
    assert judgements.positives.tolist() == [2]
    with pytest.raises(InputError, match="'q0' and document 'd0' are judged twice"):
        Judgements.from_qrels(
            rows(("q0", "d0", 1), ("q0", "d0", 2)),
            ids("q", 1),
            ids("d", 2),
        )


def test_no_query_with_a_positive_judgement_is_refused() -> None:
    judgements = Judgements.from_qrels(rows(("other", "d0", 1)), ids("q", 2), ids("d", 2))
    with pytest.raises(InputError, match="none of the 2 queries has a positive judgement"):
        mean_quality(np.zeros(2), judgements)


def test_equal_rankings_have_equal_bits_wherever_they_stand() -> None:
    random = np.random.default_rng(5)
    queries, documents = 37, 60
    judgements = Judgements.from_positions(
        np.repeat(np.arange(queries), 5),
        np.concatenate([random.permutation(documents)[:5] for _ in range(queries)]),
        random.integers(1, 4, size=queries * 5),
        queries,
        documents,
    )
    one = np.stack([random.permutation(documents)[:20] for _ in range(queries)]).astype(np.int32)
    positions = np.broadcast_to(one, (3, 8, queries, 20))
    quality = mean_quality(
        ndcg(positions, np.full((3, 8, queries), 20, np.int32), judgements), judgements
    )
    assert len(np.unique(quality)) == 1


def test_tie_at_the_border_is_seen_only_where_the_next_rank_exists() -> None:
    scores = np.array([[3.0, 2.0, 2.0, 1.0], [3.0, 2.0, 1.0, 1.0], [3.0, 2.0, 0.0, 0.0]])
    counts = np.array([4, 4, 2], np.int32)
    assert border_tied(scores, counts, cutoff=2).tolist() == [True, False, False]
    assert border_tied(scores, counts, cutoff=3).tolist() == [False, True, False]
    judgements = Judgements.from_positions(
        np.array([0, 1]), np.array([0, 0]), np.array([1, 1]), 3, 4
    )
    assert tie_share(scores, counts, judgements, cutoff=2) == 0.5
    with pytest.raises(InputError, match="depth 4 cannot show a tie at rank 4"):
        border_tied(scores, counts, cutoff=4)
