"""The text of haystacks: sentences of a collection, a file or packages, kept as one table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import regex

from whencount.errors import InputError

MAXIMUM_CHARACTERS = 4_000_000
"""More text than this is not kept; the essays of the paper are about 3 million characters."""

_BORDER = regex.compile(r"""(?<=[.!?]["'”’)\]]*)\s+(?=["'“‘(\[]?[\p{Lu}\p{N}])""")
_NO_BORDER = regex.compile(
    r"(?:^|[\s(\[\"'“‘])(?:\p{Lu}|Mr|Mrs|Ms|Dr|Prof|St|Jr|Sr|vs|etc|cf|Fig|fig|No|no|pp?|ca|c"
    r"|i\.e|e\.g|al|[Vv]ol|[Cc]h|[Ee]d)\.$"
)
_SPACES = regex.compile(r"\s+")
# Markup that a tokenizer could read as the end of a message, or the beginning of another.
_SPECIAL = regex.compile(r"<\|[^|<>]*\|>|</?s>|\[/?INST\]|<<?/?[A-Z_]{3,}>>?")


def sentences(text: str) -> Iterator[str]:
    """Split a text into sentences at full stops, question and exclamation marks.

    A mark ends a sentence where space and a capital letter or a digit follow, unless it stands
    behind an initial or a usual abbreviation. Spaces are made single; sentences with the special
    tokens of a language model are left out.
    """
    for paragraph in regex.split(r"\n\s*\n", text):
        kept = ""
        for part in _BORDER.split(_SPACES.sub(" ", paragraph).strip()):
            kept = f"{kept} {part}".strip()
            if not _NO_BORDER.search(kept):
                yield from _plain(kept)
                kept = ""
        yield from _plain(kept)


def open_prose(
    haystack: Mapping[str, Any], collection: Path | None = None, seed: int = 0
) -> Iterator[str]:
    """The sentences of a haystack, in reading order, as `pages.haystack` of the configuration says.

    * `collection`: the documents of a prepared collection, or of a built-in one by its `name`.
    * `file`: a text at `path`, UTF-8 (.gz is decompressed); empty lines part its paragraphs.
    * `packages`: docstrings and documentation of installed `packages`, in an order drawn by `seed`.

    Args:
        haystack: `source` and its keys.
        collection: the prepared collection, where the study has one of that name.
        seed: of the order of passages of packages.

    Raises:
        InputError: the text is not there, or no UTF-8.
    """
    for text in _texts(haystack, collection, seed):
        yield from sentences(text)


def write_prose(found: Iterable[str], path: str | Path, name: str) -> None:
    """Write sentences as a table with one column `sentence`, `MAXIMUM_CHARACTERS` at most.

    Args:
        found: the sentences, in order.
        path: of the table.
        name: of the source, for the message.

    Raises:
        InputError: there is not one sentence.
    """
    import pandas as pd

    from whencount.tables import write_table

    kept, characters = [], 0
    for sentence in found:
        characters += len(sentence)
        if characters > MAXIMUM_CHARACTERS:
            break
        kept.append(sentence)
    if not kept:
        raise InputError(f"the haystack {name} has no sentence; name a text at pages.haystack")
    write_table(pd.DataFrame({"sentence": kept}), path)


def read_prose(path: str | Path) -> tuple[str, ...]:
    """The sentences that `write_prose` wrote.

    Raises:
        InputError: the table is missing, damaged or another.
    """
    from whencount.tables import read_table

    table = read_table(path)
    if "sentence" not in table:
        raise InputError(f"{path} has no column 'sentence'; delete it and run again")
    return tuple(table["sentence"])


def _plain(sentence: str) -> Iterator[str]:
    if sentence and not _SPECIAL.search(sentence):
        yield sentence


def _texts(haystack: Mapping[str, Any], collection: Path | None, seed: int) -> Iterator[str]:
    source = haystack["source"]
    if source == "file":
        yield from _file(Path(haystack["path"]))
    elif source == "packages":
        from whencount.collections import open_fit_passages

        passages = open_fit_passages(haystack, seed, "haystack")
        yield from (passage.text for passage in passages.documents())
    elif collection is not None:
        from whencount.collections import load_prepared

        yield from (document.text for document in load_prepared(collection).documents())
    else:
        from whencount.collections import open_collection

        opened = open_collection(str(haystack["name"]), {})
        yield from (document.text for document in opened.documents())


def _file(path: Path) -> Iterator[str]:
    from whencount.files import open_binary

    with open_binary(path) as stream:
        try:
            yield stream.read().decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise InputError(
                f"{path}: byte {error.start} is no UTF-8; save the text as UTF-8"
            ) from error
