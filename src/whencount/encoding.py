"""The encode pass: one run of the transformer over a collection writes every representation."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from whencount.arrays import ArrayWriter, segment_order
from whencount.checkpoints import load_arrays, pack_strings, save_arrays, unpack_strings
from whencount.encoders import Encoder, Kind, StateBatch, windows
from whencount.errors import InputError
from whencount.files import atomic_file
from whencount.progress import progress
from whencount.representations import Representation
from whencount.vectors import SparseVectors, VectorsWriter

Result = TypeVar("Result")


def encode_windows(
    encoder: Encoder,
    texts: Iterable[tuple[str, str]],
    kind: Kind,
    function: Callable[[StateBatch, list[str], int], Result],
    *,
    window: int = 4096,
    total: int | None = None,
    noun: str = "text",
    first: int = 0,
) -> Iterator[tuple[list[str], list[Result]]]:
    """Yield, window after window of texts, the ids and what `function` made of each batch.

    Args:
        encoder: the encoder.
        texts: (id, text) pairs, read once.
        kind: which prefix.
        function: called with a batch, the ids of its window and the number of texts before the
            window; `batch.positions` point into the window. Must be safe in several threads.
        window: texts sorted by length together.
        total: how many texts there are, for the progress display.
        noun: what a text is, for the display.
        first: how many texts were left out before these.

    Raises:
        InputError: the encoder gives states that are not finite.
    """
    sizes: deque[int] = deque()

    def steps() -> Iterator[tuple[list[str], list[Result]] | None]:
        done = first
        for group, tokens in windows(
            texts, window, lambda group: encoder.tokenise([text for _, text in group], kind)
        ):
            ids = [identifier for identifier, _ in group]

            def work(
                batch: StateBatch, ids: list[str] = ids, done: int = done
            ) -> tuple[int, Result]:
                _require_finite(batch, ids)
                return len(batch.positions), function(batch, ids, done)

            parts: list[Result] = []
            for size, part in encoder.apply(tokens, work):
                parts.append(part)
                sizes.append(size)
                yield None
            done += len(group)
            sizes.append(0)
            yield ids, parts

    weights = iter(sizes.popleft, None)
    for step in progress(steps(), total, "encoding", noun, weights=weights):
        if step is not None:
            yield step


def packed_windows(
    encoder: Encoder,
    texts: Iterable[tuple[str, str]],
    kind: Kind,
    function: Callable[[StateBatch, list[str], int], Result],
    pack: Callable[[list[str], list[Result]], dict[str, NDArray[Any]]],
    *,
    checkpoints: Path | None = None,
    window: int = 4096,
    total: int | None = None,
    noun: str = "text",
) -> Iterator[tuple[list[str], dict[str, NDArray[Any]]]]:
    """Yield, window after window, the ids and the arrays that `pack` made of the window.

    With a folder `checkpoints` every window is kept there as a file, and those that are kept
    already are read instead of encoded, so a killed pass goes on after its last whole window.
    Windows begin at the same texts either way, so the arrays are the same, byte for byte.

    Args:
        encoder, texts, kind, function, window, total, noun: as in `encode_windows`.
        pack: joins what `function` made of the batches of a window.
        checkpoints: an existing folder, or None.
    """
    done = number = 0
    while checkpoints is not None:
        kept = load_arrays(_window_file(checkpoints, number))
        if kept is None:
            break
        ids = unpack_strings({name: kept.pop(f"ids.{name}") for name in ("bytes", "ends")})
        done, number = done + len(ids), number + 1
        yield ids, kept
    for ids, parts in encode_windows(
        encoder,
        islice(texts, done, None),
        kind,
        function,
        window=window,
        total=None if total is None else total - done,
        noun=noun,
        first=done,
    ):
        arrays = pack(ids, parts)
        if checkpoints is not None:
            packed = {f"ids.{name}": array for name, array in pack_strings(ids).items()}
            save_arrays(_window_file(checkpoints, number), packed | arrays)
        number += 1
        yield ids, arrays


def _window_file(folder: Path, number: int) -> Path:
    return folder / f"window{number:06d}.npz"


def _require_finite(batch: StateBatch, ids: list[str]) -> None:
    if not bool(torch.isfinite(batch.states).all()):
        bad = int(torch.nonzero(~torch.isfinite(batch.states).all(dim=1))[0])
        text = int(np.searchsorted(batch.offsets, bad, side="right")) - 1
        raise InputError(
            f"text {ids[int(batch.positions[text])]!r}: the encoder gives states that are not"
            " finite; set its precision to fp32"
        )


@dataclass(frozen=True)
class _Rows:
    """Vectors of some texts, each row's pairs by falling value."""

    sizes: NDArray[np.int64]
    features: NDArray[np.int32]
    values: NDArray[np.float32]


@dataclass(frozen=True)
class _Encoded:
    positions: NDArray[np.int64]
    rows: dict[str, _Rows]
    dense: NDArray[np.float32]


def encode_collection(
    encoder: Encoder,
    texts: Iterable[tuple[str, str]],
    representations: Mapping[str, str | Path],
    out: Mapping[str, str | Path],
    *,
    kind: Kind,
    dense_out: str | Path | None = None,
    dense_dtype: str = "float32",
    maximum_stored: int | None = None,
    start: int = 0,
    stop: int | None = None,
    total: int | None = None,
    window: int = 4096,
    checkpoints: Path | None = None,
) -> int:
    """Encode texts once and write the sparse vectors of every representation.

    Rows stand in the order of `texts`. Token states are never written; memory is bounded by one
    window of texts.

    Args:
        encoder: the encoder.
        texts: (id, text) pairs, read once, streaming.
        representations: name -> directory written by `whencount.fitting.fit_basis`.
        out: name -> directory of vectors to write (`SparseVectors.load` reads it).
        kind: "query" or "passage": which prefix.
        dense_out: where to write the L2-normalised pooled states, an .npy file of shape
            (rows, dimensions); a text without content tokens has the zero row.
        dense_dtype: "float32" or "float16".
        maximum_stored: keep at most this many values per row; None keeps all.
        start: the first row to encode.
        stop: the row after the last one; None encodes to the end.
        total: how many texts there are from `start` to `stop`, for the progress display.
        window: texts sorted by length together.
        checkpoints: a folder that keeps finished windows (`packed_windows`); None keeps none.

    Returns:
        How many rows were written.

    Raises:
        InputError: a representation is not there or does not fit the encoder, `out` names others,
            or a place cannot be written.
    """
    if set(representations) != set(out):
        missing = sorted(set(representations) ^ set(out))
        raise InputError(f"representation {missing[0]!r} is either not fitted or has no place")
    fitted = {name: _load(name, path, encoder) for name, path in representations.items()}

    def work(batch: StateBatch, ids: list[str], first: int) -> _Encoded:
        pooled = batch.pooled()
        rows = {
            name: _sorted_rows(
                *representation.encode(batch.states, pooled, batch.offsets),
                len(batch.positions),
                representation.basis.vocabulary_size,
            )
            for name, representation in fitted.items()
        }
        return _Encoded(batch.positions, rows, _normalised(pooled.cpu().numpy()))

    def pack(ids: list[str], parts: list[_Encoded]) -> dict[str, NDArray[Any]]:
        positions = np.concatenate([part.positions for part in parts])
        block = np.concatenate([part.dense for part in parts])
        arrays: dict[str, NDArray[Any]] = {"dense": block[np.argsort(positions)]}
        for name, representation in fitted.items():
            vectors = _in_order(
                ids,
                positions,
                [part.rows[name] for part in parts],
                representation.basis.vocabulary_size,
            ).cap(maximum_stored)
            for part in ("indptr", "features", "values"):
                arrays[f"{name}.{part}"] = np.asarray(getattr(vectors, part))
        return arrays

    written = 0
    with ExitStack() as stack:
        writers = {
            name: stack.enter_context(VectorsWriter(out[name], basis.basis.vocabulary_size))
            for name, basis in fitted.items()
        }
        dense = (
            stack.enter_context(_dense_writer(dense_out, dense_dtype, encoder.dimensions))
            if dense_out is not None
            else None
        )
        for ids, arrays in packed_windows(
            encoder,
            islice(texts, start, stop),
            kind,
            work,
            pack,
            checkpoints=checkpoints,
            window=window,
            total=total,
            noun="passage" if kind == "passage" else "query",
        ):
            names = np.empty(len(ids), dtype=object)
            names[:] = ids
            for name, writer in writers.items():
                writer.append(
                    SparseVectors(
                        names,
                        arrays[f"{name}.indptr"],
                        arrays[f"{name}.features"],
                        arrays[f"{name}.values"],
                        fitted[name].basis.vocabulary_size,
                    )
                )
            if dense is not None:
                dense.append(arrays["dense"])
            written += len(ids)
    return written


def _load(name: str, path: str | Path, encoder: Encoder) -> Representation:
    representation = Representation.load(path)
    if representation.basis.dimensions != encoder.dimensions:
        raise InputError(
            f"representation {name!r} was fitted on states of {representation.basis.dimensions}"
            f" dimensions, but the encoder gives {encoder.dimensions}; fit it with this encoder"
        )
    representation.basis.to(encoder.device)
    return representation


def _sorted_rows(
    rows: NDArray[np.int64],
    features: NDArray[np.int32],
    values: NDArray[np.float32],
    count: int,
    vocabulary_size: int,
) -> _Rows:
    """Sort triples by row, falling value, rising feature."""
    sizes = np.bincount(rows, minlength=count).astype(np.int64)
    feature_bits = int(vocabulary_size - 1).bit_length()
    if int(count).bit_length() + 32 + feature_bits <= 64:
        # One 64-bit key per pair: positive floats order as their bits do. Sorting keys is several
        # times faster than ordering three arrays.
        falling = np.uint64(0xFFFFFFFF) - values.view(np.uint32).astype(np.uint64)
        keys = rows.astype(np.uint64) << np.uint64(32 + feature_bits)
        keys |= falling << np.uint64(feature_bits)
        keys |= features.astype(np.uint64)
        keys.sort()
        sorted_features = (keys & np.uint64((1 << feature_bits) - 1)).astype(np.int32)
        bits = np.uint64(0xFFFFFFFF) - ((keys >> np.uint64(feature_bits)) & np.uint64(0xFFFFFFFF))
        return _Rows(sizes, sorted_features, bits.astype(np.uint32).view(np.float32))
    order = np.lexsort((features, -values, rows))
    return _Rows(sizes, features[order], values[order])


def _in_order(
    ids: list[str], positions: NDArray[np.int64], parts: list[_Rows], vocabulary_size: int
) -> SparseVectors:
    sizes = np.concatenate([part.sizes for part in parts])
    source = segment_order(positions, sizes)
    indptr = np.zeros(len(ids) + 1, dtype=np.int64)
    np.cumsum(sizes[np.argsort(positions)], out=indptr[1:])
    names = np.empty(len(ids), dtype=object)
    names[:] = ids
    return SparseVectors(
        names,
        indptr,
        np.concatenate([part.features for part in parts])[source],
        np.concatenate([part.values for part in parts])[source],
        vocabulary_size,
    )


def _normalised(pooled: NDArray[np.float32]) -> NDArray[np.float32]:
    norms = np.linalg.norm(pooled, axis=1, keepdims=True)
    return np.asarray(pooled / np.where(norms > 0, norms, 1), dtype=np.float32)


@contextmanager
def _dense_writer(path: str | Path, dtype: str, width: int) -> Iterator[ArrayWriter]:
    with atomic_file(path) as temporary:
        writer = ArrayWriter(temporary, dtype, width)
        yield writer
        writer.close()
