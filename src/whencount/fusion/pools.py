"""The rows of each query that two lists have, with everything that rules and claims ask of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from whencount.fusion.arms import Arms
from whencount.fusion.nulls import Null
from whencount.fusion.pair_scores import PairScores
from whencount.references.runs import Run


@dataclass(frozen=True)
class Pools:
    """Rows that either list has, by query, then document position.

    A list votes for the rows that it has; both scores of every row are known all the same.

    Attributes:
        starts: int64, shape (queries + 1,): where each query's rows begin.
        documents: int64, shape (rows,): document positions.
        dense, lexical: float64, shape (rows,): scores.
        dense_votes, lexical_votes: bool, shape (rows,).
        dense_tail, lexical_tail: float64, shape (rows,): null tails of the scores.
        relevance: float64, shape (rows,): judged grade, 0 where not judged.
    """

    starts: NDArray[np.int64]
    documents: NDArray[np.int64]
    dense: NDArray[np.float64]
    lexical: NDArray[np.float64]
    dense_votes: NDArray[np.bool_]
    lexical_votes: NDArray[np.bool_]
    dense_tail: NDArray[np.float64]
    lexical_tail: NDArray[np.float64]
    relevance: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.starts) - 1

    def rows(self, query: int) -> slice:
        """The rows of a query."""
        return slice(int(self.starts[query]), int(self.starts[query + 1]))

    def arms(self, query: int) -> Arms:
        """What both lists say of a query's rows; an absent vote is NaN, its tail 1."""
        at = self.rows(query)
        here, there = self.dense_votes[at], self.lexical_votes[at]
        return Arms(
            np.where(here, self.dense[at], np.nan),
            np.where(there, self.lexical[at], np.nan),
            np.where(here, self.dense_tail[at], 1.0),
            np.where(there, self.lexical_tail[at], 1.0),
        )


def pool(
    dense_run: Run,
    lexical_run: Run,
    scores: PairScores,
    nulls: tuple[Null, Null],
    judged: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]],
    depth: int,
) -> Pools:
    """Join the first `depth` rows of both lists and score every row by both arms.

    Args:
        dense_run, lexical_run: the lists.
        scores: of any pair.
        nulls: of the dense and of the lexical arm.
        judged: query positions, document positions and grades of the judgements, all known ones.
        depth: rows of each list that count.
    """
    queries, documents = scores.size

    def keys(run: Run) -> NDArray[np.int64]:
        inside = run.ranks <= depth
        rows = run.query_positions[inside].astype(np.int64)
        return rows * documents + run.document_positions[inside]

    dense_keys, lexical_keys = keys(dense_run), keys(lexical_run)
    both = np.union1d(dense_keys, lexical_keys)
    rows, columns = both // documents, both % documents
    graded, grades = judged[0] * documents + judged[1], judged[2]
    order = np.argsort(graded, kind="stable")
    relevance = np.zeros(len(both))
    if len(order):
        place = np.minimum(np.searchsorted(graded[order], both), len(order) - 1)
        found = graded[order][place] == both
        relevance[found] = np.maximum(grades[order][place[found]], 0)
    dense, lexical = scores.dense(rows, columns), scores.lexical(rows, columns)
    starts = np.searchsorted(rows, np.arange(queries + 1))
    return Pools(
        starts.astype(np.int64),
        columns,
        dense,
        lexical,
        np.isin(both, dense_keys),
        np.isin(both, lexical_keys),
        nulls[0].tail(dense),
        nulls[1].tail(lexical),
        relevance,
    )
