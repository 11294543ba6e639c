"""The null of an arm: how irrelevant rows score, and what can be said of it.

A tail probability is `(1 + #{null >= s}) / (m + 1)` (Davison and Hinkley, 1997, section 4.2; never
0), so its smallest value, `1 / (m + 1)`, is all that m draws can resolve. The checks ask whether
held-out irrelevant pairs have tails below a level as often as the level says, over all documents
and by their length.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from whencount.errors import InputError

LEVELS = (0.01, 0.05, 0.1)
"""Levels at which held-out rates are checked."""
_FIFTHS = 5


@dataclass(frozen=True)
class Null:
    """Scores of irrelevant pairs under one arm.

    Attributes:
        scores: float64, shape (m,), rising.

    Raises:
        InputError: there is no score, or one is not finite.
    """

    scores: NDArray[np.float64]

    def __post_init__(self) -> None:
        if not len(self.scores) or not np.isfinite(self.scores).all():
            raise InputError(
                "a null needs finite scores of irrelevant pairs, at least one; give more queries"
                " or documents for it"
            )

    @classmethod
    def of(cls, scores: ArrayLike) -> Null:
        """A null of scores in any order."""
        return cls(np.sort(np.asarray(scores, dtype=np.float64)))

    @property
    def draws(self) -> int:
        """m."""
        return len(self.scores)

    def tail(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """The tail probability of each score, in [1 / (m + 1), 1], the shape of `scores`."""
        reached = self.draws - np.searchsorted(self.scores, scores, side="left")
        found = (1.0 + reached) / (self.draws + 1.0)
        return np.asarray(found, dtype=np.float64)

    def below(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """F0: one less the tail, so that it is never quite 1."""
        return 1.0 - self.tail(scores)


def rates(null: Null, held_out: NDArray[np.float64]) -> pd.DataFrame:
    """How often held-out irrelevant scores have a tail of at most each level.

    Returns:
        A line per level of LEVELS: `level`, `rate` (NaN without a score), `low` and `high` (95 %
        interval of Clopper and Pearson, 1934), `pairs`.
    """
    tails = null.tail(held_out)
    lines = []
    for level in LEVELS:
        low, high = interval(int((tails <= level).sum()), len(tails))
        rate = float((tails <= level).mean()) if len(tails) else np.nan
        lines.append((level, rate, low, high, len(tails)))
    return pd.DataFrame(lines, columns=["level", "rate", "low", "high", "pairs"])


def drift(
    null: Null, held_out: NDArray[np.float64], lengths: NDArray[np.float64], level: float = 0.05
) -> pd.DataFrame:
    """The same at one level by the length of the document: fifths of the held-out pairs.

    Args:
        null: of the arm.
        held_out: scores of irrelevant pairs, shape (pairs,).
        lengths: words of each pair's document, shape (pairs,).
        level: that of the tail.

    Returns:
        A line per fifth: `fifth` (1 for the shortest), `length` (mean words), `rate`, `pairs`.
    """
    order = np.argsort(lengths, kind="stable")
    tails = null.tail(held_out)
    lines = [
        (
            fifth,
            float(lengths[rows].mean()) if len(rows) else np.nan,
            float((tails[rows] <= level).mean()) if len(rows) else np.nan,
            len(rows),
        )
        for fifth, rows in enumerate(np.array_split(order, _FIFTHS), 1)
    ]
    return pd.DataFrame(lines, columns=["fifth", "length", "rate", "pairs"])


def interval(hits: int, trials: int, confidence: float = 0.95) -> tuple[float, float]:
    """The two-sided interval of Clopper and Pearson (1934, doi:10.1093/biomet/26.4.404)."""
    from scipy.stats import beta

    side = (1 - confidence) / 2
    low = 0.0 if hits == 0 else float(beta.ppf(side, hits, trials - hits + 1))
    high = 1.0 if hits == trials else float(beta.ppf(1 - side, hits + 1, trials - hits))
    return low, high
