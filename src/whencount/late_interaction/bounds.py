"""When compressed scores must keep the order of the exact ones.

A query token has length 1, so replacing a document's token vectors d_t by d'_t moves each q_i . d_t
by at most ||d_t - d'_t||, hence each maximum by at most the largest of them, E_d, and MaxSim by at
most n E_d for the n places of the query. If S(q, a) - S(q, b) > n (E_a + E_b), the compressed
scores have a above b too. Nothing is assumed of the data.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from whencount.late_interaction.kernels import crossing

# Products of float32 rows of length 1 are off by less than this, summed over 32 places.
ROUNDING = 1e-4


@dataclass
class BoundCheck:
    """Scores and pairs held against the bound.

    Attributes:
        scores: pairs of a query and a document that were looked at.
        broken: of them, those whose compressed score is further off than the bound.
        tightest: the largest part of its bound that an error came to.
        pairs: pairs of documents of a query.
        decided: those whose order the bound promises.
        reversed: promised ones that do not stand so.
        inversions: pairs that stand the other way round, promised or not.
    """

    scores: int = 0
    broken: int = 0
    tightest: float = 0.0
    pairs: int = 0
    decided: int = 0
    reversed: int = 0
    inversions: int = 0

    def see_scores(
        self,
        exact: NDArray[np.float32],
        compressed: NDArray[np.float32],
        errors: NDArray[np.float32],
        places: NDArray[np.int64],
    ) -> None:
        """Hold scores against the bound.

        Args:
            exact, compressed: shape (Q, documents).
            errors: shape (documents,): E_d.
            places: shape (Q,): tokens that a query has.
        """
        off = np.abs(exact.astype(np.float64) - compressed)
        bound = places[:, None] * errors[None, :].astype(np.float64) + ROUNDING
        self.scores += off.size
        self.broken += int((off > bound).sum())
        if off.size:
            self.tightest = max(self.tightest, float((off / bound).max()))

    def see_orders(
        self,
        exact: NDArray[np.float32],
        compressed: NDArray[np.float32],
        errors: NDArray[np.float32],
        places: int,
    ) -> None:
        """Hold the order of every pair of a query's documents, shape (documents,) each.

        n documents take n log n steps, so that all pairs of a corpus can be counted.
        """
        n, wide = len(exact), exact.astype(np.float64)
        bound = places * errors.astype(np.float64) + ROUNDING
        place = np.unique(compressed, return_inverse=True)[1].reshape(-1).astype(np.int64)
        order = np.argsort(wide, kind="stable")
        lower, upper = wide - bound, wide + bound
        by_lower, by_upper = np.argsort(lower, kind="stable"), np.argsort(upper, kind="stable")
        decided, reversed_ = crossing(lower, by_lower, upper, by_upper, place, False)
        _, inversions = crossing(wide, order, wide, order, place, True)
        self.pairs += n * (n - 1) // 2
        self.decided += int(decided)
        self.reversed += int(reversed_)
        self.inversions += int(inversions)


def document_errors(
    exact: torch.Tensor, compressed: torch.Tensor, offsets: NDArray[np.int64]
) -> NDArray[np.float32]:
    """E_d: the largest distance of a token vector of each document, float32, shape (documents,)."""
    distances = (exact - compressed).norm(dim=1).cpu().numpy()
    found = np.zeros(len(offsets) - 1, dtype=np.float32)
    filled = np.flatnonzero(np.diff(offsets))
    if len(filled):
        found[filled] = np.maximum.reduceat(distances, offsets[filled])
    return found
