"""Texts that a model is trained, calibrated or evaluated on: whole documents, shared out in parts.

A document is a file of a package (its docstrings, or its prose), an article, or a line of a file.
Parts never share a document, and no paragraph stands in two.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whencount.collections.fit_text import PACKAGES, chunks
from whencount.collections.model import Document, Options, nearest
from whencount.collections.packages import docstrings_of_file, package_files
from whencount.collections.selection import priority
from whencount.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

PARTS = ("train", "validation", "calibration", "evaluation")
"""What a document may serve for, in the order in which shares are dealt out."""

_PROSE = (".rst", ".md", ".txt")
_NO_PROSE = ("license", "licence", "copying", "notice", "authors", "requirements", "top_level")
_MINIMUM_WORDS, _MAXIMUM_WORDS = 12, 150


def prepare_text(
    name: str, options: Mapping[str, Any], parts: Mapping[str, float], seed: int = 0
) -> pd.DataFrame:
    """Read a text and deal its documents out.

    Args:
        name: how the configuration calls it.
        options: `source` and what it takes:

            * `packages`: a document for each file of installed `packages`: the paragraphs of prose
              in its docstrings, at least 12 words at a time; at most `characters` of each package.
            * `wiki-sections`: the articles of the collection of that name.
            * `file`: `path`, JSON lines with `id` and `text`, or plain text with empty lines
              between documents.
            * `wikitext`: pages of WikiText, `split` of it, from the file `path` or the library's
              own loader; see `whencount.experts.wikitext`.
        parts: share of the documents that each of PARTS gets; they add up to 1. A document goes by
            a hash of the seed and its id, so neither order nor number of the others matters.
        seed: of the draw.

    Returns:
        Columns id, part, text; in the order of the source.

    Raises:
        InputError: an option or a share is wrong, the text cannot be had, it is empty, or two
            documents have one id.
    """
    import pandas as pd

    sources = {
        "packages": _of_packages,
        "wiki-sections": _of_articles,
        "file": _of_file,
        "wikitext": _of_wikitext,
    }
    source = str(options.get("source"))
    if source not in sources:
        raise InputError(f"text {name!r}: unknown source {source!r}; {nearest(source, sources)}")
    borders = _borders(name, parts)
    documents = list(sources[source](Options(name, options), seed))
    if not documents:
        raise InputError(f"text {name!r}: there is no document in it; check its options")
    times = Counter(document.id for document in documents)
    identifier, most = times.most_common(1)[0]
    if most > 1:
        raise InputError(
            f"text {name!r}: {most} documents have the id {identifier!r}; give each its own"
        )
    return pd.DataFrame(
        {
            "id": [document.id for document in documents],
            "part": [_part(borders, seed, document.id) for document in documents],
            "text": [document.text for document in documents],
        }
    )


def part_of(table: pd.DataFrame, part: str, documents: int | None = None) -> list[Document]:
    """The documents of one part of a prepared text, in its order; the first ones where limited.

    Raises:
        InputError: the part has none.
    """
    chosen = table[table["part"] == part]
    if documents is not None:
        chosen = chosen.head(documents)
    if chosen.empty:
        raise InputError(
            f"the text has no document for {part}; give that part a larger share, or more text"
        )
    return [
        Document(str(one), str(text))
        for one, text in zip(chosen["id"], chosen["text"], strict=True)
    ]


def _borders(name: str, parts: Mapping[str, float]) -> list[tuple[str, float]]:
    unknown = sorted(set(parts) - set(PARTS))
    if unknown:
        raise InputError(
            f"text {name!r}: unknown part {unknown[0]!r}; {nearest(unknown[0], PARTS)}"
        )
    total = math.fsum(parts.values())
    if any(share < 0 for share in parts.values()) or abs(total - 1) > 1e-9:
        raise InputError(f"text {name!r}: the shares of its parts add up to {total:g} and not to 1")
    borders, upto = [], 0.0
    for part in PARTS:
        upto += parts.get(part, 0.0)
        borders.append((part, upto))
    return borders


def _part(borders: list[tuple[str, float]], seed: int, identifier: str) -> str:
    place = priority(seed, f"part of {identifier}") / 2**64
    filled = [part for part, upto in borders if place < upto]
    # Shares that add up to 1 but for rounding leave nobody behind the last border.
    return filled[0] if filled else borders[-1][0]


def _of_packages(taken: Options, seed: int) -> Iterator[Document]:
    packages = taken.names("packages", PACKAGES)
    characters = taken.take("characters", int)
    taken.finish()
    seen: set[bytes] = set()
    for package in packages:
        left = math.inf if characters is None else characters
        files = list(package_files(package, (".py", *_PROSE)))
        for relative, path in sorted(files, key=lambda file: priority(seed, file[0])):
            text = "\n\n".join(_unseen(_passages(relative, path), seen))
            if not text:
                continue
            yield Document(f"{package}:{relative}", text)
            left -= len(text)
            if left <= 0:
                break


def _passages(relative: str, path: Path) -> Iterator[str]:
    if relative.endswith(".py"):
        for found in docstrings_of_file(relative, path):
            yield from chunks(found.text, _MINIMUM_WORDS, _MAXIMUM_WORDS)
    elif not any(word in relative.lower() for word in _NO_PROSE):
        content = path.read_text(encoding="utf-8", errors="replace")
        yield from chunks(content, _MINIMUM_WORDS, _MAXIMUM_WORDS)


def _unseen(passages: Iterable[str], seen: set[bytes]) -> Iterator[str]:
    """Passages whose words did not come before: packages repeat themselves much."""
    for passage in passages:
        words = " ".join(passage.casefold().split())
        digest = hashlib.blake2b(words.encode("utf-8", "surrogatepass"), digest_size=12).digest()
        if digest not in seen:
            seen.add(digest)
            yield passage


def _of_articles(taken: Options, seed: int) -> Iterator[Document]:
    del seed
    from whencount.collections.registry import open_collection

    taken.finish()
    articles: dict[str, list[str]] = {}
    for paragraph in open_collection(taken.name, {"source": "wiki-sections"}).documents():
        articles.setdefault(paragraph.id.rpartition("-")[0], []).append(paragraph.text)
    for number, paragraphs in articles.items():
        yield Document(f"article {number}", "\n\n".join(paragraphs))


def _of_file(taken: Options, seed: int) -> Iterator[Document]:
    del seed
    from whencount.files import json_lines, lines_of

    path = Path(taken.require("path", str))
    taken.finish()
    if path.suffixes[:1] == [".jsonl"] or path.suffix == ".json":
        for number, record in json_lines(path):
            text = record.get("text")
            if not isinstance(text, str):
                raise InputError(f"{path}, line {number}: no text; each line must have one")
            if text.strip():
                identifier = record.get("id")
                yield Document(str(number if identifier is None else identifier), text)
        return
    paragraph: list[str] = []
    start = last = 0
    for number, line in lines_of(path):
        if number != last + 1 and paragraph:
            yield Document(f"line {start}", "\n".join(paragraph))
            paragraph = []
        if not paragraph:
            start = number
        paragraph.append(line.decode("utf-8", "replace"))
        last = number
    if paragraph:
        yield Document(f"line {start}", "\n".join(paragraph))


def _of_wikitext(taken: Options, seed: int) -> Iterator[Document]:
    del seed
    from whencount.experts.wikitext import read_pages

    path, split = taken.take("path", str), taken.take("split", str, "train")
    name, revision = taken.take("name", str), taken.take("revision", str)
    taken.finish()
    for page in read_pages(split, path=path, name=name, revision=revision):
        yield Document(page.id, page.text)
