"""Reciprocal rank fusion of the two arms."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from whencount.fusion.arms import RANK_CONSTANT, Arms, votes


def reciprocal_rank(arms: Arms, constant: float = RANK_CONSTANT) -> NDArray[np.float64]:
    """`1 / (K + r_v + 1) + 1 / (K + r_l + 1)`, zero-based ranks, an absent vote being 0."""
    total = votes(arms.dense, constant) + votes(arms.lexical, constant)
    return np.where(arms.admitted, total, -np.inf)
