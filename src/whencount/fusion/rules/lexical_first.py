"""Lexical rows in their order, then what only the dense arm has admitted."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from whencount.fusion.arms import Arms
from whencount.fusion.rules.dense_first import one_first


def lexical_first(arms: Arms) -> NDArray[np.float64]:
    """`dense_first` with the arms exchanged."""
    return one_first(arms.lexical, arms.dense)
