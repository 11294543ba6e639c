"""The float32 pass: all rankings of many queries at once, block of documents by block.

It yields candidates, not results. Weights, transforms and factors are scaled to at most 1 and
kept at least `lanes.SMALLEST`, so every document that shares a feature with the query has a
positive estimate, and an estimate a of an exact score s obeys `|a - s| <= e s + d` with
`e = (2 n + 16) 2^-24` and `d = n 2^-59` for n query terms. If k documents have estimates of at
least t, every document of the exact top k has an estimate above `t (1 - 3 e) - 4 d`; that is the
threshold here. Ties so many that the list of candidates overflows are reported, not cut.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from whencount.engine.compiled import kernel
from whencount.engine.lanes import (
    UNROLLED_DOCUMENTS,
    accumulate,
    count_at_least,
    keep_above,
    maxima,
    prefetch,
    scan,
    transform,
)

Array = NDArray[Any]

CHUNK = 256
"""Documents looked at between two checks that the list of candidates has room."""

_ROUGH_STEPS = 14

SEED_STRIPES = 4
"""Stripes of the first block, in depths, whose best documents set the first thresholds."""

AHEAD = 3
"""How many terms before its turn a list of postings is asked for."""


@kernel
def raise_levels(
    groups: Any, scores: Array, count: int, depth: int, steps: int, levels: Array, row: int
) -> None:
    """Raise `levels[row]` towards the depth-th best of the first `count` rows, lane by lane.

    Bisection over the bits of the floats, all lanes at once: whatever the number of `steps`, at
    least `depth` rows reach the level. 32 steps find the exact value.
    """
    width = scores.shape[1]
    low = levels[row].view(np.int32)
    largest = np.empty((1, width), dtype=np.float32)
    maxima(groups, scores, 1, count, largest)
    high = largest[0].view(np.int32) + np.int32(1)
    middle = np.empty(width, dtype=np.int32)
    counts = np.empty(width, dtype=np.int32)
    for _ in range(steps):
        open_lanes = False
        for lane in range(width):
            gap = high[lane] - low[lane]
            open_lanes |= gap > 1
            middle[lane] = low[lane] + gap // 2
        if not open_lanes:
            break
        count_at_least(groups, scores, count, middle.view(np.float32), counts)
        for lane in range(width):
            if counts[lane] >= depth:
                low[lane] = max(low[lane], middle[lane])
            else:
                high[lane] = middle[lane]


@kernel
def tighten(
    groups: Any,
    scores: Array,
    positions: Array,
    found: int,
    depth: int,
    steps: int,
    levels: Array,
    thresholds: Array,
    row: int,
    relative: float,
    absolute: float,
) -> int:
    """Raise a query's thresholds to its best `depth` estimates, drop the rest; the new count."""
    if found >= depth:
        raise_levels(groups, scores, found, depth, steps, levels, row)
    loosen(levels, thresholds, row, relative, absolute)
    kept: int = keep_above(groups, scores, positions, found, thresholds, row)
    return kept


@kernel
def loosen(levels: Array, thresholds: Array, row: int, relative: float, absolute: float) -> None:
    """Set the thresholds of a query a margin below its levels; lanes nobody needs stay shut."""
    for lane in range(levels.shape[1]):
        if thresholds[row, lane] != np.inf:
            bound = np.float64(levels[row, lane]) * (1.0 - 3.0 * relative) - 4.0 * absolute
            thresholds[row, lane] = np.float32(max(bound, 0.0))


@kernel
def _denominators(
    out: Array,
    first: int,
    count: int,
    lengths: Array,
    average_length: float,
    slope: Array,
    k1: Array,
    b: Array,
    reference_peak: Array,
    reference_length: Array,
) -> None:
    for own in range(count):
        length = lengths[first + own]
        for number in range(len(slope)):
            relative = 1.0
            if average_length != 0.0:
                relative = 1.0 - b[number] + b[number] * length / average_length
            if slope[number] != 0.0:
                out[own, number] = k1[number] * relative
            else:
                out[own, number] = relative * (reference_peak[number] / reference_length[number])


@kernel
def collect(
    groups: Any,
    first_block: int,
    last_block: int,
    block_documents: int,
    documents: int,
    block_starts: Array,
    bounds: Array,
    ids: Array,
    values: Array,
    value_levels: Array,
    lengths: Array,
    average_length: float,
    slope: Array,
    k1: Array,
    b: Array,
    reference_peak: Array,
    reference_length: Array,
    active: Array,
    query_starts: Array,
    query_slots: Array,
    weights: Array,
    table: Array,
    depth: int,
    relative: Array,
    absolute: Array,
    levels: Array,
    thresholds: Array,
    scores: Array,
    positions: Array,
    found: Array,
    overflow: Array,
) -> None:
    """Add the candidates of blocks `first_block` to `last_block` - 1 to the lists of all queries.

    Args:
        groups: a tuple with one entry per group of eight lanes.
        active: int32, the distinct features of the queries; `query_slots` index it.
        weights: float32, (terms, 8): scaled query weights, IDF off four times, then on.
        table: float32, (postings of the largest block, 4 per group): room for transforms.
        relative, absolute: float64, (queries,): e and d of the module's docstring.
        levels, thresholds: float32, (queries, lanes): kept between calls.
        scores, positions, found: the lists, (queries, capacity, lanes), (queries, capacity) and
            (queries,); kept between calls.
        overflow: bool, (queries,): set where ties overflowed the list.
    """
    width = 8 * len(groups)
    quarter = 4 * len(groups)
    queries = len(query_starts) - 1
    capacity = scores.shape[1]
    padded = (block_documents + UNROLLED_DOCUMENTS - 1) // UNROLLED_DOCUMENTS
    accumulator = np.zeros((padded * UNROLLED_DOCUMENTS, width), dtype=np.float32)
    denominators = np.ones((block_documents, quarter), dtype=np.float32)
    scales = np.zeros(quarter, dtype=np.float32)
    slopes = np.zeros(quarter, dtype=np.float32)
    for number in range(len(slope)):
        scales[number] = 1.0 / reference_peak[number] if slope[number] != 0.0 else 1.0
        slopes[number] = slope[number]
    # Per feature: where its postings begin in the index and in the table, and how many there are.
    spans = np.empty((len(active), 3), dtype=np.int64)
    seeds = np.empty((min(block_documents, SEED_STRIPES * depth), width), dtype=np.float32)
    for block in range(first_block, last_block):
        low = block * block_documents
        size = min(block_documents, documents - low)
        base = block_starts[block]
        total = np.int64(0)
        for slot in range(len(active)):
            feature = active[slot]
            first = np.int64(bounds[block, feature])
            size_here = np.int64(bounds[block, feature + 1]) - first
            spans[slot, 0], spans[slot, 1], spans[slot, 2] = base + first, total, size_here
            total += size_here
        if total == 0:
            continue
        _denominators(
            denominators, low, size, lengths, average_length, slope, k1, b,
            reference_peak, reference_length,
        )  # fmt: skip
        # Features side by side have their postings end to end: one long call for the run.
        first_slot = 0
        while first_slot < len(active):
            slot = first_slot
            count = spans[slot, 2]
            while slot + 1 < len(active) and spans[first_slot, 0] + count == spans[slot + 1, 0]:
                slot += 1
                count += spans[slot, 2]
            transform(
                groups, values, value_levels, ids, spans[first_slot, 0], count, denominators,
                scales, slopes, table, spans[first_slot, 1],
            )  # fmt: skip
            first_slot = slot + 1
        for query in range(queries):
            if overflow[query]:
                continue
            touched = False
            last_term = query_starts[query + 1] - 1
            for term in range(query_starts[query], query_starts[query + 1]):
                ahead = query_slots[min(term + AHEAD, last_term)]
                prefetch(ids, spans[ahead, 0], 2)
                prefetch(table, spans[ahead, 1], 4 * quarter)
                slot = query_slots[term]
                count = spans[slot, 2]
                if count > 0:
                    touched = True
                    accumulate(
                        groups, accumulator, ids, spans[slot, 0], table, spans[slot, 1], count,
                        weights, term,
                    )  # fmt: skip
            if not touched:
                continue
            if found[query] == 0 and size >= depth:
                # That many stripes have a best document that reaches the level: so many
                # documents do, and few more.
                stripes = min(size, SEED_STRIPES * depth)
                maxima(groups, accumulator, stripes, size // stripes, seeds)
                raise_levels(groups, seeds, stripes, depth, _ROUGH_STEPS, levels, query)
                loosen(levels, thresholds, query, relative[query], absolute[query])
            for start in range(0, size, CHUNK):
                if found[query] + CHUNK > capacity:
                    found[query] = tighten(
                        groups, scores[query], positions[query], found[query], depth,
                        _ROUGH_STEPS, levels, thresholds, query, relative[query],
                        absolute[query],
                    )  # fmt: skip
                    if found[query] + CHUNK > capacity:
                        overflow[query] = True
                        accumulator[start:] = 0.0
                        break
                steps = (min(CHUNK, size - start) + UNROLLED_DOCUMENTS - 1) // UNROLLED_DOCUMENTS
                found[query] = scan(
                    groups, accumulator, start, steps * UNROLLED_DOCUMENTS, thresholds, query,
                    scores[query], positions[query], found[query], low,
                )  # fmt: skip


@kernel
def merge(
    groups: Any,
    depth: int,
    relative: Array,
    absolute: Array,
    levels: Array,
    thresholds: Array,
    scores: Array,
    positions: Array,
    found: Array,
    overflow: Array,
    out_starts: Array,
    out_scores: Array,
    out_positions: Array,
) -> None:
    """Join the lists of several workers (first axis), tighten them, and write them end to end.

    `levels` and `thresholds` are those of worker 0 and become those of the union; `out_starts`
    (queries + 1,) says where each query's candidates begin; they stand by rising position.
    Queries that overflowed get none.
    """
    workers, queries = found.shape
    width = scores.shape[3]
    total = 0
    most = 0
    for query in range(queries):
        here = 0
        for worker in range(workers):
            here += found[worker, query]
        most = max(most, here)
    own_scores = np.empty((most, width), dtype=np.float32)
    own_positions = np.empty(most, dtype=np.int32)
    for query in range(queries):
        out_starts[query] = total
        if overflow[query]:
            continue
        count = 0
        for worker in range(workers):
            number = found[worker, query]
            own_scores[count : count + number] = scores[worker, query, :number]
            own_positions[count : count + number] = positions[worker, query, :number]
            count += number
        count = tighten(
            groups, own_scores, own_positions, count, depth, 32, levels, thresholds, query,
            relative[query], absolute[query],
        )  # fmt: skip
        if workers == 1:
            out_scores[total : total + count] = own_scores[:count]
            out_positions[total : total + count] = own_positions[:count]
        else:
            order = np.argsort(own_positions[:count])
            for entry in range(count):
                out_scores[total + entry] = own_scores[order[entry]]
                out_positions[total + entry] = own_positions[order[entry]]
        total += count
    out_starts[queries] = total
