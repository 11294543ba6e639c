"""CPU kernels of late interaction: codes to vectors, and pairs that keep their order."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float32]


@njit(nogil=True, cache=True)
def decompress(
    ids: NDArray[np.int32],
    packed: NDArray[np.uint8],
    centroids: Floats,
    weights: Floats,
    bits: int,
    out: Floats,
) -> None:
    """Centroid plus residual of each token, divided by its norm.

    Args:
        ids: shape (tokens,), centroids of the tokens.
        packed: shape (tokens, ceil(width * bits / 8)), the first dimension in the highest bits.
        centroids: shape (centroids, width).
        weights: shape (2^bits, width), the residual that each code of each dimension stands for.
        bits: 1, 2, 4 or 8.
        out: float32, shape (tokens, width).
    """
    width = centroids.shape[1]
    per_byte = 8 // bits
    mask = (1 << bits) - 1
    for token in range(len(ids)):
        centre, line, codes = centroids[ids[token]], out[token], packed[token]
        square = 0.0
        for byte in range(len(codes)):
            first = byte * per_byte
            for place in range(min(per_byte, width - first)):
                code = (codes[byte] >> (bits * (per_byte - 1 - place))) & mask
                value = centre[first + place] + weights[code, first + place]
                line[first + place] = value
                square += value * value
        if square > 0:
            factor = np.float32(1.0 / np.sqrt(square))
            for j in range(width):
                line[j] *= factor


@njit(nogil=True, cache=True)
def crossing(
    lower: NDArray[np.float64],
    by_lower: NDArray[np.int64],
    upper: NDArray[np.float64],
    by_upper: NDArray[np.int64],
    place: NDArray[np.int64],
    strictly: bool,
) -> tuple[int, int]:
    """Pairs (d, e) with lower_d > upper_e, and those of them that another order does not keep.

    A binary indexed tree holds the places of all e below the current d, so that n documents take
    n log n steps and every pair is counted.

    Args:
        lower, upper: float64, shape (n,).
        by_lower, by_upper: the orders in which they rise.
        place: int64, shape (n,), from 0, rising with the other score; equal scores, equal places.
        strictly: count only pairs that the other order turns round, not those it makes equal.

    Returns:
        Pairs, and those of them with place_e >= place_d (strictly: place_e > place_d).
    """
    n = len(lower)
    tree = np.zeros(n + 1, dtype=np.int64)
    inserted = pairs = crossed = 0
    for step in range(n):
        d = by_lower[step]
        while inserted < n and upper[by_upper[inserted]] < lower[d]:
            at = place[by_upper[inserted]] + 1
            while at <= n:
                tree[at] += 1
                at += at & -at
            inserted += 1
        pairs += inserted
        below = 0
        at = place[d] + 1 if strictly else place[d]
        while at > 0:
            below += tree[at]
            at -= at & -at
        crossed += inserted - below
    return pairs, crossed
