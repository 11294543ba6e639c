"""Scores of given query-document pairs by both arms, whether or not an arm's list has the row.

The dense arm is the cosine of pooled states, the lexical arm text BM25 (`references`). A pair is
scored by itself, with a fixed order of terms, so its score does not depend on which other pairs
are asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from whencount.errors import InputError
from whencount.references.dense import States, gather_rows, unit_rows
from whencount.scoring import (
    Parameters,
    inverse_document_frequency,
    length_factor,
    term_weight,
)
from whencount.vectors import SparseVectors

_PAIRS_AT_ONCE = 1 << 14


@dataclass(frozen=True)
class PairScores:
    """What both arms say of any pair of a query and a document.

    Attributes:
        documents: dense states, shards of an array (N, d); may be memory-mapped.
        queries: dense states, shape (Q, d).
        document_weights: float64, shape (N, V), BM25 weights, IDF included.
        query_counts: float64, shape (Q, V), how often each query has each word.
    """

    documents: tuple[States, ...]
    queries: States
    document_weights: csr_array
    query_counts: csr_array

    def __post_init__(self) -> None:
        counted = (self.document_weights.shape[0], self.query_counts.shape[0])
        dense = (sum(map(len, self.documents)), len(self.queries))
        if counted != dense:
            raise InputError(
                f"the lexical arm has {counted[0]:,} documents and {counted[1]:,} queries, the"
                f" dense arm {dense[0]:,} and {dense[1]:,}; both must be of one collection"
            )

    @property
    def size(self) -> tuple[int, int]:
        """Numbers of queries and of documents."""
        return self.query_counts.shape[0], self.document_weights.shape[0]

    def dense(self, queries: NDArray[Any], documents: NDArray[Any]) -> NDArray[np.float64]:
        """Cosines of pairs of positions, float64, shape (pairs,); 0 with a zero vector."""
        offsets = np.cumsum([0, *map(len, self.documents)])
        scores = np.empty(len(queries))
        for block in _blocks(len(queries)):
            rows = unit_rows(gather_rows(self.documents, offsets, documents[block]), "document", 0)
            scores[block] = (rows * unit_rows(self.queries[queries[block]], "query", 0)).sum(axis=1)
        return scores

    def lexical(self, queries: NDArray[Any], documents: NDArray[Any]) -> NDArray[np.float64]:
        """BM25 scores of pairs of positions, float64, shape (pairs,)."""
        scores = np.empty(len(queries))
        for block in _blocks(len(queries)):
            products = self.query_counts[queries[block]] * self.document_weights[documents[block]]
            scores[block] = np.asarray(products.sum(axis=1)).ravel()
        return scores

    def projected(self, dimensions: int, seed: int) -> PairScores:
        """The same with dense states seen through a random projection: a weaker dense arm.

        Args:
            dimensions: of the projection, a Gaussian matrix (d, dimensions).
            seed: of its draws.
        """
        width = int(self.queries.shape[1])
        draws = np.random.default_rng(seed).standard_normal((width, dimensions))
        return replace(
            self,
            documents=tuple(_products(shard, draws) for shard in self.documents),
            queries=_products(self.queries, draws),
        )


def bm25_weights(documents: SparseVectors, parameters: Parameters) -> csr_array:
    """The BM25 weight of every word of every document, IDF included: float64, shape (N, V).

    The study's scorer with all three switches on (section 1), folded into the documents.
    """
    sizes = documents.row_sizes()
    rows = np.repeat(np.arange(len(documents)), sizes)
    values = documents.values.astype(np.float64)
    lengths = np.bincount(rows, weights=values, minlength=len(documents))
    factors = length_factor(lengths, lengths.mean() if len(lengths) else 0.0, parameters.b)
    weights = term_weight(values, factors[rows], saturation=True, k1=parameters.k1)
    frequency = np.bincount(documents.features, minlength=documents.vocabulary_size)
    weights *= inverse_document_frequency(frequency, len(documents))[documents.features]
    return csr_array(
        (weights, documents.features, documents.indptr),
        shape=(len(documents), documents.vocabulary_size),
    )


def counts_matrix(queries: SparseVectors) -> csr_array:
    """Stored counts as a matrix, float64, shape (Q, V)."""
    return csr_array(
        (queries.values.astype(np.float64), queries.features, queries.indptr),
        shape=(len(queries), queries.vocabulary_size),
    )


def _products(states: States, projection: NDArray[np.float64]) -> NDArray[np.float32]:
    found = np.empty((len(states), projection.shape[1]), dtype=np.float32)
    for block in _blocks(len(states)):
        found[block] = states[block].astype(np.float64) @ projection
    return found


def _blocks(count: int) -> Sequence[slice]:
    starts = range(0, count, _PAIRS_AT_ONCE)
    return [slice(start, min(start + _PAIRS_AT_ONCE, count)) for start in starts]
