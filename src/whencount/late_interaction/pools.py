"""The best documents of every query, kept while blocks of documents come by."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from whencount.references.runs import Run, run_of_rankings


class Best:
    """The `depth` largest scores per query, and other numbers of the same documents.

    Blocks come in the order of the collection; equal scores stand by position.
    """

    def __init__(self, queries: int, depth: int, others: tuple[str, ...] = ()) -> None:
        self._depth = depth
        self.positions = np.empty((queries, 0), dtype=np.int32)
        self.scores = np.empty((queries, 0), dtype=np.float32)
        self.others = {name: np.empty((queries, 0), dtype=np.float32) for name in others}

    def offer(
        self,
        scores: NDArray[np.float32],
        first: int,
        others: dict[str, NDArray[np.float32]] | None = None,
    ) -> None:
        """Take in a block of documents.

        Args:
            scores: shape (Q, documents).
            first: position of the block's first document.
            others: the numbers named at the start, same shape.
        """
        joined = np.concatenate([self.scores, scores], axis=1)
        kept = np.argsort(-joined, axis=1, kind="stable")[:, : self._depth]
        block = np.broadcast_to(np.arange(first, first + scores.shape[1]), scores.shape)
        places = np.concatenate([self.positions, block.astype(np.int32)], axis=1)
        self.positions = np.take_along_axis(places, kept, axis=1)
        self.scores = np.take_along_axis(joined, kept, axis=1)
        for name, values in (others or {}).items():
            both = np.concatenate([self.others[name], values], axis=1)
            self.others[name] = np.take_along_axis(both, kept, axis=1)

    def run(self) -> Run:
        """As a run of the house."""
        counts = np.full(len(self.positions), self.positions.shape[1], dtype=np.int32)
        return run_of_rankings(self.positions, self.scores.astype(np.float64), counts)
