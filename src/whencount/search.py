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

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whencount.engine import cpu
from whencount.engine.index import Index
from whencount.engine.plan import plans, references
from whencount.errors import InputError
from whencount.scoring import (
    CONFIGURATIONS,
    Configuration,
    Parameters,
    inverse_document_frequency,
)
from whencount.vectors import SparseVectors

_LARGEST_K1 = 1e100


@dataclass(frozen=True)
class CollectionStatistics:
    """What the scorer needs to know of a collection.

    Attributes:
        documents: N, empty documents included.
        document_frequency: int64, (V,): in how many documents each feature occurs.
        lengths: float64, (N,): L_d, the sum of a document's values.
        average_length: the mean of `lengths`, correctly rounded; 0 where all are empty.
        peaks: float32, (N,): the largest value of each document, 0 where empty.
    """

    documents: int
    document_frequency: NDArray[np.int64]
    lengths: NDArray[np.float64]
    average_length: float
    peaks: NDArray[np.float32]

    @classmethod
    def merge(cls, parts: Sequence[CollectionStatistics]) -> CollectionStatistics:
        """The statistics of shards laid end to end: exactly those of the whole."""
        lengths = np.concatenate([part.lengths for part in parts])
        frequency = np.stack([part.document_frequency for part in parts]).sum(axis=0)
        return cls(
            documents=len(lengths),
            document_frequency=frequency,
            lengths=lengths,
            average_length=_mean(lengths),
            peaks=np.concatenate([part.peaks for part in parts]),
        )


def _mean(lengths: NDArray[np.float64]) -> float:
    # fsum is exact, so the mean depends on no order of shards or summation.
    return math.fsum(lengths) / len(lengths) if len(lengths) else 0.0


def collection_statistics(documents: SparseVectors | Index) -> CollectionStatistics:
    """Compute N, df, L_d and avgL of already capped vectors, or read them off an index.

    Raises:
        InputError: a feature lies outside the vocabulary.
    """
    if isinstance(documents, Index):
        frequency, lengths = documents.document_frequency, documents.lengths
        peaks = documents.peaks
    else:
        count, vocabulary = len(documents), documents.vocabulary_size
        frequency = np.zeros(vocabulary, dtype=np.int64)
        lengths, peaks = np.zeros(count), np.zeros(count, dtype=np.float32)
        step = 1 << 16
        for start in range(0, count, step):
            part = documents.slice(start, min(start + step, count))
            features, values = np.asarray(part.features), np.asarray(part.values)
            if len(features) and not (features.min() >= 0 and features.max() < vocabulary):
                raise InputError(
                    f"a document has a feature outside 0..{vocabulary - 1}, the declared"
                    " vocabulary; encode it again or declare a larger vocabulary"
                )
            frequency += np.bincount(features, minlength=vocabulary)
            rows = np.repeat(np.arange(len(part)), part.row_sizes())
            lengths[start : start + step] = np.bincount(rows, values, minlength=len(part))
            live = part.row_sizes() > 0
            peaks[start : start + step][live] = values[part.indptr[:-1][live]]
    return CollectionStatistics(len(lengths), frequency, lengths, _mean(lengths), peaks)


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
        threads: how many to use; None for as many as the process may run on.
        device: `cpu`, or a torch device such as `cuda`.

    Raises:
        InputError: the parts do not fit together, a weight is not positive and finite, or depth,
            threads or an override is out of range.
    """
    parameters, configurations = tuple(parameters), tuple(configurations)
    _check(documents, queries, parameters, configurations, depth, threads)
    index = documents if isinstance(documents, Index) else Index.build(documents)
    average = _mean(index.lengths)
    weights = _inverse_frequency(index, document_frequency)
    terms = cpu.query_terms(queries, index.document_frequency, weights)
    shape = (len(parameters), len(configurations), len(queries), depth)
    positions = np.full(shape, -1, dtype=np.int32)
    scores = np.zeros(shape)
    counts = np.zeros(shape[:3], dtype=np.int32)
    live = index.document_frequency > 0
    largest = float(weights[live].max()) if live.any() else 1.0
    idf_scale = np.array([largest if item.idf else 1.0 for item in configurations])
    for cells, plan in plans(parameters, configurations):
        reference = references(plan.transforms, index.lengths, index.peaks, average)
        best = cpu.best(
            index, terms, plan, reference, average, depth, cpu.usable_threads(threads), device
        )
        number = plan.lanes // 8 * 4 + plan.lanes % 4
        scale = reference.scale[number] * idf_scale
        positions[cells] = np.moveaxis(best.positions[:, plan.lanes], 0, 2)
        scores[cells] = np.moveaxis(best.keys[:, plan.lanes], 0, 2) * scale[..., None, None]
        counts[cells] = np.moveaxis(best.counts[:, plan.lanes], 0, 2)
    return Rankings(positions, scores, counts)


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


def _inverse_frequency(index: Index, override: ArrayLike | None) -> NDArray[np.float64]:
    if override is None:
        return inverse_document_frequency(index.document_frequency, len(index))
    frequency = np.asarray(override, dtype=np.float64)
    if frequency.shape != (index.vocabulary_size,):
        raise InputError(
            f"document_frequency has shape {frequency.shape}; the vocabulary needs"
            f" ({index.vocabulary_size},)"
        )
    if not ((frequency >= 0) & (frequency <= len(index))).all():
        raise InputError(
            f"document_frequency must lie between 0 and the number of documents, {len(index)}"
        )
    return inverse_document_frequency(frequency, len(index))
