"""Writing without half-written files, and reading lines of JSON with good errors."""

from __future__ import annotations

import errno
import fcntl
import gzip
import io
import os
import re
import shutil
import stat
import tempfile
import time
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import orjson

from whencount.errors import InputError
from whencount.interruption import leave_if_asked

_RANDOM_CHARACTERS = 8
"""How many `tempfile` puts after a prefix."""
_SECONDS_IN_DOUBT = 10.0
"""A temporary younger than this may belong to a process that has not locked it yet."""
_TEMPORARY = re.compile(rf"\.(.+)\.[a-z0-9_]{{{_RANDOM_CHARACTERS}}}")


def _synchronise(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def cannot_write(error: OSError, path: Path) -> InputError:
    """What to tell of `error`, met while writing `path`: no space, no permission, or its own."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return InputError(f"no space left while writing {path}; free some and run again")
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return InputError(f"{path} cannot be written ({error.strerror}); choose another place")
    return InputError(f"{path} cannot be written: {error.strerror or error}")


@contextmanager
def atomic_file(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; on success fsync it and rename it to `path`.

    On any exception the temporary file is removed and `path` stays as it was.

    Raises:
        InputError: the disk is full, or the place cannot be written.
    """
    final = Path(path)
    temporary: Path | None = None
    descriptor = -1
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        sweep([final], _SECONDS_IN_DOUBT)
        descriptor, name = tempfile.mkstemp(prefix=f".{final.name}.", dir=final.parent)
        temporary = Path(name)
        _hold(descriptor)
        yield temporary
        leave_if_asked()
        os.chmod(temporary, 0o666 & ~_umask())
        _synchronise(temporary)
        os.replace(temporary, final)
        _synchronise(final.parent)
    except OSError as error:
        raise cannot_write(error, final) from error
    finally:
        if temporary is not None:
            os.close(descriptor)
            temporary.unlink(missing_ok=True)


@contextmanager
def atomic_directory(path: str | Path) -> Iterator[Path]:
    """Yield an empty temporary directory beside `path`; on success it replaces `path` whole.

    Every file in it is fsynced first. On any exception `path` stays as it was.

    Raises:
        InputError: the disk is full, or the place cannot be written.
    """
    final = Path(path)
    temporary: Path | None = None
    descriptor = -1
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        sweep([final], _SECONDS_IN_DOUBT)
        temporary = Path(tempfile.mkdtemp(prefix=f".{final.name}.", dir=final.parent))
        descriptor = os.open(temporary, os.O_RDONLY)
        _hold(descriptor)
        yield temporary
        leave_if_asked()
        os.chmod(temporary, 0o777 & ~_umask())
        for entry in sorted(temporary.rglob("*")):
            if entry.is_file():
                _synchronise(entry)
        if final.is_dir():
            old = Path(tempfile.mkdtemp(prefix=f".{final.name}.old.", dir=final.parent))
            os.replace(final, old)
            os.replace(temporary, final)
            shutil.rmtree(old)
        else:
            os.replace(temporary, final)
        _synchronise(final.parent)
    except OSError as error:
        raise cannot_write(error, final) from error
    finally:
        if descriptor >= 0:
            os.close(descriptor)
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)


def _hold(descriptor: int) -> None:
    """Mark a temporary file or folder as in use, for as long as this process lives."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        # Some shared file systems lock no folders; then a leftover only stays longer.
        return


def sweep(finals: Iterable[str | Path], seconds_in_doubt: float = 0.0) -> None:
    """Remove what killed processes left half written of `finals`: temporaries that nobody holds.

    Args:
        finals: the names under which whole files or folders would stand.
        seconds_in_doubt: leave younger ones; 0 only where nobody can be about to write.
    """
    names: dict[Path, set[str]] = {}
    for final in map(Path, finals):
        # A folder that is replaced stands aside for a moment, as `.NAME.old.xxxxxxxx`.
        names.setdefault(final.parent, set()).update((final.name, f"{final.name}.old"))
    for folder, known in names.items():
        try:
            entries = sorted(entry for entry in os.listdir(folder) if entry.startswith("."))
        except OSError:
            continue
        for entry in entries:
            match = _TEMPORARY.fullmatch(entry)
            if match and match[1] in known:
                _remove_unheld(folder / entry, seconds_in_doubt)


def _remove_unheld(entry: Path, seconds_in_doubt: float) -> None:
    try:
        status = entry.lstat()
        if stat.S_ISLNK(status.st_mode) or time.time() - status.st_mtime < seconds_in_doubt:
            return
        descriptor = os.open(entry, os.O_RDONLY)
    except OSError:
        # Gone already, or another's: not ours to remove.
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return
    else:
        if entry.is_dir():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            entry.unlink(missing_ok=True)
    finally:
        os.close(descriptor)


@contextmanager
def atomic_files(folder: str | Path) -> Iterator[Path]:
    """Yield an empty temporary directory; on success its files move into `folder`.

    Files of the same names are replaced, others in `folder` stay as they are. On any exception
    nothing in `folder` changes. `folder` is made where it is missing.

    Raises:
        InputError: the disk is full, or the place cannot be written or is no folder.
    """
    final = Path(folder)
    try:
        there, is_folder = final.exists(), final.is_dir()
    except OSError as error:
        raise cannot_write(error, final) from error
    if not is_folder:
        if there:
            raise InputError(f"{final} is a file; name a folder")
        with atomic_directory(final) as temporary:
            yield temporary
        return
    inside: Path | None = None
    try:
        inside = Path(tempfile.mkdtemp(prefix=".whencount.", dir=final))
        yield inside
        leave_if_asked()
        entries = sorted(inside.iterdir())
        for entry in entries:
            if (final / entry.name).is_dir():
                raise InputError(
                    f"{final / entry.name} is a folder where a file shall stand; remove it or name"
                    " another place"
                )
            os.chmod(entry, 0o666 & ~_umask())
            _synchronise(entry)
        for entry in entries:
            os.replace(entry, final / entry.name)
        _synchronise(final)
    except OSError as error:
        raise cannot_write(error, final) from error
    finally:
        if inside is not None:
            shutil.rmtree(inside, ignore_errors=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def open_binary(path: str | Path) -> IO[bytes]:
    """Open `path` for reading; a name that ends in .gz or .zst is decompressed.

    Raises:
        InputError: the file is missing or cannot be read.
    """
    path = Path(path)
    try:
        if path.suffix == ".gz":
            return gzip.open(path, "rb")  # type: ignore[return-value]
        if path.suffix == ".zst":
            import pyarrow as pa

            return io.BufferedReader(pa.CompressedInputStream(pa.OSFile(str(path)), "zstd"))
        return path.open("rb")
    except OSError as error:
        raise InputError(
            f"{path} cannot be read ({error.strerror}); check the path and its permissions"
        ) from error


def lines_of(path: str | Path) -> Iterator[tuple[int, bytes]]:
    """Yield (line number from 1, line without its end) for every line that is not blank.

    Raises:
        InputError: the file is missing, unreadable, or a truncated or damaged gzip or zstd stream.
    """
    path = Path(path)
    with open_binary(path) as stream:
        number = 0
        try:
            for number, line in enumerate(stream, 1):
                if line.strip():
                    yield number, line.rstrip(b"\r\n")
        except (OSError, EOFError, zlib.error) as error:
            raise InputError(
                f"{path}: reading broke off after line {number} ({error}); the file is damaged or"
                " truncated: fetch or write it again"
            ) from error


def json_lines(path: str | Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (line number from 1, object) for every line of a JSON-lines file.

    Raises:
        InputError: as `lines_of`, or a line is not a JSON object.
    """
    for number, line in lines_of(path):
        try:
            record = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            raise InputError(
                f"{path}, line {number}: not valid JSON ({error}); each line must be one object"
            ) from None
        if not isinstance(record, dict):
            raise InputError(
                f"{path}, line {number}: found {type(record).__name__}; each line must be one"
                " JSON object"
            )
        yield number, record
