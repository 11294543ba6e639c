"""Rows out of Arrow tables: a column of ids, and one or two of features and weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from whencount.errors import InputError
from whencount.reading.json_lines import ID_KEYS, VECTOR_KEYS
from whencount.reading.places import Places
from whencount.reading.rows import Rows
from whencount.reading.vocabulary import Vocabulary

_PAIRS = (
    ("indices", "values"),
    ("indices", "weights"),
    ("tokens", "weights"),
    ("terms", "weights"),
    ("features", "values"),
)
_FORM = (
    "columns must be `id` and either `indices` and `values` (lists), or `vector` (a map, a list of"
    " pairs, or a structure of terms)"
)


def columns_of(schema: Any, path: Any) -> list[str]:
    """The columns that are needed of a table: id, then vector or features and weights.

    Raises:
        InputError: they are not there.
    """
    names = set(schema.names)
    identity = next((key for key in ID_KEYS if key in names), None)
    pair = next((pair for pair in _PAIRS if names.issuperset(pair)), None)
    vector = next((key for key in VECTOR_KEYS if key in names), None)
    if identity is None or (pair is None and vector is None):
        raise InputError(f"{path} has the columns {', '.join(schema.names)}; {_FORM}")
    if pair is not None:
        return [identity, *pair]
    assert vector is not None
    return [identity, vector]


def rows_of(
    batch: Any, columns: list[str], places: Places, file: int, start: int, vocabulary: Vocabulary
) -> Rows:
    """The rows of a record batch.

    Args:
        columns: of `columns_of`.
        file: number of the file in `places`.
        start: the batch's first row in its file.

    Raises:
        InputError: a null, or a column of another type.
    """
    place = places.of(file, np.arange(start, start + len(batch), dtype=np.int64))
    parts = [batch.column(batch.schema.get_field_index(name)) for name in columns]
    for name, part in zip(columns, parts, strict=True):
        if part.null_count:
            at = int(np.argmax(part.is_null().to_numpy(zero_copy_only=False)))
            raise InputError(f"{places.told(int(place[at]))}: column {name!r} is null; fill it")
    try:
        ids = _text(parts[0], columns[0])
        if len(parts) == 3:
            sizes, terms = _flat(parts[1], columns[1])
            others, weights = _flat(parts[2], columns[2])
            if not np.array_equal(sizes, others):
                at = int(np.argmax(sizes != others))
                raise InputError(
                    f"{places.told(int(place[at]))}: {columns[1]!r} has {sizes[at]} entries and"
                    f" {columns[2]!r} {others[at]}; they must be as many"
                )
        else:
            sizes, terms, weights = _vector(parts[1], columns[1])
        if terms.null_count or weights.null_count:
            either = pc.or_(terms.is_null(), weights.is_null()).to_numpy(zero_copy_only=False)
            at = int(np.repeat(np.arange(len(sizes)), sizes)[int(np.argmax(either))])
            raise InputError(
                f"{places.told(int(place[at]))}: a feature or weight is null; leave the pair out"
            )
        if not (pa.types.is_floating(weights.type) or pa.types.is_integer(weights.type)):
            raise ValueError(f"weights are of type {weights.type}; they must be numbers")
        features = vocabulary.of_arrow(terms)
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        first = places.told(int(place[0])) if len(place) else str(places.files[file])
        raise InputError(f"{first} and following: {error}; {_FORM}") from error
    values = weights.to_numpy(zero_copy_only=False).astype(np.float64)
    return Rows(ids, place, sizes, features, values)


def _text(column: Any, name: str) -> list[str]:
    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.dictionary_decode(), kind.value_type
    if pa.types.is_integer(kind):
        column = column.cast(pa.string())
    elif not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        raise ValueError(f"column {name!r} is of type {kind}; ids must be text or whole numbers")
    ids: list[str] = column.to_pylist()
    return ids


def _is_list(kind: Any) -> bool:
    return bool(
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    )


def _flat(column: Any, name: str) -> tuple[NDArray[np.int64], Any]:
    if not _is_list(column.type):
        raise ValueError(f"column {name!r} is of type {column.type}, no list")
    sizes = pc.list_value_length(column).to_numpy(zero_copy_only=False).astype(np.int64)
    return sizes, column.flatten()


def _vector(column: Any, name: str) -> tuple[NDArray[np.int64], Any, Any]:
    """Sizes, features and weights of a column of vectors."""
    kind = column.type
    if pa.types.is_map(kind):
        # The offsets know of a slice, the children do not.
        offsets = np.asarray(column.offsets).astype(np.int64)
        low, high = int(offsets[0]), int(offsets[-1])
        return np.diff(offsets), column.keys[low:high], column.items[low:high]
    if _is_list(kind) and pa.types.is_struct(kind.value_type) and kind.value_type.num_fields == 2:
        sizes, pairs = _flat(column, name)
        terms, weights = pairs.flatten()
        return sizes, terms, weights
    if pa.types.is_struct(kind):
        fields = {kind.field(at).name for at in range(kind.num_fields)}
        pair = next((pair for pair in _PAIRS if fields.issuperset(pair)), None)
        if pair is not None and _is_list(kind.field(pair[0]).type):
            sizes, terms = _flat(column.field(pair[0]), f"{name}.{pair[0]}")
            others, weights = _flat(column.field(pair[1]), f"{name}.{pair[1]}")
            if not np.array_equal(sizes, others):
                raise ValueError(f"{pair[0]} and {pair[1]} of column {name!r} differ in length")
            return sizes, terms, weights
        return _structure(column)
    if _is_list(kind):
        raise ValueError(
            f"column {name!r} is of type {kind}, a dense vector; keep the weights above 0 as"
            " `indices` and `values`"
        )
    raise ValueError(f"column {name!r} is of type {kind}, no vector")


def _structure(column: Any) -> tuple[NDArray[np.int64], Any, Any]:
    """A structure with a field per term, as pandas makes of dictionaries; null where absent."""
    rows, fields, weights = [], [], []
    names = [column.type.field(at).name for at in range(column.type.num_fields)]
    for number, part in enumerate(column.flatten()):
        if not (pa.types.is_floating(part.type) or pa.types.is_integer(part.type)):
            raise ValueError(f"field {names[number]!r} is of type {part.type}, no number")
        held = np.flatnonzero(part.is_valid().to_numpy(zero_copy_only=False))
        rows.append(held)
        fields.append(np.full(len(held), number))
        weights.append(part.drop_null().to_numpy(zero_copy_only=False).astype(np.float64))
    row = np.concatenate(rows) if rows else np.empty(0, dtype=np.int64)
    order = np.argsort(row, kind="stable")
    field = np.concatenate(fields)[order] if rows else row
    sizes = np.bincount(row, minlength=len(column))
    terms = pa.array(names, type=pa.string()).take(pa.array(field))
    return sizes, terms, pa.array(np.concatenate(weights)[order] if rows else np.empty(0))
