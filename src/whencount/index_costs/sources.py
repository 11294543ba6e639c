"""What is indexed: sparse vectors in shards, or dense states; counted, indexed, searched alike."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from whencount.economics import Economics, Profile, dense_payload, economics_of, profile_of
from whencount.engine.index import Index, block_size
from whencount.engine.storage import open_index, write_index
from whencount.errors import InputError
from whencount.index_costs.late import Late, is_late
from whencount.latent_terms.weights import weigh
from whencount.scoring import Configuration, Parameters
from whencount.search import collection_statistics, search
from whencount.vectors import SparseVectors

DENSE_PART = "states.npy"
"""The file of dense states in a folder of vectors."""

_ROWS_AT_ONCE = 1 << 16


class Searched(Protocol):
    """Something that queries can be timed on."""

    @property
    def bytes(self) -> int:
        """What it takes on disk."""

    def rank(
        self, low: int, high: int, configurations: Sequence[Configuration], depth: int, threads: int
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Positions (configurations, high - low, depth) and counts of queries low..high-1."""


class Sparse:
    """Sparse vectors at a budget.

    Args:
        documents: the shards of the collection, in order.
        queries: their vectors.
        budgets: of queries and of documents; None keeps all.
        exponent: of the weights, which are raised to it before anything (latent terms).
    """

    one_scorer = False

    def __init__(
        self,
        documents: Sequence[SparseVectors],
        queries: SparseVectors,
        budgets: tuple[int | None, int | None] = (None, None),
        exponent: float = 1.0,
    ) -> None:
        if len({one.vocabulary_size for one in (*documents, queries)}) != 1:
            raise InputError(
                "documents and queries have other vocabularies; encode both with one model"
            )
        self._documents = documents
        self._queries = weigh(queries, exponent).cap(budgets[0])
        self._budget, self._exponent = budgets[1], exponent

    def blocks(self) -> Iterator[SparseVectors]:
        """The capped documents, some rows at a time."""
        for shard in self._documents:
            for low in range(0, len(shard), _ROWS_AT_ONCE):
                block = shard.slice(low, min(low + _ROWS_AT_ONCE, len(shard)))
                yield weigh(block, self._exponent).cap(self._budget)

    def profiles(self) -> tuple[Profile, Profile]:
        """Of documents and of queries."""
        vocabulary = self._queries.vocabulary_size
        documents = Profile.empty(vocabulary)
        for block in self.blocks():
            documents += profile_of(block)
        return documents, profile_of(self._queries)

    def costs(self, documents: Profile, queries: Profile) -> Economics:
        """What follows from the profiles."""
        return economics_of(documents, queries)

    def index(self, folder: Path, parameters: Parameters) -> SparseIndex:
        """The index of the documents in a folder, written in one pass and memory-mapped."""
        rows = sum(map(len, self._documents))
        stored = sum(block.nonzeros for block in self.blocks())
        size = block_size(rows, stored, self._queries.vocabulary_size)
        write_index(folder, self.blocks(), size)
        return SparseIndex(open_index(folder), self._queries, parameters, _bytes_in(folder))


class SparseIndex:
    """Our index of sparse vectors, and the queries for it."""

    def __init__(
        self, index: Index, queries: SparseVectors, parameters: Parameters, size: int
    ) -> None:
        self._index, self._queries, self._parameters = index, queries, parameters
        self._statistics = collection_statistics(index)
        self.bytes = size

    def rank(
        self, low: int, high: int, configurations: Sequence[Configuration], depth: int, threads: int
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """As `Searched.rank`."""
        found = search(
            self._index,
            self._queries.slice(low, high),
            (self._parameters,),
            depth=depth,
            configurations=configurations,
            statistics=self._statistics,
            threads=threads,
        )
        return found.positions[0], found.counts[0]


class Dense:
    """Dense states, one row per text: every number of a vector is looked at for every query.

    Args:
        documents: shards, shape (rows, width) each.
        queries: shape (Q, width).
    """

    one_scorer = True

    def __init__(self, documents: Sequence[NDArray[Any]], queries: NDArray[Any]) -> None:
        self._documents, self._queries = documents, queries

    def profiles(self) -> tuple[Profile, Profile]:
        """Of documents and of queries; weights are magnitudes."""
        documents = Profile.empty(self._queries.shape[1])
        for shard in self._documents:
            for low in range(0, len(shard), _ROWS_AT_ONCE):
                documents += _dense_profile(shard[low : low + _ROWS_AT_ONCE])
        return documents, _dense_profile(self._queries)

    def costs(self, documents: Profile, queries: Profile) -> Economics:
        """What follows from the profiles; four bytes per number, and no number of its document."""
        payload = dense_payload(documents.rows, len(documents.counts))
        return replace(economics_of(documents, queries), payload_bytes=payload)

    def index(self, folder: Path, parameters: Parameters) -> DenseIndex:
        """The states themselves; neither argument is used."""
        del folder, parameters
        return DenseIndex(self._documents, self._queries)


class DenseIndex:
    """Dense states and the queries for them, ranked by cosine under whatever configuration."""

    def __init__(self, documents: Sequence[NDArray[Any]], queries: NDArray[Any]) -> None:
        self._documents, self._queries = documents, queries
        self.bytes = sum(one.nbytes for one in documents)

    def rank(
        self, low: int, high: int, configurations: Sequence[Configuration], depth: int, threads: int
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """As `Searched.rank`; the threads are those that numpy is held to."""
        del threads
        from whencount.references.dense import dense

        # One query after the other is asked: a line of progress each would tell nobody anything.
        with redirect_stderr(io.StringIO()):
            run = dense(list(self._documents), self._queries[low:high], depth=depth)
        positions, _, counts = run.matrices(high - low, depth)
        return (
            np.broadcast_to(positions, (len(configurations), *positions.shape)),
            np.broadcast_to(counts, (len(configurations), *counts.shape)),
        )


def open_source(
    documents: Sequence[Path],
    queries: Path,
    part: str,
    budgets: tuple[int | None, int | None],
    exponent: float = 1.0,
) -> Sparse | Dense | Late:
    """Open the vectors of a representation, memory-mapped.

    Args:
        documents: folders of the shards of a corpus.
        queries: the folder of the queries.
        part: what in these folders: `sae_token.seed0` say, or `states.npy` for dense states; empty
            where they are the vectors themselves; of an index of late interaction, which is the one
            folder of documents, what is compared.
        budgets: of queries and documents, for sparse vectors.
        exponent: of the weights of sparse vectors.

    Raises:
        InputError: something is missing or damaged.
    """
    if is_late(part):
        return Late(documents[0], part)
    if part != DENSE_PART:
        shards = [SparseVectors.load(folder / part) for folder in documents]
        return Sparse(shards, SparseVectors.load(queries / part), budgets, exponent)
    try:
        states = [np.load(folder / part, mmap_mode="r") for folder in (*documents, queries)]
    except (OSError, ValueError) as error:
        raise InputError(f"dense states cannot be read ({error}); encode again") from error
    return Dense(states[:-1], states[-1])


def _dense_profile(states: NDArray[Any]) -> Profile:
    live = states != 0
    sizes = live.sum(axis=1, dtype=np.int64)
    return Profile(
        len(states),
        int(sizes.sum()),
        int((sizes * sizes).sum()),
        live.sum(axis=0, dtype=np.int64),
        np.abs(states).sum(axis=0, dtype=np.float64),
    )


def _bytes_in(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())
