"""Sparse vectors: ids and rows of (feature, value) pairs, each row sorted by falling value."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from whencount.errors import InputError
from whencount.files import atomic_directory

FORMAT = "whencount-vectors-1"
_ARRAYS = {"indptr": np.int64, "features": np.int32, "values": np.float32}


@dataclass(frozen=True)
class SparseVectors:
    """Non-negative sparse vectors in CSR form.

    Within a row the pairs stand by falling value, equal values by rising feature, so a budget of
    n is the first n pairs of each row.

    Attributes:
        ids: one per row, object array of str, shape (rows,).
        indptr: int64, shape (rows + 1,); row i is `features[indptr[i]:indptr[i + 1]]`.
        features: int32, shape (non-zeros,), each in [0, vocabulary_size).
        values: float32, shape (non-zeros,), positive and finite.
        vocabulary_size: how many features there can be (V).
    """

    ids: NDArray[np.object_]
    indptr: NDArray[np.int64]
    features: NDArray[np.int32]
    values: NDArray[np.float32]
    vocabulary_size: int

    def __len__(self) -> int:
        return len(self.indptr) - 1

    @property
    def nonzeros(self) -> int:
        """The number of stored pairs."""
        return int(self.indptr[-1])

    def row_sizes(self) -> NDArray[np.int64]:
        """Stored pairs per row, int64, shape (rows,)."""
        return np.diff(self.indptr)

    @classmethod
    def from_coo(
        cls,
        ids: Sequence[str],
        rows: NDArray[Any],
        features: NDArray[Any],
        values: NDArray[Any],
        vocabulary_size: int,
    ) -> SparseVectors:
        """Sort (row, feature, value) triples into vectors; zero values are dropped.

        A (row, feature) pair may occur once only; that is the caller's to keep.

        Raises:
            InputError: a value is negative, NaN or infinite as float32, or a feature is out of
                range.
        """
        with np.errstate(over="ignore"):  # what overflows is refused below
            values = np.asarray(values).astype(np.float32)
        bad = ~(np.isfinite(values) & (values >= 0))
        if bad.any():
            at = int(np.flatnonzero(bad)[0])
            raise InputError(
                f"vector {ids[int(rows[at])]!r}, feature {int(features[at])}: weight {values[at]};"
                " weights must be finite and not negative"
            )
        if len(features) and (features.min() < 0 or features.max() >= vocabulary_size):
            raise InputError(
                f"a feature lies outside 0..{vocabulary_size - 1}, the declared vocabulary"
            )
        keep = values > 0
        rows, features, values = rows[keep], features[keep], values[keep]
        order = np.lexsort((features, -values, rows))
        indptr = np.zeros(len(ids) + 1, dtype=np.int64)
        np.cumsum(np.bincount(rows, minlength=len(ids)), out=indptr[1:])
        return cls(
            object_ids(ids),
            indptr,
            features[order].astype(np.int32),
            values[order],
            vocabulary_size,
        )

    @classmethod
    def from_dense(cls, ids: Sequence[str], dense: NDArray[Any]) -> SparseVectors:
        """The positive entries of a dense matrix, shape (rows, vocabulary_size)."""
        dense = np.asarray(dense, dtype=np.float32)
        rows, features = np.nonzero(dense)
        return cls.from_coo(ids, rows, features, dense[rows, features], dense.shape[1])

    def cap(self, budget: int | None) -> SparseVectors:
        """Keep the `budget` largest values of each row (equal values: the smaller feature).

        None keeps all. Rows with fewer pairs stay whole.

        Raises:
            InputError: the budget is below 1.
        """
        if budget is None:
            return self
        if budget < 1:
            raise InputError(f"budget {budget} is below 1; leave it out to keep every weight")
        sizes = self.row_sizes()
        if len(sizes) == 0 or int(sizes.max()) <= budget:
            return self
        kept = np.minimum(sizes, budget)
        indptr = np.zeros_like(self.indptr)
        np.cumsum(kept, out=indptr[1:])
        source = np.arange(indptr[-1], dtype=np.int64)
        source += np.repeat(self.indptr[:-1] - indptr[:-1], kept)
        return SparseVectors(
            self.ids, indptr, self.features[source], self.values[source], self.vocabulary_size
        )

    def slice(self, start: int, stop: int) -> SparseVectors:
        """Rows start..stop-1, sharing memory with this object."""
        low, high = int(self.indptr[start]), int(self.indptr[stop])
        return SparseVectors(
            self.ids[start:stop],
            self.indptr[start : stop + 1] - low,
            self.features[low:high],
            self.values[low:high],
            self.vocabulary_size,
        )

    @classmethod
    def concatenate(cls, parts: Sequence[SparseVectors]) -> SparseVectors:
        """The rows of all parts, one after the other.

        Raises:
            InputError: there are no parts, or their vocabularies differ in size.
        """
        sizes = {part.vocabulary_size for part in parts}
        if len(sizes) != 1:
            raise InputError(
                f"shards of vectors must have one vocabulary; these have {sorted(sizes)} features"
            )
        if len(parts) == 1:
            return parts[0]
        sizes_of_rows = np.concatenate([part.row_sizes() for part in parts])
        indptr = np.zeros(len(sizes_of_rows) + 1, dtype=np.int64)
        np.cumsum(sizes_of_rows, out=indptr[1:])
        return cls(
            np.concatenate([part.ids for part in parts]),
            indptr,
            np.concatenate([part.features for part in parts]),
            np.concatenate([part.values for part in parts]),
            sizes.pop(),
        )

    def save(self, path: str | Path) -> None:
        """Write the vectors as a directory that `load` reads; whole or not at all."""
        with VectorsWriter(path, self.vocabulary_size) as writer:
            writer.append(self)

    @classmethod
    def load(cls, path: str | Path) -> SparseVectors:
        """Open a directory written by `save` or `VectorsWriter`; the arrays are memory-mapped.

        Raises:
            InputError: the directory is missing, or its parts do not fit together.
        """
        path = Path(path)
        try:
            meta = json.loads((path / "meta.json").read_text())
            if meta["format"] != FORMAT:
                raise InputError(
                    f"{path}: format {meta['format']!r}, but this version reads {FORMAT!r};"
                    " build the vectors again"
                )
            arrays = {name: np.load(path / f"{name}.npy", mmap_mode="r") for name in _ARRAYS}
            ids = pq.read_table(path / "ids.parquet").column("id").to_numpy(zero_copy_only=False)
        except (OSError, KeyError, ValueError, pa.ArrowException) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(
                f"{path} is not a complete folder of vectors ({error}); build it again"
            ) from error
        vectors = cls(ids, **arrays, vocabulary_size=meta["vocabulary_size"])
        if (
            len(ids) != len(vectors)
            or meta["rows"] != len(ids)
            or meta["nonzeros"] != vectors.nonzeros
            or any(len(arrays[name]) != meta["nonzeros"] for name in ("features", "values"))
        ):
            raise InputError(
                f"{path}: the arrays do not have the sizes that meta.json declares"
                f" ({meta['rows']} rows, {meta['nonzeros']} non-zeros); build the vectors again"
            )
        return vectors


def object_ids(ids: Sequence[str] | NDArray[Any]) -> NDArray[np.object_]:
    """Ids as an object array, shape (ids,), whatever their lengths."""
    result = np.empty(len(ids), dtype=object)
    result[:] = ids
    return result


class VectorsWriter:
    """Write vectors in blocks, in bounded memory; the directory appears whole on exit.

    Use as a context manager. Layout: `indptr.npy` (int64), `features.npy` (int32), `values.npy`
    (float32), `ids.parquet` (column `id`, string), `meta.json` (format, rows, nonzeros,
    vocabulary_size, sha256 of each file).
    """

    def __init__(self, path: str | Path, vocabulary_size: int) -> None:
        self._context = atomic_directory(path)
        self._vocabulary_size = vocabulary_size
        self._rows = 0
        self._nonzeros = 0

    def __enter__(self) -> VectorsWriter:
        self._folder = self._context.__enter__()
        self._streams = {name: (self._folder / f"{name}.npy").open("w+b") for name in _ARRAYS}
        self._counts = dict.fromkeys(_ARRAYS, 0)
        for name in _ARRAYS:
            self._header(name)
        self._ids = pq.ParquetWriter(self._folder / "ids.parquet", pa.schema([("id", pa.string())]))
        self._put("indptr", np.zeros(1, dtype=np.int64))
        return self

    def declare(self, vocabulary_size: int) -> None:
        """Say how many features there are, where that is known only after the last block."""
        self._vocabulary_size = vocabulary_size

    def append(self, block: SparseVectors) -> None:
        """Add the rows of `block` after those already written."""
        self._ids.write_table(pa.table({"id": pa.array(block.ids, type=pa.string())}))
        self._put("indptr", np.asarray(block.indptr[1:]) + self._nonzeros)
        self._put("features", block.features)
        self._put("values", block.values)
        self._rows += len(block)
        self._nonzeros += block.nonzeros

    def _header(self, name: str) -> None:
        # numpy pads the header so that a one-dimensional array can grow in place.
        stream = self._streams[name]
        stream.seek(0)
        description = {
            "descr": np.lib.format.dtype_to_descr(np.dtype(_ARRAYS[name])),
            "fortran_order": False,
            "shape": (self._counts[name],),
        }
        np.lib.format.write_array_header_1_0(stream, description)

    def _put(self, name: str, array: NDArray[Any]) -> None:
        self._streams[name].write(np.ascontiguousarray(array, dtype=_ARRAYS[name]).data)
        self._counts[name] += len(array)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._ids.close()
            for name, stream in self._streams.items():
                if error is None:
                    self._header(name)
                stream.close()
            if error is None:
                digests = {entry.name: _sha256(entry) for entry in sorted(self._folder.iterdir())}
                meta = {
                    "format": FORMAT,
                    "rows": self._rows,
                    "nonzeros": self._nonzeros,
                    "vocabulary_size": self._vocabulary_size,
                    "sha256": digests,
                }
                (self._folder / "meta.json").write_text(json.dumps(meta, indent=1) + "\n")
        except BaseException as failure:
            if not self._context.__exit__(type(failure), failure, failure.__traceback__):
                raise
        else:
            self._context.__exit__(kind, error, trace)


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
