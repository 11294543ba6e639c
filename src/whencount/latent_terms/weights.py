"""Weights of latent terms: what is made of summed codes before they are searched."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whencount.errors import InputError
from whencount.progress import progress
from whencount.search import SHARD_NONZEROS
from whencount.vectors import SparseVectors, VectorsWriter

Change = Callable[[SparseVectors], SparseVectors]

_ROWS_PER_PIECE = 1 << 16


def weigh(vectors: SparseVectors, exponent: float) -> SparseVectors:
    """`phi(u) = u ^ exponent` of every stored sum of codes (the study, section 12).

    Computed in float64 and rounded to float32. The order of a row is that of its new weights, so
    sums that only rounding makes equal stand by rising feature.

    Raises:
        InputError: the exponent is not above 0 and at most 1.
    """
    if not 0 < exponent <= 1:
        raise InputError(f"the exponent of phi is {exponent}; it must be above 0 and at most 1")
    if exponent == 1:
        return vectors
    sums = np.asarray(vectors.values, dtype=np.float64)
    values = (np.sqrt(sums) if exponent == 0.5 else sums**exponent).astype(np.float32)
    return _in_order(vectors, vectors.indptr, np.asarray(vectors.features), values)


def without(vectors: SparseVectors, dropped: NDArray[np.bool_]) -> SparseVectors:
    """The vectors without the features where `dropped`, shape (V,), is true."""
    kept = ~dropped[np.asarray(vectors.features)]
    ends = np.concatenate([[0], np.cumsum(kept)])
    return SparseVectors(
        vectors.ids,
        ends[np.asarray(vectors.indptr)],
        np.asarray(vectors.features)[kept],
        np.asarray(vectors.values)[kept],
        vectors.vocabulary_size,
    )


def changed(shards: Sequence[SparseVectors], change: Change, place: Path | None) -> SparseVectors:
    """The shards of a collection, changed piece by piece, as one.

    Args:
        shards: in the order of the collection.
        change: what to make of a piece of rows.
        place: a folder that takes the result of a large collection, which is then memory-mapped;
            None keeps all in memory.
    """
    if place is None or sum(shard.nonzeros for shard in shards) <= SHARD_NONZEROS:
        return SparseVectors.concatenate([change(shard) for shard in shards])
    pieces = [(shard, start) for shard in shards for start in range(0, len(shard), _ROWS_PER_PIECE)]
    with VectorsWriter(place, shards[0].vocabulary_size) as writer:
        for shard, start in progress(pieces, len(pieces), "weighing documents", "piece"):
            writer.append(change(shard.slice(start, min(start + _ROWS_PER_PIECE, len(shard)))))
    return SparseVectors.load(place)


def _in_order(
    vectors: SparseVectors,
    indptr: NDArray[np.int64],
    features: NDArray[Any],
    values: NDArray[np.float32],
) -> SparseVectors:
    """Vectors whose rows still fall, put right where equal values are not by rising feature."""
    tied = (values[1:] == values[:-1]) & (features[1:] < features[:-1])
    starts = np.asarray(indptr[1:-1])
    tied[starts[(starts > 0) & (starts < len(values))] - 1] = False
    if tied.any() or (len(values) and not values.min() > 0):
        rows = np.repeat(np.arange(len(vectors)), np.diff(indptr))
        return SparseVectors.from_coo(
            vectors.ids.tolist(), rows, features, values, vectors.vocabulary_size
        )
    return SparseVectors(vectors.ids, indptr, features, values, vectors.vocabulary_size)
