"""TREC topics and qrels beside a corpus in JSON lines or tab-separated lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from whencount.collections.beir import first_of_duplicates
from whencount.collections.jsonl import (
    json_documents,
    json_place,
    json_queries,
    tsv_documents,
    tsv_queries,
)
from whencount.collections.model import Collection, Document, Options, Query
from whencount.collections.qrels import read_qrels
from whencount.collections.selection import keep_judged


def open_trec(name: str, options: Mapping[str, Any]) -> Collection:
    """Open topics, qrels and a corpus that are separate files.

    Options: `documents`, a file of JSON lines (`.jsonl`, `.json`) or of lines `id <tab> text` (any
    other name), .gz too; `topics`, in either form; `qrels`, TREC or BEIR form; and `separator`,
    `judged_queries_only`, `duplicates`, `language`, `licence` as for a BEIR folder.

    Raises:
        InputError: an option is wrong, or a file is missing or malformed.
    """
    taken = Options(name, options)
    corpus = Path(taken.require("documents", str))
    topics = Path(taken.require("topics", str))
    judgements = Path(taken.require("qrels", str))
    separator = taken.take("separator", str, " ")
    judged_only = taken.take("judged_queries_only", bool, True)
    first_duplicate = first_of_duplicates(taken)
    language, licence = taken.take("language", str, ""), taken.take("licence", str, "")
    taken.finish()
    qrels = read_qrels(judgements)
    queries = read_topics(topics)
    return Collection(
        name=name,
        documents=lambda: read_documents(corpus, separator),
        queries=keep_judged(queries, qrels, name) if judged_only else queries,
        qrels=qrels,
        description=f"topics {topics.name} on the corpus {corpus.name}",
        language=language,
        licence=licence,
        place=lambda number: json_place(corpus, number),
        first_duplicate=first_duplicate,
        files=lambda: (corpus, topics, judgements),
    )


def read_topics(path: str | Path) -> list[Query]:
    """Read topics: JSON lines, or lines `id <tab> text`; .gz too.

    Raises:
        InputError: the file is missing, empty or malformed, or two topics share an id.
    """
    return json_queries(path) if is_json(path) else tsv_queries(path)


def read_documents(path: str | Path, separator: str = " ") -> Iterator[Document]:
    """Read a corpus one document at a time: JSON lines, or lines `id <tab> text`; .gz too.

    Raises:
        InputError: the file is missing, empty or malformed.
    """
    return json_documents(path, separator) if is_json(path) else tsv_documents(path)


def is_json(path: str | Path) -> bool:
    """Whether the name says JSON lines: .jsonl, .json or .ndjson, before any .gz."""
    name = Path(path).name.removesuffix(".gz")
    return name.endswith((".jsonl", ".json", ".ndjson"))
