"""Exact search of all configurations at once.

What a score is. Formulas that coincide on paper must rank alike to the last document, and float64
sums of equal terms in another order do not. So a score is computed, in float64, as

    scale * round40( factor_d * sum_j q_j (w_j / w_max) r_dj ),    r_dj = T(x_dj) / T(max_i x_di)

over shared features by rising feature, where r is exactly 1 at a document's largest value,
factor_d is T at that value divided by its largest over the collection (without saturation,
`(max x_d / max x) (min l / l_d)`), w_max is the largest IDF of a feature that occurs, round40
rounds to 40 significant bits (relative 4.5e-13), and `scale` restores the units. This is the
scorer of `whencount.scoring` to a relative 1e-12. Where all stored values and lengths are equal,
r and factor are exactly 1 and 000, 001, 010 and 011 have the same keys, bit for bit; likewise any
configurations under b = 0, a uniform IDF, or k1 = 0. Sums that tie on paper, yet differ in their
last bits by the order of their terms, tie.

Documents are ranked by score falling, then position rising. The result does not depend on
threads, blocks, shards or device.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whencount.engine import cpu, exact
from whencount.engine.index import Index
from whencount.engine.plan import plans, references
from whencount.engine.statistics import CollectionStatistics, collection_statistics
from whencount.errors import InputError
from whencount.scoring import (
    CONFIGURATIONS,
    Configuration,
    Parameters,
    inverse_document_frequency,
)
from whencount.vectors import SparseVectors

__all__ = [
    "CollectionStatistics",
    "Rankings",
    "collection_statistics",
    "merge_rankings",
    "search",
    "search_shards",
]

SHARD_NONZEROS = 1 << 26
"""Vectors with more pairs than this are indexed and searched piece by piece."""

_LARGEST_K1 = 1e100


@dataclass(frozen=True)
class Rankings:
    """The best documents of every query, for every cell of parameters and configuration.

    Attributes:
        positions: int32, (cells, configurations, queries, depth): positions in the collection,
            best first; -1 past `counts`.
        scores: float64, the same shape, falling; 0 past `counts`.
        counts: int32, (cells, configurations, queries): documents with a score above 0, at most
            depth.
    """

    positions: NDArray[np.int32]
    scores: NDArray[np.float64]
    counts: NDArray[np.int32]


def search(
    documents: SparseVectors | Index,
    queries: SparseVectors,
    parameters: Sequence[Parameters] = (Parameters(),),
    *,
    depth: int = 100,
    configurations: Sequence[Configuration] = CONFIGURATIONS,
    document_frequency: ArrayLike | None = None,
    statistics: CollectionStatistics | None = None,
    threads: int | None = None,
    device: str = "cpu",
) -> Rankings:
    """Find, exactly, the best `depth` documents of every query under every configuration.

    Args:
        documents: already capped vectors, or an index of them.
        queries: already capped; features that occur in no document count for nothing.
        parameters: the cells of (k1, b).
        depth: how many documents to return at most.
        configurations: which of the eight.
        document_frequency: float64 or int64, (V,), in place of the collection's own (the
            controls).
        statistics: those of the whole collection, where `documents` is a shard of it.
        threads: how many to use; None for as many as the process may run on.
        device: `cpu`; a torch device such as `cuda`; `torch:cpu` is the torch kernel without one.

    Raises:
        InputError: the parts do not fit together, a weight is not positive and finite, or depth,
            threads or an override is out of range.
    """
    parameters, configurations = tuple(parameters), tuple(configurations)
    _check(documents, queries, parameters, configurations, depth, threads)
    if isinstance(documents, SparseVectors) and documents.nonzeros > SHARD_NONZEROS:
        return search_shards(
            _pieces(documents),
            queries,
            parameters,
            depth=depth,
            configurations=configurations,
            document_frequency=document_frequency,
            statistics=statistics or collection_statistics(documents),
            threads=threads,
            device=device,
        )
    index = documents if isinstance(documents, Index) else Index.build(documents)
    whole = statistics or collection_statistics(index)
    weights = _inverse_frequency(whole, document_frequency)
    terms = cpu.query_terms(queries, whole.document_frequency, weights)
    shape = (len(parameters), len(configurations), len(queries), depth)
    positions = np.full(shape, -1, dtype=np.int32)
    scores = np.zeros(shape)
    counts = np.zeros(shape[:3], dtype=np.int32)
    live = whole.document_frequency > 0
    largest = float(weights[live].max()) if live.any() else 1.0
    idf_scale = np.array([largest if item.idf else 1.0 for item in configurations])
    for cells, plan in plans(parameters, configurations):
        reference = references(plan.transforms, whole.lengths, whole.peaks, whole.average_length)
        best = cpu.best(
            index,
            terms,
            plan,
            reference,
            whole.average_length,
            depth,
            cpu.usable_threads(threads),
            device,
        )
        number = plan.lanes // 8 * 4 + plan.lanes % 4
        scale = reference.scale[number] * idf_scale
        positions[cells] = np.moveaxis(best.positions[:, plan.lanes], 0, 2)
        scores[cells] = np.moveaxis(best.keys[:, plan.lanes], 0, 2) * scale[..., None, None]
        counts[cells] = np.moveaxis(best.counts[:, plan.lanes], 0, 2)
    return Rankings(positions, scores, counts)


def search_shards(
    shards: Sequence[SparseVectors | Index],
    queries: SparseVectors,
    parameters: Sequence[Parameters] = (Parameters(),),
    *,
    depth: int = 100,
    configurations: Sequence[Configuration] = CONFIGURATIONS,
    document_frequency: ArrayLike | None = None,
    statistics: CollectionStatistics | None = None,
    threads: int | None = None,
    device: str = "cpu",
) -> Rankings:
    """Search shards laid end to end, one after the other: the result of the whole, bit by bit.

    Positions count through all shards. The other arguments, and the faults, are those of
    `search`; without `statistics` those of the shards are merged first.
    """
    whole = statistics or CollectionStatistics.merge(
        [collection_statistics(shard) for shard in shards]
    )
    parts: list[Rankings] = []
    starts: list[int] = []
    start = 0
    for shard in shards:
        part = search(
            shard,
            queries,
            parameters,
            depth=depth,
            configurations=configurations,
            document_frequency=document_frequency,
            statistics=whole,
            threads=threads,
            device=device,
        )
        parts, starts = [*parts, part], [*starts, start]
        if len(parts) == 2:
            parts, starts = [merge_rankings(parts, starts)], [0]
        start += len(shard)
    return merge_rankings(parts, starts)


def merge_rankings(parts: Sequence[Rankings], starts: Sequence[int]) -> Rankings:
    """Merge rankings of shards, each found with the statistics of the whole collection.

    Args:
        parts: one per shard, of the same shape.
        starts: the position in the collection of each shard's first document, rising.

    Raises:
        InputError: no part, or parts of different shapes.
    """
    if not parts or len({part.positions.shape for part in parts}) != 1:
        raise InputError("rankings to merge must be at least one, of the same shape")
    shape = parts[0].positions.shape
    rows, depth = parts[0].counts.size, shape[-1]
    scores = np.zeros((rows, depth))
    positions = np.full((rows, depth), -1, dtype=np.int32)
    counts = np.zeros(rows, dtype=np.int64)
    for part, start in zip(parts, starts, strict=True):
        exact.merge_sorted(
            scores,
            positions,
            counts,
            np.ascontiguousarray(part.scores).reshape(rows, depth),
            np.ascontiguousarray(part.positions).reshape(rows, depth),
            part.counts.reshape(rows).astype(np.int64),
            start,
        )
    return Rankings(
        positions.reshape(shape), scores.reshape(shape), counts.reshape(shape[:-1]).astype(np.int32)
    )


def _pieces(documents: SparseVectors) -> list[SparseVectors | Index]:
    count = -(-documents.nonzeros // SHARD_NONZEROS)
    targets = np.arange(1, count) * (documents.nonzeros / count)
    edges = [0, *np.searchsorted(documents.indptr, targets).tolist(), len(documents)]
    return [documents.slice(low, high) for low, high in pairwise(edges) if high > low]


def _check(
    documents: SparseVectors | Index,
    queries: SparseVectors,
    parameters: Sequence[Parameters],
    configurations: Sequence[Configuration],
    depth: int,
    threads: int | None,
) -> None:
    if depth < 1:
        raise InputError(f"depth {depth} is below 1; ask for at least one document")
    if threads is not None and threads < 1:
        raise InputError(f"{threads} threads; use at least one, or leave it out")
    if not parameters or not configurations:
        raise InputError("no parameters or no configurations are given; name at least one each")
    if queries.vocabulary_size != documents.vocabulary_size:
        raise InputError(
            f"queries have a vocabulary of {queries.vocabulary_size} features and documents of"
            f" {documents.vocabulary_size}; encode both with the same basis"
        )
    if len(documents) >= 1 << 31:
        raise InputError(f"{len(documents)} documents in one search; at most 2^31 - 1 are possible")
    for cell in parameters:
        if cell.k1 > _LARGEST_K1:
            raise InputError(f"k1 is {cell.k1}; at most {_LARGEST_K1:g} can be computed")


def _inverse_frequency(
    whole: CollectionStatistics, override: ArrayLike | None
) -> NDArray[np.float64]:
    if override is None:
        return inverse_document_frequency(whole.document_frequency, whole.documents)
    frequency = np.asarray(override, dtype=np.float64)
    if frequency.shape != whole.document_frequency.shape:
        raise InputError(
            f"document_frequency has shape {frequency.shape}; the vocabulary needs"
            f" {whole.document_frequency.shape}"
        )
    if not ((frequency >= 0) & (frequency <= whole.documents)).all():
        raise InputError(
            f"document_frequency must lie between 0 and the number of documents, {whole.documents}"
        )
    return inverse_document_frequency(frequency, whole.documents)
