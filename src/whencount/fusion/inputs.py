"""A prepared collection and its vectors as the inputs of an evaluation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from whencount.collections.model import Document, Query
from whencount.collections.prepared import PreparedCollection
from whencount.errors import InputError
from whencount.fusion.evaluation import Inputs
from whencount.fusion.pair_scores import PairScores, bm25_weights, counts_matrix
from whencount.judgements import Judgements
from whencount.references import dense, read_run
from whencount.references.lexical import count_terms
from whencount.scoring import Parameters
from whencount.vectors import SparseVectors

Foreign = Sequence[tuple[PreparedCollection, Path]]
"""Other collections and the folders of their queries' vectors."""


@dataclass(frozen=True)
class _WithForeign:
    """A collection whose queries are followed by those of others."""

    own: PreparedCollection
    queries: tuple[Query, ...]

    def document_batches(self) -> Iterable[Sequence[Document]]:
        return self.own.document_batches()

    def __len__(self) -> int:
        return len(self.own)


def read_inputs(
    collection: PreparedCollection,
    documents: Sequence[Path],
    queries: Path,
    foreign: Foreign,
    lexical_run: Path,
    dense_run: Path | None,
    parameters: Parameters,
    *,
    depth: int,
    dimensions: int | None = None,
    seed: int = 0,
) -> Inputs:
    """Read states and runs, count words, and rank by the dense arm where it is projected.

    Args:
        collection: whose documents are ranked.
        documents, queries: folders of vectors with `states.npy`.
        foreign: where queries come from for which no document here is relevant.
        lexical_run, dense_run: runs of the references; without the second the dense arm is ranked
            here.
        parameters: of text BM25.
        depth: rows of a list that count.
        dimensions: of a random projection of the states; None for none.
        seed: of its draws.

    Raises:
        InputError: the collection has no relevant judgement, or files do not fit each other.
    """
    others = [query for other, _ in foreign for query in other.queries]
    counted = _WithForeign(collection, (*collection.queries, *others))
    words, asked = count_terms(counted)
    matrix = counts_matrix(asked)
    own = len(collection.queries)
    states = tuple(np.load(folder / "states.npy", mmap_mode="r") for folder in documents)
    scores = _arm(states, [queries], bm25_weights(words, parameters), matrix[:own])
    strangers = None
    if others:
        folders = [folder for _, folder in foreign]
        strangers = _arm(states, folders, scores.document_weights, matrix[own:])
    if dimensions is not None:
        scores = scores.projected(dimensions, seed)
        strangers = None if strangers is None else strangers.projected(dimensions, seed)
    run = (
        read_run(dense_run, collection)
        if dense_run is not None and dimensions is None
        else dense(scores.documents, np.asarray(scores.queries), depth=depth)
    )
    known = collection.query_positions >= 0
    there = known & (collection.document_positions >= 0)
    judgements = Judgements.from_positions(
        collection.query_positions[known],
        collection.document_positions[known],
        collection.qrels.relevance[known],
        own,
        len(collection),
    )
    if not len(judgements.keys):
        raise InputError(
            f"{collection.name} has no relevant document among its own, so no rule can be measured"
            " on it; leave it out of fusion.collections"
        )
    return Inputs(
        collection.query_ids,
        judgements,
        (
            collection.query_positions[there].astype(np.int64),
            collection.document_positions[there].astype(np.int64),
            collection.qrels.relevance[there].astype(np.float64),
        ),
        scores,
        strangers,
        _lengths(words),
        run,
        read_run(lexical_run, collection),
    )


def _lengths(words: SparseVectors) -> NDArray[np.float64]:
    rows = np.repeat(np.arange(len(words)), words.row_sizes())
    counts = words.values.astype(np.float64)
    return np.bincount(rows, weights=counts, minlength=len(words)).astype(np.float64)


def _arm(
    states: tuple[NDArray[Any], ...], queries: Sequence[Path], weights: csr_array, counts: csr_array
) -> PairScores:
    asked = [np.load(folder / "states.npy", mmap_mode="r") for folder in queries]
    return PairScores(
        states, asked[0] if len(asked) == 1 else np.concatenate(asked), weights, counts
    )
