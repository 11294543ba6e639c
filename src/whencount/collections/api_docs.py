"""`api-docs`: find the rest of a function's docstring by its summary line.

The text is the docstrings of public functions and methods of installed scientific packages,
parsed from their source files; the packages are never imported.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from whencount.collections.model import Collection, Document, Options, Qrels, Query
from whencount.collections.packages import docstrings
from whencount.collections.selection import sample_documents
from whencount.errors import InputError

PACKAGES = ("numpy", "scipy", "pandas", "scikit-learn", "statsmodels")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z`])")
# Placeholders that a decorator fills at run time: the text is not yet what a reader sees.
_UNFILLED = re.compile(r"%\(\w+\)s|\{\w*\}|%s")


@dataclass
class _Entry:
    document: Document
    queries: list[str] = field(default_factory=list)


def open_api_docs(name: str, options: Mapping[str, Any]) -> Collection:
    """Open the collection.

    The query is the summary (the first paragraph of the docstring, its first sentence where it
    has several), the document all that follows, with every verbatim repetition of the summary
    removed, relevant is the function's own document. Functions with the same rest share one
    document, functions with the same summary share one query. Templates with unfilled
    placeholders are left out, as are summaries of fewer than `minimum_query_words` (default 3)
    and documents of fewer than `minimum_words` (default 20) words.

    Other options: `packages`, a list of distributions (default numpy, scipy, pandas,
    scikit-learn, statsmodels); `documents` (default 3,500), how many are drawn at most, by
    `seed` (default 0).

    Raises:
        InputError: a package is not installed, an option is wrong, or no docstring is left.
    """
    taken = Options(name, options)
    packages = taken.names("packages", PACKAGES)
    size = taken.positive("documents", 3500)
    seed = taken.take("seed", int, 0)
    minimum_words = taken.positive("minimum_words", 20)
    minimum_query_words = taken.positive("minimum_query_words", 3)
    taken.finish()
    entries = _entries(packages, minimum_words, minimum_query_words)
    documents = sample_documents((entry.document for entry in entries.values()), size, seed)
    if not documents:
        raise InputError(
            f"collection {name!r}: the packages {', '.join(packages)} have no public function with"
            " a summary and more text; name other packages"
        )
    by_id = {entry.document.id: entry for entry in entries.values()}
    queries: dict[str, Query] = {}
    rows: list[tuple[str, str, int]] = []
    for document in documents:
        for summary in by_id[document.id].queries:
            query = queries.setdefault(summary, Query(f"q{len(queries)}", summary))
            rows.append((query.id, document.id, 1))
    return Collection(
        name=name,
        documents=lambda: iter(documents),
        queries=list(queries.values()),
        qrels=Qrels.from_rows(rows),
        description=(
            f"Docstrings of {', '.join(packages)}; queries are summary lines, documents the rest"
        ),
        language="en",
        licence="BSD-3-Clause",
        document_total=len(documents),
    )


def summary_and_rest(docstring: str) -> tuple[str, str]:
    """Split a docstring; the rest no longer holds the summary, and may be empty."""
    head, _, tail = docstring.partition("\n\n")
    sentences = _SENTENCE_END.split(" ".join(head.split()), maxsplit=1)
    summary = sentences[0]
    words = [re.escape(word) for word in summary.split()]
    rest = "\n\n".join(part for part in (*sentences[1:], tail.strip("\n")) if part)
    if words:
        rest = re.sub(r"\s+".join(words), " ", rest, flags=re.IGNORECASE)
    return summary, rest.strip()


@cache
def _entries(
    packages: tuple[str, ...], minimum_words: int, minimum_query_words: int
) -> dict[str, _Entry]:
    entries: dict[str, _Entry] = {}
    for identifier, docstring in _functions(packages):
        summary, rest = summary_and_rest(docstring)
        if len(rest.split()) < minimum_words or len(summary.split()) < minimum_query_words:
            continue
        key = " ".join(rest.split())
        entry = entries.setdefault(key, _Entry(Document(identifier, rest)))
        if summary not in entry.queries:
            entry.queries.append(summary)
    return entries


def _functions(packages: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    seen: dict[str, int] = {}
    for package in packages:
        for found in docstrings(package):
            if found.kind != "function" or not found.public or _UNFILLED.search(found.text):
                continue
            # A property and its setter, or two branches of an if, share a name.
            seen[found.name] = seen.get(found.name, 0) + 1
            number = seen[found.name]
            yield found.name if number == 1 else f"{found.name}:{number}", found.text
