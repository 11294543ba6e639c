"""The CPU search: batches of queries, threads over blocks, exact rescoring of the candidates."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whencount.engine import exact, kernels, torch_kernel
from whencount.engine.index import Index
from whencount.engine.lanes import SMALLEST
from whencount.engine.plan import Plan, References
from whencount.errors import InputError
from whencount.vectors import SparseVectors

CANDIDATE_BYTES = 128 << 20
"""Lists of candidates may take this much memory, over all threads."""

_FAR = 1e9
_BLOCKS_PER_JOB = 8
_ERROR_UNIT = 2.0**-24


@dataclass(frozen=True)
class QueryTerms:
    """Queries in CSR form, terms by rising feature, only features that occur in a document.

    Attributes:
        starts: int64, (queries + 1,).
        features: int32, (terms,).
        plain, scaled: float64, (terms,): q_j, and q_j times IDF over the largest IDF.
    """

    starts: NDArray[np.int64]
    features: NDArray[np.int32]
    plain: NDArray[np.float64]
    scaled: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.starts) - 1


@dataclass(frozen=True)
class Best:
    """The best documents of every query and lane; keys are not yet scaled to scores.

    Attributes:
        keys: float64, (queries, lanes, depth), falling.
        positions: int32, the same shape.
        counts: int64, (queries, lanes).
    """

    keys: NDArray[np.float64]
    positions: NDArray[np.int32]
    counts: NDArray[np.int64]


def usable_threads(threads: int | None) -> int:
    """`threads`, or the number of processors this process may run on."""
    if threads is not None:
        return threads
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def query_terms(
    queries: SparseVectors, document_frequency: NDArray[np.int64], weights: NDArray[np.float64]
) -> QueryTerms:
    """Sort, check and weight the queries' terms.

    Raises:
        InputError: a feature outside the vocabulary or twice in a query, or a weight that is not
            positive and finite.
    """
    features, values = np.asarray(queries.features), np.asarray(queries.values)
    rows = np.repeat(np.arange(len(queries)), queries.row_sizes())
    outside = (features < 0) | (features >= queries.vocabulary_size)
    bad = ~(np.isfinite(values) & (values > 0))
    if outside.any():
        at = int(np.flatnonzero(outside)[0])
        raise InputError(
            f"query {queries.ids[rows[at]]!r} has feature {features[at]}, outside"
            f" 0..{queries.vocabulary_size - 1}, the declared vocabulary; encode it again"
        )
    if bad.any():
        at = int(np.flatnonzero(bad)[0])
        raise InputError(
            f"query {queries.ids[rows[at]]!r}, feature {features[at]}: weight {values[at]};"
            " weights must be positive and finite"
        )
    order = np.lexsort((features, rows))
    features, rows, values = features[order], rows[order], values[order]
    twice = (features[1:] == features[:-1]) & (rows[1:] == rows[:-1])
    if twice.any():
        at = int(np.flatnonzero(twice)[0])
        raise InputError(
            f"query {queries.ids[rows[at]]!r} has feature {features[at]} twice; sum its weights"
            " into one"
        )
    live = document_frequency[features] > 0
    features, rows, plain = features[live], rows[live], values[live].astype(np.float64)
    alive = document_frequency > 0
    largest = weights[alive].max() if alive.any() else 1.0
    starts = np.zeros(len(queries) + 1, dtype=np.int64)
    np.cumsum(np.bincount(rows, minlength=len(queries)), out=starts[1:])
    scaled = plain * (weights[features] / largest)
    return QueryTerms(starts, features.astype(np.int32), plain, scaled)


def float32_suffices(index: Index, reference: References) -> bool:
    """Whether every quantity of the float32 pass stays far from its overflow and underflow."""
    if index.nonzeros == 0:
        return True
    extremes = [index.smallest, float(index.peaks.max()), *reference.length_range]
    extremes += [float(value) for value in reference.k1 if value != 0]
    return min(extremes) >= 1 / _FAR and max(extremes) <= _FAR


def best(
    index: Index,
    terms: QueryTerms,
    plan: Plan,
    reference: References,
    average_length: float,
    depth: int,
    threads: int,
    device: str = "cpu",
) -> Best:
    """The exact best `depth` documents of every query in every needed lane of the plan."""
    lanes = 8 * plan.groups
    depth_kept = min(depth, max(1, len(index)))
    keys = np.zeros((len(terms), lanes, depth))
    positions = np.full((len(terms), lanes, depth), -1, dtype=np.int32)
    counts = np.zeros((len(terms), lanes), dtype=np.int64)
    searcher = _Searcher(index, terms, plan, reference, average_length, depth_kept, threads, device)
    fast = float32_suffices(index, reference)
    for first, last in searcher.batches():
        own = slice(first, last)
        heap = Best(
            np.zeros((last - first, lanes, depth_kept)),
            np.full((last - first, lanes, depth_kept), -1, dtype=np.int32),
            np.zeros((last - first, lanes), dtype=np.int64),
        )
        searcher.run(first, last, heap, fast)
        keys[own, :, :depth_kept] = heap.keys
        positions[own, :, :depth_kept] = heap.positions
        counts[own] = heap.counts
    return Best(keys, positions, counts)


def working_bytes(
    index: Index, groups: int, rankings: int, queries: int, depth: int, threads: int
) -> int:
    """The memory that a search takes beyond the index, at most.

    With L = 8 `groups` lanes, B documents and P postings in the largest block, Q queries, k =
    `depth` and T threads: candidates, twice 128 MiB or less; T (48 G B + 16 G P) for the float32
    pass of a block and T 160 G B for its float64 pass; results, 24 L Q k in the lanes and 12 bytes
    per document of the `rankings` (cells times configurations) asked for; 24 MiB for the rest.
    """
    lanes = 8 * groups
    block = index.block_documents
    postings = int(np.diff(index.block_starts).max()) if len(index.block_starts) > 1 else 0
    capacity = list_capacity(lanes, depth)
    lists = min(CANDIDATE_BYTES, threads * queries * capacity * (4 * lanes + 4))
    passes = threads * groups * (48 * block + 16 * postings + 160 * block)
    results = queries * depth * (24 * lanes + 12 * rankings)
    return 2 * lists + passes + results + (24 << 20)


def list_capacity(lanes: int, depth: int) -> int:
    """How many candidates a query may have: rankings overlap, these few depths hold them all."""
    return min(lanes // 2, 6) * depth + 2 * kernels.CHUNK


class _Searcher:
    def __init__(
        self,
        index: Index,
        terms: QueryTerms,
        plan: Plan,
        reference: References,
        average_length: float,
        depth: int,
        threads: int,
        device: str,
    ) -> None:
        self.device = device
        self.index, self.terms, self.plan = index, terms, plan
        self.reference, self.average_length = reference, average_length
        self.depth, self.threads = depth, threads
        self.lanes = 8 * plan.groups
        self.needed = plan.needed
        self.blocks = len(index.block_starts) - 1
        self.capacity = list_capacity(self.lanes, depth)
        self.workers = max(1, min(threads, self.blocks))

    def batches(self) -> list[tuple[int, int]]:
        each = self.workers * self.capacity * (4 * self.lanes + 4)
        size = max(1, CANDIDATE_BYTES // each)
        count = -(-len(self.terms) // size)
        edges = [len(self.terms) * number // max(1, count) for number in range(count + 1)]
        return list(pairwise(edges))

    def run(self, first: int, last: int, heap: Best, fast: bool) -> None:
        """Search queries first..last-1 into `heap`, whose queries count from 0."""
        starts = self.terms.starts[first : last + 1] - self.terms.starts[first]
        own = slice(int(self.terms.starts[first]), int(self.terms.starts[last]))
        features = self.terms.features[own]
        plain, scaled = self.terms.plain[own], self.terms.scaled[own]
        queries = last - first
        left = np.ones(queries, dtype=np.bool_)
        common: tuple[Any, ...] = (
            (0,) * self.plan.groups,
            self.index.block_documents, self.index.block_starts, self.index.bounds,
            self.index.ids, self.index.values, self.index.levels, self.index.lengths,
            self.index.peaks, self.average_length, self.reference.slope, self.reference.k1,
            self.reference.b, self.reference.peak, self.reference.length, starts, features, plain,
            scaled,
        )  # fmt: skip
        heaps = (heap.keys, heap.positions, heap.counts)
        if fast:
            left, candidates = self.collect(starts, features, plain, scaled)

            def rescore(low: int, high: int) -> None:
                arguments: tuple[Any, ...] = (*common, low, high, *candidates, *heaps)
                exact.rescore(*arguments)

            self.each(rescore, self.parts(queries))
        queue = np.flatnonzero(left)

        def exhaust(low: int, high: int) -> None:
            arguments: tuple[Any, ...] = (*common, queue[low:high], self.needed, *heaps)
            exact.exhaust(*arguments)

        self.each(exhaust, self.parts(len(queue)))
        exact.sort_heaps(
            heap.keys.reshape(-1, self.depth),
            heap.positions.reshape(-1, self.depth),
            heap.counts.reshape(-1),
        )

    def collect(
        self,
        starts: NDArray[np.int64],
        features: NDArray[np.int32],
        plain: NDArray[np.float64],
        scaled: NDArray[np.float64],
    ) -> tuple[NDArray[np.bool_], tuple[Any, ...]]:
        """Which queries overflowed, and (starts, positions, estimates, thresholds) of the rest."""
        queries = len(starts) - 1
        active, slots = np.unique(features, return_inverse=True)
        sizes = np.diff(starts)
        weights = _lane_weights(starts, plain, scaled)
        relative = (2.0 * sizes + 16.0) * _ERROR_UNIT
        absolute = sizes * 2.0 * SMALLEST
        if self.device != "cpu":
            return torch_kernel.collect(
                self.index,
                torch_kernel.Batch(starts, features, weights, relative, absolute),
                self.reference,
                self.average_length,
                self.needed,
                self.depth,
                torch_kernel.open_device(self.device),
            )
        groups = (0,) * self.plan.groups
        shape = (self.workers, queries)
        levels = np.zeros((*shape, self.lanes), dtype=np.float32)
        thresholds = np.zeros_like(levels)
        thresholds[..., ~self.needed] = np.inf
        scores = np.empty((*shape, self.capacity, self.lanes), dtype=np.float32)
        positions = np.empty((*shape, self.capacity), dtype=np.int32)
        found = np.zeros(shape, dtype=np.int64)
        overflow = np.zeros(shape, dtype=np.bool_)
        jobs = iter(range(0, self.blocks, _BLOCKS_PER_JOB))
        index, reference = self.index, self.reference

        postings = int(np.diff(index.block_starts).max()) if self.blocks else 0

        def work(worker: int, _: int) -> None:
            # From numpy, which asks for huge pages: lists of postings are read from all over it.
            table = np.empty((postings, 4 * self.plan.groups), dtype=np.float32)
            for job in jobs:
                kernels.collect(
                    groups, job, min(job + _BLOCKS_PER_JOB, self.blocks),
                    index.block_documents, len(index), index.block_starts, index.bounds,
                    index.ids, index.values, index.levels, index.lengths, self.average_length,
                    reference.slope, reference.k1, reference.b, reference.peak,
                    reference.length, active, starts, slots, weights, table, self.depth,
                    relative, absolute, levels[worker], thresholds[worker],
                    scores[worker], positions[worker], found[worker], overflow[worker],
                )  # fmt: skip

        self.each(work, [(worker, worker + 1) for worker in range(self.workers)])
        left: NDArray[np.bool_] = np.any(overflow, axis=0)
        total = int(found.sum())
        out_starts = np.zeros(queries + 1, dtype=np.int64)
        estimates = np.empty((total, self.lanes), dtype=np.float32)
        candidates = np.empty(total, dtype=np.int32)
        kernels.merge(
            groups, self.depth, relative, absolute, levels[0], thresholds[0], scores, positions,
            found, left, out_starts, estimates, candidates,
        )  # fmt: skip
        return left, (out_starts, candidates, estimates, thresholds[0])

    def parts(self, count: int) -> list[tuple[int, int]]:
        edges = [count * part // self.threads for part in range(self.threads + 1)]
        return list(pairwise(edges))

    def each(self, work: Callable[[int, int], None], parts: Iterable[tuple[int, int]]) -> None:
        pairs = [pair for pair in parts if pair[1] > pair[0]]
        if len(pairs) == 1:
            work(*pairs[0])
        elif pairs:
            with ThreadPoolExecutor(len(pairs)) as pool:
                for future in [pool.submit(work, *pair) for pair in pairs]:
                    future.result()


def _lane_weights(
    starts: NDArray[np.int64], plain: NDArray[np.float64], scaled: NDArray[np.float64]
) -> NDArray[np.float32]:
    """Weights of the float32 pass, (terms, 8): at most 1 per query, at least SMALLEST."""
    weights = np.empty((len(plain), 8), dtype=np.float32)
    if len(plain) == 0:
        return weights
    live = np.diff(starts) > 0
    rows = np.repeat(np.arange(int(live.sum())), np.diff(starts)[live])
    for half, own in enumerate((plain, scaled)):
        largest = np.maximum.reduceat(own, starts[:-1][live])
        weights[:, 4 * half : 4 * half + 4] = np.maximum(own / largest[rows], SMALLEST)[:, None]
    return weights
