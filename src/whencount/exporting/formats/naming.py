"""Names of features in files of other engines."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from whencount.errors import InputError
from whencount.files import atomic_file
from whencount.vectors import SparseVectors


class Names:
    """Names of features by number.

    Args:
        names: shape (V,); None where features have numbers alone, which are then their names.
    """

    def __init__(self, names: NDArray[np.object_] | None) -> None:
        self._names = names

    @property
    def plain(self) -> bool:
        """Whether every name is the feature's own number."""
        return self._names is None or all(
            name == str(number) for number, name in enumerate(self._names)
        )

    def of(self, features: NDArray[np.int32]) -> list[str]:
        """The names of some features, in their order."""
        if self._names is None:
            return list(map(str, features.tolist()))
        found: list[str] = self._names[features].tolist()
        return found

    def write(self, path: Path, count: int) -> None:
        """Write all names, one per line: line j + 1 is feature j.

        Raises:
            InputError: a name holds a line break.
        """
        names = self.of(np.arange(count, dtype=np.int32))
        broken = next((name for name in names if "\n" in name or "\r" in name), None)
        if broken is not None:
            raise InputError(
                f"{path}: feature {broken!r} holds a line break; choose a format that keeps names"
                " with the weights, jsonl say"
            )
        with atomic_file(path) as temporary, temporary.open("w", encoding="utf-8") as stream:
            stream.writelines(f"{name}\n" for name in names)


def rows_of(block: SparseVectors) -> Iterator[tuple[str, int, int]]:
    """(id, start, stop) of every row; the weights of a row stand from start to stop."""
    for name, (low, high) in zip(block.ids, pairwise(block.indptr.tolist()), strict=True):
        yield name, low, high


def numbers_of(block: SparseVectors) -> list[int | float]:
    """Weights as JSON numbers: whole ones without a point, others as short as float32 needs."""
    values = np.asarray(block.values)
    if bool((values == np.rint(values)).all()):
        whole: list[int | float] = values.astype(np.int64).tolist()
        return whole
    # Seventeen digits of a float64 would say the same number in twice the bytes.
    return [float(text) for text in values.astype(str)]
