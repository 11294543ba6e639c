"""The beginnings of the texts that the explorer names: a file of their own beside the page.

They are text of others, which no archive of a study holds; the page does without where the file is
missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from whencount.collections.prepared import load_prepared
from whencount.progress import progress
from whencount.site.embedding import embedded

LONGEST_QUERY = 200
LONGEST_DOCUMENT = 140
VARIABLE = "whencountTexts"


def texts_script(wanted: Mapping[str, Mapping[str, Iterable[str]]], folders: Iterable[Path]) -> str:
    """A script that sets one variable to the beginnings of texts.

    Args:
        wanted: {collection: {"queries": ids, "documents": ids}}.
        folders: prepared collections; one whose folder's name is not wanted is not read.

    Raises:
        InputError: a folder is no prepared collection.
    """
    found: dict[str, Any] = {}
    for folder in progress(list(folders), None, "reading texts", "collection"):
        ids = wanted.get(folder.name)
        if not ids or not any(ids.values()):
            continue
        prepared = load_prepared(folder)
        queries, documents = set(ids["queries"]), set(ids["documents"])
        found[folder.name] = {
            "queries": {
                one.id: _beginning(one.text, LONGEST_QUERY)
                for one in prepared.queries
                if one.id in queries
            },
            "documents": {
                one.id: _beginning(one.text, LONGEST_DOCUMENT)
                for one in (prepared.documents() if documents else ())
                if one.id in documents
            },
        }
    return f"window.{VARIABLE} = {embedded(found)};\n"


def _beginning(text: str, longest: int) -> str:
    # A long document is not split whole.
    words = " ".join(text[: 4 * longest].split())
    return words if len(words) <= longest else f"{words[:longest].rstrip()} …"
