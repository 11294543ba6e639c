"""`whencount collections`: which collections there are, how large, and whether they are here."""

from __future__ import annotations

import importlib.metadata
import json
from typing import Any

import click

from whencount.collections.catalogue import BUILT_IN, PUBLISHED, BuiltIn, Entry
from whencount.collections.fetching import data_home, size_in_words
from whencount.collections.published import fetch_entry, in_place, missing_files, remote_of
from whencount.errors import InputError
from whencount.wording import joined

_COLUMNS = (
    "name",
    "source",
    "documents",
    "queries",
    "judgements",
    "download",
    "here",
    "language",
    "licence",
)
_RIGHT = ("documents", "queries", "judgements", "download")


@click.command(
    epilog="""\b
Examples:
  whencount collections
  whencount collections scifact trec-covid
  whencount collections --json
  whencount collections --fetch scifact --fetch miracl-te"""
)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--json", "as_json", is_flag=True, help="All that is known, as one JSON object.")
@click.option(
    "--fetch",
    "fetched",
    multiple=True,
    metavar="NAME",
    help="Download a published collection now; goes on where an earlier try broke off.",
)
def collections(names: tuple[str, ...], as_json: bool, fetched: tuple[str, ...]) -> None:
    """List the published and the built-in collections, and whether they are here.

    With NAME only those, with their files and places. Nothing is downloaded without --fetch, and
    nothing but names of files is looked at. In a config a published one is
    `NAME: {source: published}`, a built-in one `NAME: {source: NAME}`.
    """
    _refuse_unknown(names, {*PUBLISHED, *(one.name for one in BUILT_IN)})
    _refuse_unknown(fetched, PUBLISHED)
    for name in fetched:
        fetch_entry(PUBLISHED[name])
    chosen = names or fetched
    published = [entry for name, entry in PUBLISHED.items() if not chosen or name in chosen]
    built_in = [one for one in BUILT_IN if not chosen or one.name in names]
    if as_json:
        about = {
            "looked_in": str(data_home()),
            "published": [_published_record(entry) for entry in published],
            "built_in": [_built_in_record(one) for one in built_in],
        }
        click.echo(json.dumps(about, indent=1, ensure_ascii=False))
        return
    rows = [_published_row(entry) for entry in published] + [_built_in_row(o) for o in built_in]
    for line in _table(rows):
        click.echo(line)
    for names_of_one in _sharing(published):
        click.echo(f"\n{joined(names_of_one)} share their documents, which are downloaded once.")
    if chosen:
        for entry in published:
            _details(entry)
    click.echo(f"\nLooked in {data_home()} (the variable IR_DATASETS_HOME moves it).")


def _sharing(entries: list[Entry]) -> list[list[str]]:
    """The names of listed collections that have one corpus, where it is more than one."""
    by_corpus: dict[str, list[str]] = {}
    for entry in entries:
        by_corpus.setdefault(entry.corpus, []).append(entry.name)
    return [names for names in by_corpus.values() if len(names) > 1]


def _refuse_unknown(names: tuple[str, ...], known: Any) -> None:
    from whencount.collections.model import nearest

    for name in names:
        if name not in known:
            raise InputError(f"no collection is called {name!r}; {nearest(name, known)}")


def _published_row(entry: Entry) -> dict[str, str]:
    missing = missing_files(entry)
    here = "no" if len(missing) == len(entry.files) else "partly" if missing else "yes"
    about = "" if all(file.exact for file in entry.files) else "about "
    return _row(entry, f"{about}{size_in_words(entry.download_bytes)}", here)


def _built_in_row(one: BuiltIn) -> dict[str, str]:
    missing = _not_installed(one)
    return _row(one, "built in", f"needs {', '.join(missing)}" if missing else "yes")


def _row(one: Entry | BuiltIn, download: str, here: str) -> dict[str, str]:
    return {
        "name": one.name,
        "source": "published" if isinstance(one, Entry) else one.name,
        "documents": f"{one.documents:,}",
        "queries": f"{one.queries:,}",
        "judgements": f"{one.judgements:,}",
        "download": download,
        "here": here,
        "language": one.language,
        "licence": one.licence,
    }


def _table(rows: list[dict[str, str]]) -> list[str]:
    header = {column: column for column in _COLUMNS}
    widths = {column: max(len(row[column]) for row in [header, *rows]) for column in _COLUMNS}
    return [
        "  ".join(
            row[column].rjust(widths[column])
            if column in _RIGHT
            else row[column].ljust(widths[column])
            for column in _COLUMNS
        ).rstrip()
        for row in [header, *rows]
    ]


def _details(entry: Entry) -> None:
    missing = missing_files(entry)
    click.echo(f"\n{entry.name}: {entry.description}. {entry.citation}.")
    for file in entry.files:
        remote = remote_of(file)
        size = f"{'' if file.exact else 'about '}{size_in_words(file.bytes)}"
        if file in missing:
            click.echo(f"  not here, {size}: {remote.urls[0]}\n    belongs at {remote.path}")
        else:
            click.echo(f"  here, {size}: {in_place(file) or 'as ' + ', '.join(file.instead)}")


def _published_record(entry: Entry) -> dict[str, Any]:
    missing = missing_files(entry)
    return {
        **_record(entry),
        "corpus": entry.corpus,
        "ir_datasets": entry.identifier or None,
        "citation": entry.citation,
        "download_bytes": entry.download_bytes,
        "here": not missing,
        "files": [
            {
                "path": str(remote_of(file).path),
                "url": file.urls[0],
                "bytes": file.bytes,
                "exact": file.exact,
                "md5": file.md5 or None,
                "sha256": file.sha256 or None,
                "here": file not in missing,
            }
            for file in entry.files
        ],
    }


def _built_in_record(one: BuiltIn) -> dict[str, Any]:
    missing = _not_installed(one)
    return {**_record(one), "packages": list(one.packages), "here": not missing}


def _record(one: Entry | BuiltIn) -> dict[str, Any]:
    return {
        "name": one.name,
        "description": one.description,
        "documents": one.documents,
        "queries": one.queries,
        "judgements": one.judgements,
        "language": one.language,
        "licence": one.licence,
    }


def _not_installed(one: BuiltIn) -> list[str]:
    missing = []
    for package in one.packages:
        try:
            importlib.metadata.distribution(package)
        except importlib.metadata.PackageNotFoundError:
            missing.append(package)
    return missing
