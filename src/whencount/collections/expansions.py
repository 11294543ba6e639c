"""Text that was predicted for documents, put behind their own: docT5query and its kin.

A model writes queries that a document might answer, and they are indexed with it (Nogueira and Lin,
2019, "From doc2query to docTTTTTquery"). Here they come from a file; any model may have made it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from whencount.collections.model import Document
from whencount.errors import InputError
from whencount.files import json_lines

_IDS = ("id", "_id", "docid", "doc_id")
_TEXTS = ("expansion", "predicted_queries", "queries", "text")


def read_expansions(path: str | Path) -> dict[str, str]:
    """Document id to the text that was predicted for it.

    Lines are `{"id": ..., "expansion": ...}`; the text may also be called predicted_queries,
    queries or text, and be a list of texts. A document may have several lines: they are joined.
    Memory holds all of them.

    Raises:
        InputError: the file is missing, empty or malformed; the line is named.
    """
    found: dict[str, list[str]] = {}
    for number, record in json_lines(path):
        identifier = next((record[key] for key in _IDS if key in record), None)
        text = next((record[key] for key in _TEXTS if key in record), None)
        parts: list[Any] = text if isinstance(text, list) else [text]
        known = isinstance(identifier, str | int) and not isinstance(identifier, bool)
        if not known or not all(isinstance(part, str) for part in parts):
            raise InputError(
                f'{path}, line {number}: no expansion; a line is {{"id": ..., "expansion": "..."}}'
                " or a list of texts in the place of one"
            )
        found.setdefault(str(identifier), []).extend(parts)
    if not found:
        raise InputError(f"{path} is empty; it must hold lines with an id and an expansion")
    return {name: " ".join(parts) for name, parts in found.items()}


def expanded(
    documents: Iterator[Document], expansions: dict[str, str], path: Any
) -> Iterator[Document]:
    """The documents in order, each with its expansion behind its text; one without stays as it is.

    Raises:
        InputError: after the last, where no document at all has an expansion.
    """
    used = 0
    for document in documents:
        more = expansions.get(document.id)
        used += more is not None
        yield document if more is None else Document(document.id, f"{document.text} {more}")
    if not used:
        raise InputError(
            f"{path}: no document of the collection has an expansion in it; check that the ids are"
            " the same"
        )
