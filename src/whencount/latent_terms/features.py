"""What each feature stands for: the passages and queries in which it is strongest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from whencount.progress import progress
from whencount.vectors import SparseVectors

_ROWS_PER_BLOCK = 1 << 16


@dataclass(frozen=True)
class Strongest:
    """For every feature the rows in which it weighs most.

    Attributes:
        rows: int64, shape (V, n), strongest first, of equal weights the earlier row; -1 past the
            last.
        weights: float32, the same shape; 0 past the last.
        frequency: int64, shape (V,), rows that have the feature.
        mass: float64, shape (V,), the sum of its weights.
    """

    rows: NDArray[np.int64]
    weights: NDArray[np.float32]
    frequency: NDArray[np.int64]
    mass: NDArray[np.float64]


def strongest(shards: Sequence[SparseVectors], number: int) -> Strongest:
    """The `number` strongest rows of every feature, in one pass over blocks of rows.

    Memory holds `number` entries per feature and one block, whatever the collection's size.

    Args:
        shards: vectors of one vocabulary, laid end to end.
        number: how many rows to keep per feature.
    """
    size = shards[0].vocabulary_size
    rows = np.full((size, number), -1, dtype=np.int64)
    weights = np.zeros((size, number), dtype=np.float32)
    frequency = np.zeros(size, dtype=np.int64)
    mass = np.zeros(size)
    starts = np.cumsum([0, *map(len, shards)])
    blocks = [
        (shard, start)
        for shard in range(len(shards))
        for start in range(0, len(shards[shard]), _ROWS_PER_BLOCK)
    ]
    for shard, start in progress(blocks, len(blocks), "finding passages", "block"):
        stop = min(start + _ROWS_PER_BLOCK, len(shards[shard]))
        block = shards[shard].slice(start, stop)
        features, values = np.asarray(block.features), np.asarray(block.values)
        frequency += np.bincount(features, minlength=size)
        mass += np.bincount(features, weights=values.astype(np.float64), minlength=size)
        # A later row must be stronger than the weakest that is kept; few are.
        better = np.flatnonzero(values > weights[features, -1])
        first = int(starts[shard]) + start
        own = np.repeat(np.arange(first, first + len(block)), block.row_sizes())[better]
        _merge(rows, weights, features[better], own, values[better])
    return Strongest(rows, weights, frequency, mass)


def _merge(
    rows: NDArray[np.int64],
    weights: NDArray[np.float32],
    features: NDArray[np.int32],
    own: NDArray[np.int64],
    values: NDArray[np.float32],
) -> None:
    """Put candidates among the strongest of their features, in place."""
    touched = np.unique(features)
    number = rows.shape[1]
    kept = rows[touched] >= 0
    every_feature = np.concatenate([np.repeat(touched, kept.sum(axis=1)), features])
    every_row = np.concatenate([rows[touched][kept], own])
    every_value = np.concatenate([weights[touched][kept], values])
    order = np.lexsort((every_row, -every_value, every_feature))
    every_feature = every_feature[order]
    begins = np.searchsorted(every_feature, touched)
    place = np.arange(len(order)) - np.repeat(begins, np.diff([*begins, len(order)]))
    best = place < number
    rows[touched], weights[touched] = -1, 0
    chosen = order[best]
    rows[every_feature[best], place[best]] = every_row[chosen]
    weights[every_feature[best], place[best]] = every_value[chosen]


def shown_features(frequency: NDArray[np.int64], number: int) -> NDArray[np.int64]:
    """Which features a browser shows: all live ones, or `number` evenly spread by frequency.

    Args:
        frequency: int64, shape (V,).
        number: at most so many.

    Returns:
        Feature numbers, rising.
    """
    live = np.flatnonzero(frequency)
    if len(live) > number:
        falling = live[np.argsort(-frequency[live], kind="stable")]
        live = falling[np.linspace(0, len(falling) - 1, number).round().astype(np.int64)]
    return np.sort(live)
