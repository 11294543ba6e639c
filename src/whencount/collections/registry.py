"""Collections by the name of their source; a new one is a line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from whencount.collections.api_docs import open_api_docs
from whencount.collections.beir import open_beir
from whencount.collections.catalogue import PUBLISHED
from whencount.collections.irds import open_ir_datasets
from whencount.collections.limit import open_limit
from whencount.collections.model import Collection, nearest
from whencount.collections.published import open_published
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
    "published": open_published,
}


def source_for(name: str, options: Mapping[str, Any]) -> str:
    """Where a collection of the config comes from: one of `SOURCES`.

    That is its `source`; where it is left out, the source that `name` names, else `published`
    where it names a published collection. `limit` alone is the one that is generated.

    Raises:
        InputError: there is no such source; it suggests the nearest.
    """
    source = str(options.get("source", name))
    if source in SOURCES:
        return source
    if source not in PUBLISHED:
        known = nearest(source, {*SOURCES, *PUBLISHED})
        raise InputError(f"collection {name!r}: unknown source {source!r}; {known}")
    if "source" in options:
        raise InputError(
            f"collection {name!r}: {source!r} is a published collection and no source; write"
            f" {{source: published, id: {source}}}"
        )
    return "published"


def open_collection(name: str, options: Mapping[str, Any]) -> Collection:
    """Open a collection as the config describes it, by the source that `source_for` finds.

    The options other than `source` are those of the source; relative paths start at the working
    directory.

    Raises:
        InputError: an unknown source or option, or the source's files are missing or malformed.
    """
    return SOURCES[source_for(name, options)](name, options)
