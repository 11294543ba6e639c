"""Documents and queries of any format into one vocabulary, on disk in the house's format."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from whencount.errors import InputError
from whencount.files import atomic_directory
from whencount.progress import progress
from whencount.reading.folders import NAMES
from whencount.reading.rows import ROWS_AT_ONCE, WEIGHTS_AT_ONCE, in_falling_order
from whencount.reading.source import VectorSource, open_vectors
from whencount.vector_files import VectorFiles
from whencount.vectors import SparseVectors, VectorsWriter


@dataclass(frozen=True)
class Collection:
    """Documents, and queries where there are any, with the features they share.

    Attributes:
        documents: memory-mapped.
        queries: memory-mapped; None where none were named.
        features: names in the house's order, object array of str, shape (vocabulary_size,).
    """

    documents: SparseVectors
    queries: SparseVectors | None
    features: NDArray[np.object_]


def gather(
    folder: str | Path,
    documents: VectorSource,
    queries: VectorSource | None = None,
    *,
    document_budget: int | None = None,
    query_budget: int | None = None,
) -> VectorFiles:
    """Stream vectors to a folder and open them from there, memory-mapped.

    The folder has `documents/`, `queries/` and `features.parquet`, and appears whole. Features are
    in the house's order (`Vocabulary.ordered`), so that a budget keeps the same weights whatever
    order the files have. Memory holds a block, the vocabulary and the ids; the disk holds 8 bytes
    per weight, twice for a while where features must be put in order.

    Args:
        folder: where to; must not be in use by anything else.
        queries: opened with the vocabulary of `documents`; no queries where left out.
        document_budget, query_budget: keep the largest weights of each (`SparseVectors.cap`).

    Returns:
        The vectors; `queries` has no rows where there are none.

    Raises:
        InputError: as iterating a source, or the two have vocabularies of their own.
    """
    if queries is not None and queries.vocabulary is not documents.vocabulary:
        raise InputError("queries must be opened with the vocabulary of their documents")
    vocabulary = documents.vocabulary
    folder = Path(folder)
    with atomic_directory(folder) as place:
        sources = {"documents": documents, "queries": queries}
        for name, source in sources.items():
            with VectorsWriter(place / f"{name}.read", 1) as writer:
                for block in source if source is not None else ():
                    writer.append(block)
                writer.declare(max(1, len(vocabulary)))
        features, order = vocabulary.ordered()
        budgets = (document_budget, query_budget)
        for name, budget in zip(sources, budgets, strict=True):
            size = max(1, len(vocabulary))
            _put_in_order(place / f"{name}.read", place / name, size, order, budget)
        names = pa.table({"feature": pa.array(features, type=pa.string())})
        pq.write_table(names, place / NAMES)
    return VectorFiles(
        SparseVectors.load(folder / "documents"), SparseVectors.load(folder / "queries"), features
    )


def read_collection(
    documents: str | Path,
    queries: str | Path | None = None,
    *,
    folder: str | Path,
    document_budget: int | None = None,
    query_budget: int | None = None,
) -> Collection:
    """Read documents, and queries where there are any, of any known format (docs/formats.md).

    Args:
        documents, queries: files or folders, each of its own format.
        folder: where the vectors are kept while they are used, as by `gather`; new or replaced.
        document_budget, query_budget: keep the largest weights of each; None keeps all.

    Raises:
        InputError: as `open_vectors` and `gather`.
    """
    source = open_vectors(documents)
    asked = None if queries is None else open_vectors(queries, source.vocabulary)
    files = gather(
        folder, source, asked, document_budget=document_budget, query_budget=query_budget
    )
    return Collection(files.documents, None if asked is None else files.queries, files.features)


def _put_in_order(
    source: Path,
    target: Path,
    vocabulary_size: int,
    order: NDArray[np.int32],
    budget: int | None,
) -> None:
    """Write vectors anew under the features' places in the house's order; `source` goes away."""
    vectors = SparseVectors.load(source)
    in_order_already = np.array_equal(order, np.arange(len(order))) or len(vectors) == 0
    whole = budget is None or not len(vectors) or int(vectors.row_sizes().max()) <= budget
    if in_order_already and whole and vectors.vocabulary_size == vocabulary_size:
        source.rename(target)
        return
    with VectorsWriter(target, vocabulary_size) as writer:
        edges = blocks_of(vectors)
        sizes = [high - low for low, high in edges]
        for low, high in progress(edges, len(vectors), f"ordering {target.name}", "vector", sizes):
            part = vectors.slice(low, high)
            features = order[np.asarray(part.features)]
            arranged = in_falling_order(part.row_sizes(), features, np.asarray(part.values))
            ordered = SparseVectors(part.ids, part.indptr, *arranged, vocabulary_size)
            writer.append(ordered.cap(budget))
    shutil.rmtree(source)


def blocks_of(vectors: SparseVectors) -> list[tuple[int, int]]:
    """Ranges of rows that have a bounded number of rows and of weights."""
    edges, low = [], 0
    while low < len(vectors):
        most = int(vectors.indptr[low]) + WEIGHTS_AT_ONCE
        high = int(np.searchsorted(vectors.indptr, most, side="right")) - 1
        high = min(max(high, low + 1), low + ROWS_AT_ONCE, len(vectors))
        edges.append((low, high))
        low = high
    return edges


def shards_of(vectors: SparseVectors) -> Iterable[SparseVectors]:
    """The vectors in blocks that are small, one after the other."""
    for low, high in blocks_of(vectors):
        yield vectors.slice(low, high)
