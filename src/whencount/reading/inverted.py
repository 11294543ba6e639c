"""CIFF files, which hold postings lists, turned into documents in bounded memory."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whencount.errors import InputError
from whencount.exporting.ciff import CiffFile
from whencount.progress import progress
from whencount.reading.places import Places
from whencount.reading.rows import ROWS_AT_ONCE, Rows
from whencount.reading.vocabulary import Vocabulary

_POSTINGS_AT_ONCE = 1 << 22
_POSTING = np.dtype([("document", np.int32), ("feature", np.int32), ("weight", np.int64)])


def documents_of(path: Path) -> int:
    """How many documents the header declares."""
    return CiffFile(path).header.documents


def read(places: Places, vocabulary: Vocabulary) -> Iterator[Rows]:
    """Documents of all files, in order.

    Postings are first dealt to temporary files by ranges of documents: 16 bytes each on disk, in
    the folder that the environment variable TMPDIR names; memory holds a few million.

    Raises:
        InputError: a file is no whole CIFF, or names a document past its number of documents.
    """
    for file, path in enumerate(places.files):
        source = CiffFile(path)
        count = source.header.documents
        with tempfile.TemporaryDirectory(prefix="whencount-") as folder:
            buckets = _Buckets(path, Path(folder), count)
            lists = progress(source.lists(), source.header.lists, f"reading {path.name}", "list")
            for term, documents, weights in lists:
                buckets.add(vocabulary[term], documents, weights)
            records = source.records()
            for low, postings in buckets.read():
                names = [name for name, _ in islice(records, min(ROWS_AT_ONCE, count - low))]
                order = np.argsort(postings["document"], kind="stable")
                documents = postings["document"][order].astype(np.int64) - low
                yield Rows(
                    names,
                    places.of(file, np.arange(low, low + len(names), dtype=np.int64)),
                    np.bincount(documents, minlength=len(names)),
                    postings["feature"][order],
                    postings["weight"][order].astype(np.float64),
                )


class _Buckets:
    """Postings dealt to one file per ROWS_AT_ONCE documents."""

    def __init__(self, path: Path, folder: Path, documents: int) -> None:
        self._path, self._folder, self._documents = path, folder, documents
        self._waiting: list[NDArray[Any]] = []
        self._count = 0

    def add(self, feature: int, documents: NDArray[np.int64], weights: NDArray[np.int64]) -> None:
        if len(documents) == 0:
            return
        if not 0 <= int(documents.min()) <= int(documents.max()) < self._documents:
            raise InputError(
                f"{self._path}: a postings list names document {int(documents.max())} of"
                f" {self._documents}; the file is damaged: write it again"
            )
        part = np.empty(len(documents), dtype=_POSTING)
        part["document"], part["feature"], part["weight"] = documents, feature, weights
        self._waiting.append(part)
        self._count += len(part)
        if self._count >= _POSTINGS_AT_ONCE:
            self._deal()

    def _deal(self) -> None:
        if not self._waiting:
            return
        postings = np.concatenate(self._waiting)
        bucket = postings["document"] // ROWS_AT_ONCE
        order = np.argsort(bucket, kind="stable")
        postings, bucket = postings[order], bucket[order]
        present, starts = np.unique(bucket, return_index=True)
        for number, part in zip(present.tolist(), np.split(postings, starts[1:]), strict=True):
            with (self._folder / str(number)).open("ab") as stream:
                stream.write(part.tobytes())
        self._waiting, self._count = [], 0

    def read(self) -> Iterator[tuple[int, NDArray[Any]]]:
        """First document and postings of every range."""
        self._deal()
        for low in range(0, self._documents, ROWS_AT_ONCE):
            held = self._folder / str(low // ROWS_AT_ONCE)
            if held.is_file():
                yield low, np.fromfile(held, dtype=_POSTING)
                held.unlink()
            else:
                yield low, np.empty(0, dtype=_POSTING)
