"""Reciprocal rank fusion of runs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from whencount.errors import InputError
from whencount.references.runs import Run

_TOLERANCE = 2.0**-50
"""Fused scores whose relative difference is at most this are equal on paper.

Two sums of at most three reciprocals of numbers below 200 differ by more, where they differ, and
rounding moves a sum by less.
"""


def fuse(runs: Sequence[Run], *, k: int = 60, depth: int = 100) -> Run:
    """Fuse runs of the same collection by reciprocal rank.

    A document's score is the sum of `1 / (k + rank)` over the runs that have it among their first
    `depth` (Cormack, Clarke and Buettcher, 2009, doi:10.1145/1571941.1572114, k = 60). Documents
    whose sums are equal on paper, as with the same ranks in another order, have equal scores to the
    last bit and stand by position.

    Args:
        runs: at least one; queries that a run lacks are fused from the others.
        k: how much the first ranks are levelled, at least 0.
        depth: documents that count of each run, and that the result has, per query at most.

    Raises:
        InputError: no run, or `k` or `depth` is out of range.
    """
    if not runs:
        raise InputError("there is no run to fuse; give at least one")
    if k < 0 or depth < 1:
        raise InputError(
            f"k is {k} and depth {depth}; reciprocal rank fusion needs k of at least 0 and depth of"
            " at least 1"
        )
    whole = Run.concatenate(runs)
    inside = whole.ranks <= depth
    queries = whole.query_positions[inside].astype(np.int64)
    documents = whole.document_positions[inside].astype(np.int64)
    parts = 1.0 / (k + whole.ranks[inside].astype(np.float64))
    # The parts of a document stand together, smallest first: the order of the runs does not matter.
    order = np.lexsort((parts, documents, queries))
    queries, documents, parts = queries[order], documents[order], parts[order]
    first = np.flatnonzero(_changes(queries) | _changes(documents))
    if len(first) == 0:
        return Run.concatenate([])
    scores = np.add.reduceat(parts, first)
    queries, documents = queries[first], documents[first]
    falling = np.lexsort((-scores, queries))
    queries, documents, scores = queries[falling], documents[falling], scores[falling]
    starts = _changes(queries)
    starts[1:] |= scores[:-1] - scores[1:] > _TOLERANCE * scores[:-1]
    tie = np.cumsum(starts) - 1
    scores = scores[starts][tie]
    # Ties are numbered through all queries, so this keeps queries and scores in their order.
    documents = documents[np.lexsort((documents, tie))]
    begins = np.flatnonzero(_changes(queries))
    sizes = np.diff(np.append(begins, len(queries)))
    ranks = np.arange(len(queries)) - np.repeat(begins, sizes) + 1
    kept = ranks <= depth
    return Run(
        queries[kept].astype(np.int32),
        documents[kept].astype(np.int32),
        ranks[kept].astype(np.int32),
        scores[kept],
    )


def _changes(values: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Where a value differs from the one before; the first always does."""
    result = np.ones(len(values), dtype=bool)
    result[1:] = values[1:] != values[:-1]
    return result
