"""What two arms say of the rows of one query."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whencount.errors import InputError

RANK_CONSTANT = 60
"""K of reciprocal rank fusion (Cormack et al., 2009, doi:10.1145/1571941.1572114)."""

_ARMS = ("dense", "lexical")


@dataclass(frozen=True)
class Arms:
    """Scores of one query's rows by a dense and a lexical arm, with their null tails.

    A row that an arm has not admitted has NaN there: no vote, which is not the same as no score.

    Attributes:
        dense, lexical: float64, shape (rows,), higher is better, NaN where not admitted.
        dense_tail, lexical_tail: float64, shape (rows,): the probability that an irrelevant row
            scores at least as high in that arm, in (0, 1]; 1 where not admitted.

    Raises:
        InputError: shapes differ, a score is infinite, or a tail lies outside (0, 1].
    """

    dense: NDArray[np.float64]
    lexical: NDArray[np.float64]
    dense_tail: NDArray[np.float64]
    lexical_tail: NDArray[np.float64]

    def __post_init__(self) -> None:
        shapes = {getattr(self, name).shape for name in self.__dataclass_fields__}
        if len(shapes) != 1 or len(next(iter(shapes))) != 1:
            raise InputError(
                f"the two arms of a query have shapes {sorted(shapes)}; give one score and one tail"
                " per row and arm"
            )
        for arm in _ARMS:
            scores, tails = getattr(self, arm), getattr(self, f"{arm}_tail")
            _refuse(np.isinf(scores), f"{arm} score", scores, "finite, or NaN where not admitted")
            _refuse(~((tails > 0) & (tails <= 1)), f"{arm} tail", tails, "above 0 and at most 1")

    @classmethod
    def of(
        cls,
        dense: ArrayLike,
        lexical: ArrayLike,
        dense_tail: ArrayLike | None = None,
        lexical_tail: ArrayLike | None = None,
    ) -> Arms:
        """Arms of plain numbers; tails are 1 where they are left out."""
        scores = [np.asarray(one, dtype=np.float64) for one in (dense, lexical)]
        tails = [
            np.ones_like(score) if tail is None else np.asarray(tail, dtype=np.float64)
            for score, tail in zip(scores, (dense_tail, lexical_tail), strict=True)
        ]
        return cls(*scores, *tails)

    def __len__(self) -> int:
        return len(self.dense)

    @property
    def admitted(self) -> NDArray[np.bool_]:
        """Rows that at least one arm has admitted."""
        both: NDArray[np.bool_] = ~(np.isnan(self.dense) & np.isnan(self.lexical))
        return both


def ranks(scores: NDArray[np.float64]) -> NDArray[np.int64]:
    """Zero-based ranks by falling score, shape (rows,); equal scores by position; -1 for NaN."""
    order = np.lexsort((np.arange(len(scores)), -np.nan_to_num(scores, nan=-np.inf)))
    found = np.empty(len(scores), dtype=np.int64)
    found[order] = np.arange(len(scores))
    found[np.isnan(scores)] = -1
    return found


def votes(scores: NDArray[np.float64], constant: float = RANK_CONSTANT) -> NDArray[np.float64]:
    """`1 / (K + rank + 1)` with zero-based ranks, shape (rows,); 0 where not admitted."""
    place = ranks(scores)
    return np.where(place >= 0, 1.0 / (constant + place + 1.0), 0.0)


def _refuse(bad: NDArray[np.bool_], what: str, values: NDArray[np.float64], wanted: str) -> None:
    if bad.any():
        at = int(np.flatnonzero(bad)[0])
        raise InputError(f"the {what} of row {at} is {values[at]}; it must be {wanted}")
