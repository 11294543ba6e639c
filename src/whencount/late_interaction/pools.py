"""Scores while blocks of documents come by: the best of every query in memory, all on disk."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from whencount.references.runs import Run, run_of_rankings


class Best:
    """The `depth` largest scores per query.

    Blocks come in the order of the collection; equal scores stand by position.
    """

    def __init__(self, queries: int, depth: int) -> None:
        self._depth = depth
        self.positions = np.empty((queries, 0), dtype=np.int32)
        self.scores = np.empty((queries, 0), dtype=np.float32)

    def offer(self, scores: NDArray[np.float32], first: int) -> None:
        """Take in a block of documents.

        Args:
            scores: shape (Q, documents).
            first: position of the block's first document.
        """
        joined = np.concatenate([self.scores, scores], axis=1)
        kept = np.argsort(-joined, axis=1, kind="stable")[:, : self._depth]
        block = np.broadcast_to(np.arange(first, first + scores.shape[1]), scores.shape)
        places = np.concatenate([self.positions, block.astype(np.int32)], axis=1)
        self.positions = np.take_along_axis(places, kept, axis=1)
        self.scores = np.take_along_axis(joined, kept, axis=1)

    def run(self) -> Run:
        """As a run of the house."""
        counts = np.full(len(self.positions), self.positions.shape[1], dtype=np.int32)
        return run_of_rankings(self.positions, self.scores.astype(np.float64), counts)


class PairScores:
    """Scores of every query and document on disk, float32, four bytes each.

    Args:
        folder: an existing folder.
        names: of the scores.
        queries, documents: how many.
    """

    def __init__(self, folder: Path, names: Sequence[str], queries: int, documents: int) -> None:
        self._arrays = {
            name: np.lib.format.open_memmap(
                folder / f"scores.{name}.npy", "w+", np.float32, (queries, documents)
            )
            for name in names
        }

    def put(self, name: str, first: int, scores: NDArray[np.float32]) -> None:
        """Keep a block of documents, shape (queries, documents), from position `first`."""
        self._arrays[name][:, first : first + scores.shape[1]] = scores

    def read(self, name: str) -> NDArray[np.float32]:
        """All scores, shape (queries, documents), memory-mapped."""
        return self._arrays[name]
