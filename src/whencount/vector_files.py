"""Reading vectors of any origin: JSON lines `{"id": "d1", "vector": {"feature": weight, ...}}`.

This is the layout that Anserini and Pyserini read. Documents and queries are read into one
vocabulary. Where every feature name is a whole number written plainly ("0", "17"), features are
ordered by that number, and by their characters otherwise; so "the smaller feature", which a budget
keeps among equal weights, is well defined and does not depend on the order of lines.
"""

from __future__ import annotations

import math
from array import array
from codecs import BOM_UTF8
from collections.abc import Iterator
from dataclasses import dataclass, field
from json import JSONDecodeError, loads
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from whencount.errors import InputError
from whencount.files import lines_of
from whencount.progress import progress
from whencount.vectors import SparseVectors

_NUMBERS = frozenset({float, int})
_ROWS_PER_BLOCK = 1 << 14
_WEIGHTS_PER_BLOCK = 1 << 20


@dataclass(frozen=True)
class VectorFiles:
    """Documents and queries with the features they share.

    Attributes:
        documents: in the order of their file.
        queries: in the order of their file; features that no document has are in the vocabulary.
        features: the names, object array of str, shape (vocabulary_size,); feature j of the vectors
            is named `features[j]`.
    """

    documents: SparseVectors
    queries: SparseVectors
    features: NDArray[np.object_]


class _Vocabulary(dict[str, int]):
    """Numbers names in the order they are first asked for."""

    def __missing__(self, name: str) -> int:
        self[name] = number = len(self)
        return number


@dataclass
class _Block:
    """Consecutive rows as read: features by order of first sight, rows unsorted."""

    sizes: NDArray[np.int64]
    features: NDArray[np.int32]
    values: NDArray[np.float32]


@dataclass
class _File:
    """What stands in one file, in blocks."""

    path: Path
    ids: list[str] = field(default_factory=list)
    lines: array[int] = field(default_factory=lambda: array("q"))
    blocks: list[_Block] = field(default_factory=list)


def read_vectors(documents: str | Path, queries: str | Path) -> VectorFiles:
    """Read both files (.gz too) into one vocabulary.

    Weights are stored as float32; those that are 0, or too small for float32, are dropped. A vector
    may be empty. An id may be a whole number and is then read as its text. Of a feature named twice
    in a vector the last weight counts, as JSON readers have it. Besides the vectors themselves,
    memory holds the ids and one block of rows.

    Raises:
        InputError: a file is missing, damaged or without vectors; a line is malformed or lacks `id`
            or `vector`; an id is used twice; a weight is not a number, negative, NaN, infinite, or
            too large for float32. File and line are named.
    """
    vocabulary = _Vocabulary()
    read = [_read(Path(path), vocabulary) for path in (documents, queries)]
    features, order = in_order(list(vocabulary))
    return VectorFiles(_assemble(read[0], order), _assemble(read[1], order), features)


def read_documents(
    documents: str | Path, queries: str | Path | None = None
) -> tuple[SparseVectors, SparseVectors | None, NDArray[np.object_]]:
    """Documents, queries where they are named, and the features of their one vocabulary.

    Raises:
        InputError: as `read_vectors`.
    """
    if queries is not None:
        files = read_vectors(documents, queries)
        return files.documents, files.queries, files.features
    vocabulary = _Vocabulary()
    read = _read(Path(documents), vocabulary)
    features, order = in_order(list(vocabulary))
    return _assemble(read, order), None, features


def _read(path: Path, vocabulary: _Vocabulary) -> _File:
    file = _File(path)
    sizes: list[int] = []
    for block in progress(
        _blocks(file, vocabulary, sizes), None, f"reading {path.name}", "vector", _iterate(sizes)
    ):
        file.blocks.append(block)
    if not file.ids:
        raise InputError(
            f'{path} holds no vectors; each line must be {{"id": ..., "vector": {{...}}}}'
        )
    return file


def _iterate(sizes: list[int]) -> Iterator[int]:
    """Yield what has been appended to `sizes`, one by one."""
    number = 0
    while True:
        yield sizes[number]
        number += 1


def _blocks(file: _File, vocabulary: _Vocabulary, sizes: list[int]) -> Iterator[_Block]:
    """Parse the file; every weight of a block has been checked when it is yielded."""
    seen: set[str] = set()
    features, weights = array("i"), array("d")
    lengths: list[int] = []

    def flush() -> _Block:
        block = _checked(file, lengths, features, weights, vocabulary)
        sizes.append(len(lengths))
        return block

    for number, line in lines_of(file.path):
        try:
            record = orjson.loads(line.removeprefix(BOM_UTF8) if number == 1 else line)
            name, vector = record["id"], record["vector"]
            values = vector.values()
            if not _NUMBERS.issuperset(map(type, values)):
                raise TypeError
            weights.extend(values)
            features.extend(map(vocabulary.__getitem__, vector))
        except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError, OverflowError):
            flush()  # an earlier bad weight is the first fault
            raise _fault(file.path, number, line) from None
        if type(name) is not str or not name:
            if type(name) is not int:
                flush()
                raise _fault(file.path, number, line)
            name = str(name)
        if name in seen:
            flush()
            raise InputError(
                f"{file.path}, line {number}: id {name!r} was used on line"
                f" {file.lines[file.ids.index(name)]}; ids must be unique"
            )
        seen.add(name)
        file.ids.append(name)
        file.lines.append(number)
        lengths.append(len(vector))
        if len(lengths) >= _ROWS_PER_BLOCK or len(weights) >= _WEIGHTS_PER_BLOCK:
            yield flush()
            features, weights = array("i"), array("d")
            lengths.clear()
    if lengths:
        yield flush()


def _checked(
    file: _File,
    lengths: list[int],
    features: array[int],
    weights: array[float],
    vocabulary: _Vocabulary,
) -> _Block:
    """The rows of a block as arrays, zeros dropped."""
    exact = np.frombuffer(weights, dtype=np.float64) if len(weights) else np.zeros(0)
    names = np.frombuffer(features, dtype=np.int32) if len(features) else np.zeros(0, np.int32)
    rows = np.repeat(np.arange(len(lengths)), lengths)
    with np.errstate(over="ignore"):
        values = exact[: len(rows)].astype(np.float32)
    bad = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
    if len(bad):
        at = int(bad[0])
        feature = next(name for name, number in vocabulary.items() if number == names[at])
        line = file.lines[len(file.ids) - len(lengths) + int(rows[at])]
        raise _bad_weight(file.path, line, feature, float(exact[at]))
    keep = values > 0
    return _Block(
        np.bincount(rows[keep], minlength=len(lengths)),
        names[: len(rows)][keep],
        values[keep],
    )


def _bad_weight(path: Path, line: int, feature: str, weight: object) -> InputError:
    reason = "weights must be finite numbers of at least 0"
    if isinstance(weight, float) and math.isfinite(weight) and weight > 0:
        reason = "it is too large for single precision; scale the weights down"
    return InputError(f"{path}, line {line}: feature {feature!r} has weight {weight!r}; {reason}")


def _fault(path: Path, number: int, line: bytes) -> InputError:
    """Say what is wrong with a line that could not be taken."""
    where = f"{path}, line {number}"
    form = 'each line must be {"id": ..., "vector": {"feature": weight, ...}}'
    try:
        # The standard parser takes NaN and Infinity, so that the feature can be named.
        record = loads(line)
    except (JSONDecodeError, UnicodeDecodeError) as error:
        return InputError(f"{where}: not valid JSON ({error}); {form}")
    except RecursionError:
        return InputError(f"{where}: brackets are nested too deeply; {form}")
    except ValueError:  # Python reads no whole number of more than 4,300 digits
        return InputError(f"{where}: a number has too many digits; {form}")
    if not isinstance(record, dict):
        return InputError(f"{where}: found {_kind(record)}; {form}")
    for key in ("id", "vector"):
        if key not in record:
            return InputError(f"{where}: {key!r} is missing; {form}")
    name, vector = record["id"], record["vector"]
    if isinstance(name, bool) or not isinstance(name, str | int) or name == "":
        found = "an empty text" if name == "" else _kind(name)
        return InputError(f"{where}: 'id' is {found}; it must be a text or a whole number")
    if not isinstance(vector, dict):
        return InputError(
            f"{where}: 'vector' is {_kind(vector)}; it must be an object of feature names and"
            " weights"
        )
    for feature, weight in vector.items():
        if type(weight) not in _NUMBERS:
            return InputError(
                f"{where}: feature {feature!r} has {_kind(weight)} for a weight; weights must be"
                " numbers"
            )
        if not 0 <= weight < math.inf:
            return _bad_weight(path, number, feature, weight)
        if weight > float(np.finfo(np.float32).max):
            return _bad_weight(path, number, feature, math.inf)
    return InputError(
        f"{where}: not valid JSON here (half of a surrogate pair, a byte order mark, or a whole"
        f" number of more than 64 bits); {form}"
    )


def _kind(value: object) -> str:
    kinds = {dict: "an object", list: "a list", str: "a text", bool: "true or false"}
    return "null" if value is None else kinds.get(type(value), "a number")


def in_order(names: list[str]) -> tuple[NDArray[np.object_], NDArray[np.int32]]:
    """The names in their order, and for each number as read its place in that order, int32."""
    plain = all(
        name.isascii() and name.isdigit() and (name == "0" or name[0] != "0") for name in names
    )
    # Plain whole numbers: a longer one is larger, and equal lengths compare as text.
    key: Any = (lambda place: (len(names[place]), names[place])) if plain else names.__getitem__
    ranked = sorted(range(len(names)), key=key)
    features = np.empty(len(names), dtype=object)
    features[:] = [names[place] for place in ranked]
    order = np.empty(len(names), dtype=np.int32)
    order[ranked] = np.arange(len(names), dtype=np.int32)
    return features, order


def _assemble(file: _File, order: NDArray[np.int32]) -> SparseVectors:
    """Name features by their place, sort every row, and join the blocks, which are consumed."""
    ids = np.empty(len(file.ids), dtype=object)
    ids[:] = file.ids
    indptr = np.zeros(len(ids) + 1, dtype=np.int64)
    np.cumsum(np.concatenate([block.sizes for block in file.blocks]), out=indptr[1:])
    features = np.empty(indptr[-1], dtype=np.int32)
    values = np.empty(indptr[-1], dtype=np.float32)
    file.blocks.reverse()
    start = 0
    while file.blocks:
        block = file.blocks.pop()
        names = order[block.features] if len(block.features) else block.features
        # Positive floats order as their bits: one key sorts by falling value, then by feature.
        key = (~block.values.view(np.uint32)).astype(np.uint64) << np.uint64(32)
        key |= names.astype(np.uint64)
        rows = np.repeat(np.arange(len(block.sizes), dtype=np.uint16), block.sizes)
        by_value = np.argsort(key)
        chosen = by_value[np.argsort(rows[by_value], kind="stable")]
        stop = start + len(key)
        features[start:stop] = names[chosen]
        values[start:stop] = block.values[chosen]
        start = stop
    return SparseVectors(ids, indptr, features, values, len(order))
