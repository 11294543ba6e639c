"""`published`: the collections of the published study by name, each held to its published size."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from whencount.collections.beir import open_beir
from whencount.collections.catalogue import PUBLISHED, Entry, File
from whencount.collections.fetching import Remote, check, data_home, fetch
from whencount.collections.irds import open_ir_datasets
from whencount.collections.model import Collection, Options, Published, nearest
from whencount.errors import InputError

_PASSED_ON = ("separator", "judged_queries_only", "duplicates")


def open_published(name: str, options: Mapping[str, Any]) -> Collection:
    """Open one of the thirteen published collections, downloading what is missing.

    Options: `id`, its published name (default `name`); `path`, a BEIR folder to read instead of
    the download, with `split`; and `separator`, `judged_queries_only`, `duplicates` as there.
    Documents, queries and judgements must be as many as were published.

    Raises:
        InputError: there is no such collection, an option is wrong, or its files cannot be had or
            are damaged.
    """
    taken = Options(name, options)
    identifier = taken.take("id", str, name)
    if identifier not in PUBLISHED:
        raise InputError(
            f"collection {name!r}: no published collection is called {identifier!r};"
            f" {nearest(identifier, PUBLISHED)}"
        )
    entry = PUBLISHED[identifier]
    path, split = taken.take("path", str), taken.take("split", str)
    passed = {key: taken.take(key, object) for key in _PASSED_ON if key in options}
    taken.finish()
    if split is not None and path is None:
        raise InputError(
            f"collection {name!r}: option 'split' goes with 'path', a folder of one's own; the"
            " published split is fixed"
        )
    if path is not None:
        if entry.corpus.startswith("miracl-"):
            passed.setdefault("duplicates", "first")
        own = {"path": path, **passed} | ({} if split is None else {"split": split})
        collection = open_beir(name, own)
        remedy = f"give its published files in {path}, or use 'source: beir' for another version"
    elif entry.source == "ir_datasets":
        collection = open_ir_datasets(name, {"id": entry.identifier, **passed})
        places = ", ".join(str(data_home() / folder) for folder in folders(entry))
        remedy = f"a file in {places} is incomplete: remove that folder and run again"
    else:
        collection = open_beir(name, {"path": str(fetch_entry(entry)), **passed})
        remedy = f"a file in {collection_folder(entry)} is incomplete: remove it and run again"
    judged_only = passed.get("judged_queries_only", True)
    return replace(
        collection,
        description=f"{entry.description} ({entry.citation})",
        language=entry.language,
        licence=entry.licence,
        document_total=entry.documents,
        published=Published(
            documents=entry.documents,
            queries=entry.queries if judged_only else None,
            judgements=entry.judgements,
            remedy=remedy,
        ),
    )


def fetch_entry(entry: Entry) -> Path:
    """Fetch what is missing of a collection and check what is there; the folder it stands in.

    Raises:
        InputError: a file cannot be had or is damaged; the message says what to do by hand.
    """
    for file in entry.files:
        if is_made(file):
            continue
        remote = remote_of(file)
        place = in_place(file)
        if place is None:
            fetch(remote)
        else:
            check(remote, place)
    return collection_folder(entry)


def missing_files(entry: Entry) -> list[File]:
    """The files of a collection that are not on this machine; nothing but names is looked at."""
    return [file for file in entry.files if not is_made(file) and in_place(file) is None]


def remote_of(file: File) -> Remote:
    """A file of the catalogue with its place on this machine."""
    algorithm, digest = ("md5", file.md5) if file.md5 else ("sha256", file.sha256)
    return Remote(
        path=data_home() / file.path,
        urls=file.urls,
        bytes=file.bytes,
        algorithm=algorithm,
        digest=digest,
        headers=dict(file.headers),
        exact=file.exact,
    )


def in_place(file: File) -> Path | None:
    """Where a file stands: at its place, or by its md5 in the folder of files put there by hand."""
    places = [data_home() / file.path]
    if file.md5:
        places.append(data_home() / "downloads" / file.md5)
    return next((place for place in places if os.path.exists(place)), None)


def is_made(file: File) -> bool:
    """Whether all that is made of a file stands already, so that it is not needed."""
    return bool(file.instead) and all(os.path.exists(data_home() / path) for path in file.instead)


def folders(entry: Entry) -> list[str]:
    """The folders that hold the files of a collection, relative to the folder of downloads."""
    return list(dict.fromkeys(str(Path(file.path).parent) for file in entry.files))


def collection_folder(entry: Entry) -> Path:
    """The folder of the first file of a collection."""
    return (data_home() / entry.files[0].path).parent
