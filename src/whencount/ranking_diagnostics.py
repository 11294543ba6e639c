"""What a predictor may see of rankings without labels: tier 3 of the study, section 7.

All queries of a collection count, whether judged or not: nothing here knows a relevance label, not
even by the choice of queries.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from whencount.attribution import switch_pairs
from whencount.judgements import discounts
from whencount.scoring import CONFIGURATIONS, SWITCHES

if TYPE_CHECKING:
    from whencount.search import Rankings

DISRUPTION_COLUMNS = tuple(f"disruption_{switch}" for switch in SWITCHES)
SPREAD_COLUMNS = tuple(f"score_spread_{configuration}" for configuration in CONFIGURATIONS)
DROP_COLUMNS = tuple(f"score_drop_{configuration}" for configuration in CONFIGURATIONS)
TIER_3 = (*DISRUPTION_COLUMNS, *SPREAD_COLUMNS, *DROP_COLUMNS)
"""The columns of tier 3 that need no reference."""

_SCORES_PER_BLOCK = 1 << 20


def pseudo_columns(reference: str) -> tuple[str, ...]:
    """The columns of the pseudo-labels that a reference gives, `pseudo_bm25_000` and so on."""
    return tuple(f"pseudo_{reference}_{configuration}" for configuration in CONFIGURATIONS)


def ranking_statistics(
    rankings: Rankings, references: Mapping[str, NDArray[np.int32]]
) -> list[dict[str, float]]:
    """Every statistic of tier 3, by column of rows.parquet, one mapping per cell.

    Args:
        rankings: of all eight configurations, in their order.
        references: name to document positions, int32, shape (queries, at least 1), best first, -1
            past the end; columns come in the order of their names.
    """
    spread, drop = score_profile(rankings)
    blocks = [(DISRUPTION_COLUMNS, disruption(rankings)), (SPREAD_COLUMNS, spread)]
    blocks.append((DROP_COLUMNS, drop))
    for name in sorted(references):
        blocks.append((pseudo_columns(name), pseudo_labels(rankings, references[name])))
    return [
        {
            column: float(value)
            for columns, values in blocks
            for column, value in zip(columns, values[cell], strict=True)
        }
        for cell in range(len(rankings.counts))
    ]


def disruption(rankings: Rankings, cutoff: int = 10) -> NDArray[np.float64]:
    """How much each switch changes the top documents.

    The mean, over queries and over the four configuration pairs that differ only in the switch, of
    `1 - |top10 ∩ top10'| / 10`. Where both rankings have fewer than ten documents the longer one's
    number stands for 10, so that equal rankings have no disruption; two empty ones are equal.

    Args:
        rankings: of all eight configurations, in their order.

    Returns:
        float64, shape (cells, 3), in the order of SWITCHES; NaN without queries.
    """
    _all_eight(rankings)
    cells, _, queries = rankings.counts.shape
    total = np.zeros((cells, len(SWITCHES), queries))
    for cell, start, stop in _blocks(rankings):
        top = rankings.positions[cell, :, start:stop, :cutoff]
        sizes = np.minimum(rankings.counts[cell, :, start:stop], cutoff)
        for number, switch in enumerate(SWITCHES):
            for off, on in switch_pairs(switch):
                longer = np.maximum(sizes[off], sizes[on])
                shared = _shared(top[off], top[on])
                # Integers until the division, so that equal rankings give exactly 0.
                changed = (longer - shared) / np.maximum(longer, 1)
                total[cell, number, start:stop] += changed
    if queries == 0:
        return np.full((cells, len(SWITCHES)), np.nan)
    mean: NDArray[np.float64] = total.mean(axis=-1) / 4
    return mean


def score_profile(
    rankings: Rankings, depth: int = 100, cutoff: int = 10
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Spread and drop of the retrieved scores, mean over queries with a non-empty ranking.

    Returns:
        `sd / |mean|` of the first `depth` scores (population sd), and `(s1 - s10) / |s1|`; each
        float64, shape (cells, configurations). Shorter rankings are taken as they are, with their
        last score for s10. NaN where every ranking is empty.
    """
    spread, drop = np.zeros((2, *rankings.counts.shape))
    for cell, start, stop in _blocks(rankings):
        block = np.s_[cell, :, start:stop]
        spread[block], drop[block] = _profile(
            rankings.scores[block][..., :depth], rankings.counts[block], cutoff
        )
    filled = rankings.counts > 0
    return _mean_where(spread, filled), _mean_where(drop, filled)


def pseudo_labels(
    rankings: Rankings, reference_positions: NDArray[np.int32], cutoff: int = 10
) -> NDArray[np.float64]:
    """`Q~_c`: nDCG@10 when the top 10 of a reference are the relevant documents.

    Gains are binary and the ideal has ten relevant documents, also where the reference found fewer.
    Queries for which it found none are left out. `whencount.attribution` makes phi~, G~ and the
    other targets of the result.

    Args:
        rankings: shape (cells, configurations, queries, depth).
        reference_positions: int32, shape (queries, at least 1), document positions of the
            reference run in rank order, -1 past its end; the first `cutoff` are used.

    Returns:
        float64, shape (cells, configurations); NaN where the reference is empty throughout.
    """
    reference = reference_positions[:, :cutoff]
    if len(reference) != rankings.counts.shape[-1]:
        raise ValueError(
            f"a reference of {len(reference)} queries, rankings of {rankings.counts.shape[-1]}"
        )
    weights = discounts(cutoff)
    quality = np.zeros(rankings.counts.shape)
    for cell, start, stop in _blocks(rankings):
        block = np.s_[cell, :, start:stop]
        documents, counts = rankings.positions[block], rankings.counts[block]
        relevant = reference[start:stop]
        for rank in range(min(cutoff, documents.shape[-1])):
            found = (documents[..., rank, None] == relevant).any(axis=-1) & (rank < counts)
            quality[block] += found * weights[rank]
    quality /= weights.sum()
    answered = (reference >= 0).any(axis=-1)
    return _mean_where(quality, np.broadcast_to(answered, quality.shape))


def _blocks(rankings: Rankings) -> Iterator[tuple[int, int, int]]:
    """(cell, first query, end): so few rankings at once that copies of them stay small."""
    cells, configurations, queries, depth = rankings.scores.shape
    step = max(1, _SCORES_PER_BLOCK // max(1, configurations * depth))
    for cell in range(cells):
        for start in range(0, queries, step):
            yield cell, start, min(start + step, queries)


def _shared(left: NDArray[np.int32], right: NDArray[np.int32]) -> NDArray[np.int64]:
    """How many documents two lists have in common; shapes (..., n) and (..., m) to (...)."""
    same = (left[..., :, None] == right[..., None, :]) & (left[..., :, None] >= 0)
    return np.asarray(np.count_nonzero(same, axis=(-1, -2)), dtype=np.int64)


def _profile(
    scores: NDArray[np.float64], counts: NDArray[np.int32], cutoff: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Spread and drop of each ranking, 0 for empty ones; shape (..., depth) to twice (...)."""
    counts = np.minimum(counts, np.int32(scores.shape[-1]))
    filled = counts > 0
    valid = np.arange(scores.shape[-1]) < counts[..., None]
    number = np.maximum(counts, 1)
    best = scores[..., 0]
    # From the best score: exact zeros where all scores are equal.
    shifted = np.where(valid, scores - best[..., None], 0.0)
    mean = shifted.sum(axis=-1) / number
    deviation = np.where(valid, shifted - mean[..., None], 0.0)
    sd = np.sqrt(np.square(deviation).sum(axis=-1) / number)
    last = np.maximum(np.minimum(counts, cutoff) - 1, 0)
    tenth = np.take_along_axis(scores, last[..., None], axis=-1)[..., 0]
    spread = sd / np.where(filled, np.abs(mean + best), 1.0)
    drop = (best - tenth) / np.where(filled, np.abs(best), 1.0)
    return spread, drop


def _mean_where(values: NDArray[np.float64], chosen: NDArray[np.bool_]) -> NDArray[np.float64]:
    result = np.full(values.shape[:-1], np.nan)
    total = np.where(chosen, values, 0.0).sum(axis=-1)
    count = chosen.sum(axis=-1)
    np.divide(total, count, out=result, where=count > 0)
    return result


def _all_eight(rankings: Rankings) -> None:
    if rankings.counts.shape[1] != 8:
        raise ValueError(f"rankings of {rankings.counts.shape[1]} configurations; eight are needed")
