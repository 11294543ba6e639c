"""One vocabulary for documents and queries: names of features, numbered as they are first seen."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

_LARGEST_TABLE = 1 << 24
"""Whole-number features below this are looked up in a table, larger ones by name."""
LARGEST_FEATURE = 2**31 - 1


class Vocabulary(dict[str, int]):
    """Name of a feature to its number, 0, 1, ... in the order in which names are first asked for.

    A feature that a format gives as a whole number has that number, written plainly, as its name,
    so `{"17": 1.5}` in a file of queries is column 17 of a matrix of documents.
    """

    def __init__(self) -> None:
        super().__init__()
        self._table = np.empty(0, dtype=np.int32)

    def __missing__(self, name: str) -> int:
        self[name] = number = len(self)
        return number

    def declare(self, size: int) -> None:
        """Have the features 0 .. size - 1, whether a vector has them or not."""
        self.of_whole_numbers(np.arange(size, dtype=np.int64))

    def of_names(self, names: Iterable[str]) -> NDArray[np.int32]:
        """Numbers of names, int32, in their order."""
        return np.fromiter(map(self.__getitem__, names), dtype=np.int32)

    def of_whole_numbers(self, features: NDArray[Any]) -> NDArray[np.int32]:
        """Numbers of features that are whole numbers from 0 to 2^31 - 1, int32, the same shape."""
        if len(features) == 0:
            return np.empty(0, dtype=np.int32)
        if int(features.max()) >= _LARGEST_TABLE:
            distinct, inverse = np.unique(features, return_inverse=True)
            return np.asarray(self.of_names(map(str, distinct.tolist()))[inverse])
        missing = int(features.max()) + 1 - len(self._table)
        if missing > 0:
            grown = np.full(max(missing, len(self._table)), -1, dtype=np.int32)
            self._table = np.concatenate([self._table, grown])
        found = self._table[features]
        if (found < 0).any():
            unknown = features[found < 0]
            # By first sight, as names are.
            distinct, first = np.unique(unknown, return_index=True)
            fresh = distinct[np.argsort(first)]
            self._table[fresh] = self.of_names(map(str, fresh.tolist()))
            found = self._table[features]
        return np.asarray(found)

    def of_arrow(self, terms: Any) -> NDArray[np.int32]:
        """Numbers of an Arrow array of text or of whole numbers, without nulls.

        Raises:
            ValueError: a whole number is negative or above 2^31 - 1, or the type is another.
        """
        kind = terms.type
        if pa.types.is_integer(kind):
            features = terms.to_numpy(zero_copy_only=False).astype(np.int64)
            if len(features) and not 0 <= int(features.min()) <= int(features.max()) < 2**31:
                wrong = features[(features < 0) | (features > LARGEST_FEATURE)][0]
                raise ValueError(f"feature {wrong} lies outside 0..2^31 - 1")
            return self.of_whole_numbers(features)
        if not pa.types.is_dictionary(kind):
            if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
                raise ValueError(f"features are of type {kind}; they must be text or whole numbers")
            terms = terms.dictionary_encode()
        # A dictionary may hold names that no row has.
        codes = terms.indices.to_numpy(zero_copy_only=False)
        distinct, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
        by_sight = np.argsort(first)
        names = terms.dictionary.take(pa.array(distinct[by_sight])).to_pylist()
        numbers = np.empty(len(distinct), dtype=np.int32)
        numbers[by_sight] = self.of_names(map(str, names))
        return np.asarray(numbers[inverse])

    def ordered(self) -> tuple[NDArray[np.object_], NDArray[np.int32]]:
        """The names in the house's order, and for each number its place in it.

        By number where every name is a whole number written plainly, by characters otherwise; so
        which of two features is smaller does not depend on the order of a file.
        """
        from whencount.vector_files import in_order

        return in_order(list(self))
