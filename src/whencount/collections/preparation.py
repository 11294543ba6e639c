"""Checking a collection while it is written to disk as Parquet (`prepared` tells the layout)."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from itertools import chain, islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import regex
from numpy.typing import NDArray

from whencount.collections.fit_text import FitPassages, without_overlap
from whencount.collections.model import Collection, Document, Qrels, Query
from whencount.collections.prepared import FORMAT, Counts, PreparedCollection, load_prepared
from whencount.errors import InputError
from whencount.files import atomic_directory
from whencount.progress import progress

_ROWS = 8192
_TEXT_SCHEMA = pa.schema([("id", pa.string()), ("text", pa.string())])
_UNPRINTABLE = regex.compile(r"[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]")
_LOG = logging.getLogger(__name__)


def prepare(
    collection: Collection, path: str | Path, corpus: str | Path | None = None
) -> PreparedCollection:
    """Check a collection and write it as a folder; whole or not at all.

    Documents are streamed; memory holds the queries, the qrels and eight bytes per document.
    NUL characters in texts become spaces, halves of surrogate pairs U+FFFD. Judgements of unknown
    documents or queries are kept, counted and warned of once.

    Args:
        collection: what to write.
        path: the folder to write.
        corpus: a prepared collection with the same documents; its table is linked (or copied,
            where the file system cannot link) instead of reading the documents again.

    Raises:
        InputError: two documents or two queries share an id, an id is empty or holds a control
            character, there is no document, the qrels find nothing relevant to any query, or a
            published collection is not complete.
    """
    queries = [
        Query(_id(query.id, collection.name, "a query"), clean(query.text))
        for query in collection.queries
    ]
    query_position = _query_positions(queries, collection.name)
    qrels = collection.qrels
    judged_queries, judged = qrels.judged_queries(), set(qrels.document_ids)
    if not query_position.keys() & judged_queries:
        raise InputError(
            f"collection {collection.name!r}: the qrels judge none of its {len(queries)} queries;"
            " check that queries and qrels belong together"
        )
    if not query_position.keys() & set(qrels.query_ids[qrels.relevance > 0]):
        raise InputError(
            f"collection {collection.name!r}: no query has a positive judgement, so no quality can"
            " be measured; give qrels with relevance above 0"
        )
    with atomic_directory(path) as folder:
        if corpus is None:
            written = _write_documents(folder, collection, judged)
        else:
            written = _borrow_documents(folder, collection, judged, load_prepared(corpus))
        _write_queries(folder, queries)
        query_positions = _positions(qrels.query_ids, query_position)
        _write_qrels(folder, qrels, query_positions, _positions(qrels.document_ids, written.judged))
        positive = (qrels.relevance > 0) & (query_positions >= 0)
        counts = Counts(
            documents=written.rows,
            empty_documents=written.empty,
            duplicate_documents=written.duplicates,
            queries=len(queries),
            judgements=len(qrels),
            queries_with_positive=len(np.unique(query_positions[positive])),
            unknown_documents=len(judged - written.judged.keys()),
            unknown_queries=len(judged_queries - query_position.keys()),
        )
        _refuse_incomplete(collection, counts)
        warnings = _warnings(collection.name, counts)
        _write_description(folder, collection, counts, warnings)
    for warning in warnings:
        _LOG.warning("%s", warning)
    return load_prepared(path)


def prepare_passages(
    passages: FitPassages, path: str | Path, exclude: Iterable[str] = ()
) -> PreparedCollection:
    """Write fit passages in the same layout, with empty queries and qrels.

    Passages that share a run of eight words with one of the texts `exclude` are left out.

    Raises:
        InputError: two passages share an id, or there is none.
    """
    documents: Iterable[Document] = passages.documents()
    excluded = iter(exclude)
    first = next(excluded, None)
    if first is not None:
        documents = without_overlap(documents, chain((first,), excluded))
    source = Collection(
        name=passages.name,
        documents=lambda: iter(documents),
        queries=[],
        qrels=Qrels.from_rows([]),
        description=passages.description,
        document_total=passages.document_total if first is None else None,
    )
    with atomic_directory(path) as folder:
        written = _write_documents(folder, source, set())
        _write_queries(folder, [])
        nothing = np.empty(0, dtype=np.int32)
        _write_qrels(folder, source.qrels, nothing, nothing)
        counts = Counts(written.rows, written.empty, 0, 0, 0, 0, 0, 0)
        _write_description(folder, source, counts, [])
    return load_prepared(path)


def clean(text: str) -> str:
    """A text that every later stage can hold: no NUL, no half of a surrogate pair."""
    if "\0" in text:
        text = text.replace("\0", " ")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        # Whole pairs become their character, halves the replacement character.
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


@dataclass
class _Written:
    rows: int = 0
    empty: int = 0
    duplicates: int = 0
    judged: dict[str, int] = field(default_factory=dict)
    hashes: list[NDArray[np.uint64]] = field(default_factory=list)


def _write_documents(folder: Path, collection: Collection, judged: set[str]) -> _Written:
    path = folder / "documents.parquet"
    written = _Written()
    stream = iter(
        progress(
            _cleaned(collection, written),
            collection.document_total,
            f"collection {collection.name}",
            "document",
        )
    )
    with pq.ParquetWriter(path, _TEXT_SCHEMA, compression="zstd") as writer:
        while batch := list(islice(stream, _ROWS)):
            ids = [document.id for document in batch]
            for position, identifier in enumerate(ids, written.rows):
                if identifier in judged:
                    written.judged.setdefault(identifier, position)
            written.hashes.append(np.fromiter(map(_hash, ids), np.uint64, len(ids)))
            written.rows += len(batch)
            texts = [document.text for document in batch]
            columns = [pa.array(ids, pa.string()), pa.array(texts, pa.string())]
            writer.write_table(pa.Table.from_arrays(columns, schema=_TEXT_SCHEMA))
    if not written.rows:
        raise InputError(f"collection {collection.name!r} has no document")
    _refuse_duplicates(path, written, collection)
    return written


def _borrow_documents(
    folder: Path, collection: Collection, judged: set[str], corpus: PreparedCollection
) -> _Written:
    declared = collection.document_total
    if declared is not None and declared != len(corpus) + corpus.counts.duplicate_documents:
        raise InputError(
            f"collection {collection.name!r} has {declared:,} documents, but the corpus it should"
            f" share, {corpus.name!r}, has {len(corpus):,}; take the option 'corpus' away"
        )
    source, target = corpus.path / "documents.parquet", folder / "documents.parquet"
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
    counts = corpus.counts
    written = _Written(counts.documents, counts.empty_documents, counts.duplicate_documents)
    for position, identifier in enumerate(corpus.document_ids):
        if identifier in judged:
            written.judged[identifier] = position
    return written


def _cleaned(collection: Collection, written: _Written) -> Iterator[Document]:
    seen: set[bytes] = set()
    for number, document in enumerate(collection.documents()):
        identifier = _id(document.id, collection.name, collection.place, number)
        if collection.first_duplicate:
            digest = hashlib.blake2b(identifier.encode(), digest_size=16).digest()
            if digest in seen:
                written.duplicates += 1
                continue
            seen.add(digest)
        text = clean(document.text)
        if not text or text.isspace():
            written.empty += 1
        yield Document(identifier, text)


def _refuse_duplicates(path: Path, written: _Written, collection: Collection) -> None:
    # Equal hashes only point at candidates; their ids, read back, decide.
    hashes = np.concatenate(written.hashes)
    order = np.argsort(hashes, kind="stable")
    twice = hashes[order][1:] == hashes[order][:-1]
    suspects = np.union1d(order[1:][twice], order[:-1][twice])
    if not len(suspects):
        return
    ids = pq.read_table(path, columns=["id"]).column("id").take(pa.array(suspects)).to_pylist()
    first: dict[str, int] = {}
    for position, identifier in zip(suspects.tolist(), ids, strict=True):
        earlier = first.setdefault(identifier, position)
        if earlier != position:
            raise InputError(
                f"{collection.place(position)}: document id {identifier!r} stands already at"
                f" {collection.place(earlier)}; make the ids unique, or set the option"
                " 'duplicates: first' to keep the first"
            )


def _id(identifier: str, name: str, place: str | Callable[[int], str], number: int = 0) -> str:
    if identifier and not _UNPRINTABLE.search(identifier):
        return identifier
    where = place if isinstance(place, str) else place(number)
    found = "an empty id" if not identifier else f"the id {identifier!r}"
    raise InputError(
        f"collection {name!r}, {where}: {found}; an id must be text without control characters or"
        " line ends"
    )


def _hash(identifier: str) -> int:
    return int.from_bytes(hashlib.blake2b(identifier.encode(), digest_size=8).digest(), "little")


def _query_positions(queries: list[Query], name: str) -> dict[str, int]:
    positions: dict[str, int] = {}
    for position, query in enumerate(queries):
        if positions.setdefault(query.id, position) != position:
            raise InputError(
                f"collection {name!r}: query id {query.id!r} stands at queries"
                f" {positions[query.id] + 1} and {position + 1}; ids must be unique"
            )
    return positions


def _positions(ids: NDArray[np.object_], known: dict[str, int]) -> NDArray[np.int32]:
    return np.fromiter((known.get(item, -1) for item in ids), np.int32, len(ids))


def _write_queries(folder: Path, queries: list[Query]) -> None:
    columns = [
        pa.array([query.id for query in queries], pa.string()),
        pa.array([query.text for query in queries], pa.string()),
    ]
    table = pa.Table.from_arrays(columns, schema=_TEXT_SCHEMA)
    pq.write_table(table, folder / "queries.parquet", compression="zstd")


def _write_qrels(
    folder: Path,
    qrels: Qrels,
    query_positions: NDArray[np.int32],
    document_positions: NDArray[np.int32],
) -> None:
    table = {
        "query_id": pa.array(qrels.query_ids, pa.string()),
        "document_id": pa.array(qrels.document_ids, pa.string()),
        "relevance": pa.array(qrels.relevance, pa.int32()),
        "query_position": pa.array(query_positions, pa.int32()),
        "document_position": pa.array(document_positions, pa.int32()),
    }
    pq.write_table(pa.table(table), folder / "qrels.parquet", compression="zstd")


def _warnings(name: str, counts: Counts) -> list[str]:
    told = [
        (counts.unknown_documents, "judged document ids are not in the corpus; they are kept"),
        (counts.unknown_queries, "judged query ids are not among the queries; they are kept"),
        (counts.duplicate_documents, "documents repeat an earlier id; the first is kept"),
        (counts.empty_documents, "documents have no text; they are kept, with empty vectors"),
        (
            counts.queries - counts.queries_with_positive,
            "queries have no relevant judgement; they have no nDCG and do not enter the mean",
        ),
    ]
    return [f"collection {name}: {number:,} {what}" for number, what in told if number]


def _refuse_incomplete(collection: Collection, counts: Counts) -> None:
    published = collection.published
    if published is None:
        return
    pairs = {
        "documents": (counts.documents + counts.duplicate_documents, published.documents),
        "queries": (counts.queries, published.queries),
        "judgements": (counts.judgements, published.judgements),
    }
    for what, (found, wanted) in pairs.items():
        # Of documents that repeat an id only one may have been counted when it was published.
        enough = (found, counts.documents) if what == "documents" else (found,)
        if wanted is not None and wanted not in enough:
            raise InputError(
                f"collection {collection.name!r} has {found:,} {what}, but as published it has"
                f" {wanted:,}; {published.remedy}"
            )


def _write_description(
    folder: Path, collection: Collection, counts: Counts, warnings: list[str]
) -> None:
    digests = {}
    for entry in sorted(folder.glob("*.parquet")):
        with entry.open("rb") as stream:
            digests[entry.name] = hashlib.file_digest(stream, "sha256").hexdigest()
    about = {
        "format": FORMAT,
        "name": collection.name,
        "description": collection.description,
        "language": collection.language,
        "licence": collection.licence,
        "counts": asdict(counts),
        "warnings": warnings,
        "sha256": digests,
        "files": [_read_file(path) for path in dict.fromkeys(collection.files())],
    }
    text = json.dumps(about, indent=1, ensure_ascii=False) + "\n"
    (folder / "collection.json").write_text(text, encoding="utf-8")


def _read_file(path: Path) -> dict[str, str | int]:
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
        return {"name": path.name, "bytes": stream.tell(), "sha256": digest}
