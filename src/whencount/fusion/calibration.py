"""Pairs that nulls and the reference panel are taken from: drawn beforehand, by declared rules.

Queries are dealt into a calibration half and an evaluation half by a hash of their ids. Pairs of
calibration queries and drawn documents are the panel; those without a relevant judgement are its
`judged` null. The `foreign` null needs no label: queries of other collections, for which no
document here can be relevant but by accident.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from whencount.fusion.pair_scores import PairScores


@dataclass(frozen=True)
class Pairs:
    """Drawn pairs and what both arms say of them.

    Attributes:
        queries, documents: int64, shape (pairs,), positions.
        dense, lexical: float64, shape (pairs,), scores.
        relevant: bool, shape (pairs,), judged so.
    """

    queries: NDArray[np.int64]
    documents: NDArray[np.int64]
    dense: NDArray[np.float64]
    lexical: NDArray[np.float64]
    relevant: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.queries)

    @property
    def scores(self) -> NDArray[np.float64]:
        """Both scores, float64, shape (pairs, 2)."""
        return np.column_stack((self.dense, self.lexical))

    def only(self, rows: NDArray[np.bool_]) -> Pairs:
        """The pairs where `rows` holds."""
        return Pairs(*(getattr(self, name)[rows] for name in self.__dataclass_fields__))


def evaluation_half(query_ids: Iterable[str], seed: int) -> NDArray[np.bool_]:
    """Which queries are evaluated: those of even hash (SHA-256 of seed and id); bool, (queries,).

    No query's place depends on which others there are.
    """
    return np.array(
        [hashlib.sha256(f"{seed} {name}".encode()).digest()[0] % 2 == 0 for name in query_ids],
        dtype=bool,
    )


def draw(
    scores: PairScores,
    candidates: NDArray[np.int64],
    relevant: NDArray[np.int64],
    queries: int,
    documents: int,
    seed: int,
) -> Pairs:
    """Draw queries, and documents for each, and score the pairs.

    Args:
        scores: of any pair.
        candidates: positions of the queries to draw from.
        relevant: `query * N + document` of the relevant judgements, rising.
        queries, documents: how many at most, documents for each query anew.
        seed: of the draws.
    """
    size = scores.size[1]
    random = np.random.default_rng(seed)
    chosen = np.sort(random.permutation(candidates)[:queries])
    per_query = min(documents, size)
    rows = np.repeat(chosen, per_query)
    if per_query == size:
        columns = np.tile(np.arange(size), len(chosen))
    else:
        columns = np.concatenate(
            [np.sort(random.choice(size, per_query, replace=False)) for _ in chosen]
            or [np.empty(0, dtype=np.int64)]
        )
    return Pairs(
        rows,
        columns,
        scores.dense(rows, columns),
        scores.lexical(rows, columns),
        np.isin(rows * size + columns, relevant),
    )


def halves(pairs: Pairs) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """The pairs of every other drawn query, and those of the rest."""
    distinct, place = np.unique(pairs.queries, return_inverse=True)
    first = place % 2 == 0
    return first, ~first if len(distinct) > 1 else first
