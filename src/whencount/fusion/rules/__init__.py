"""Ways of making one order of two: a file each. To add one, write its file and its line here.

A rule gives every row a score, higher first; a row that no arm has admitted gets -inf and is left
out. Rows of equal score stand in the dense order (rows without a dense vote after it), then by
position: `order` does that for every rule alike.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from whencount.fusion.arms import Arms, ranks
from whencount.fusion.rules.dense_first import dense_first
from whencount.fusion.rules.lexical_first import lexical_first
from whencount.fusion.rules.min_max import min_max
from whencount.fusion.rules.reciprocal_rank import reciprocal_rank
from whencount.fusion.rules.square_root import square_root

Rule = Callable[[Arms], NDArray[np.float64]]

ROW_LOCAL: dict[str, Rule] = {"square_root": square_root}
"""Rules that see of a row its own two scores and null tails, and nothing of other rows."""

RULES: dict[str, Rule] = {
    "dense_first": dense_first,
    "lexical_first": lexical_first,
    "reciprocal_rank": reciprocal_rank,
    "min_max": min_max,
    **ROW_LOCAL,
}


def order(scores: NDArray[np.float64], arms: Arms, depth: int | None = None) -> NDArray[np.int64]:
    """Positions of the admitted rows by falling score, int64, at most `depth` of them."""
    place = ranks(arms.dense)
    behind = np.where(place >= 0, place, len(arms))
    found = np.lexsort((np.arange(len(arms)), behind, -scores))
    kept: NDArray[np.int64] = found[arms.admitted[found]][:depth]
    return kept


__all__ = ["ROW_LOCAL", "RULES", "Rule", "order"]
