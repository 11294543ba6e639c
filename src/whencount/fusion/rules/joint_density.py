"""S*: the joint density ratio of both scores over a declared reference panel."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from whencount.fusion.arms import Arms
from whencount.fusion.profile import Profile


def joint_density(
    arms: Arms, profile: Profile, dense: NDArray[np.float64], lexical: NDArray[np.float64]
) -> NDArray[np.float64]:
    """`log h(v, l) / f0(v, l)` of every admitted row.

    Args:
        arms: of the query.
        profile: estimated beforehand.
        dense, lexical: both scores of every row, shape (rows,), whether or not a list has it: no
            vote is not the same as no score.
    """
    return np.where(arms.admitted, profile.score(dense, lexical), -np.inf)
