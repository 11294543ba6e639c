"""Stages of a pipeline with one promise: none leaves fewer than min(10, n) rows.

The first rows of the dense order are reserved before anything is admitted and stay within reach
through every stage: where too few come out, they are appended, marked as fallback. This promises a
number of rows, not that they are relevant.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from whencount.fusion.arms import Arms, ranks
from whencount.fusion.gates import SHOWN, survives

Stage = Callable[[Arms, NDArray[np.int64]], NDArray[np.int64]]
"""From arms and the positions that came through so far to those that go on, in any order."""


@dataclass(frozen=True)
class Passage:
    """What came through a pipeline.

    Attributes:
        kept: positions that passed every stage by themselves, rising.
        fallback: positions out of the reserve that were appended, in dense order.
        survivors: how many passed each stage by themselves.
    """

    kept: NDArray[np.int64]
    fallback: NDArray[np.int64]
    survivors: tuple[int, ...]

    @property
    def rows(self) -> NDArray[np.int64]:
        """All of them, the fallback last."""
        return np.concatenate((self.kept, self.fallback))


def run_stages(arms: Arms, stages: Sequence[Stage], shown: int = SHOWN) -> Passage:
    """Pass all eligible rows through the stages, with the dense top min(shown, n) in reserve.

    Eligible rows are all rows of `arms`; those without a dense score come last in the reserve, by
    lexical score, then by position.
    """
    reserve = _dense_order(arms)[:shown]
    kept = np.arange(len(arms))
    survivors = []
    for stage in stages:
        kept = np.intersect1d(kept, stage(arms, kept))
        survivors.append(len(kept))
    missing = max(0, min(shown, len(arms)) - len(kept))
    fallback = reserve[~np.isin(reserve, kept)][:missing]
    return Passage(kept, fallback, tuple(survivors))


def admission_floor(dense_level: float, lexical_level: float) -> Stage:
    """Admit rows whose null tail is at most its arm's level, in one arm at least."""

    def admit(arms: Arms, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        dense = ~np.isnan(arms.dense[rows]) & (arms.dense_tail[rows] <= dense_level)
        lexical = ~np.isnan(arms.lexical[rows]) & (arms.lexical_tail[rows] <= lexical_level)
        passed: NDArray[np.int64] = rows[dense | lexical]
        return passed

    return admit


def pool_size_gate() -> Stage:
    """Let a row that only the lexical arm has pass by its rank and the size of the pool."""

    def gate(arms: Arms, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        there = ~np.isnan(arms.dense[rows])
        place = ranks(np.where(np.isin(np.arange(len(arms)), rows), arms.lexical, np.nan))[rows]
        passes = [rank >= 0 and survives(int(rank), len(rows)) for rank in place]
        passed: NDArray[np.int64] = rows[there | np.array(passes, dtype=bool)]
        return passed

    return gate


def _dense_order(arms: Arms) -> NDArray[np.int64]:
    dense, lexical = (np.nan_to_num(one, nan=-np.inf) for one in (arms.dense, arms.lexical))
    return np.lexsort((np.arange(len(arms)), -lexical, -dense))
