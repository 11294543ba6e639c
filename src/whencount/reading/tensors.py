"""Tensors saved by torch: what SparseEncoder.encode returns, with or without ids."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from whencount.errors import InputError
from whencount.reading.matrices import ids_beside, read_ids
from whencount.reading.places import Places
from whencount.reading.rows import ROWS_AT_ONCE, Rows
from whencount.reading.vocabulary import Vocabulary

_TENSOR_KEYS = ("vectors", "embeddings", "vector", "tensor")
_FORM = 'save a sparse tensor of two dimensions, or {"ids": [...], "vectors": tensor}'


def read(places: Places, vocabulary: Vocabulary, ids: Path | None = None) -> Iterator[Rows]:
    """Rows of all files, in order; one file's tensor is held whole.

    A tensor may be sparse (COO or CSR) or dense, or a list of sparse rows. Files are loaded with
    weights_only, so nothing in them is run. Columns without a weight are in the vocabulary too.

    Args:
        ids: as in `matrices.read`, where the file itself has none.

    Raises:
        InputError: a file is damaged or holds something else.
    """
    for file, path in enumerate(places.files):
        tensor, names = _loaded(path)
        count, columns = int(tensor.shape[0]), int(tensor.shape[1])
        beside = ids or ids_beside(path)
        if names is None and beside is not None:
            names = read_ids(beside)
        if names is not None and len(names) != count:
            raise InputError(f"{path}: {len(names)} ids for {count} rows; give one each")
        vocabulary.declare(columns)
        indptr = tensor.crow_indices().numpy().astype(np.int64)
        features = tensor.col_indices().numpy()
        values = tensor.values().numpy()
        if len(features) and not 0 <= features.min() <= features.max() < columns:
            raise InputError(f"{path}: a column lies outside 0..{columns - 1}; {_FORM}")
        for low in range(0, count, ROWS_AT_ONCE):
            high = min(low + ROWS_AT_ONCE, count)
            part = slice(int(indptr[low]), int(indptr[high]))
            numbers = np.arange(low, high, dtype=np.int64)
            yield Rows(
                list(map(str, numbers.tolist())) if names is None else names[low:high],
                places.of(file, numbers),
                np.diff(indptr[low : high + 1]),
                vocabulary.of_whole_numbers(features[part].astype(np.int64)),
                values[part].astype(np.float64),
            )


def _loaded(path: Path) -> tuple[Any, list[str] | None]:
    """The tensor of a file in CSR on the CPU, and its ids."""
    import warnings

    import torch

    # What torch raises where a file holds more than tensors; nothing is unpickled here.
    refused: type[Exception] = torch.serialization.pickle.UnpicklingError  # type: ignore[attr-defined]
    try:
        with warnings.catch_warnings():
            # Of the version of a pickle, which says nothing to a person.
            warnings.simplefilter("ignore")
            held = torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, RuntimeError, EOFError, refused, ValueError) as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"{path} cannot be loaded with weights_only ({first}); {_FORM}") from error
    names = None
    if isinstance(held, dict):
        ids = held.get("ids")
        key = next((key for key in _TENSOR_KEYS if key in held), None)
        if key is None:
            raise InputError(f"{path} has the keys {', '.join(map(str, held))}; {_FORM}")
        held = held[key]
        if ids is not None:
            names = _ids(path, ids)
    with warnings.catch_warnings():
        # CSR is in beta for torch, and says so.
        warnings.simplefilter("ignore")
        if isinstance(held, list | tuple) and held and all(map(torch.is_tensor, held)):
            try:
                held = torch.stack([one.reshape(-1) if not one.is_sparse else one for one in held])
            except RuntimeError as error:
                raise InputError(f"{path}: rows do not fit together ({error})") from error
        if not torch.is_tensor(held) or held.dim() != 2 or held.is_complex():
            raise InputError(f"{path} holds {type(held).__name__}; {_FORM}")
        held = held.float() if held.dtype in (torch.bfloat16, torch.float16) else held
        try:
            held = held.coalesce() if held.layout == torch.sparse_coo else held
            return held.to_sparse_csr(), names
        except RuntimeError as error:
            raise InputError(f"{path} is no whole tensor ({error}); {_FORM}") from error


def _ids(path: Path, ids: Any) -> list[str]:
    ids = ids.tolist() if hasattr(ids, "tolist") else ids
    if not isinstance(ids, list | tuple) or any(type(one) not in (str, int) for one in ids):
        raise InputError(f"{path}: 'ids' must be a list of texts or whole numbers")
    return [str(one) for one in ids]
