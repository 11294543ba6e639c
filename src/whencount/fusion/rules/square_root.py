"""The square-root mixture of two null tails, an e-value under any dependence of the arms."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from whencount.fusion.arms import Arms


def evidence(tail: NDArray[np.float64]) -> NDArray[np.float64]:
    """`B(p) = 1 / (2 sqrt p)`, of expectation 1 where p is uniform (Vovk and Wang, 2021,
    doi:10.1214/20-AOS2020)."""
    return 0.5 / np.sqrt(tail)


def square_root(arms: Arms) -> NDArray[np.float64]:
    """`E = (B(p_v) + B(p_l)) / 2`."""
    total = (evidence(arms.dense_tail) + evidence(arms.lexical_tail)) / 2
    return np.where(arms.admitted, total, -np.inf)


def dense_influence(arms: Arms) -> NDArray[np.float64]:
    """The dense arm's part of each row's E. It describes a row, not the order of two."""
    dense, lexical = evidence(arms.dense_tail), evidence(arms.lexical_tail)
    share: NDArray[np.float64] = dense / (dense + lexical)
    return share
