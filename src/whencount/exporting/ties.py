"""The best k documents of an engine that breaks ties as it likes, with ties by position."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Best:
    """The best documents of every query: whole-number scores falling, then positions rising.

    Attributes:
        positions: int64, shape (queries, k); -1 past the end.
        scores: int64, the same shape; 0 past the end.
    """

    positions: NDArray[np.int64]
    scores: NDArray[np.int64]


Retrieve = Callable[[NDArray[np.int64], int], tuple[NDArray[Any], NDArray[Any]]]
"""Positions and scores, shape (queries, depth) each, -1 and 0 past the end, scores falling, of the
queries with these numbers at this depth."""


def best(retrieve: Retrieve, queries: int, k: int, documents: int) -> Best:
    """The best k of every query, with ties by position, whatever the engine does with ties.

    The k-th score is known for certain, the document that has it is not where others have it too.
    So queries whose ranking ends inside the tie of the k-th score are asked again, twice as deep,
    until the tie is whole.

    Args:
        retrieve: asks the engine.
        queries: how many there are.
        k: how many documents.
        documents: how many there are: no ranking is deeper.
    """
    positions = np.full((queries, k), -1, dtype=np.int64)
    scores = np.zeros((queries, k), dtype=np.int64)
    left, depth = np.arange(queries), k
    while len(left):
        depth = min(2 * depth, documents)
        found, raw = retrieve(left, depth)
        whole = np.rint(raw).astype(np.int64)
        kth = whole[:, min(k, whole.shape[1]) - 1]
        done = (whole[:, -1] < kth) | (found[:, -1] < 0) | (depth == documents)
        here, own = found[done].astype(np.int64), whole[done]
        # Nothing found stands last.
        places = np.where(here < 0, np.iinfo(np.int64).max, here)
        order = np.lexsort((places, -own), axis=-1)[:, :k]
        width = order.shape[1]
        positions[left[done], :width] = np.take_along_axis(here, order, axis=1)
        scores[left[done], :width] = np.take_along_axis(own, order, axis=1)
        left = left[~done]
    return Best(positions, scores)
