"""A BEIR folder: corpus.jsonl, queries.jsonl and qrels/<split>.tsv, any of them gzipped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from whencount.collections.jsonl import json_documents, json_place, json_queries
from whencount.collections.model import Collection, Options
from whencount.collections.qrels import read_qrels
from whencount.collections.selection import keep_judged
from whencount.errors import InputError


def open_beir(name: str, options: Mapping[str, Any]) -> Collection:
    """Open a folder in the layout of BEIR (Thakur et al., 2021, arXiv:2104.08663).

    Options: `path`, the folder; `split` (default `test`), the file under qrels; `separator`
    (default a space), what joins title and text; `judged_queries_only` (default true), keep only
    the queries that the split judges; `duplicates` (`refuse` or `first`), `language`, `licence`.

    Raises:
        InputError: an option is wrong, or a file is missing or malformed.
    """
    taken = Options(name, options)
    folder = Path(taken.require("path", str))
    split = taken.take("split", str, "test")
    separator = taken.take("separator", str, " ")
    judged_only = taken.take("judged_queries_only", bool, True)
    first_duplicate = first_of_duplicates(taken)
    language, licence = taken.take("language", str, ""), taken.take("licence", str, "")
    taken.finish()
    if not folder.is_dir():
        raise InputError(
            f"collection {name!r}: {folder} is not a folder; give the folder that holds"
            " corpus.jsonl, queries.jsonl and qrels"
        )
    corpus = plain_or_gzip(folder / "corpus.jsonl")
    qrels = read_qrels(qrels_file(folder, split))
    queries = json_queries(plain_or_gzip(folder / "queries.jsonl"))
    return Collection(
        name=name,
        documents=lambda: json_documents(corpus, separator),
        queries=keep_judged(queries, qrels, name) if judged_only else queries,
        qrels=qrels,
        description=f"BEIR folder {folder.name}, split {split}",
        language=language,
        licence=licence,
        place=lambda number: json_place(corpus, number),
        first_duplicate=first_duplicate,
    )


def first_of_duplicates(taken: Options) -> bool:
    """Read the option `duplicates`: true for `first`, false for `refuse`.

    Raises:
        InputError: any other value.
    """
    value = taken.take("duplicates", str, "refuse")
    if value not in ("refuse", "first"):
        raise InputError(
            f"collection {taken.name!r}: option 'duplicates' is {value!r}; it must be 'refuse' or"
            " 'first'"
        )
    return bool(value == "first")


def plain_or_gzip(path: Path) -> Path:
    """The path, or the same with .gz where only that exists."""
    zipped = path.with_name(path.name + ".gz")
    return zipped if zipped.is_file() and not path.is_file() else path


def qrels_file(folder: Path, split: str) -> Path:
    """The qrels of a split of a BEIR folder.

    Raises:
        InputError: there is no such file; the message names those there are.
    """
    path = plain_or_gzip(folder / "qrels" / f"{split}.tsv")
    if not path.is_file():
        present = sorted(_splits(folder / "qrels"))
        has = f"there are {', '.join(present)}" if present else "there is no qrels file at all"
        raise InputError(f"{path} does not exist; {has} (option 'split')")
    return path


def _splits(folder: Path) -> Iterator[str]:
    for entry in folder.glob("*.tsv*"):
        yield entry.name.split(".tsv")[0]
