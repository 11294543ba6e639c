"""The Common Index File Format, which many engines read (Lin et al., 2020, arXiv:2003.08276).

One file: a header, a message per postings list by rising term, a message per document, each with
its length before it, in the wire format of protocol buffers. Terms here are feature numbers with
leading zeros, so that they rise as features do. Weights must be whole numbers.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from whencount.engine.index import Index
from whencount.errors import InputError
from whencount.files import atomic_file
from whencount.progress import progress

Array = NDArray[Any]

_POSTINGS_AT_ONCE = 1 << 22
_DOCUMENTS_AT_ONCE = 1 << 16
_LARGEST_POSTING = 14
"""Bytes: tag and length, a tag and at most five bytes each for gap and weight."""
_VERSION = 1


@dataclass(frozen=True)
class Header:
    """The first message of a file: how many postings lists and documents follow, and of what."""

    lists: int
    documents: int
    tokens: int
    average_length: float
    description: str


def term_of(feature: int) -> str:
    """The term that stands for a feature: ten digits, so that text sorts as numbers do."""
    return f"{feature:010d}"


def write_ciff(
    path: str | Path, index: Index, ids: Sequence[str], description: str = "whencount"
) -> None:
    """Write an index of whole-number weights as one CIFF file; whole or not at all.

    Memory holds a few million postings, besides the index, which may be memory-mapped.

    Args:
        path: the file.
        index: of the impacts (`Steps.round`); see `whencount.engine.storage.write_index`.
        ids: of the documents, in order.
        description: for people.

    Raises:
        InputError: a weight is no whole number from 1 to 2^31 - 1, or ids are not one per
            document.
    """
    if len(ids) != len(index):
        raise InputError(f"{len(ids)} ids for {len(index)} documents; give one each")
    live = np.flatnonzero(index.document_frequency > 0)
    tokens = int(index.lengths.sum())
    header = Header(len(live), len(index), tokens, tokens / max(1, len(index)), description)
    with atomic_file(path) as temporary, temporary.open("wb") as stream:
        stream.write(_delimited(_header(header)))
        for low, high in _feature_batches(index.document_frequency):
            documents, weights, starts = _gathered(index, low, high)
            if len(weights) and not (_is_whole(weights) and weights.max() < 2**31):
                raise InputError(
                    f"{path}: the index has weights that are no whole numbers from 1 to 2^31 - 1;"
                    " round them first (whencount.exporting.steps_of)"
                )
            for feature, (start, stop) in enumerate(pairwise(starts.tolist()), low):
                if stop > start:
                    stream.write(_list(feature, documents[start:stop], weights[start:stop]))
        batches = range(0, len(index), _DOCUMENTS_AT_ONCE)
        sizes = (min(_DOCUMENTS_AT_ONCE, len(index) - start) for start in batches)
        for start in progress(batches, len(index), "writing document records", "document", sizes):
            stop = min(start + _DOCUMENTS_AT_ONCE, len(index))
            lengths = index.lengths[start:stop].astype(np.int64).tolist()
            records = zip(range(start, stop), ids[start:stop], lengths, strict=True)
            stream.write(b"".join(_record(*one) for one in records))


def _is_whole(weights: Array) -> bool:
    return bool((weights == np.floor(weights)).all() and weights.min() >= 1)


def _feature_batches(frequency: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Ranges of features that have a few million postings together, one feature at least."""
    ends = np.cumsum(frequency)
    low = 0
    while low < len(frequency):
        before = int(ends[low - 1]) if low else 0
        high = int(np.searchsorted(ends, before + _POSTINGS_AT_ONCE, side="right"))
        high = min(max(high, low + 1), len(frequency))
        yield low, high
        low = high


def _gathered(index: Index, low: int, high: int) -> tuple[Array, Array, Array]:
    """Documents and weights of features low..high-1, by feature, then document; their starts."""
    counts = index.document_frequency[low:high]
    starts = np.zeros(high - low + 1, dtype=np.int64)
    np.cumsum(counts, out=starts[1:])
    documents = np.empty(int(starts[-1]), dtype=np.int64)
    weights = np.empty(int(starts[-1]))
    free = starts[:-1].copy()
    for block, base in enumerate(index.block_starts[:-1].tolist()):
        bounds = index.bounds[block, low : high + 1].astype(np.int64)
        first, last = base + int(bounds[0]), base + int(bounds[-1])
        sizes = np.diff(bounds)
        places = np.arange(last - first) - np.repeat(bounds[:-1] - bounds[0], sizes)
        places += np.repeat(free, sizes)
        documents[places] = block * index.block_documents + index.ids[first:last].astype(np.int64)
        weights[places] = index.weights(first, last)
        free += sizes
    return documents, weights, starts


def _list(feature: int, documents: Array, weights: Array) -> bytes:
    out = np.empty(len(documents) * _LARGEST_POSTING, dtype=np.uint8)
    size = _write_postings(documents, weights.astype(np.int64), out)
    term = term_of(feature).encode()
    head = b"\x0a" + _varint(len(term)) + term
    head += b"\x10" + _varint(len(documents)) + b"\x18" + _varint(int(weights.sum()))
    return _varint(len(head) + size) + head + out[:size].tobytes()


def _header(header: Header) -> bytes:
    numbers = (_VERSION, header.lists, header.documents, header.lists, header.documents)
    content = b"".join(
        bytes([field << 3]) + _varint(value) for field, value in enumerate(numbers, 1)
    )
    content += b"\x30" + _varint(header.tokens)
    content += b"\x39" + struct.pack("<d", header.average_length)
    told = header.description.encode()
    return content + b"\x42" + _varint(len(told)) + told


def _record(position: int, name: str, length: int) -> bytes:
    told = name.encode()
    content = b"\x08" + _varint(position) + b"\x12" + _varint(len(told)) + told
    return _delimited(content + b"\x18" + _varint(length))


def _delimited(content: bytes) -> bytes:
    return _varint(len(content)) + content


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


@njit(cache=True, nogil=True)
def _put(value: int, out: Array, at: int) -> int:
    while value > 0x7F:
        out[at] = value & 0x7F | 0x80
        value >>= 7
        at += 1
    out[at] = value
    return at + 1


@njit(cache=True, nogil=True)
def _write_postings(documents: Array, weights: Array, out: Array) -> int:
    """Write `Posting` messages with gaps between documents; return how many bytes."""
    at = 0
    previous = 0
    for place in range(len(documents)):
        # Tag 4, then the length, which is known once the two numbers are written.
        out[at] = 0x22
        start = at + 2
        out[start] = 0x08
        end = _put(documents[place] - previous, out, start + 1)
        out[end] = 0x10
        end = _put(weights[place], out, end + 1)
        out[at + 1] = end - start
        at = end
        previous = documents[place]
    return at


class CiffFile:
    """A CIFF file, read from its beginning to its end, once.

    Args:
        path: the file.

    Raises:
        InputError: it cannot be read, or is no CIFF.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        try:
            with self._path.open("rb") as stream:
                self._bytes = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            raise InputError(f"{path} cannot be read as CIFF ({error}); write it again") from error
        self._array = np.frombuffer(self._bytes, dtype=np.uint8)
        self._at = 0
        fields = dict(self._fields(*self._message()))
        try:
            self.header = Header(
                int(fields.get(2, 0)),
                int(fields.get(3, 0)),
                int(fields.get(6, 0)),
                struct.unpack("<d", fields[7])[0] if 7 in fields else 0.0,
                bytes(fields.get(8, b"")).decode(),
            )
        except (TypeError, ValueError, struct.error) as error:
            raise self._fault() from error

    def lists(self) -> Iterator[tuple[str, NDArray[np.int64], NDArray[np.int64]]]:
        """Term, documents and weights of every postings list; to be read before `records`."""
        for _ in range(self.header.lists):
            start, stop = self._message()
            term, frequency, at = "", 0, start
            # The head of a list, up to the first posting.
            while at < stop and self._bytes[at] != 0x22:
                key, value, at = self._field(at, stop)
                if key == 1:
                    term = bytes(value).decode()
                elif key == 2:
                    frequency = int(value)
            documents, weights = np.empty((2, frequency), dtype=np.int64)
            if _read_postings(self._array, at, stop, documents, weights) != frequency:
                raise self._fault()
            yield term, np.cumsum(documents), weights

    def records(self) -> Iterator[tuple[str, int]]:
        """Id and length of every document, in order."""
        for _ in range(self.header.documents):
            fields = dict(self._fields(*self._message()))
            yield bytes(fields.get(2, b"")).decode(), int(fields.get(3, 0))

    def _message(self) -> tuple[int, int]:
        size, start = self._number(self._at)
        if start + size > len(self._bytes):
            raise self._fault()
        self._at = start + size
        return start, self._at

    def _fields(self, at: int, stop: int) -> Iterator[tuple[int, Any]]:
        while at < stop:
            key, value, at = self._field(at, stop)
            yield key, value

    def _field(self, at: int, stop: int) -> tuple[int, Any, int]:
        tag, at = self._number(at)
        kind = tag & 7
        if kind == 0:
            value, at = self._number(at)
            return tag >> 3, value, at
        size, at = (8, at) if kind == 1 else self._number(at)
        if kind not in (1, 2) or at + size > stop:
            raise self._fault()
        return tag >> 3, self._bytes[at : at + size], at + size

    def _number(self, at: int) -> tuple[int, int]:
        value = 0
        for shift in range(0, 70, 7):
            if at >= len(self._bytes):
                break
            byte = self._bytes[at]
            value |= (byte & 0x7F) << shift
            at += 1
            if byte < 0x80:
                return value, at
        raise self._fault()

    def _fault(self) -> InputError:
        return InputError(
            f"{self._path} is no whole CIFF file (near byte {self._at}); write it again"
        )


@njit(cache=True, nogil=True)
def _read_postings(data: Array, at: int, stop: int, documents: Array, weights: Array) -> int:
    """Read `Posting` messages into gaps and weights; return how many, or -1 where one is broken."""
    count = 0
    while at < stop:
        if data[at] != 0x22 or at + 2 > stop or count == len(documents):
            return -1
        end = at + 2 + int(data[at + 1])
        at += 2
        if end > stop:
            return -1
        gap, weight = 0, 0
        while at < end:
            tag = data[at]
            at += 1
            value, shift = 0, 0
            while at < end:
                byte = int(data[at])
                at += 1
                value |= (byte & 0x7F) << shift
                shift += 7
                if byte < 0x80:
                    break
            if tag == 0x08:
                gap = value
            elif tag == 0x10:
                weight = value
            else:
                return -1
        documents[count], weights[count] = gap, weight
        count += 1
    return count
