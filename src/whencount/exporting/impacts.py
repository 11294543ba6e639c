"""A configuration folded into the weights of documents and queries, and these as whole numbers.

An engine that adds up products of stored weights, with or without pruning, ranks by any of the
eight configurations once saturation and length stand in its document weights, `T(x_dj, l_d)`, and
IDF in its query weights (or in the documents'). Engines that prune keep small whole numbers
("impacts", Anh, de Kretser and Moffat, 2001, doi:10.1145/383952.383957), so weights are divided by
one step for all documents and rounded; what that costs is bounded, and reported.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from whencount.engine.statistics import CollectionStatistics, collection_statistics
from whencount.errors import InputError
from whencount.scoring import (
    Configuration,
    Parameters,
    inverse_document_frequency,
    length_factor,
    term_weight,
)
from whencount.vectors import SparseVectors

_ROWS_AT_ONCE = 1 << 14
_MOST_BITS = 16


@dataclass(frozen=True)
class Folding:
    """What a configuration makes of weights.

    Attributes:
        configuration, parameters: of the scorer.
        statistics: of the whole collection, after any cap.
        idf_in_documents: whether IDF, where it is on, multiplies document weights; those of
            queries otherwise.
    """

    configuration: Configuration
    parameters: Parameters
    statistics: CollectionStatistics
    idf_in_documents: bool = False

    def documents(self, shards: Iterable[SparseVectors]) -> Iterator[SparseVectors]:
        """The folded weights of the collection's shards, in order, a block of rows at a time.

        Raises:
            InputError: the shards are not those of the statistics.
        """
        start = 0
        for shard in shards:
            for low in range(0, len(shard), _ROWS_AT_ONCE):
                block = shard.slice(low, min(low + _ROWS_AT_ONCE, len(shard)))
                if start + len(block) > self.statistics.documents:
                    raise InputError(
                        f"more documents than the {self.statistics.documents} that the statistics"
                        " were taken of; take them of these shards"
                    )
                yield self._block(block, start)
                start += len(block)
        if start != self.statistics.documents:
            raise InputError(
                f"{start} documents, but statistics of {self.statistics.documents}; take them of"
                " these shards"
            )

    def _block(self, block: SparseVectors, start: int) -> SparseVectors:
        rows = np.repeat(np.arange(len(block)), block.row_sizes())
        factors = np.ones(len(block))
        if self.configuration.length:
            lengths = self.statistics.lengths[start : start + len(block)]
            factors = length_factor(lengths, self.statistics.average_length, self.parameters.b)
        weights = term_weight(
            block.values, factors[rows], self.configuration.saturation, self.parameters.k1
        )
        if self.configuration.idf and self.idf_in_documents:
            weights = weights * self._inverse_frequency()[block.features]
        return _with_values(block, weights)

    def queries(self, queries: SparseVectors) -> SparseVectors:
        """The folded weights of queries."""
        if not self.configuration.idf or self.idf_in_documents:
            return queries
        return _with_values(queries, queries.values * self._inverse_frequency()[queries.features])

    def _inverse_frequency(self) -> NDArray[np.float64]:
        return inverse_document_frequency(
            self.statistics.document_frequency, self.statistics.documents
        )


def folding_of(
    shards: Sequence[SparseVectors],
    configuration: Configuration,
    parameters: Parameters = Parameters(),  # noqa: B008
    *,
    idf_in_documents: bool = False,
) -> Folding:
    """The folding of already capped documents, given as shards in the collection's order."""
    statistics = CollectionStatistics.merge([collection_statistics(shard) for shard in shards])
    return Folding(configuration, parameters, statistics, idf_in_documents)


@dataclass(frozen=True)
class Steps:
    """Weights as multiples of one step: `w` becomes `max(1, round(w / step))`.

    Attributes:
        step: above 0.
        bits: of the largest whole number, `2^bits - 1`.
    """

    step: float
    bits: int

    @property
    def bound(self) -> float:
        """No weight is further than this from the number of steps that stands for it.

        Half a step for weights of at least half a step; what is below becomes one step.
        """
        return self.step

    def round(self, vectors: SparseVectors) -> SparseVectors:
        """The whole numbers of vectors, as float32, from 1 to `2^bits - 1`."""
        whole = np.clip(np.rint(vectors.values / self.step), 1, (1 << self.bits) - 1)
        return _with_values(vectors, whole)

    def error(self, vectors: SparseVectors) -> float:
        """The largest error of these vectors' weights; at most `bound`."""
        if not vectors.nonzeros:
            return 0.0
        # By feature, since rounding makes ties, which stand in another order.
        own = [_by_feature(one) for one in (vectors, self.round(vectors))]
        return float(np.abs(own[0] - own[1] * self.step).max())


def steps_of(blocks: Iterable[SparseVectors], bits: int = 8) -> Steps:
    """The steps by which the largest weight of all blocks becomes `2^bits - 1`.

    Raises:
        InputError: bits outside 1 to 16, or nothing is stored.
    """
    if not 1 <= bits <= _MOST_BITS:
        raise InputError(f"{bits} bits per weight; choose 1 to {_MOST_BITS}")
    largest = max((float(one.values.max()) for one in blocks if one.nonzeros), default=0.0)
    if largest <= 0:
        raise InputError("no document has a feature, so there is nothing to export")
    return Steps(largest / ((1 << bits) - 1), bits)


def score_bound(
    queries: SparseVectors, largest: float, of_documents: float, of_queries: float
) -> NDArray[np.float64]:
    """How far a query's score may move by rounding, float64, shape (queries,).

    `sum_j (q_j e_d + w e_q + e_d e_q)` over its features, with the bounds of document and query
    weights `e_d` and `e_q` and the largest document weight w.

    Args:
        queries: before rounding, folded.
        largest: w.
        of_documents, of_queries: the bounds, 0 where nothing is rounded.
    """
    rows = np.repeat(np.arange(len(queries)), queries.row_sizes())
    each = queries.values.astype(np.float64) * of_documents
    each += largest * of_queries + of_documents * of_queries
    sums: NDArray[np.float64] = np.bincount(rows, each, minlength=len(queries)).astype(np.float64)
    return sums


def largest_score(documents: SparseVectors, queries: SparseVectors) -> int:
    """What no score of whole-number vectors exceeds; sums in float32 are exact below 2^24."""
    peak = int(documents.values.max()) if documents.nonzeros else 0
    rows = np.repeat(np.arange(len(queries)), queries.row_sizes())
    sums = np.bincount(rows, queries.values.astype(np.float64), minlength=len(queries))
    return peak * math.ceil(float(sums.max(initial=0.0)))


def _with_values(vectors: SparseVectors, values: NDArray[np.float64]) -> SparseVectors:
    """The vectors with other positive values, rows in order of the new ones."""
    rows = np.repeat(np.arange(len(vectors)), vectors.row_sizes())
    features = np.asarray(vectors.features)
    order = np.lexsort((features, -values, rows))
    return replace(vectors, features=features[order], values=values[order].astype(np.float32))


def _by_feature(vectors: SparseVectors) -> NDArray[np.float64]:
    rows = np.repeat(np.arange(len(vectors)), vectors.row_sizes())
    return vectors.values[np.lexsort((vectors.features, rows))].astype(np.float64)
