"""A BEIR folder: corpus.jsonl, queries.jsonl and qrels/SPLIT.tsv, any of them gzipped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from whencount.collections.expansions import expanded, read_expansions
from whencount.collections.jsonl import json_documents, json_place, json_queries
from whencount.collections.model import Collection, Document, Options
from whencount.collections.qrels import read_qrels
from whencount.collections.selection import keep_judged
from whencount.errors import InputError


def open_beir(name: str, options: Mapping[str, Any]) -> Collection:
    """Open a folder in the layout of BEIR (Thakur et al., 2021, arXiv:2104.08663).

    Options: `path`, the folder; `split`, the file under qrels (by default the only one, else
    `test`); `separator` (default a space), what joins title and text; `judged_queries_only`
    (default true), keep only the queries that the split judges; `duplicates` (`refuse` or
    `first`), `expansions` (a file of predicted text, `expansions.read_expansions`), `language`,
    `licence`. Qrels may be JSON lines (`.jsonl`), and stand beside the corpus
    as `qrels.tsv` or `qrels.jsonl` where there is no folder of that name.

    Raises:
        InputError: an option is wrong, or a file is missing or malformed.
    """
    taken = Options(name, options)
    folder = Path(taken.require("path", str))
    split = taken.take("split", str)
    separator = taken.take("separator", str, " ")
    judged_only = taken.take("judged_queries_only", bool, True)
    first_duplicate = first_of_duplicates(taken)
    language, licence = taken.take("language", str, ""), taken.take("licence", str, "")
    predicted = taken.take("expansions", str)
    taken.finish()
    if not folder.is_dir():
        raise InputError(
            f"collection {name!r}: {folder} is not a folder; give the folder that holds"
            " corpus.jsonl, queries.jsonl and qrels"
        )
    corpus = plain_or_gzip(folder / "corpus.jsonl")
    judgements = qrels_file(folder, split)
    topics = plain_or_gzip(folder / "queries.jsonl")
    qrels, queries = read_qrels(judgements), json_queries(topics)

    def documents() -> Iterator[Document]:
        plain = json_documents(corpus, separator)
        return expanded(plain, read_expansions(predicted), predicted) if predicted else plain

    return Collection(
        name=name,
        documents=documents,
        queries=keep_judged(queries, qrels, name) if judged_only else queries,
        qrels=qrels,
        description=f"BEIR folder {folder.name}, split {split_of(judgements)}",
        language=language,
        licence=licence,
        place=lambda number: json_place(corpus, number),
        first_duplicate=first_duplicate,
        files=lambda: (corpus, topics, judgements, *([Path(predicted)] if predicted else [])),
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


def qrels_file(folder: Path, split: str | None = None) -> Path:
    """The qrels of a split of a BEIR folder; without a split the only ones, else those of `test`.

    Raises:
        InputError: there is no such file; the message names those there are.
    """
    found = _qrels_files(folder)
    if split is None and len(found) == 1:
        return next(iter(found.values()))
    path = found.get(split or "test")
    if path is None:
        wanted = folder / "qrels" / f"{split or 'test'}.tsv"
        has = f"there are {', '.join(found)}" if found else "there is no qrels file at all"
        raise InputError(f"{wanted} does not exist; {has} (option 'split')")
    return path


def split_of(path: Path) -> str:
    """The split that a qrels file is called after: its name without endings."""
    return path.name.removesuffix(".gz").removesuffix(".tsv").removesuffix(".jsonl")


def _qrels_files(folder: Path) -> dict[str, Path]:
    """The qrels of a folder by split; of one split plain before gzipped, .tsv before .jsonl."""
    inside = folder / "qrels"
    where, stem = (inside, "*") if inside.is_dir() else (folder, "qrels")
    found: dict[str, Path] = {}
    for ending in (".tsv", ".tsv.gz", ".jsonl", ".jsonl.gz"):
        for path in sorted(where.glob(f"{stem}{ending}")):
            found.setdefault(split_of(path), path)
    return dict(sorted(found.items()))
