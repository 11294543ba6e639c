"""WikiText-2 by page, as the standard harness evaluates it.

A page begins at a heading of the first level, ` = Title = `. The model sees the page with the
spaces around punctuation taken out again, words are counted on the page as it is stored: token- and
word-level numbers are two different things, and both are kept. Rules and counts are those of the
task `wikitext` of lm-evaluation-harness (version 2.0 of the task).
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from whencount.errors import InputError

DATASET, CONFIGURATION = "Salesforce/wikitext", "wikitext-2-raw-v1"
REVISION = "b08601e04326c79dfdd32d625aee71d232d685c3"
SPLITS = ("train", "validation", "test")
_COLUMNS = ("page", "text")

_HEADING = re.compile(r"\s*= (?!= ).+ =\s*")


@dataclass(frozen=True)
class Page:
    """A page of WikiText.

    Attributes:
        id: its number in the split and its title.
        text: what the model sees.
        words: how many words the stored page has, by the harness's count.
        bytes: how many bytes of UTF-8.
    """

    id: str
    text: str
    words: int
    bytes: int


def read_pages(
    split: str,
    path: str | Path | None = None,
    name: str | None = None,
    revision: str | None = None,
) -> list[Page]:
    """The pages of a split.

    Args:
        split: of SPLITS.
        path: a file of it: `wiki.test.raw` as published, a Parquet file of the dataset (column
            `text`, or `page` with whole pages), or JSON lines with one of these. Where None, the
            library `datasets` loads it: from its cache, or from the hub.
        name: of the dataset's repository, where there is no path.
        revision: its commit.

    Raises:
        InputError: an unknown split, the data cannot be had, or no page is in it.
    """
    if split not in SPLITS:
        raise InputError(f"WikiText has no split {split!r}; choose from {', '.join(SPLITS)}")
    stored = _stored(Path(path)) if path is not None else _loaded(split, name, revision)
    pages = [_page(number, text) for number, text in enumerate(stored)]
    if not pages:
        raise InputError(
            f"{path or DATASET} has no page: no line is a heading such as ' = Title = '; give the"
            " raw version of WikiText"
        )
    return pages


def detokenized(page: str) -> str:
    """A page with WikiText's spaces around punctuation taken out.

    The substitutions, in this order, are those of the harness (`wikitext_detokenizer`).
    """
    text = page.replace("s '", "s'")
    text = re.sub(r"/' [0-9]/", r"/'[0-9]/", text)
    for mark in ("-", ",", "."):
        text = text.replace(f" @{mark}@ ", mark)
    for mark in (":", ";", ".", "!", "?", ","):
        text = text.replace(f" {mark} ", f"{mark} ")
    text = re.sub(r"\(\s*([^\)]*?)\s*\)", r"(\1)", text)
    text = re.sub(r"\[\s*([^\]]*?)\s*\]", r"[\1]", text)
    text = re.sub(r"{\s*([^}]*?)\s*}", r"{\1}", text)
    text = re.sub(r"\"\s*([^\"]*?)\s*\"", r'"\1"', text)
    text = re.sub(r"'\s*([^']*?)\s*'", r"'\1'", text)
    for count in (4, 3, 2):
        text = text.replace(" ".join("=" * count), "=" * count)
    text = text.replace(f" {chr(176)} ", chr(176))
    text = text.replace(" \n", "\n").replace("\n ", "\n")
    return text.replace(" N ", " 1 ").replace(" 's", "'s")


def pages_of_lines(lines: Iterable[str]) -> Iterator[str]:
    """Whole pages out of the lines of a raw file, their ends kept."""
    page: list[str] = []
    for line in lines:
        if _HEADING.fullmatch(line) and page:
            yield "".join(page)
            page = []
        if page or _HEADING.fullmatch(line):
            page.append(line)
    if page:
        yield "".join(page)


def _page(number: int, stored: str) -> Page:
    title = stored.strip().splitlines()[0].strip().strip("=").strip()
    words, size = len(re.split(r"\s+", stored)), len(stored.encode("utf-8"))
    return Page(f"{number} {title}", detokenized(stored), words, size)


def _stored(path: Path) -> list[str]:
    from whencount.files import json_lines, open_binary

    if path.suffix == ".parquet":
        from whencount.tables import read_table

        return _of_column(read_table(path).to_dict("list"), str(path))
    if path.suffixes[:1] == [".jsonl"]:
        records = list(json_lines(path))
        key = next((key for key in _COLUMNS if records and key in records[0][1]), "")
        for number, record in records:
            if key and not isinstance(record.get(key), str):
                raise InputError(f"{path}, line {number}: no text {key!r}; each line must have one")
        return _of_column({key: [record.get(key) for _, record in records]}, str(path))
    with open_binary(path) as stream:
        try:
            content = stream.read().decode("utf-8", "replace")
        except (OSError, EOFError, zlib.error) as error:
            raise InputError(
                f"{path} cannot be read to its end ({error}); fetch it again"
            ) from error
    return list(pages_of_lines(content.splitlines(keepends=True)))


def _of_column(columns: dict[Any, list[Any]], where: str) -> list[str]:
    for key in _COLUMNS:
        if not all(isinstance(one, str) for one in columns.get(key, [])):
            raise InputError(f"{where}: the column {key!r} holds something else than text")
    if "page" in columns:
        return [str(page) for page in columns["page"] if str(page).strip()]
    if "text" in columns:
        return list(pages_of_lines(str(line) for line in columns["text"]))
    raise InputError(f"{where} has neither a column 'page' nor 'text'; give a file of WikiText")


def _loaded(split: str, name: str | None, revision: str | None) -> list[str]:
    from whencount.experts.datasets_loading import load_columns

    columns = load_columns(
        name or DATASET,
        CONFIGURATION,
        split,
        revision or (REVISION if name is None else None),
        remedy="give `path`, a copy of wiki.test.raw (or the split's Parquet file)",
    )
    return _of_column(columns, name or DATASET)
