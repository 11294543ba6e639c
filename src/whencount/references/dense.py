"""Exact search by cosine over dense states that may be larger than memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whencount.errors import InputError
from whencount.progress import progress
from whencount.references.runs import Run

States = NDArray[Any]  # float16, float32 or float64, one row per text

_DOCUMENTS_AT_ONCE = 16384
_QUERIES_AT_ONCE = 256
_RESCORED_AT_ONCE = 4096


def dense(documents: States | Sequence[States], queries: States, *, depth: int = 100) -> Run:
    """Rank documents by the cosine of their states with each query's, exactly.

    Candidates come from a float32 matrix product, with a margin above its rounding error; their
    scores are computed anew in float64 with a fixed order of terms, so that equal rows have equal
    scores. Equal scores stand by position. The cosine with a zero vector is 0.

    Args:
        documents: shape (N, d), or the shards of such an array; memory-mapped is fine, rows are
            read a block at a time.
        queries: shape (Q, d).
        depth: how many documents to keep per query, all of them where there are fewer.

    Raises:
        InputError: shapes do not fit, a state is NaN or infinite, there is no document, or depth
            is below 1.
    """
    shards: list[States] = [documents] if isinstance(documents, np.ndarray) else list(documents)
    _check(shards, queries, depth)
    units = unit_rows(queries, "query", 0)
    total = sum(map(len, shards))
    if not total:
        raise InputError("there is no document to search; encode the collection first")
    depth = min(depth, total)
    starts = range(0, len(queries), _QUERIES_AT_ONCE)
    pools = [_Pool(units[start : start + _QUERIES_AT_ONCE], depth) for start in starts]
    blocks = [
        (shard, low, min(low + _DOCUMENTS_AT_ONCE, len(shards[shard])))
        for shard in range(len(shards))
        for low in range(0, len(shards[shard]), _DOCUMENTS_AT_ONCE)
    ]
    offsets = np.cumsum([0, *map(len, shards)])
    sizes = [high - low for _, low, high in blocks]
    for shard, low, high in progress(blocks, total, "dense search", "document", sizes):
        first = int(offsets[shard]) + low
        rows = unit_rows(shards[shard][low:high], "document", first).astype(np.float32)
        for pool in pools:
            pool.offer(rows, first)
    return _rescored(pools, shards, offsets, depth)


def _check(shards: Sequence[States], queries: States, depth: int) -> None:
    if depth < 1:
        raise InputError(f"depth {depth} is below 1; ask for at least one document")
    shapes = {array.shape[1:] for array in (*shards, queries)}
    if len(shapes) != 1 or queries.ndim != 2:
        raise InputError(
            "the states of documents and queries must be matrices with one number of columns;"
            f" found {sorted(shapes)}: encode both with the same encoder"
        )


def unit_rows(states: States, kind: str, first: int) -> NDArray[np.float64]:
    """Rows of length 1 in float64; a zero row stays zero."""
    rows: NDArray[np.float64] = np.ascontiguousarray(states, dtype=np.float64)
    if not np.isfinite(rows).all():
        at = int(np.flatnonzero(~np.isfinite(rows).all(axis=1))[0])
        raise InputError(f"the state of {kind} {first + at + 1} is not finite; encode it again")
    # The largest entry is divided out first, so that no square over- or underflows.
    largest = np.abs(rows).max(axis=1, initial=0.0, keepdims=True)
    rows = np.divide(rows, largest, out=np.zeros_like(rows), where=largest > 0)
    norms = np.sqrt((rows * rows).sum(axis=1, keepdims=True))
    np.divide(rows, norms, out=rows, where=norms > 0)
    return rows


class _Pool:
    """Candidates of a block of queries: all documents that may belong to the best `depth`."""

    def __init__(self, units: NDArray[np.float64], depth: int) -> None:
        self.units = units
        self._single = units.astype(np.float32)
        self._depth = depth
        # |fl(x.y) - x.y| <= (d + 2) u for unit vectors, whatever the order of the terms, with the
        # rounding of x and y to float32 (Higham, 2002, section 3.1); twice for a difference.
        self._margin = np.float32(2.0 * (units.shape[1] + 3) * 2.0**-24)
        self.rows = np.empty(0, dtype=np.int64)
        self.documents = np.empty(0, dtype=np.int64)
        self._scores = np.empty(0, dtype=np.float32)
        self._least = np.full(len(units), -np.inf, dtype=np.float32)

    def offer(self, documents: NDArray[np.float32], first: int) -> None:
        """Consider documents first, first + 1, ...; shape (block, d)."""
        scores = self._single @ documents.T
        if scores.shape[1] >= self._depth:
            # The block alone already bounds the score at the border from below.
            border = np.partition(scores, scores.shape[1] - self._depth, axis=1)
            here = border[:, scores.shape[1] - self._depth] - self._margin
            self._least = np.maximum(self._least, here)
        rows, columns = np.nonzero(scores >= self._least[:, None])
        self.rows = np.concatenate([self.rows, rows])
        self.documents = np.concatenate([self.documents, columns + first])
        self._scores = np.concatenate([self._scores, scores[rows, columns]])
        self._prune()

    def _prune(self) -> None:
        order = np.lexsort((-self._scores, self.rows))
        counts = np.bincount(self.rows, minlength=len(self.units))
        ends = np.cumsum(counts)
        full = counts >= self._depth
        border = self._scores[order[(ends - counts)[full] + self._depth - 1]]
        self._least[full] = np.maximum(self._least[full], border - self._margin)
        keep = self._scores >= self._least[self.rows]
        self.rows, self.documents = self.rows[keep], self.documents[keep]
        self._scores = self._scores[keep]


def _rescored(
    pools: Sequence[_Pool],
    shards: Sequence[States],
    offsets: NDArray[np.int64],
    depth: int,
) -> Run:
    parts: list[Run] = []
    first = 0
    for pool in pools:
        scores = np.empty(len(pool.rows))
        # By document, so that a memory-mapped file is read forwards.
        order = np.argsort(pool.documents, kind="stable")
        for low in range(0, len(order), _RESCORED_AT_ONCE):
            chosen = order[low : low + _RESCORED_AT_ONCE]
            rows = gather_rows(shards, offsets, pool.documents[chosen])
            products = unit_rows(rows, "document", 0) * pool.units[pool.rows[chosen]]
            scores[chosen] = products.sum(axis=1)
        order = np.lexsort((pool.documents, -scores, pool.rows))
        rows = pool.rows[order]
        counts = np.bincount(rows, minlength=len(pool.units))
        ranks = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts) + 1
        best = ranks <= depth
        parts.append(
            Run(
                (rows[best] + first).astype(np.int32),
                pool.documents[order][best].astype(np.int32),
                ranks[best].astype(np.int32),
                scores[order][best],
            )
        )
        first += len(pool.units)
    return Run.concatenate(parts)


def gather_rows(
    shards: Sequence[States], offsets: NDArray[np.int64], positions: NDArray[np.int64]
) -> States:
    if len(shards) == 1:
        return shards[0][positions]
    shard = np.searchsorted(offsets, positions, side="right") - 1
    result = np.empty((len(positions), shards[0].shape[1]))
    for number in np.unique(shard):
        here = shard == number
        result[here] = shards[number][positions[here] - offsets[number]]
    return result
