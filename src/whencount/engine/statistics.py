"""What the scorer needs to know of a whole collection, merged exactly from its shards."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from whencount.engine.index import Index
from whencount.errors import InputError
from whencount.vectors import SparseVectors


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
            average_length=mean_length(lengths),
            peaks=np.concatenate([part.peaks for part in parts]),
        )


def mean_length(lengths: NDArray[np.float64]) -> float:
    """avgL, correctly rounded; 0 without documents."""
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
    return CollectionStatistics(len(lengths), frequency, lengths, mean_length(lengths), peaks)
