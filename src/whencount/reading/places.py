"""Where a row stands, for sentences about it; and ids seen before, in little memory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from whencount.errors import InputError
from whencount.vectors import object_ids

_SHIFT = 40
_KEYS = ("whencount-first.", "whencount-second")


class Places:
    """The files of a source; a place is one int64: which file, and which line or row of it.

    Args:
        files: in the order in which they are read.
        unit: `line`, `row` or `document`; counted from 1 for lines, from 0 otherwise.
    """

    def __init__(self, files: Sequence[Path], unit: str) -> None:
        self.files = tuple(files)
        self.unit = unit

    def of(self, file: int, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Places of lines or rows of a file, by its number."""
        return numbers + (file << _SHIFT)

    def told(self, place: int) -> str:
        """`docs.jsonl, line 7`."""
        return f"{self.files[place >> _SHIFT]}, {self.unit} {place & ((1 << _SHIFT) - 1)}"


class SeenIds:
    """Finds the first id that was used before; keeps 24 bytes per id.

    Two hashes of 64 bits stand for an id. Sorted runs of them double in size, so a look-up is a few
    binary searches and every id is sorted a logarithmic number of times.
    """

    def __init__(self, places: Places) -> None:
        self._places = places
        self._runs: list[tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.int64]]] = []

    def add(self, ids: Sequence[str], places: NDArray[np.int64]) -> None:
        """Take the ids of a block.

        Args:
            ids: text.
            places: int64, shape (ids,).

        Raises:
            InputError: an id is empty, or was used in this block or an earlier one.
        """
        names = object_ids(ids)
        first, second = (pd.util.hash_array(names, hash_key=key, categorize=False) for key in _KEYS)
        repeated = len(names)
        earlier = -1
        for known, check, where in self._runs:
            # Equal first hashes of different ids do not happen twice in a row of any real file.
            at = np.minimum(np.searchsorted(known, first), len(known) - 1)
            hits = np.flatnonzero((known[at] == first) & (check[at] == second))
            if len(hits) and hits[0] < repeated:
                repeated, earlier = int(hits[0]), int(where[at[hits[0]]])
        inside: dict[str, int] = {}
        if len(set(names)) < len(names) or "" in names:
            for number, name in enumerate(names[:repeated]):
                if name == "":
                    raise InputError(
                        f"{self._places.told(int(places[number]))}: the id is empty; give every"
                        " vector an id of its own"
                    )
                if name in inside:
                    repeated, earlier = number, int(places[inside[name]])
                    break
                inside[name] = number
        if earlier >= 0:
            raise InputError(
                f"{self._places.told(int(places[repeated]))}: id {names[repeated]!r} was used at"
                f" {self._places.told(earlier)}; ids must be unique"
            )
        order = np.argsort(first)
        run = first[order], second[order], places[order]
        while self._runs and len(self._runs[-1][0]) <= len(run[0]):
            other = self._runs.pop()
            joined = [np.concatenate(pair) for pair in zip(other, run, strict=True)]
            order = np.argsort(joined[0], kind="stable")
            run = joined[0][order], joined[1][order], joined[2][order]
        self._runs.append(run)
