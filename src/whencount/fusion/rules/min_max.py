"""Convex combination of the arms' scores, each stretched to its own window."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from whencount.errors import InputError
from whencount.fusion.arms import Arms


def min_max(arms: Arms, dense_weight: float = 0.5) -> NDArray[np.float64]:
    """`w m(v) + (1 - w) m(l)`, `m` of `stretched`; an absent vote is 0.

    Raises:
        InputError: the weight lies outside 0..1.
    """
    if not 0 <= dense_weight <= 1:
        raise InputError(f"the weight of the dense arm is {dense_weight}; it lies between 0 and 1")
    total = dense_weight * stretched(arms.dense) + (1 - dense_weight) * stretched(arms.lexical)
    return np.where(arms.admitted, total, -np.inf)


def stretched(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """`(s - min) / (max - min)` over the admitted rows, 0 for the others.

    In a list of equal scores the window has no width: each of its rows gets 1/2, so that the list
    says that it has the row and nothing on which is better.
    """
    there = ~np.isnan(scores)
    if not there.any():
        return np.zeros_like(scores)
    low, high = float(scores[there].min()), float(scores[there].max())
    return np.where(there, in_window(scores, low, high), 0.0)


def in_window(scores: NDArray[np.float64], low: float, high: float) -> NDArray[np.float64]:
    """`(s - low) / (high - low)`; 1/2 where the window has no width."""
    if low == high:
        return np.full_like(scores, 0.5)
    found: NDArray[np.float64] = (scores - low) / (high - low)
    return found
