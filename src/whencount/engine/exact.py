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

Array = NDArray[Any]


@inlined
def ratio(value: float, peak: float, pull: float, inverse: float, saturated: bool) -> float:
    """`T(value) / T(peak)`; exactly 1 at the peak. `pull` is k1 l, `inverse` 1 / T(peak)."""
    if value == peak:
        return 1.0
    if saturated:
        return value / (value + pull) * inverse
    return value * inverse


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
    saturated: Array,
    k1: Array,
    b: Array,
    reference_peak: Array,
    reference_length: Array,
    pull: Array,
    inverse: Array,
    factor: Array,
) -> None:
    """Fill, per transform, k1 l, 1 / T(peak), and the document's factor (at most 1)."""
    for number in range(len(saturated)):
        relative = 1.0
        if average_length != 0.0:
            relative = 1.0 - b[number] + b[number] * length / average_length
        if saturated[number]:
            pull[number] = k1[number] * relative
            top = peak / (peak + pull[number])
            inverse[number] = 1.0 / top
            factor[number] = top / reference_peak[number]
        else:
            pull[number] = 0.0
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
def _lower_bound(ids: Array, first: int, last: int, wanted: int) -> int:
    while first < last:
        middle = (first + last) >> 1
        if ids[middle] < wanted:
            first = middle + 1
        else:
            last = middle
    return first


@kernel
def rescore(
    block_documents: int,
    block_starts: Array,
    bounds: Array,
    ids: Array,
    values: Array,
    lengths: Array,
    peaks: Array,
    average_length: float,
    saturated: Array,
    k1: Array,
    b: Array,
    reference_peak: Array,
    reference_length: Array,
    query_starts: Array,
    query_features: Array,
    query_plain: Array,
    query_inverse: Array,
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
    transforms = len(saturated)
    most = 1
    for query in range(first_query, last_query):
        most = max(most, candidate_starts[query + 1] - candidate_starts[query])
    cursor = candidate_starts[first_query:last_query].copy()
    room = min(most, block_documents)
    pull = np.empty((room, transforms))
    inverse = np.empty((room, transforms))
    factor = np.empty((room, transforms))
    sums = np.empty((room, transforms, 2))
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
                document_constants(
                    np.float64(peaks[document]),
                    lengths[document],
                    average_length,
                    saturated,
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
                plain, scaled = query_plain[term], query_inverse[term]
                for own in range(count):
                    if first == last:
                        break
                    local = candidates[start + own] - low
                    first = _lower_bound(ids, first, last, local)
                    if first == last or ids[first] != local:
                        continue
                    value = np.float64(values[first])
                    peak = np.float64(peaks[candidates[start + own]])
                    for number in range(transforms):
                        weight = ratio(
                            value, peak, pull[own, number], inverse[own, number],
                            saturated[number],
                        )  # fmt: skip
                        sums[own, number, 0] += plain * weight
                        sums[own, number, 1] += scaled * weight
            for own in range(count):
                for number in range(transforms):
                    for scaled_too in range(2):
                        lane = number // 4 * 8 + 4 * scaled_too + number % 4
                        if estimates[start + own, lane] > thresholds[query, lane]:
                            counts[query, lane] = offer(
                                keys[query, lane],
                                positions[query, lane],
                                counts[query, lane],
                                round_key(sums[own, number, scaled_too] * factor[own, number]),
                                candidates[start + own],
                            )


@kernel
def exhaust(
    block_documents: int,
    block_starts: Array,
    bounds: Array,
    ids: Array,
    values: Array,
    lengths: Array,
    peaks: Array,
    average_length: float,
    saturated: Array,
    k1: Array,
    b: Array,
    reference_peak: Array,
    reference_length: Array,
    query_starts: Array,
    query_features: Array,
    query_plain: Array,
    query_inverse: Array,
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
    transforms = len(saturated)
    documents = len(lengths)
    pull = np.empty((block_documents, transforms))
    inverse = np.empty((block_documents, transforms))
    factor = np.empty((block_documents, transforms))
    sums = np.zeros((block_documents, transforms, 2))
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
                    saturated,
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
                plain, scaled = query_plain[term], query_inverse[term]
                for place in range(
                    base + np.int64(bounds[block, feature]),
                    base + np.int64(bounds[block, feature + 1]),
                ):
                    document = np.int64(ids[place])
                    value = np.float64(values[place])
                    peak = np.float64(peaks[low + document])
                    for number in range(transforms):
                        weight = ratio(
                            value, peak, pull[document, number], inverse[document, number],
                            saturated[number],
                        )  # fmt: skip
                        sums[document, number, 0] += plain * weight
                        sums[document, number, 1] += scaled * weight
            for own in range(size):
                if sums[own, 0, 0] == 0.0:
                    continue
                for number in range(transforms):
                    for scaled_too in range(2):
                        lane = number // 4 * 8 + 4 * scaled_too + number % 4
                        if needed[lane]:
                            key = round_key(sums[own, number, scaled_too] * factor[own, number])
                            count = counts[query, lane]
                            if count < keys.shape[2] or key > keys[query, lane, 0]:
                                counts[query, lane] = offer(
                                    keys[query, lane],
                                    positions[query, lane],
                                    count,
                                    key,
                                    low + own,
                                )
                        sums[own, number, scaled_too] = 0.0
