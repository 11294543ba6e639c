"""One arm per query: the one whose best score is the less likely under its null."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from whencount.fusion.arms import Arms
from whencount.fusion.nulls import Null
from whencount.fusion.rules.dense_first import dense_first
from whencount.fusion.rules.lexical_first import lexical_first
from whencount.fusion.selectors import maximum_tail, most_significant


def maximum_tails(arms: Arms, nulls: tuple[Null, Null], rows: int) -> tuple[float, float]:
    """`p_max` of the dense and of the lexical arm; 1 for an arm without a vote.

    Args:
        arms: of the query.
        nulls: of both arms.
        rows: N, over how many documents each maximum is taken.
    """
    found = []
    for scores, null in zip((arms.dense, arms.lexical), nulls, strict=True):
        there = scores[~np.isnan(scores)]
        best = there.max(keepdims=True) if len(there) else None
        found.append(1.0 if best is None else maximum_tail(float(null.below(best)[0]), rows))
    return found[0], found[1]


def most_significant_arm(arms: Arms, nulls: tuple[Null, Null], rows: int) -> NDArray[np.float64]:
    """The order of the chosen arm; the dense one where both are equally unlikely."""
    chosen = most_significant(*maximum_tails(arms, nulls, rows))
    return lexical_first(arms) if chosen == "lexical" else dense_first(arms)
