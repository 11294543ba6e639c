"""Dense rows in their order, then what only the lexical arm has admitted."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from whencount.fusion.arms import Arms, ranks


def dense_first(arms: Arms) -> NDArray[np.float64]:
    """Minus the place: no pair of dense rows is turned round, whatever the lexical arm says."""
    return one_first(arms.dense, arms.lexical)


def one_first(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
    """Minus the place in an order that has all of one arm before the rest of the other."""
    place, rest = ranks(first), ranks(second)
    behind = np.where(rest >= 0, len(first) + rest, np.inf)
    return -np.where(place >= 0, place, behind).astype(np.float64)
