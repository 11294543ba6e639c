"""Collections by the name of their source; a new one is a line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from whencount.collections.api_docs import open_api_docs
from whencount.collections.beir import open_beir
from whencount.collections.irds import open_ir_datasets
from whencount.collections.limit import open_limit
from whencount.collections.model import Collection, nearest
from whencount.collections.trec import open_trec
from whencount.collections.wiki_sections import open_wiki_sections
from whencount.errors import InputError

SOURCES: dict[str, Callable[[str, Mapping[str, Any]], Collection]] = {
    "wiki-sections": open_wiki_sections,
    "api-docs": open_api_docs,
    "limit": open_limit,
    "beir": open_beir,
    "trec": open_trec,
    "ir_datasets": open_ir_datasets,
}


def open_collection(name: str, options: Mapping[str, Any]) -> Collection:
    """Open a collection as the config describes it.

    `options["source"]` names one of `SOURCES`; where it is left out, `name` itself does. The
    other options are those of the source; relative paths start at the working directory.

    Raises:
        InputError: an unknown source or option, or the source's files are missing or malformed.
    """
    source = options.get("source", name)
    if source not in SOURCES:
        raise InputError(
            f"collection {name!r}: unknown source {source!r}; {nearest(str(source), SOURCES)}"
        )
    return SOURCES[source](name, options)
