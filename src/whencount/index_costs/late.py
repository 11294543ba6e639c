"""An index of late interaction as something whose cost is counted and whose queries are timed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from whencount.economics import Economics, Profile, economics_of
from whencount.late_interaction.index import MEANS, LateIndex
from whencount.scoring import Configuration, Parameters

_QUERIES_AT_ONCE = 64


class Late:
    """Token vectors, their codes, or one vector per document, all compared with every query.

    Args:
        folder: of `whencount.late_interaction.index`.
        part: what is compared: `vectors.npy`, `packedB.npy` or `means.npy`.

    Raises:
        InputError: the index is missing or damaged.
    """

    one_scorer = True

    def __init__(self, folder: Path, part: str) -> None:
        self._index = LateIndex(folder, part)

    def profiles(self) -> tuple[Profile, Profile]:
        """Of documents and of queries: numbers kept and mean magnitudes of each dimension.

        A text counts every number of every vector it has; a dimension is active in each text that
        has a vector.
        """
        index = self._index
        sums, counts = np.zeros(index.width), np.zeros(index.documents, dtype=np.int64)
        for first, block in index.blocks():
            sums += np.abs(block.states.numpy()).sum(axis=0, dtype=np.float64)
            counts[first : first + len(block)] = np.diff(block.offsets)
        queries = index.query_vectors(0, len(index.queries))
        asked = np.abs(queries).sum(axis=(0, 1), dtype=np.float64)
        used = (queries != 0).any(axis=2).sum(axis=1)
        return _profile(counts, sums), _profile(used, asked)

    def costs(self, documents: Profile, queries: Profile) -> Economics:
        """What follows: every number of a query's vectors meets every vector of every document."""
        width = self._index.width
        found = economics_of(documents, queries)
        work = documents.nonzeros * queries.mean_nonzeros / width
        return replace(
            found,
            posting_work=work,
            posting_work_share=work / (documents.rows * width),
            payload_bytes=self._index.payload_bytes,
        )

    def index(self, folder: Path, parameters: Parameters) -> LateSearched:
        """The index as it lies on disk; neither argument is used."""
        del folder, parameters
        return LateSearched(self._index)


class LateSearched:
    """An index of late interaction that knows one score under whatever configuration."""

    def __init__(self, index: LateIndex) -> None:
        self._index = index
        self.bytes = index.bytes

    def rank(
        self, low: int, high: int, configurations: Sequence[Configuration], depth: int, threads: int
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """As `Searched.rank`; the threads are those that numpy and torch are held to."""
        del threads
        index = self._index
        parts = [
            index.search(first, min(first + _QUERIES_AT_ONCE, high), depth)[0]
            for first in range(low, high, _QUERIES_AT_ONCE)
        ]
        positions = np.concatenate(parts)
        spoken = (index.query_vectors(low, high) != 0).any(axis=(1, 2))
        counts = np.where(spoken, positions.shape[1], 0).astype(np.int32)
        shape = len(configurations), *positions.shape
        return np.broadcast_to(positions, shape), np.broadcast_to(counts, shape[:2])


def is_late(part: str) -> bool:
    """Whether a part of a folder is one of such an index."""
    return part in ("vectors.npy", MEANS) or part.startswith("packed")


def _profile(vectors: NDArray[np.int64], sums: NDArray[np.float64]) -> Profile:
    """Of texts with so many vectors each, whose magnitudes sum to so much per dimension."""
    width = len(sums)
    sizes = vectors.astype(np.int64) * width
    return Profile(
        len(vectors),
        int(sizes.sum()),
        int((sizes * sizes).sum()),
        np.full(width, np.count_nonzero(vectors), dtype=np.int64),
        sums,
    )
