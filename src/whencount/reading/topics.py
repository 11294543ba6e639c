"""Queries as Pyserini keeps them once encoded: `id<TAB>term term term`, a term as often as it
weighs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from whencount.errors import InputError
from whencount.files import lines_of
from whencount.reading.places import Places
from whencount.reading.rows import ROWS_AT_ONCE, Rows
from whencount.reading.vocabulary import Vocabulary


def read(places: Places, vocabulary: Vocabulary) -> Iterator[Rows]:
    """Rows of all files, in order; a term's weight is how often it stands there.

    Raises:
        InputError: a file cannot be read, is no UTF-8, or a line has no tab.
    """
    for file, path in enumerate(places.files):
        ids: list[str] = []
        lines: list[int] = []
        counts: list[Counter[str]] = []
        for number, line in lines_of(path):
            try:
                name, tab, text = line.decode().partition("\t")
            except UnicodeDecodeError as error:
                raise InputError(
                    f"{path}, line {number}: no UTF-8 ({error}); save the file as UTF-8"
                ) from error
            if not tab:
                raise InputError(
                    f"{path}, line {number}: no tab; each line must be an id, a tab, and terms with"
                    " spaces between them"
                )
            ids.append(name.strip())
            lines.append(number)
            counts.append(Counter(text.split()))
            if len(ids) >= ROWS_AT_ONCE:
                yield _rows(places, file, ids, lines, counts, vocabulary)
                ids, lines, counts = [], [], []
        if ids:
            yield _rows(places, file, ids, lines, counts, vocabulary)


def _rows(
    places: Places,
    file: int,
    ids: list[str],
    lines: list[int],
    counts: list[Counter[str]],
    vocabulary: Vocabulary,
) -> Rows:
    return Rows(
        ids,
        places.of(file, np.array(lines, dtype=np.int64)),
        np.array([len(one) for one in counts], dtype=np.int64),
        vocabulary.of_names(term for one in counts for term in one),
        np.fromiter((value for one in counts for value in one.values()), np.float64),
    )
