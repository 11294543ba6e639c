"""Collections of ir_datasets, by their id there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from whencount.collections.beir import first_of_duplicates
from whencount.collections.data_files import files_read, load_dataset, read
from whencount.collections.jsonl import join_title
from whencount.collections.model import Collection, Document, Options, Qrels, Query
from whencount.collections.selection import keep_judged
from whencount.errors import InputError


def open_ir_datasets(name: str, options: Mapping[str, Any]) -> Collection:
    """Open a data set of ir_datasets (MacAvaney et al., 2021), downloading what is missing.

    Options: `id`, such as `beir/scifact/test` or `miracl/hi/dev`; and `separator`,
    `judged_queries_only`, `duplicates` as for a BEIR folder. MIRACL's own corpora repeat some
    ids, so there `duplicates` is `first` unless given. Files of the documents are fetched when the
    documents are read: a collection that borrows its corpus never needs them.

    Raises:
        InputError: ir_datasets is not installed, does not know the id or cannot have its files.
    """
    taken = Options(name, options)
    identifier = taken.require("id", str)
    separator = taken.take("separator", str, " ")
    judged_only = taken.take("judged_queries_only", bool, True)
    miracl = identifier.startswith("miracl/") and "duplicates" not in options
    first_duplicate = first_of_duplicates(taken) or miracl
    taken.finish()
    dataset = load_dataset(identifier)
    for part in ("docs", "queries", "qrels"):
        if not getattr(dataset, f"has_{part}")():
            raise InputError(
                f"collection {name!r}: the data set {identifier!r} has no {part}; choose a subset"
                " that has, such as one that ends in /test or /dev"
            )
    qrels = Qrels.from_rows(_unique(read(identifier, dataset, "judgements"), identifier))
    queries = [Query(query.query_id, query.text) for query in read(identifier, dataset, "queries")]
    parts = ["judgements", "queries"]

    def documents() -> Iterator[Document]:
        if "documents" not in parts:
            parts.append("documents")
        return dataset_documents(identifier, separator)

    return Collection(
        name=name,
        documents=documents,
        queries=keep_judged(queries, qrels, name) if judged_only else queries,
        qrels=qrels,
        description=f"{identifier} of ir_datasets",
        language=(dataset.docs_lang() or "") if hasattr(dataset, "docs_lang") else "",
        place=lambda number: f"{identifier}, document {number + 1}",
        first_duplicate=first_duplicate,
        document_total=document_total(dataset),
        files=lambda: [path for part in parts for path in files_read(dataset, part)],
    )


def dataset_documents(identifier: str, separator: str = " ") -> Iterator[Document]:
    """Yield the documents of a data set: title and text joined, or its own default text.

    Raises:
        InputError: its files cannot be had, or are damaged.
    """
    for document in read(identifier, load_dataset(identifier), "documents"):
        yield Document(document.doc_id, _text(document, separator))


def document_total(dataset: Any) -> int | None:
    """How many documents the metadata of ir_datasets declares, None where it does not."""
    count = (dataset.docs_metadata() or {}).get("count")
    return count if isinstance(count, int) else None


def _text(document: Any, separator: str) -> str:
    if hasattr(document, "text"):
        return join_title(getattr(document, "title", "") or "", document.text or "", separator)
    return str(document.default_text())


def _unique(judgements: Iterator[Any], identifier: str) -> Iterator[tuple[str, str, int]]:
    seen: dict[tuple[str, str], int] = {}
    for row in judgements:
        pair = (row.query_id, row.doc_id)
        relevance = int(row.relevance)
        earlier = seen.setdefault(pair, relevance)
        if earlier != relevance:
            raise InputError(
                f"data set {identifier!r}: query {pair[0]!r} and document {pair[1]!r} are judged"
                f" both {earlier} and {relevance}; report it to its owners"
            )
    for pair, relevance in seen.items():
        yield (*pair, relevance)
