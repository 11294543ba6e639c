"""The nearest table that rises along both of its axes: a projection in two dimensions.

Each axis alone is a set of isotonic regressions (scikit-learn's). Their intersection is reached by
the alternating projections of Dykstra (1983, doi:10.1080/01621459.1983.10477029) as Bril et al.
(1984, doi:10.2307/2347723) use them for this problem; the limit is the weighted least-squares
projection.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_MOST_ROUNDS = 2_000


def project(
    table: NDArray[np.float64], weights: NDArray[np.float64], tolerance: float = 1e-5
) -> NDArray[np.float64]:
    """The rising table nearest to `table` in weighted squares.

    Args:
        table: shape (rows, columns), finite.
        weights: the same shape, positive.
        tolerance: the rounds end when none changes a cell by more than this times the spread.

    Returns:
        float64, the same shape, rising along both axes exactly: what the tolerance leaves is taken
        away by running maxima.
    """
    from sklearn.isotonic import isotonic_regression

    def along_columns(values: NDArray[np.float64], by: NDArray[np.float64]) -> NDArray[np.float64]:
        rows = [
            isotonic_regression(row, sample_weight=weight)
            for row, weight in zip(values, by, strict=True)
        ]
        return np.asarray(rows)

    found = table.astype(np.float64)
    first, second = np.zeros_like(found), np.zeros_like(found)
    spread = float(np.ptp(found)) or 1.0
    for _ in range(_MOST_ROUNDS):
        before = found
        half = along_columns(found + first, weights)
        first = found + first - half
        found = along_columns((half + second).T, weights.T).T
        second = half + second - found
        if np.abs(found - before).max() <= tolerance * spread:
            break
    return np.maximum.accumulate(np.maximum.accumulate(found, axis=0), axis=1)
