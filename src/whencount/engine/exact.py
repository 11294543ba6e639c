"""The float64 score that decides a ranking, and the kernels that compute it.

A document's key for a transform and a query is the sum over shared features, by rising feature,
of `q_j * ratio(x_dj)`, times the document's factor, rounded to 40 bits (`whencount.search` says
why). Both kernels here, and the brute force in the tests, do the same float64 operations in the
same order, so they agree to the last bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from whencount.engine.compiled import inlined, kernel
from whencount.engine.lanes import MATCH_WIDTH, add_ratios, first_equal, weight_at

Array = NDArray[Any]


@kernel
def round_key(value: float) -> float:
    """Round to 40 significant bits (Veltkamp's splitting; Dekker 1971, section 5)."""
    scaled = value * 8193.0
    return scaled - (scaled - value)


@kernel
def document_constants(
    peak: float,
    length: float,
    average_length: float,
    slope: Array,
    k1: Array,
    b: Array,
    reference_peak: Array,
    reference_length: Array,
    pull: Array,
    inverse: Array,
    factor: Array,
) -> None:
    """Fill, per transform, its constants of one document, as `lanes.add_ratios` and the key need.

    `pull` is k1 l, or 1 without saturation; `inverse` 1 / T(peak); `factor` at most 1.
    """
    for number in range(len(slope)):
        relative = 1.0
        if average_length != 0.0:
            relative = 1.0 - b[number] + b[number] * length / average_length
        if slope[number] != 0.0:
            pull[number] = k1[number] * relative
            top = peak / (peak + pull[number])
            inverse[number] = 1.0 / top
            factor[number] = top / reference_peak[number]
        else:
            pull[number] = 1.0
            inverse[number] = 1.0 / peak
            factor[number] = (peak / reference_peak[number]) * (reference_length[number] / relative)


@inlined
def _worse(key: float, position: int, other_key: float, other_position: int) -> bool:
    return key < other_key or (key == other_key and position > other_position)


@kernel
def _sink(keys: Array, positions: Array, start: int, count: int) -> None:
    key, position = keys[start], positions[start]
    hole = start
    while True:
        child = 2 * hole + 1
        if child >= count:
            break
        if child + 1 < count and _worse(
            keys[child + 1], positions[child + 1], keys[child], positions[child]
        ):
            child += 1
        if not _worse(keys[child], positions[child], key, position):
            break
        keys[hole], positions[hole] = keys[child], positions[child]
        hole = child
    keys[hole], positions[hole] = key, position


@kernel
def offer(keys: Array, positions: Array, count: int, key: float, position: int) -> int:
    """Offer a document to a heap of the best `len(keys)`; return the new count."""
    if count < len(keys):
        keys[count], positions[count] = key, position
        count += 1
        if count == len(keys):
            for start in range(count // 2 - 1, -1, -1):
                _sink(keys, positions, start, count)
    elif _worse(keys[0], positions[0], key, position):
        keys[0], positions[0] = key, position
        _sink(keys, positions, 0, count)
    return count


@kernel
def sort_heaps(keys: Array, positions: Array, counts: Array) -> None:
    """Sort every heap best first, in place; past `counts` keys are 0 and positions -1.

    Shapes (rankings, depth) and (rankings,).
    """
    for row in range(len(counts)):
        key, position, count = keys[row], positions[row], counts[row]
        if count < key.shape[0]:
            for start in range(count // 2 - 1, -1, -1):
                _sink(key, position, start, count)
        for last in range(count - 1, 0, -1):
            key[0], key[last] = key[last], key[0]
            position[0], position[last] = position[last], position[0]
            _sink(key, position, 0, last)
        key[count:] = 0.0
        position[count:] = -1


@kernel
def merge_sorted(
    keys: Array,
    positions: Array,
    counts: Array,
    other_keys: Array,
    other_positions: Array,
    other_counts: Array,
    offset: int,
) -> None:
    """Merge rows of sorted rankings into others, in place; `offset` is added to the other's.

    Shapes (rankings, depth) and (rankings,). The other's positions must all come later.
    """
    depth = keys.shape[1]
    key, position = np.empty(depth), np.empty(depth, dtype=np.int32)
    for row in range(len(counts)):
        left, right, filled = 0, 0, 0
        while filled < depth and (left < counts[row] or right < other_counts[row]):
            if right == other_counts[row] or (
                left < counts[row] and keys[row, left] >= other_keys[row, right]
            ):
                key[filled], position[filled] = keys[row, left], positions[row, left]
                left += 1
            else:
                key[filled] = other_keys[row, right]
                position[filled] = other_positions[row, right] + offset
                right += 1
            filled += 1
        keys[row, :filled], positions[row, :filled] = key[:filled], position[:filled]
        counts[row] = filled


@inlined
def _find(ids: Array, first: int, last: int, wanted: int, block_documents: int) -> int:
    """Where `wanted` stands in the rising `ids[first:last]`, or -1.

    Postings are spread over a block about evenly: guess the place, compare a window around it,
    and halve only where that misses.
    """
    if len(ids) < MATCH_WIDTH:
        for place in range(first, last):
            if ids[place] == wanted:
                return place
        return -1
    start = first
    end = last
    if last - first > MATCH_WIDTH:
        guess = first + wanted * (last - first) // block_documents - MATCH_WIDTH // 2
        start = min(max(first, guess), last - MATCH_WIDTH)
        end = start + MATCH_WIDTH
        low, high = 0, 0
        if ids[start] > wanted:
            low, high = first, start
        elif ids[end - 1] < wanted:
            low, high = end, last
        if high > low:
            while high - low > MATCH_WIDTH:
                half = (high - low) >> 1
                if ids[low + half - 1] < wanted:
                    low += half
                else:
                    high = low + half
            start, end = low, high
    # The window may begin early, at the end of the array: hits before `start` do not count.
    window = min(start, len(ids) - MATCH_WIDTH)
    place = window + first_equal(ids, window, start - window, wanted)
    return place if place < end else -1


@kernel
def rescore(
    groups: Any,
    block_documents: int,
    block_starts: Array,
    bounds: Array,
    ids: Array,
    values: Array,
    value_levels: Array,
    lengths: Array,
    peaks: Array,
    average_length: float,
    slope: Array,
    k1: Array,
    b: Array,
    reference_peak: Array,
    reference_length: Array,
    query_starts: Array,
    query_features: Array,
    query_plain: Array,
    query_scaled: Array,
    first_query: int,
    last_query: int,
    candidate_starts: Array,
    candidates: Array,
    estimates: Array,
    thresholds: Array,
    keys: Array,
    positions: Array,
    counts: Array,
) -> None:
    """Offer every candidate's exact keys to the heaps of the lanes whose threshold it passes.

    Candidates of a query stand by rising position. Block by block, so that postings are read
    while they are near.
    """
    transforms = len(slope)
    most = 1
    for query in range(first_query, last_query):
        most = max(most, candidate_starts[query + 1] - candidate_starts[query])
    cursor = candidate_starts[first_query:last_query].copy()
    room = min(most, block_documents)
    pull = np.empty((room, transforms))
    inverse = np.empty((room, transforms))
    factor = np.empty((room, transforms))
    lanes = 2 * transforms
    sums = np.empty((room, lanes))
    local = np.empty(room, dtype=np.int64)
    top = np.empty(room)
    place = np.empty(room, dtype=np.int64)
    matched = np.empty(room, dtype=np.int64)
    for block in range(len(block_starts) - 1):
        low, high = block * block_documents, (block + 1) * block_documents
        base = block_starts[block]
        for query in range(first_query, last_query):
            start = cursor[query - first_query]
            stop, end = start, candidate_starts[query + 1]
            while stop < end and candidates[stop] < high:
                stop += 1
            cursor[query - first_query] = stop
            count = stop - start
            if count == 0:
                continue
            for own in range(count):
                document = candidates[start + own]
                local[own] = document - low
                top[own] = peaks[document]
                document_constants(
                    top[own],
                    lengths[document],
                    average_length,
                    slope,
                    k1,
                    b,
                    reference_peak,
                    reference_length,
                    pull[own],
                    inverse[own],
                    factor[own],
                )
            sums[:count] = 0.0
            for term in range(query_starts[query], query_starts[query + 1]):
                feature = query_features[term]
                first = base + np.int64(bounds[block, feature])
                last = base + np.int64(bounds[block, feature + 1])
                if first == last:
                    continue
                # All searches first, then all divisions: none waits for another.
                matches = 0
                for own in range(count):
                    found = _find(ids, first, last, local[own], block_documents)
                    matched[matches], place[matches] = own, found
                    matches += found >= 0
                for entry in range(matches):
                    own = matched[entry]
                    add_ratios(
                        groups, weight_at(values, value_levels, place[entry]), top[own],
                        slope, pull, inverse, own, query_plain[term], query_scaled[term], sums,
                    )  # fmt: skip
            for own in range(count):
                for lane in range(lanes):
                    if estimates[start + own, lane] > thresholds[query, lane]:
                        number = lane // 8 * 4 + lane % 4
                        counts[query, lane] = offer(
                            keys[query, lane],
                            positions[query, lane],
                            counts[query, lane],
                            round_key(sums[own, lane] * factor[own, number]),
                            candidates[start + own],
                        )


@kernel
def exhaust(
    groups: Any,
    block_documents: int,
    block_starts: Array,
    bounds: Array,
    ids: Array,
    values: Array,
    value_levels: Array,
    lengths: Array,
    peaks: Array,
    average_length: float,
    slope: Array,
    k1: Array,
    b: Array,
    reference_peak: Array,
    reference_length: Array,
    query_starts: Array,
    query_features: Array,
    query_plain: Array,
    query_scaled: Array,
    queries: Array,
    needed: Array,
    keys: Array,
    positions: Array,
    counts: Array,
) -> None:
    """Compute the exact keys of every document for the listed queries, and keep the best.

    For queries whose ties are too many for a list of candidates, and for values too far apart
    for float32.
    """
    transforms = len(slope)
    documents = len(lengths)
    pull = np.empty((block_documents, transforms))
    inverse = np.empty((block_documents, transforms))
    factor = np.empty((block_documents, transforms))
    lanes = 2 * transforms
    sums = np.zeros((block_documents, lanes))
    for block in range(len(block_starts) - 1):
        low = block * block_documents
        size = min(block_documents, documents - low)
        base = block_starts[block]
        for own in range(size):
            if peaks[low + own] > 0:
                document_constants(
                    np.float64(peaks[low + own]),
                    lengths[low + own],
                    average_length,
                    slope,
                    k1,
                    b,
                    reference_peak,
                    reference_length,
                    pull[own],
                    inverse[own],
                    factor[own],
                )
        for query in queries:
            for term in range(query_starts[query], query_starts[query + 1]):
                feature = query_features[term]
                for place in range(
                    base + np.int64(bounds[block, feature]),
                    base + np.int64(bounds[block, feature + 1]),
                ):
                    document = np.int64(ids[place])
                    add_ratios(
                        groups, weight_at(values, value_levels, place),
                        np.float64(peaks[low + document]), slope, pull, inverse, document,
                        query_plain[term], query_scaled[term], sums,
                    )  # fmt: skip
            for own in range(size):
                if sums[own, 0] == 0.0:
                    continue
                for lane in range(lanes):
                    if needed[lane]:
                        key = round_key(sums[own, lane] * factor[own, lane // 8 * 4 + lane % 4])
                        count = counts[query, lane]
                        if count < keys.shape[2] or key > keys[query, lane, 0]:
                            counts[query, lane] = offer(
                                keys[query, lane], positions[query, lane], count, key, low + own
                            )
                    sums[own, lane] = 0.0
