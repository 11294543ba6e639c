"""One way into vectors of any origin: `open_vectors`."""

from __future__ import annotations

import shutil
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import repeat
from pathlib import Path

from whencount.errors import InputError
from whencount.files import open_binary
from whencount.progress import progress
from whencount.reading import (
    folders,
    inverted,
    json_lines,
    matrices,
    tables,
    tensors,
    topics,
)
from whencount.reading.formats import STREAMED, find
from whencount.reading.places import Places, SeenIds
from whencount.reading.rows import Rows, checked
from whencount.reading.vocabulary import Vocabulary
from whencount.vectors import SparseVectors

_UNITS = {"json lines": "line", "topics": "line", "ciff": "document"}


class VectorSource:
    """Vectors at a path, read as a stream of blocks; see `open_vectors`.

    Iterating reads the files from their beginning, and shows progress. A block has at most 16,384
    rows and about a million weights; its features are numbered by `vocabulary`, and its
    `vocabulary_size` is how many are known by then. Besides a block, memory holds the vocabulary
    and 24 bytes per id.

    Attributes:
        path: as given.
        format: a key of `formats.FORMATS`.
        files: what is read, in order.
        vocabulary: names of features to their numbers; grows while blocks are read.
    """

    def __init__(self, path: Path, vocabulary: Vocabulary, ids: Path | None) -> None:
        self.path = path
        self.vocabulary = vocabulary
        self._ids = ids
        found = find(path)
        self.format, self.files = found.format, found.files
        if ids is not None and self.format not in ("npz", "tensor"):
            raise InputError(
                f"{path} has its ids inside; a file of ids belongs to .npz and .pt only, so leave"
                f" {ids} out"
            )

    def __iter__(self) -> Iterator[SparseVectors]:
        """Blocks of rows in the order of the files.

        Raises:
            InputError: a file is missing, damaged or without vectors; a row is malformed; an id is
                empty or used twice; a weight is negative, NaN, infinite or too large for float32.
                The place is named.
        """
        with ExitStack() as stack:
            files = [_unpacked(path, self.format, stack) for path in self.files]
            told = Places(self.files, _UNITS.get(self.format, "row"))
            total = self._total(files)
            sizes: list[int] = []
            blocks = self._blocks(files, told, sizes)
            weights = (sizes[-1] for _ in repeat(None))
            yield from progress(blocks, total, f"reading {self.path.name}", "vector", weights)
            if not sum(sizes):
                raise InputError(f"{self.path} holds no vectors; check that it is the right file")

    def _blocks(self, files: list[Path], told: Places, sizes: list[int]) -> Iterator[SparseVectors]:
        seen = SeenIds(told)
        for rows in self._rows(Places(files, told.unit)):
            if len(rows.ids) != len(rows.sizes):
                raise InputError(
                    f"{told.told(int(rows.places[0]))}: {len(rows.ids)} ids for"
                    f" {len(rows.sizes)} vectors; the file is damaged: write it again"
                )
            block = checked(rows, self.vocabulary, told)
            seen.add(rows.ids, rows.places)
            sizes.append(len(block))
            yield block

    def _rows(self, places: Places) -> Iterator[Rows]:
        vocabulary = self.vocabulary
        match self.format:
            case "json lines":
                return json_lines.read(places, vocabulary)
            case "topics":
                return topics.read(places, vocabulary)
            case "npz":
                return matrices.read(places, vocabulary, self._ids)
            case "parquet":
                return tables.read_parquet(places, vocabulary)
            case "arrow":
                return tables.read_arrow(places, vocabulary)
            case "tensor":
                return tensors.read(places, vocabulary, self._ids)
            case "ciff":
                return inverted.read(places, vocabulary)
            case _:
                return folders.read(places, vocabulary)

    def _total(self, files: list[Path]) -> int | None:
        """How many vectors there are, where the files tell it at once."""
        match self.format:
            case "npz":
                return sum(matrices.shape_of(path)[0] for path in files)
            case "parquet":
                return sum(map(tables.parquet_rows, files))
            case "ciff":
                return sum(map(inverted.documents_of, files))
            case "folder":
                return sum(len(SparseVectors.load(path)) for path in files)
            case _:
                return None


def open_vectors(
    path: str | Path, vocabulary: Vocabulary | None = None, *, ids: str | Path | None = None
) -> VectorSource:
    """Open vectors of any known format (docs/formats.md) for streaming.

    Args:
        path: a file or a folder of files of one format; the format is told by the name (.gz and
            .zst aside) or the first bytes.
        vocabulary: of vectors opened before, so that documents and queries have one.
        ids: for .npz and .pt, a file of ids, one a line or a .npy of text; what stands beside the
            file as NAME.ids.txt where left out, and row numbers without it.

    Raises:
        InputError: nothing stands there, or nothing known.
    """
    return VectorSource(
        Path(path),
        Vocabulary() if vocabulary is None else vocabulary,
        None if ids is None else Path(ids),
    )


def _unpacked(path: Path, format_: str, stack: ExitStack) -> Path:
    """The file itself, or where it is compressed and not to be streamed, what is in it."""
    if format_ in STREAMED or path.suffix not in (".gz", ".zst"):
        return path
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="whencount-")))
    whole = folder / path.stem
    try:
        with open_binary(path) as source, whole.open("wb") as target:
            shutil.copyfileobj(source, target, 1 << 20)
    except (OSError, EOFError, zlib.error) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"{path} cannot be unpacked into {folder} ({error}); write it again, or set TMPDIR to a"
            " place with more room"
        ) from error
    for suffix in matrices.ID_SUFFIXES:
        beside = path.with_name(Path(path.stem).stem + suffix)
        if beside.is_file():
            (folder / beside.name).symlink_to(beside.resolve())
    return whole
