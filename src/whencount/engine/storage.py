"""The index on disk: written in one pass over vector shards, opened memory-mapped.

A folder of numpy arrays and `meta.json`. Per non-zero it takes 2 bytes of id and 4 of value; per
block 4 (V + 1) bytes of bounds; per document 12. Writing needs the memory of one block
(`block_documents` rows and their postings) besides what the shards themselves take.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whencount.engine.index import Index, block_size, codes_of, fill_block, rounded
from whencount.errors import InputError
from whencount.files import atomic_directory
from whencount.vectors import SparseVectors

FORMAT = "whencount-index-1"

_TYPES = {
    "block_starts": np.int64,
    "bounds": np.uint32,
    "ids": np.uint16,
    "values": np.float32,
    "lengths": np.float64,
    "peaks": np.float32,
    "document_frequency": np.int64,
    "levels": np.float32,
}
_PER_POSTING = ("ids", "values")
_PER_DOCUMENT = ("lengths", "peaks")


class _Stream:
    """A numpy file that grows; its header is written again at the end."""

    def __init__(self, folder: Path, name: str, kind: Any, columns: int | None = None) -> None:
        self._file = (folder / f"{name}.npy").open("w+b")
        self._kind, self._columns, self._rows = np.dtype(kind), columns, 0
        self._header()

    def _header(self) -> None:
        self._file.seek(0)
        shape = (self._rows,) if self._columns is None else (self._rows, self._columns)
        description = {
            "descr": np.lib.format.dtype_to_descr(self._kind),
            "fortran_order": False,
            "shape": shape,
        }
        np.lib.format.write_array_header_1_0(self._file, description)

    def append(self, array: NDArray[Any]) -> None:
        self._file.write(np.ascontiguousarray(array, dtype=self._kind).data)
        self._rows += len(array)

    def close(self) -> None:
        self._header()
        self._file.close()


def _blocks(shards: Iterable[SparseVectors], size: int) -> Iterator[SparseVectors]:
    """Cut shards laid end to end into blocks of `size` documents; only the last may be short."""
    waiting: list[SparseVectors] = []
    rows = 0
    for shard in shards:
        start = 0
        while start < len(shard):
            stop = min(len(shard), start + size - rows)
            waiting.append(shard.slice(start, stop))
            rows += stop - start
            start = stop
            if rows == size:
                yield _joined(waiting)
                waiting, rows = [], 0
    if waiting:
        yield _joined(waiting)


def _joined(parts: list[SparseVectors]) -> SparseVectors:
    if len(parts) == 1:
        return parts[0]
    sizes = np.concatenate([part.row_sizes() for part in parts])
    return SparseVectors(
        np.concatenate([part.ids for part in parts]),
        np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(sizes)]),
        np.concatenate([part.features for part in parts]),
        np.concatenate([part.values for part in parts]),
        parts[0].vocabulary_size,
    )


def write_index(
    path: str | Path,
    shards: Iterable[SparseVectors],
    block_documents: int | None = None,
    levels: NDArray[np.float32] | None = None,
) -> None:
    """Write the index of already capped vectors, given as shards in the collection's order.

    Args:
        path: the folder to write; it appears whole or not at all.
        shards: at least one; each is needed once only, and one block of it is held at a time.
        block_documents: documents per block; chosen from the first shard where left out.
        levels: store 8-bit values, each the nearest of these (`eight_bit_levels`).

    Raises:
        InputError: no shard, shards of different vocabularies, a weight or feature that
            `Index.build` refuses, or no space.
    """
    source = iter(shards)
    first = next(source, None)
    if first is None:
        raise InputError(f"{path}: no vectors to index; give at least one shard")
    vocabulary = first.vocabulary_size
    size = block_documents or block_size(len(first), first.nonzeros, vocabulary)

    def checked() -> Iterator[SparseVectors]:
        yield first
        for shard in source:
            if shard.vocabulary_size != vocabulary:
                raise InputError(
                    f"{path}: a shard has a vocabulary of {shard.vocabulary_size} features, the"
                    f" first one of {vocabulary}; encode all with the same basis"
                )
            yield shard

    with atomic_directory(path) as folder:
        kinds = _TYPES | ({} if levels is None else {"values": np.uint8})
        streams = {
            name: _Stream(folder, name, kinds[name]) for name in (*_PER_POSTING, *_PER_DOCUMENT)
        }
        streams["bounds"] = _Stream(folder, "bounds", np.uint32, vocabulary + 1)
        starts, frequency = [0], np.zeros(vocabulary, dtype=np.int64)
        smallest = float("inf")
        bounds = np.empty(vocabulary + 1, dtype=np.uint32)
        for block in _blocks(checked(), size):
            if levels is not None:
                block = rounded(block, levels)  # noqa: PLW2901
            arrays: dict[str, NDArray[Any]] = {
                name: np.empty(block.nonzeros, dtype=_TYPES[name]) for name in _PER_POSTING
            }
            arrays |= {name: np.empty(len(block), dtype=_TYPES[name]) for name in _PER_DOCUMENT}
            fill_block(block, bounds, **arrays)
            if block.nonzeros:
                smallest = min(smallest, float(arrays["values"].min()))
            if levels is not None:
                arrays["values"] = codes_of(arrays["values"], levels)
            for name, array in arrays.items():
                streams[name].append(array)
            streams["bounds"].append(bounds[None])
            starts.append(starts[-1] + block.nonzeros)
            signed = bounds.astype(np.int64)
            frequency += signed[1:] - signed[:-1]
        for stream in streams.values():
            stream.close()
        np.save(folder / "block_starts.npy", np.array(starts, dtype=np.int64))
        np.save(folder / "document_frequency.npy", frequency)
        np.save(folder / "levels.npy", np.empty(0, np.float32) if levels is None else levels)
        _describe(folder, size, vocabulary, starts[-1], smallest)


def save_index(index: Index, path: str | Path) -> None:
    """Write an index held in memory as `write_index` does.

    Raises:
        InputError: the place cannot be written, or is full.
    """
    with atomic_directory(path) as folder:
        for name in _TYPES:
            np.save(folder / f"{name}.npy", getattr(index, name))
        _describe(
            folder, index.block_documents, index.vocabulary_size, index.nonzeros, index.smallest
        )


def _describe(
    folder: Path, block_documents: int, vocabulary: int, nonzeros: int, smallest: float
) -> None:
    meta = {
        "format": FORMAT,
        "block_documents": block_documents,
        "vocabulary_size": vocabulary,
        "nonzeros": nonzeros,
        "smallest": None if smallest == float("inf") else smallest,
        "sha256": {entry.name: _sha256(entry) for entry in sorted(folder.iterdir())},
    }
    (folder / "meta.json").write_text(json.dumps(meta, indent=1) + "\n")


def open_index(path: str | Path, *, verify: bool = False) -> Index:
    """Open a folder written by `write_index`; postings and bounds stay on disk until used.

    Args:
        path: the folder.
        verify: read every byte and compare checksums first.

    Raises:
        InputError: the folder is missing, incomplete, of another version, or damaged.
    """
    path = Path(path)
    try:
        meta = json.loads((path / "meta.json").read_text())
        if meta["format"] != FORMAT:
            raise InputError(
                f"{path}: format {meta['format']!r}, but this version reads {FORMAT!r}; build the"
                " index again"
            )
        if verify:
            for name, expected in meta["sha256"].items():
                if _sha256(path / name) != expected:
                    raise InputError(
                        f"{path / name}: the checksum differs from meta.json; the file is damaged,"
                        " build the index again"
                    )
        # Copy on write, not read only: the kernels are compiled for writable arrays.
        arrays = {name: np.asarray(np.load(path / f"{name}.npy", mmap_mode="c")) for name in _TYPES}
        smallest = meta["smallest"]
        index = Index(
            block_documents=meta["block_documents"],
            vocabulary_size=meta["vocabulary_size"],
            smallest=float("inf") if smallest is None else smallest,
            **arrays,
        )
        nonzeros, vocabulary = meta["nonzeros"], meta["vocabulary_size"]
    except (OSError, KeyError, ValueError, TypeError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} is not a complete index ({error}); build it again") from error
    blocks = -(-len(index) // index.block_documents)
    kinds = _TYPES | ({"values": np.uint8} if len(index.levels) else {})
    if (
        any(arrays[name].dtype != kind for name, kind in kinds.items())
        or len(index.levels) not in (0, 256)
        or index.block_starts.shape != (blocks + 1,)
        or index.bounds.shape != (blocks, vocabulary + 1)
        or any(len(arrays[name]) != nonzeros for name in _PER_POSTING)
        or index.nonzeros != nonzeros
        or index.peaks.shape != index.lengths.shape
        or index.document_frequency.shape != (vocabulary,)
    ):
        raise InputError(
            f"{path}: the arrays do not have the sizes that meta.json declares; build the index"
            " again"
        )
    return index


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
