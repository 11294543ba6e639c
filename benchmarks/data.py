"""Generated sparse vectors of the shapes that the study meets."""

from __future__ import annotations

from typing import Any

import numba as _numba
import numpy as np
from numpy.typing import NDArray

from whencount.vectors import SparseVectors

numba: Any = _numba
Array = NDArray[Any]

VOCABULARY = 20_000
EXPONENTS = {"z": 0.78, "f": 0.454}
"""Features follow rank^-exponent: z shares 3.4 features per (query, document), f 0.41."""
_SPREAD = 1.0371
"""Sigma of the log-normal values whose coefficient of variation is 1.39."""


def _draw_features(cumulative: Array, rows: int, nonzeros: int, seed: int) -> Array:
    np.random.seed(seed)  # noqa: NPY002 - the only generator inside a compiled function
    features = np.empty((rows, nonzeros), dtype=np.int32)
    seen = np.full(len(cumulative), -1, dtype=np.int64)
    for row in range(rows):
        filled = 0
        while filled < nonzeros:
            feature = np.searchsorted(cumulative, np.random.random(), side="right")  # noqa: NPY002
            if seen[feature] != row:
                seen[feature] = row
                features[row, filled] = feature
                filled += 1
    return features


_draw: Any = numba.njit(cache=True)(_draw_features)


def generate(rows: int, nonzeros: int, shape: str, seed: int, name: str = "d") -> SparseVectors:
    """`rows` vectors of `nonzeros` distinct features each, drawn by falling popularity.

    Args:
        rows, nonzeros: the size.
        shape: `z` (Zipf) or `f` (nearly flat).
        seed: of the draws.
        name: what ids begin with.
    """
    mass = np.arange(1, VOCABULARY + 1, dtype=np.float64) ** -EXPONENTS[shape]
    cumulative = np.cumsum(mass)
    features = _draw(cumulative / cumulative[-1], rows, nonzeros, seed)
    random = np.random.default_rng([seed, 1])
    values = np.empty((rows, nonzeros), dtype=np.float32)
    for start in range(0, rows, 1 << 16):
        part = values[start : start + (1 << 16)]
        part[:] = np.exp(random.normal(0.0, _SPREAD, part.shape))
        part[::-1].sort(axis=1)
        part[:] = part[:, ::-1]
    ids = np.array([f"{name}{row}" for row in range(rows)], dtype=object)
    indptr = np.arange(rows + 1, dtype=np.int64) * nonzeros
    return SparseVectors(ids, indptr, features.ravel(), values.ravel(), VOCABULARY)


def shared_features(documents: SparseVectors, queries: SparseVectors) -> float:
    """The mean number of features that a query and a document have in common."""
    frequency = np.bincount(documents.features, minlength=documents.vocabulary_size)
    return float(frequency[queries.features].sum() / len(documents) / len(queries))
