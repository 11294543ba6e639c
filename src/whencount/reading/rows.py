"""Rows as a reader found them, and what is checked of every one whatever the format."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from whencount.errors import InputError
from whencount.reading.places import Places
from whencount.reading.vocabulary import Vocabulary
from whencount.vectors import SparseVectors, object_ids

ROWS_AT_ONCE = 1 << 14
"""No block has more rows; a number of a row fits 16 bits."""
WEIGHTS_AT_ONCE = 1 << 20
"""A block is closed when it has as many weights."""


@dataclass(frozen=True)
class Rows:
    """Consecutive rows, unsorted and unchecked.

    Attributes:
        ids: text, one per row.
        places: int64, shape (rows,); see `Places`.
        sizes: int64, shape (rows,): weights per row.
        features: int32, shape (weights,): numbers of the vocabulary.
        values: float64, shape (weights,).
    """

    ids: Sequence[str]
    places: NDArray[np.int64]
    sizes: NDArray[np.int64]
    features: NDArray[np.int32]
    values: NDArray[np.float64]


def checked(rows: Rows, vocabulary: Vocabulary, places: Places) -> SparseVectors:
    """The rows as vectors: float32, zeros dropped, every row by falling value.

    Raises:
        InputError: a weight is negative, NaN, infinite or too large for float32, or a row has a
            feature twice; place, id and feature are named.
    """
    row_of = np.repeat(np.arange(len(rows.sizes)), rows.sizes)
    with np.errstate(over="ignore"):
        values = rows.values.astype(np.float32)
    bad = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
    if len(bad):
        at = int(bad[0])
        weight = float(rows.values[at])
        reason = "weights must be finite numbers of at least 0"
        if math.isfinite(weight) and weight > 0:
            reason = "it is too large for single precision; scale the weights down"
        raise InputError(
            f"{_row(rows, places, int(row_of[at]))}: feature"
            f" {_name(vocabulary, int(rows.features[at]))!r} has weight {weight!r}; {reason}"
        )
    _refuse_repeated(rows, row_of, vocabulary, places)
    keep = values > 0
    sizes = np.bincount(row_of[keep], minlength=len(rows.sizes))
    features, values = in_falling_order(sizes, rows.features[keep], values[keep])
    indptr = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=indptr[1:])
    return SparseVectors(object_ids(rows.ids), indptr, features, values, len(vocabulary))


def in_falling_order(
    sizes: NDArray[np.int64], features: NDArray[np.int32], values: NDArray[np.float32]
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Sort each of at most 65,536 rows by falling value, equal values by rising feature."""
    # Positive floats order as their bits: one key sorts by falling value, then by feature.
    key = (~values.view(np.uint32)).astype(np.uint64) << np.uint64(32)
    key |= features.astype(np.uint64)
    rows = np.repeat(np.arange(len(sizes), dtype=np.uint16), sizes)
    by_value = np.argsort(key)
    chosen = by_value[np.argsort(rows[by_value], kind="stable")]
    return features[chosen], values[chosen]


def _refuse_repeated(
    rows: Rows, row_of: NDArray[np.int64], vocabulary: Vocabulary, places: Places
) -> None:
    key = np.sort((row_of << 32) | rows.features)
    twice = np.flatnonzero(key[1:] == key[:-1])
    if len(twice):
        found = int(key[twice[0]])
        raise InputError(
            f"{_row(rows, places, found >> 32)}: feature"
            f" {_name(vocabulary, found & 0xFFFFFFFF)!r} occurs twice; add up its weights first"
        )


def _row(rows: Rows, places: Places, row: int) -> str:
    return f"{places.told(int(rows.places[row]))} (id {rows.ids[row]!r})"


def _name(vocabulary: Vocabulary, number: int) -> str:
    return next(name for name, other in vocabulary.items() if other == number)
