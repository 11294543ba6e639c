"""A collection on disk as Parquet: checked once, then read in batches by every later stage.

Layout of the folder:

* `documents.parquet`: `id` (string), `text` (string); one row per document, in collection order.
* `queries.parquet`: `id` (string), `text` (string).
* `qrels.parquet`: `query_id`, `document_id` (string), `relevance` (int32), `query_position`,
  `document_position` (int32: row in the tables above, -1 where unknown).
* `collection.json`: format, name, description, counts, warnings, sha256 of the three tables, and
  name, size and sha256 of the files they were read from.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from whencount.collections.model import Document, Qrels, Query, object_array
from whencount.errors import InputError

FORMAT = "whencount-collection-1"


@dataclass(frozen=True)
class Counts:
    """How much a prepared collection holds.

    Attributes:
        documents: all documents, empty ones too.
        empty_documents: documents without a visible character.
        duplicate_documents: documents left out because an earlier one had their id.
        queries: all queries.
        judgements: all rows of the qrels.
        queries_with_positive: queries with at least one relevance above 0; the others have no
            nDCG.
        unknown_documents: distinct document ids in the qrels that the collection lacks.
        unknown_queries: distinct query ids in the qrels that the collection lacks.
    """

    documents: int
    empty_documents: int
    duplicate_documents: int
    queries: int
    judgements: int
    queries_with_positive: int
    unknown_documents: int
    unknown_queries: int


@dataclass(frozen=True)
class PreparedCollection:
    """A collection that `prepare` wrote; documents stay on disk.

    Attributes:
        path: the folder.
        name, description, language, licence: as of the `Collection`.
        counts: how much there is.
        warnings: what a person should know, one sentence each.
        queries: in order.
        qrels: all judgements, those of unknown documents too.
        query_positions: int32, shape (judgements,), -1 where the query is unknown.
        document_positions: int32, shape (judgements,), -1 where the document is unknown.
    """

    path: Path
    name: str
    description: str
    language: str
    licence: str
    counts: Counts
    warnings: tuple[str, ...]
    queries: tuple[Query, ...]
    qrels: Qrels
    query_positions: NDArray[np.int32]
    document_positions: NDArray[np.int32]

    def __len__(self) -> int:
        return self.counts.documents

    def document_batches(self, size: int = 4096) -> Iterator[list[Document]]:
        """Yield the documents in order, `size` at a time (the last batch may be smaller)."""
        for ids, texts in _batches(self.path / "documents.parquet", size):
            yield [Document(*pair) for pair in zip(ids, texts, strict=True)]

    def documents(self) -> Iterator[Document]:
        """Yield the documents in order."""
        for batch in self.document_batches():
            yield from batch

    @cached_property
    def document_ids(self) -> NDArray[np.object_]:
        """All document ids in order, object array of str, shape (documents,)."""
        return _strings(pq.read_table(self.path / "documents.parquet", columns=["id"]), "id")

    @cached_property
    def query_ids(self) -> NDArray[np.object_]:
        """All query ids in order, object array of str, shape (queries,)."""
        return object_array(query.id for query in self.queries)


@dataclass(frozen=True)
class Texts:
    """The (id, text) pairs of a table of documents or queries, read as they are asked for.

    `len` counts them, iteration yields them in order, a slice of step 1 is again `Texts`.
    """

    path: Path
    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start

    def __iter__(self) -> Iterator[tuple[str, str]]:
        for ids, texts in _batches(self.path, 4096, self.start, self.stop):
            yield from zip(ids, texts, strict=True)

    def __getitem__(self, rows: slice) -> Texts:
        start, stop, step = rows.indices(len(self))
        if step != 1:
            raise ValueError(f"a slice of texts has step 1, not {step}")
        return Texts(self.path, self.start + start, self.start + max(start, stop))


def read_texts(path: str | Path) -> Texts:
    """Open a table of `id` and `text`, or the documents of a prepared folder.

    Raises:
        InputError: there is no such table, or it is damaged.
    """
    path = Path(path)
    table = path / "documents.parquet" if path.is_dir() else path
    try:
        metadata = pq.read_metadata(table)
        if not {"id", "text"} <= set(metadata.schema.to_arrow_schema().names):
            raise InputError(f"{table} has no columns 'id' and 'text'; it is no table of texts")
    except (OSError, pa.ArrowException) as error:
        raise InputError(
            f"{table} is not a readable Parquet table ({error}); prepare the collection again"
        ) from error
    return Texts(table, 0, metadata.num_rows)


def load_prepared(path: str | Path) -> PreparedCollection:
    """Open a folder that `prepare` or `prepare_passages` wrote.

    Raises:
        InputError: the folder is missing or not complete.
    """
    path = Path(path)
    try:
        about = json.loads((path / "collection.json").read_text(encoding="utf-8"))
        if about["format"] != FORMAT:
            raise InputError(
                f"{path}: format {about['format']!r}, but this version reads {FORMAT!r}; prepare"
                " the collection again"
            )
        queries = pq.read_table(path / "queries.parquet")
        qrels = pq.read_table(path / "qrels.parquet")
        rows = pq.read_metadata(path / "documents.parquet").num_rows
        counts = Counts(**about["counts"])
        if rows != counts.documents or len(qrels) != counts.judgements:
            raise InputError(
                f"{path}: the tables do not have the sizes that collection.json declares; prepare"
                " the collection again"
            )
        texts = zip(_strings(queries, "id"), _strings(queries, "text"), strict=True)
        return PreparedCollection(
            path=path,
            name=about["name"],
            description=about["description"],
            language=about["language"],
            licence=about["licence"],
            counts=counts,
            warnings=tuple(about["warnings"]),
            queries=tuple(Query(*pair) for pair in texts),
            qrels=Qrels(
                _strings(qrels, "query_id"),
                _strings(qrels, "document_id"),
                qrels.column("relevance").to_numpy(),
            ),
            query_positions=qrels.column("query_position").to_numpy(),
            document_positions=qrels.column("document_position").to_numpy(),
        )
    except (OSError, KeyError, TypeError, ValueError, pa.ArrowException) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"{path} is not a complete prepared collection ({error}); prepare it again"
        ) from error


def _strings(table: pa.Table, column: str) -> NDArray[np.object_]:
    return object_array(table.column(column).to_pylist())


def _batches(
    path: Path, size: int, start: int = 0, stop: int | None = None
) -> Iterator[tuple[list[str], list[str]]]:
    with pq.ParquetFile(path) as table:
        stop = table.metadata.num_rows if stop is None else stop
        # Row groups outside the range are not read at all.
        groups: list[int] = []
        first, offset = 0, 0
        for group in range(table.num_row_groups):
            rows = table.metadata.row_group(group).num_rows
            if offset < stop and offset + rows > start:
                if not groups:
                    first = offset
                groups.append(group)
            offset += rows
        if not groups or start >= stop:
            return
        position = first
        columns = ["id", "text"]
        for batch in table.iter_batches(batch_size=size, row_groups=groups, columns=columns):
            low, high = max(start - position, 0), min(stop - position, len(batch))
            position += len(batch)
            if low < high:
                part = batch.slice(low, high - low)
                yield part.column("id").to_pylist(), part.column("text").to_pylist()
