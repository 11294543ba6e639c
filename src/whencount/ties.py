"""Ties that reach past the end of a ranking, counted over the whole collection.

Discrete codes (pooled PQ and RQ above all) give thousands of documents the same score. A ranking
of depth 100 then shows a part of the tie at rank 10 only, but its expected nDCG needs the size of
the tie and the gain in it. Both are counted here, exactly, for the rankings concerned alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whencount.engine.compiled import kernel
from whencount.judgements import Judgements
from whencount.measures import TIE_TOLERANCE, Borders, open_borders
from whencount.progress import progress
from whencount.scoring import (
    CONFIGURATIONS,
    Configuration,
    Parameters,
    inverse_document_frequency,
    length_factor,
    term_weight,
)
from whencount.search import Rankings, collection_statistics
from whencount.vectors import SparseVectors

Array = NDArray[Any]

_NONZEROS_PER_BLOCK = 1 << 22
_ROWS_PER_BLOCK = 1 << 16


def complete_borders(
    documents: SparseVectors,
    queries: SparseVectors,
    rankings: Rankings,
    judgements: Judgements,
    parameters: Sequence[Parameters] = (Parameters(),),
    *,
    configurations: Sequence[Configuration] = CONFIGURATIONS,
    document_frequency: NDArray[np.float64] | NDArray[np.int64] | None = None,
    cutoff: int = 10,
) -> Borders:
    """Size and gain of the ties at `cutoff` that reach past the end of their ranking.

    The arguments are those the rankings were searched with. Scores within TIE_TOLERANCE of the
    score at rank `cutoff` belong to the tie. Memory beyond the arguments: at most about 200 MB.

    Returns:
        Borders of the shape of `rankings.counts`; sizes are 0 where the ranking shows its tie whole
        or the query has no positive judgement.
    """
    concerned = open_borders(rankings, cutoff) & judgements.evaluated
    result = Borders(
        np.zeros(concerned.shape, dtype=np.int64), np.zeros(concerned.shape, dtype=np.float64)
    )
    if not concerned.any():
        return result
    statistics = collection_statistics(documents)
    frequency = statistics.document_frequency if document_frequency is None else document_frequency
    idf = inverse_document_frequency(frequency, statistics.documents)
    blocks = _blocks(documents)
    for start, stop in progress(blocks, len(blocks), "completing ties", "block"):
        block = _Postings(documents.slice(start, stop))
        for cell, configuration_number in np.ndindex(concerned.shape[:2]):
            members = np.flatnonzero(concerned[cell, configuration_number])
            if len(members) == 0:
                continue
            configuration = configurations[configuration_number]
            k1, b = parameters[cell].k1, parameters[cell].b
            factor = (
                length_factor(statistics.lengths[start:stop], statistics.average_length, b)
                if configuration.length
                else np.ones(stop - start)
            )
            weights = term_weight(
                block.values, factor[block.documents], configuration.saturation, k1
            )
            sizes, gains = _count(
                block.starts,
                block.documents,
                weights,
                stop - start,
                members,
                np.asarray(queries.indptr),
                np.asarray(queries.features),
                np.asarray(queries.values),
                idf if configuration.idf else np.ones_like(idf),
                rankings.scores[cell, configuration_number, members, cutoff - 1],
                TIE_TOLERANCE,
                *_relevant(judgements, members, start, stop),
            )
            result.sizes[cell, configuration_number, members] += sizes
            result.gains[cell, configuration_number, members] += gains
    return result


def _blocks(documents: SparseVectors) -> list[tuple[int, int]]:
    """Cut the rows into blocks of limited rows and non-zeros; a long row stands alone."""
    blocks = []
    start = 0
    while start < len(documents):
        limit = int(documents.indptr[start]) + _NONZEROS_PER_BLOCK
        stop = int(np.searchsorted(documents.indptr, limit, side="right")) - 1
        stop = min(max(stop, start + 1), start + _ROWS_PER_BLOCK, len(documents))
        blocks.append((start, stop))
        start = stop
    return blocks


class _Postings:
    """The non-zeros of a block of documents, by feature.

    Attributes:
        starts: int64, shape (V + 1,).
        documents: int32, shape (non-zeros,), rows of the block.
        values: float64, shape (non-zeros,).
    """

    def __init__(self, block: SparseVectors) -> None:
        features = np.asarray(block.features)
        order = np.argsort(features, kind="stable")
        rows = np.repeat(np.arange(len(block), dtype=np.int32), block.row_sizes())
        self.documents = rows[order]
        self.values = np.asarray(block.values)[order].astype(np.float64)
        self.starts = np.zeros(block.vocabulary_size + 1, dtype=np.int64)
        np.cumsum(np.bincount(features, minlength=block.vocabulary_size), out=self.starts[1:])


def _relevant(
    judgements: Judgements, members: NDArray[np.int64], start: int, stop: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """For each member query where its relevant documents of the block stand, and all of them.

    Returns:
        first and end into the two other arrays, shape (members,); rows of the block, and gains.
    """
    first = np.searchsorted(judgements.keys, members * judgements.documents + start)
    end = np.searchsorted(judgements.keys, members * judgements.documents + stop)
    rows = judgements.keys % max(judgements.documents, 1) - start
    return first, end, rows, judgements.gains


@kernel
def _count(
    starts: Array,
    posting_documents: Array,
    weights: Array,
    documents: int,
    members: Array,
    query_indptr: Array,
    query_features: Array,
    query_values: Array,
    idf: Array,
    targets: Array,
    tolerance: float,
    relevant_first: Array,
    relevant_end: Array,
    relevant_rows: Array,
    relevant_gains: Array,
) -> tuple[Array, Array]:
    """Per member query the documents of a block in the tie at `targets`, and their gain."""
    sizes = np.zeros(len(members), dtype=np.int64)
    gains = np.zeros(len(members), dtype=np.float64)
    scores = np.zeros(documents, dtype=np.float64)
    touched = np.empty(documents, dtype=np.int32)
    for member in range(len(members)):
        query = members[member]
        count = 0
        for place in range(query_indptr[query], query_indptr[query + 1]):
            feature = query_features[place]
            factor = np.float64(query_values[place]) * idf[feature]
            for posting in range(starts[feature], starts[feature + 1]):
                document = posting_documents[posting]
                addend = factor * weights[posting]
                if addend > 0.0:
                    if scores[document] == 0.0:
                        touched[count] = document
                        count += 1
                    scores[document] += addend
        bound = tolerance * targets[member]
        for place in range(count):
            if abs(scores[touched[place]] - targets[member]) <= bound:
                sizes[member] += 1
        for place in range(relevant_first[member], relevant_end[member]):
            if abs(scores[relevant_rows[place]] - targets[member]) <= bound:
                gains[member] += relevant_gains[place]
        for place in range(count):
            scores[touched[place]] = 0.0
    return sizes, gains
