"""What a collection is: documents, queries, qrels; and how its options are read."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whencount.errors import InputError


@dataclass(frozen=True)
class Document:
    """A text with its id."""

    id: str
    text: str


@dataclass(frozen=True)
class Query:
    """A query with its id."""

    id: str
    text: str


@dataclass(frozen=True)
class Qrels:
    """Relevance judgements, one per (query, document) pair, in the order of the file.

    Attributes:
        query_ids: object array of str, shape (judgements,).
        document_ids: object array of str, shape (judgements,).
        relevance: int32, shape (judgements,); above 0 is relevant, anything else is judged and
            not relevant.
    """

    query_ids: NDArray[np.object_]
    document_ids: NDArray[np.object_]
    relevance: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.relevance)

    @classmethod
    def from_rows(cls, rows: Iterable[tuple[str, str, int]]) -> Qrels:
        """Qrels out of (query id, document id, relevance) triples."""
        triples = list(rows)
        return cls(
            object_array([row[0] for row in triples]),
            object_array([row[1] for row in triples]),
            np.array([row[2] for row in triples], dtype=np.int32),
        )

    def judged_queries(self) -> set[str]:
        """The ids of all queries with at least one judgement."""
        return set(self.query_ids)


@dataclass(frozen=True)
class Published:
    """How much a published collection holds, to tell an incomplete copy of it.

    Attributes:
        documents: all documents, those that repeat an id too.
        queries: the queries kept; None where the config asks for others.
        judgements: all rows of the qrels.
        remedy: what to do about a copy that holds something else.
    """

    documents: int
    queries: int | None
    judgements: int
    remedy: str


@dataclass(frozen=True)
class Collection:
    """Documents, queries and qrels under one name; the documents are read anew at every call.

    Attributes:
        name: how config and results call it.
        documents: returns a fresh iterator over the documents, in the collection's own order.
        queries: all queries, in the collection's own order.
        qrels: the judgements.
        description: one sentence for a person.
        language: ISO 639-1 code, empty where unknown.
        licence: SPDX identifier or a short phrase, empty where unknown.
        place: tells where document number n (from 0) stands, for error messages.
        first_duplicate: of several documents with the same id keep the first, instead of
            refusing the collection.
        document_total: how many documents there are, None where unknown before reading.
        files: tells which files were read, after they were; they are kept for the record.
        published: how much a published collection holds, None for any other.
    """

    name: str
    documents: Callable[[], Iterator[Document]]
    queries: list[Query]
    qrels: Qrels
    description: str = ""
    language: str = ""
    licence: str = ""
    place: Callable[[int], str] = field(default=lambda number: f"document {number + 1}")
    first_duplicate: bool = False
    document_total: int | None = None
    files: Callable[[], Sequence[Path]] = field(default=tuple)
    published: Published | None = None


def object_array(items: Iterable[str]) -> NDArray[np.object_]:
    """An object array of strings, shape (items,)."""
    listed = list(items)
    result = np.empty(len(listed), dtype=object)
    result[:] = listed
    return result


def nearest(word: str, known: Iterable[str]) -> str:
    """A phrase that suggests the known word nearest to `word`, and lists all of them."""
    names = sorted(known)
    close = difflib.get_close_matches(word, names, n=1, cutoff=0.5)
    suggestion = f"did you mean {close[0]!r}? " if close else ""
    return f"{suggestion}known are {', '.join(names)}"


class Options:
    """The options of one collection in the config, checked as they are taken.

    `take` removes an option; `finish` refuses what nobody took.
    """

    def __init__(self, name: str, options: Mapping[str, Any]) -> None:
        self.name = name
        self._left = {key: value for key, value in options.items() if key != "source"}
        self._known: set[str] = {"source"}

    def take(self, key: str, kind: type | tuple[type, ...], default: Any = None) -> Any:
        """The option `key`, or `default` where it is not given.

        Raises:
            InputError: the value is not of type `kind`.
        """
        self._known.add(key)
        if key not in self._left:
            return default
        value = self._left.pop(key)
        kinds = kind if isinstance(kind, tuple) else (kind,)
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            wanted = " or ".join(k.__name__ for k in kinds)
            raise InputError(
                f"collection {self.name!r}: option {key!r} is {value!r}; it must be {wanted}"
            )
        return value

    def require(self, key: str, kind: type | tuple[type, ...]) -> Any:
        """The option `key`.

        Raises:
            InputError: it is not given, or not of type `kind`.
        """
        if key not in self._left:
            raise InputError(f"collection {self.name!r}: option {key!r} is missing; add it")
        return self.take(key, kind)

    def positive(self, key: str, default: int) -> int:
        """The option `key`, a whole number of at least 1.

        Raises:
            InputError: it is something else.
        """
        value = self.take(key, int, default)
        if value < 1:
            raise InputError(
                f"collection {self.name!r}: option {key!r} is {value}; it must be at least 1"
            )
        return int(value)

    def names(self, key: str, default: Iterable[str]) -> tuple[str, ...]:
        """The option `key`, a list of strings that is not empty.

        Raises:
            InputError: it is something else.
        """
        value = self.take(key, (list, tuple), tuple(default))
        if not value or not all(isinstance(item, str) for item in value):
            raise InputError(
                f"collection {self.name!r}: option {key!r} is {value!r}; it must be a list of names"
            )
        return tuple(value)

    def finish(self) -> None:
        """Refuse options that are left over.

        Raises:
            InputError: an option that nothing reads.
        """
        for key in self._left:
            raise InputError(
                f"collection {self.name!r}: unknown option {key!r}; {nearest(key, self._known)}"
            )
