"""JSON lines of vectors, as Anserini, Pyserini and SPLADE write them, and close relatives."""

from __future__ import annotations

import json
import math
from array import array
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import orjson

from whencount.errors import InputError
from whencount.files import lines_of
from whencount.reading.places import Places
from whencount.reading.rows import ROWS_AT_ONCE, WEIGHTS_AT_ONCE, Rows
from whencount.reading.vocabulary import LARGEST_FEATURE, Vocabulary

ID_KEYS = ("id", "_id", "docid", "doc_id")
VECTOR_KEYS = ("vector", "sparse_vector", "sparse_values")
_FORM = 'each line must be {"id": ..., "vector": {"feature": weight, ...}}'
_NUMBERS = frozenset({float, int})
_NAMES = frozenset({str})
_WHOLE = frozenset({int})


class _WrongError(Exception):
    """What is wrong with a record; the place is added where it is known."""


def read(places: Places, vocabulary: Vocabulary) -> Iterator[Rows]:
    """Rows of all files, in order.

    A vector is an object of names and weights, an object of `indices` and `values`, or a list of
    [name, weight] pairs. Of a name written twice in an object the last weight counts, as JSON
    readers have it.

    Raises:
        InputError: a file cannot be read, or a line is malformed; file and line are named.
    """
    for file, path in enumerate(places.files):
        ids: list[str] = []
        lines, sizes, features = array("q"), array("q"), array("i")
        weights = array("d")

        def rows() -> Rows:
            return Rows(
                ids,  # noqa: B023 - used at once
                places.of(file, np.array(lines, dtype=np.int64)),  # noqa: B023
                np.array(sizes, dtype=np.int64),  # noqa: B023
                np.array(features, dtype=np.int32),  # noqa: B023
                np.array(weights, dtype=np.float64)[: len(features)],  # noqa: B023
            )

        for number, raw in lines_of(path):
            line = raw.removeprefix(BOM_UTF8) if number == 1 else raw
            try:
                name, names, values = _parsed(orjson.loads(line))
                weights.extend(values)
            except (orjson.JSONDecodeError, _WrongError, OverflowError) as error:
                if ids:
                    yield rows()  # an earlier bad weight is the first fault
                raise _fault(f"{path}, line {number}", line, error) from None
            features.extend(map(vocabulary.__getitem__, names))
            ids.append(name)
            lines.append(number)
            sizes.append(len(values))
            if len(ids) >= ROWS_AT_ONCE or len(weights) >= WEIGHTS_AT_ONCE:
                yield rows()
                ids = []
                lines, sizes, features = array("q"), array("q"), array("i")
                weights = array("d")
        if ids:
            yield rows()


def _parsed(record: Any) -> tuple[str, Iterable[str], Any]:
    """Id, names and weights of a record."""
    if type(record) is not dict:
        raise _WrongError(f"found {_kind(record)}; {_FORM}")
    for key in ID_KEYS:
        if key in record:
            name = record[key]
            break
    else:
        raise _WrongError(f"'id' is missing; {_FORM}")
    if type(name) is int:
        name = str(name)
    if type(name) is not str or not name:
        found = "an empty text" if name == "" else _kind(name)
        raise _WrongError(f"{key!r} is {found}; it must be a text or a whole number")
    if "vector" in record:  # the usual name first
        vector = record["vector"]
    else:
        held = [key for key in VECTOR_KEYS if key in record]
        if not held and not ("indices" in record and "values" in record):
            raise _WrongError(f"'vector' is missing; {_FORM}")
        vector = record[held[0]] if held else record
    if type(vector) is dict:
        if type(vector.get("indices")) is list or type(vector.get("values")) is list:
            names, values = _named(vector.get("indices"), vector.get("values"))
        else:
            names, values = vector, list(vector.values())
    elif type(vector) is list:
        if any(type(pair) is not list or len(pair) != 2 for pair in vector):
            raise _WrongError("'vector' is a list, but not one of [feature, weight] pairs")
        names, values = _named([pair[0] for pair in vector], [pair[1] for pair in vector])
    else:
        raise _WrongError(
            f"'vector' is {_kind(vector)}; it must be an object of feature names and weights"
        )
    if not _NUMBERS.issuperset(map(type, values)):
        wrong = next(
            (name, value)
            for name, value in zip(names, values, strict=True)
            if type(value) not in _NUMBERS
        )
        raise _WrongError(
            f"feature {wrong[0]!r} has {_kind(wrong[1])} for a weight; weights must be numbers"
        )
    return name, names, values


def _named(indices: Any, values: Any) -> tuple[Iterable[str], list[Any]]:
    if type(indices) is not list or type(values) is not list or len(indices) != len(values):
        raise _WrongError("'indices' and 'values' must be two lists of one length")
    kinds = set(map(type, indices))
    if kinds <= _NAMES:
        return indices, values
    if not kinds <= _WHOLE:
        raise _WrongError("features must be all texts or all whole numbers")
    if not 0 <= min(indices) <= max(indices) <= LARGEST_FEATURE:
        raise _WrongError("a feature lies outside 0..2^31 - 1; number them from 0")
    return list(map(str, indices)), values


def _fault(where: str, line: bytes, error: Exception) -> InputError:
    if isinstance(error, _WrongError):
        return InputError(f"{where}: {error}")
    try:
        # The standard parser takes NaN and Infinity, so that the feature can be named.
        _, names, values = _parsed(json.loads(line))
    except _WrongError as wrong:
        return InputError(f"{where}: {wrong}")
    except RecursionError:
        return InputError(f"{where}: brackets are nested too deeply; {_FORM}")
    except ValueError as other:
        return InputError(f"{where}: not valid JSON ({other}); {_FORM}")
    for name, weight in zip(names, values, strict=True):
        if not 0 <= weight < math.inf or weight > 3.4e38:
            told = "too many digits" if isinstance(weight, int) else repr(weight)
            return InputError(
                f"{where}: feature {name!r} has weight {told}; weights must be finite numbers of"
                " at least 0"
            )
    return InputError(f"{where}: not valid JSON ({error}); {_FORM}")


def _kind(value: object) -> str:
    kinds = {dict: "an object", list: "a list", str: "a text", bool: "true or false"}
    return "null" if value is None else kinds.get(type(value), "a number")
