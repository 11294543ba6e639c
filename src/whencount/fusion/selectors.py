"""Choosing one arm for a query: by the significance of its best score, or by hindsight."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whencount.errors import InputError


def maximum_tail(below: float, rows: int) -> float:
    """`1 - F0(M)^N`: the chance that the best of N independent irrelevant rows reaches M.

    Args:
        below: F0(M), the share of irrelevant rows that score below the maximum M, in [0, 1].
        rows: N, at least 1.

    Raises:
        InputError: a value out of range.
    """
    _in_range(below, rows)
    return -math.expm1(rows * math.log(below)) if below > 0 else 1.0


def bonferroni_tail(below: float, rows: int) -> float:
    """`min(1, N (1 - F0(M)))`: the same bound where rows depend on each other in any way."""
    _in_range(below, rows)
    return min(1.0, rows * (1.0 - below))


def smallest_tail(draws: int) -> float:
    """The smallest tail that m draws of the null can show, `1 / (m + 1)`."""
    return 1.0 / (draws + 1)


def draws_needed(level: float, rows: int) -> int:
    """Draws of the null from which a Bonferroni tail of `rows` rows can reach `level`."""
    return max(1, math.ceil(rows / level) - 1)


def most_significant(dense_maximum_tail: float, lexical_maximum_tail: float) -> str:
    """The arm whose best score is the less likely under its null; the dense one where equal."""
    return "lexical" if lexical_maximum_tail < dense_maximum_tail else "dense"


def oracle(qualities: Mapping[str, ArrayLike]) -> NDArray[np.float64]:
    """The best quality that any rule reaches, query by query: needs labels, bounds every choice.

    Args:
        qualities: of each rule one quality per query, shape (queries,).
    """
    table = [np.asarray(one, dtype=np.float64) for one in qualities.values()]
    best: NDArray[np.float64] = np.max(table, axis=0)
    return best


def _in_range(below: float, rows: int) -> None:
    if not 0 <= below <= 1 or rows < 1:
        raise InputError(
            f"F0(M) is {below} over {rows} rows; it lies between 0 and 1, over one row at least"
        )
