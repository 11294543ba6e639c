"""Quality of rankings against relevance judgements: nDCG, recall, and what ties do to nDCG.

nDCG is that of trec_eval: linear gain, discount `log2(rank + 1)`, a negative relevance counts as
0, an unjudged document as 0, and the ideal ranking is made of all judged documents of the query,
those that the collection lacks included (Järvelin and Kekäläinen, 2002,
doi:10.1145/582415.582418). A query without a positive judgement has no nDCG: it is NaN here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from whencount.errors import InputError
from whencount.judgements import Judgements, discounts

if TYPE_CHECKING:
    from whencount.search import Rankings

__all__ = [
    "Borders",
    "Judgements",
    "border_tied",
    "mean_quality",
    "ndcg",
    "open_borders",
    "recall",
    "tie_expected_ndcg",
    "tie_share",
    "tied_with_next",
]

TIE_TOLERANCE = 2e-12
"""Scores whose relative difference is at most this are tied.

The search rounds scores to 40 significant bits, which makes equal what is equal on paper, except
where the exact score lies on a rounding step: then the two sides differ by 2^-39, 1.8e-12.
"""


def _ratio(gain: NDArray[np.float64], ideal: NDArray[np.float64]) -> NDArray[np.float64]:
    result = np.full(gain.shape, np.nan)
    np.divide(gain, ideal, out=result, where=np.broadcast_to(ideal > 0, gain.shape))
    return result


def _check(positions: NDArray[Any], judgements: Judgements) -> None:
    if positions.shape[-2] != judgements.queries:
        raise ValueError(
            f"rankings of {positions.shape[-2]} queries, judgements of {judgements.queries}"
        )


def _top(positions: NDArray[np.int32], counts: NDArray[np.int32], cutoff: int) -> NDArray[np.int32]:
    top = positions[..., :cutoff]
    return np.where(np.arange(top.shape[-1]) < counts[..., None], top, np.int32(-1))


def ndcg(
    positions: NDArray[np.int32],
    counts: NDArray[np.int32],
    judgements: Judgements,
    cutoff: int = 10,
) -> NDArray[np.float64]:
    """nDCG at `cutoff` of every ranking.

    Rankings with the same documents get the same bits, whatever stands beside them.

    Args:
        positions: int32, shape (..., Q, depth), document positions in rank order.
        counts: int32, shape (..., Q), how many of them were found.
        judgements: of the same Q queries.
        cutoff: the last rank that counts.

    Returns:
        float64, shape (..., Q); NaN where the query has no positive judgement, 0 where it has one
        and its ranking is empty.
    """
    _check(positions, judgements)
    gains = judgements.gains_of(_top(positions, counts, cutoff))
    total = np.zeros(gains.shape[:-1], dtype=np.float64)
    # Summed rank by rank, not as a matrix product, whose bits depend on the place in the matrix.
    for rank, discount in enumerate(discounts(gains.shape[-1])):
        total += gains[..., rank] * discount
    return _ratio(total, judgements.ideal(cutoff))


def recall(
    positions: NDArray[np.int32],
    counts: NDArray[np.int32],
    judgements: Judgements,
    cutoff: int,
) -> NDArray[np.float64]:
    """Share of a query's relevant documents that stand in its first `cutoff` ranks.

    Relevant documents that the collection lacks count in the denominator, as in trec_eval.
    Arguments and result as in `ndcg`.
    """
    _check(positions, judgements)
    found = np.count_nonzero(judgements.gains_of(_top(positions, counts, cutoff)), axis=-1)
    return _ratio(found.astype(np.float64), judgements.positives.astype(np.float64))


def mean_quality(per_query: NDArray[np.float64], judgements: Judgements) -> NDArray[np.float64]:
    """Mean over the queries that have a positive judgement.

    Args:
        per_query: float64, shape (..., Q).

    Returns:
        float64, shape (...).

    Raises:
        InputError: no query has a positive judgement.
    """
    evaluated = judgements.evaluated
    if not evaluated.any():
        raise InputError(
            f"none of the {judgements.queries} queries has a positive judgement"
            f" ({judgements.unknown_queries} judged queries are not among them); check that the"
            " ids of queries and qrels belong together"
        )
    mean: NDArray[np.float64] = np.ascontiguousarray(per_query[..., evaluated]).mean(axis=-1)
    return mean


def tied_with_next(scores: NDArray[np.float64], counts: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Whether each rank has the same score as the rank below it.

    Args:
        scores: float64, shape (..., depth), falling.
        counts: int32, shape (...).

    Returns:
        bool, shape (..., depth - 1); False where the rank below is empty.
    """
    upper, lower = scores[..., :-1], scores[..., 1:]
    exists = np.arange(1, scores.shape[-1]) < counts[..., None]
    return exists & (upper - lower <= TIE_TOLERANCE * np.abs(upper))


def border_tied(
    scores: NDArray[np.float64], counts: NDArray[np.int32], cutoff: int = 10
) -> NDArray[np.bool_]:
    """Whether ranks `cutoff` and `cutoff + 1` have the same score.

    Args:
        scores: float64, shape (..., depth), depth above `cutoff`.
        counts: int32, shape (...).

    Returns:
        bool, shape (...).

    Raises:
        InputError: the rankings are too short to see the rank below the border.
    """
    if scores.shape[-1] <= cutoff:
        raise InputError(
            f"rankings of depth {scores.shape[-1]} cannot show a tie at rank {cutoff};"
            f" search at depth {cutoff + 1} or more"
        )
    window = scores[..., cutoff - 1 : cutoff + 1]
    return np.asarray(tied_with_next(window, counts - np.int32(cutoff - 1))[..., 0])


def tie_share(
    scores: NDArray[np.float64],
    counts: NDArray[np.int32],
    judgements: Judgements,
    cutoff: int = 10,
) -> NDArray[np.float64]:
    """Share of the evaluated queries whose border at `cutoff` falls inside a tie.

    Args:
        scores: float64, shape (..., Q, depth).
        counts: int32, shape (..., Q).

    Returns:
        float64, shape (...).
    """
    return mean_quality(border_tied(scores, counts, cutoff).astype(np.float64), judgements)


@dataclass(frozen=True)
class Borders:
    """Ties at the cutoff that reach past the end of the ranking, as the whole collection has them.

    `whencount.ties.complete_borders` computes them.

    Attributes:
        sizes: int64, shape (cells, configurations, queries), documents in the tie; 0 for rankings
            that show their tie whole.
        gains: float64, the same shape, the sum of relevance of those documents.
    """

    sizes: NDArray[np.int64]
    gains: NDArray[np.float64]


def open_borders(rankings: Rankings, cutoff: int = 10) -> NDArray[np.bool_]:
    """Whether the tie across the border at `cutoff` reaches the last rank of a full ranking.

    Documents of that tie may then stand outside the ranking.

    Returns:
        bool, shape (cells, configurations, queries).

    Raises:
        InputError: the rankings are too short to see the rank below the border.
    """
    scores, counts = rankings.scores, rankings.counts
    result = border_tied(scores, counts, cutoff)
    rest = tied_with_next(scores[result][:, cutoff - 1 :], counts[result] - np.int32(cutoff - 1))
    result[result] = rest.all(axis=-1)
    return result


def tie_expected_ndcg(
    rankings: Rankings,
    judgements: Judgements,
    cutoff: int = 10,
    borders: Borders | None = None,
) -> NDArray[np.float64]:
    """Expected nDCG at `cutoff` when documents with equal scores come in random order.

    Every rank of a tie has the mean gain of the tie (McSherry and Najork, 2008,
    doi:10.1007/978-3-540-78646-7_38, equation 4). Rankings without a tie in their first `cutoff`
    ranks have the bits of `ndcg`.

    Args:
        rankings: deeper than `cutoff`.
        judgements: of the same queries.
        borders: the ties that reach past the end of the rankings; None where there are none
            (`open_borders` tells).

    Returns:
        float64, shape (cells, configurations, queries); NaN where the query has no positive
        judgement.

    Raises:
        InputError: a tie reaches past the end of a ranking and `borders` does not tell its size, or
            the rankings are no deeper than `cutoff`.
    """
    positions, scores, counts = rankings.positions, rankings.scores, rankings.counts
    result = ndcg(positions, counts, judgements, cutoff)
    unbounded = open_borders(rankings, cutoff) & judgements.evaluated
    if borders is None:
        borders = Borders(np.zeros(counts.shape, np.int64), np.zeros(counts.shape))
    if (unbounded & (borders.sizes == 0)).any():
        raise InputError(
            f"ties at rank {cutoff} reach past the end of {int(unbounded.sum())} rankings of depth"
            f" {scores.shape[-1]}; complete them with whencount.ties.complete_borders, or search"
            " deeper"
        )
    tied = tied_with_next(scores, counts)
    chosen = tied[..., :cutoff].any(axis=-1) & judgements.evaluated
    if not chosen.any():
        return result
    depth = scores.shape[-1]
    valid = np.arange(depth) < counts[chosen][:, None]
    documents = np.where(valid, positions[chosen], np.int32(-1))
    gains = judgements.gains_of(documents, np.nonzero(chosen)[-1])
    # Number the ties of each ranking, and spread each one's mean gain over its ranks.
    group = np.zeros(valid.shape, dtype=np.int64)
    np.cumsum(~tied[chosen], axis=-1, out=group[:, 1:])
    number = group + np.arange(len(group))[:, None] * depth
    sizes = np.bincount(number.reshape(-1), weights=valid.reshape(-1), minlength=number.size)
    sums = np.bincount(number.reshape(-1), weights=gains.reshape(-1), minlength=number.size)
    border = number[unbounded[chosen], cutoff - 1]
    sizes[border] = borders.sizes[unbounded]
    sums[border] = borders.gains[unbounded]
    expected = np.zeros(len(group))
    for rank, discount in enumerate(discounts(cutoff)):
        at = number[:, rank]
        expected += np.where(valid[:, rank], sums[at] / np.maximum(sizes[at], 1), 0.0) * discount
    ideal = np.broadcast_to(judgements.ideal(cutoff), chosen.shape)[chosen]
    result[chosen] = expected / ideal
    return result
