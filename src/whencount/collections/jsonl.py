"""Documents and queries in JSON lines or tab-separated lines, read one at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from whencount.collections.model import Document, Query
from whencount.errors import InputError
from whencount.files import lines_of

_ID_KEYS = ("_id", "id", "docid", "doc_id", "query_id")
_TEXT_KEYS = ("text", "contents", "body")


def json_documents(path: str | Path, separator: str = " ") -> Iterator[Document]:
    """Yield the documents of a JSON-lines file: `_id` (or `id`), `text`, and `title` if any.

    The text is the title, the separator and the text; an empty title leaves the text alone.

    Raises:
        InputError: the file is missing, damaged or empty, or a line lacks an id or a text.
    """
    for identifier, title, text in _records(Path(path)):
        yield Document(identifier, join_title(title, text, separator))


def json_queries(path: str | Path) -> list[Query]:
    """The queries of a JSON-lines file: `_id` (or `id`) and `text`.

    Raises:
        InputError: as `json_documents`, or two queries share an id.
    """
    queries: list[Query] = []
    for identifier, _, text in _records(Path(path)):
        queries.append(Query(identifier, text))
    refuse_twice(queries, Path(path))
    return queries


def tsv_documents(path: str | Path) -> Iterator[Document]:
    """Yield the documents of lines `id <tab> text`.

    Raises:
        InputError: the file is missing, damaged or empty, or a line has no tab.
    """
    found = False
    for number, line in lines_of(path):
        identifier, tab, text = decode(line, Path(path), number).partition("\t")
        if not tab or not identifier.strip():
            raise InputError(f"{path}, line {number}: no 'id <tab> text' here")
        found = True
        yield Document(identifier.strip(), text)
    if not found:
        raise InputError(f"{path} is empty; it must hold lines of 'id <tab> text'")


def tsv_queries(path: str | Path) -> list[Query]:
    """The queries of lines `id <tab> text`.

    Raises:
        InputError: as `tsv_documents`, or two queries share an id.
    """
    queries = [Query(document.id, document.text) for document in tsv_documents(path)]
    refuse_twice(queries, Path(path))
    return queries


def join_title(title: str, text: str, separator: str = " ") -> str:
    """Title, separator, text; the text alone where the title is empty, and the reverse."""
    return f"{title}{separator}{text}" if title and text else title or text


def json_place(path: str | Path, number: int) -> str:
    """Where document `number` (from 0) stands: the file and its line."""
    for position, (line, _) in enumerate(lines_of(path)):
        if position == number:
            return f"{path}, line {line}"
    return f"{path}, document {number + 1}"


def refuse_twice(queries: list[Query], path: Path) -> None:
    """Refuse queries that share an id.

    Raises:
        InputError: naming the id and the two places.
    """
    seen: dict[str, int] = {}
    for position, query in enumerate(queries):
        earlier = seen.setdefault(query.id, position)
        if earlier != position:
            raise InputError(
                f"{json_place(path, position)}: query id {query.id!r} stands already at"
                f" {json_place(path, earlier)}; ids must be unique"
            )


def decode(line: bytes, path: Path, number: int) -> str:
    """A line as text.

    Raises:
        InputError: it is not UTF-8.
    """
    try:
        return line.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}, line {number}: not UTF-8 text ({error.reason})") from None


def _records(path: Path) -> Iterator[tuple[str, str, str]]:
    found = False
    for number, line in lines_of(path):
        record = _parse(line, path, number)
        identifier = _first(record, _ID_KEYS, path, number)
        text = _first(record, _TEXT_KEYS, path, number)
        title = record.get("title") or ""
        if isinstance(identifier, int) and not isinstance(identifier, bool):
            identifier = str(identifier)
        for key, value in (("id", identifier), ("text", text), ("title", title)):
            if not isinstance(value, str):
                raise InputError(
                    f"{path}, line {number}: the {key} is {type(value).__name__}; it must be a"
                    " string"
                )
        if not identifier:
            raise InputError(f"{path}, line {number}: the id is empty; give it a unique id")
        found = True
        yield identifier, title, text
    if not found:
        raise InputError(f"{path} is empty; it must hold one JSON object a line")


def _parse(line: bytes, path: Path, number: int) -> dict[str, Any]:
    if number == 1:
        line = line.removeprefix(b"\xef\xbb\xbf")
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        record = _lone_surrogates(line)
        if record is None:
            raise InputError(
                f"{path}, line {number}: not valid JSON ({error}); each line must be one object"
            ) from None
    if not isinstance(record, dict):
        raise InputError(
            f"{path}, line {number}: found {type(record).__name__}; each line must be one JSON"
            " object"
        )
    return record


def _lone_surrogates(line: bytes) -> Any:
    # Web text cut inside an escaped pair leaves half of it: valid JSON, but not valid Unicode.
    if b"\\ud" not in line.lower():
        return None
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _first(record: dict[str, Any], keys: tuple[str, ...], path: Path, number: int) -> Any:
    for key in keys:
        if key in record:
            return record[key]
    raise InputError(
        f"{path}, line {number}: no {keys[0]!r} among the keys {', '.join(record) or '(none)'};"
        f" every object needs one of {', '.join(keys)}"
    )
