"""Relevance judgements by position of query and document, ready for the measures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from whencount.errors import InputError

if TYPE_CHECKING:
    from whencount.collections.model import Qrels


def discounts(cutoff: int) -> NDArray[np.float64]:
    """`1 / log2(rank + 1)` of ranks 1..cutoff, float64, shape (cutoff,)."""
    return 1.0 / np.log2(np.arange(2, cutoff + 2, dtype=np.float64))


@dataclass(frozen=True)
class Judgements:
    """Positive relevance judgements, by position of query and document.

    Attributes:
        queries: how many queries the rankings have (Q).
        documents: how many documents the collection has (N).
        keys: int64, rising; `query * N + document` of each positive judgement whose document is in
            the collection.
        gains: float64, the relevance of each of `keys`, positive.
        positives: int64, shape (Q,), positive judgements of each query, documents outside the
            collection included.
        ideal_gains: float64, all positive relevances, query by query, falling within each.
        judged: bool, shape (Q,), whether the query has any judgement, a negative one included.
        unknown_documents: judgements (of known queries) that name a document outside the
            collection.
        unknown_queries: queries that are judged but not among the rankings' queries.
    """

    queries: int
    documents: int
    keys: NDArray[np.int64]
    gains: NDArray[np.float64]
    positives: NDArray[np.int64]
    ideal_gains: NDArray[np.float64]
    judged: NDArray[np.bool_]
    unknown_documents: int = 0
    unknown_queries: int = 0

    @property
    def evaluated(self) -> NDArray[np.bool_]:
        """Which queries have nDCG: those with a positive judgement; bool, shape (Q,)."""
        return self.positives > 0

    @classmethod
    def from_qrels(
        cls,
        qrels: Qrels,
        query_ids: NDArray[np.object_] | Sequence[str],
        document_ids: NDArray[np.object_] | Sequence[str],
    ) -> Judgements:
        """Find the positions of the judged queries and documents.

        Args:
            qrels: the judgements by id; a pair judged twice alike counts once.
            query_ids: ids of the ranked queries, in the order of the rankings.
            document_ids: ids of the collection, in its own order.

        Raises:
            InputError: a pair is judged twice with different relevance.
        """
        import pandas as pd

        query_index = pd.Index(np.asarray(query_ids, dtype=object))
        queries = np.asarray(query_index.get_indexer(qrels.query_ids), dtype=np.int64)
        unknown_queries = len(pd.unique(qrels.query_ids[queries < 0]))
        known = queries >= 0
        codes, names = pd.factorize(qrels.document_ids[known])
        # The judged ids are few and the documents many: hash the few.
        found = pd.Index(names).get_indexer(pd.Index(np.asarray(document_ids, dtype=object)))
        position_of = np.full(len(names), -1, dtype=np.int64)
        present = np.flatnonzero(found >= 0)
        position_of[found[present]] = present

        queries, relevance = queries[known], qrels.relevance[known].astype(np.float64)
        order = np.lexsort((codes, queries))
        queries, codes, relevance = queries[order], codes[order], relevance[order]
        again = (queries[1:] == queries[:-1]) & (codes[1:] == codes[:-1])
        conflict = np.flatnonzero(again & (relevance[1:] != relevance[:-1]))
        if len(conflict):
            at = conflict[0]
            raise InputError(
                f"query {query_ids[queries[at]]!r} and document {names[codes[at]]!r} are judged"
                f" twice, with relevance {relevance[at]:g} and {relevance[at + 1]:g}; keep one"
            )
        first = np.concatenate([[True], ~again]) if len(queries) else np.zeros(0, dtype=bool)
        queries, codes, relevance = queries[first], codes[first], relevance[first]
        judgements = cls.from_positions(
            queries, position_of[codes], relevance, len(query_index), len(document_ids)
        )
        return replace(judgements, unknown_queries=unknown_queries)

    @classmethod
    def from_positions(
        cls,
        query_positions: NDArray[Any],
        document_positions: NDArray[Any],
        relevance: NDArray[Any],
        queries: int,
        documents: int,
    ) -> Judgements:
        """Take judgements given by position; document -1 stands outside the collection.

        The three arrays have one entry per judgement, and no (query, document) pair twice.
        """
        query_positions = np.asarray(query_positions, dtype=np.int64)
        document_positions = np.asarray(document_positions, dtype=np.int64)
        relevance = np.asarray(relevance, dtype=np.float64)
        judged = np.zeros(queries, dtype=bool)
        judged[query_positions] = True
        unknown = int(np.count_nonzero(document_positions < 0))
        positive = relevance > 0
        query_positions, document_positions, relevance = (
            array[positive] for array in (query_positions, document_positions, relevance)
        )
        falling = np.lexsort((-relevance, query_positions))
        inside = document_positions >= 0
        keys = query_positions[inside] * documents + document_positions[inside]
        rising = np.argsort(keys, kind="stable")
        return cls(
            queries,
            documents,
            keys[rising],
            relevance[inside][rising],
            np.bincount(query_positions, minlength=queries),
            relevance[falling],
            judged,
            unknown,
        )

    def slice(self, start: int, stop: int) -> Judgements:
        """The judgements of queries start..stop-1, as queries 0..; counts of unknowns are 0."""
        low, high = np.searchsorted(
            self.keys, [start * self.documents, stop * self.documents]
        ).tolist()
        first, end = (int(self.positives[:query].sum()) for query in (start, stop))
        return Judgements(
            stop - start,
            self.documents,
            self.keys[low:high] - start * self.documents,
            self.gains[low:high],
            self.positives[start:stop],
            self.ideal_gains[first:end],
            self.judged[start:stop],
        )

    def gains_of(
        self, positions: NDArray[np.int32], queries: NDArray[np.int64] | None = None
    ) -> NDArray[np.float64]:
        """Relevance of ranked documents, 0 where unjudged or past the end (-1).

        Args:
            positions: shape (..., Q, depth); with `queries`, shape (rankings, depth).
            queries: shape (rankings,), the query of each ranking.

        Returns:
            float64, the shape of `positions`.
        """
        result = np.zeros(positions.shape, dtype=np.float64)
        if len(self.keys) == 0:
            return result
        # Few retrieved documents are relevant to any query: a table of the collection lets only
        # those reach the binary search. Its last entry answers for -1.
        relevant = np.zeros(self.documents + 1, dtype=bool)
        relevant[self.keys % self.documents] = True
        flat = positions.reshape(-1)
        candidates = np.flatnonzero(relevant.take(flat, mode="wrap"))
        ranking = candidates // positions.shape[-1]
        query = ranking % self.queries if queries is None else queries[ranking]
        keys = query * self.documents + flat[candidates]
        places = np.searchsorted(self.keys, keys)
        places[places == len(self.keys)] = 0
        hit = self.keys[places] == keys
        result.reshape(-1)[candidates[hit]] = self.gains[places[hit]]
        return result

    def ideal(self, cutoff: int) -> NDArray[np.float64]:
        """DCG of the best possible ranking, float64, shape (Q,); 0 without positives."""
        starts = np.cumsum(self.positives) - self.positives
        total = np.zeros(self.queries, dtype=np.float64)
        for rank, discount in enumerate(discounts(cutoff)):
            have = self.positives > rank
            total[have] += self.ideal_gains[starts[have] + rank] * discount
        return total
