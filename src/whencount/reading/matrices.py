"""Compressed sparse rows in `.npz`, as scipy.sparse.save_npz writes them, read as a stream."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from whencount.errors import InputError
from whencount.files import lines_of
from whencount.reading.places import Places
from whencount.reading.rows import ROWS_AT_ONCE, WEIGHTS_AT_ONCE, Rows
from whencount.reading.vocabulary import Vocabulary

ID_SUFFIXES = (".ids.txt", ".ids.txt.gz", ".ids.txt.zst", ".ids.npy")
"""What stands beside NAME.npz: NAME.ids.txt, one id a line, or NAME.ids.npy."""
_WHAT = "write it with scipy.sparse.save_npz(path, matrix.tocsr())"


class _Member:
    """One array of the archive, read from its beginning to its end."""

    def __init__(self, path: Path, archive: zipfile.ZipFile, name: str, stack: ExitStack) -> None:
        self._path, self._name = path, name
        try:
            self._stream: IO[bytes] = stack.enter_context(archive.open(f"{name}.npy"))
            version = np.lib.format.read_magic(self._stream)
            header = {
                (1, 0): np.lib.format.read_array_header_1_0,
                (2, 0): np.lib.format.read_array_header_2_0,
            }[version]
            self.shape, _, self.dtype = header(self._stream)
        except (KeyError, ValueError, OSError, zipfile.BadZipFile) as error:
            raise InputError(f"{path}: no array {name!r} of a matrix ({error}); {_WHAT}") from error
        if self.dtype.hasobject or self.dtype.kind not in "biufS" or len(self.shape) > 1:
            raise InputError(f"{path}: array {name!r} is of type {self.dtype}; {_WHAT}")

    def take(self, count: int) -> NDArray[Any]:
        """The next `count` numbers."""
        size = count * self.dtype.itemsize
        parts = []
        while size:
            try:
                part = self._stream.read(size)
            except (OSError, EOFError, zipfile.BadZipFile) as error:
                raise self._broken(str(error)) from error
            if not part:
                raise self._broken("the array is shorter than declared")
            parts.append(part)
            size -= len(part)
        return np.frombuffer(b"".join(parts), dtype=self.dtype)

    def _broken(self, reason: str) -> InputError:
        return InputError(
            f"{self._path}: array {self._name!r} breaks off ({reason}); the file is damaged or"
            " truncated: fetch or write it again"
        )


def shape_of(path: Path) -> tuple[int, int]:
    """Rows and columns of the matrix in a file.

    Raises:
        InputError: it is no archive of a matrix in CSR.
    """
    with ExitStack() as stack:
        archive = _opened(path, stack)
        kind = _Member(path, archive, "format", stack)
        found = kind.take(1)[0]
        told = found.decode("ascii", "replace") if isinstance(found, bytes) else str(found)
        if told != "csr":
            raise InputError(f"{path}: the matrix is {told!r}, not 'csr'; {_WHAT}")
        shape = _Member(path, archive, "shape", stack).take(2)
        return int(shape[0]), int(shape[1])


def read(places: Places, vocabulary: Vocabulary, ids: Path | None = None) -> Iterator[Rows]:
    """Rows of all files, in order; columns without a weight are in the vocabulary too.

    Args:
        ids: one id a line, or a .npy of text; what stands beside each file where left out. Without
            either a row is named by its number in its file.

    Raises:
        InputError: a file is no matrix in CSR, is damaged, or has another number of ids.
    """
    for file, path in enumerate(places.files):
        count, columns = shape_of(path)
        names = _names(path, ids, count)
        vocabulary.declare(columns)
        with ExitStack() as stack:
            # A handle each: members are read side by side.
            indptr, indices, data = (
                _Member(path, _opened(path, stack), name, stack)
                for name in ("indptr", "indices", "data")
            )
            row, last = 0, int(indptr.take(1)[0])
            pending = np.empty(0, dtype=np.int64)
            while row < count:
                if len(pending) == 0:
                    more = indptr.take(min(ROWS_AT_ONCE, count - row)).astype(np.int64)
                    pending = np.diff(more, prepend=last)
                    last = int(more[-1])
                    if (pending < 0).any():
                        raise InputError(
                            f"{path}, row {row + int(np.argmax(pending < 0))}: indptr falls;"
                            f" {_WHAT}"
                        )
                fitting = int(np.searchsorted(np.cumsum(pending), WEIGHTS_AT_ONCE, side="right"))
                sizes, pending = np.split(pending, [max(1, fitting)])
                total = int(sizes.sum())
                features = indices.take(total).astype(np.int64)
                outside = (features < 0) | (features >= columns)
                if outside.any():
                    at = int(np.argmax(outside))
                    wrong = row + int(np.searchsorted(np.cumsum(sizes), at, side="right"))
                    raise InputError(
                        f"{path}, row {wrong}: column {features[at]} lies outside"
                        f" 0..{columns - 1}; {_WHAT}"
                    )
                numbers = np.arange(row, row + len(sizes), dtype=np.int64)
                yield Rows(
                    names[row : row + len(sizes)]
                    if names is not None
                    else list(map(str, numbers.tolist())),
                    places.of(file, numbers),
                    sizes,
                    vocabulary.of_whole_numbers(features),
                    data.take(total).astype(np.float64),
                )
                row += len(sizes)


def _opened(path: Path, stack: ExitStack) -> zipfile.ZipFile:
    try:
        return stack.enter_context(zipfile.ZipFile(path))
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}); check the path") from error
    except zipfile.BadZipFile as error:
        raise InputError(f"{path} is no .npz ({error}); {_WHAT}") from error


def ids_beside(path: Path) -> Path | None:
    """The file of ids that stands beside a matrix or a tensor; None without one."""
    base = path.name.removesuffix(path.suffix)
    return next(
        (
            path.with_name(base + suffix)
            for suffix in ID_SUFFIXES
            if path.with_name(base + suffix).is_file()
        ),
        None,
    )


def _names(path: Path, ids: Path | None, count: int) -> list[str] | None:
    ids = ids or ids_beside(path)
    if ids is None:
        return None
    names = read_ids(ids)
    if len(names) != count:
        raise InputError(f"{ids} has {len(names)} ids for the {count} rows of {path}; one each")
    return names


def read_ids(path: Path) -> list[str]:
    """The ids in a file: a .npy of text or whole numbers, or one id a line.

    Raises:
        InputError: it cannot be read, or is neither.
    """
    if path.suffix == ".npy":
        try:
            array = np.load(path, allow_pickle=False)
        except (OSError, ValueError) as error:
            raise InputError(
                f"{path} cannot be read as ids ({error}); save them with dtype=str"
            ) from error
        if array.ndim != 1 or array.dtype.kind not in "Uiu":
            raise InputError(
                f"{path}: {array.dtype} of shape {array.shape}; ids must be a row of text"
            )
        return [str(one) for one in array.tolist()]
    names = []
    for number, line in lines_of(path):
        try:
            names.append(line.decode().strip())
        except UnicodeDecodeError as error:
            raise InputError(f"{path}, line {number}: no UTF-8 ({error})") from error
    return names
