"""Work that goes on where it was killed: a folder of finished parts beside the result.

The folder `.NAME.partial` stands beside the result `NAME` from the first finished part until the
result is whole. It holds `key.json`, which says what the parts depend on; with another key they are
thrown away. A kill at any moment leaves whole parts only, since each is written beside and renamed.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import shutil
import sys
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whencount.errors import InputError
from whencount.files import atomic_file

KEY = "key.json"
"""In a folder of parts: what they depend on."""
PARTIAL = ".partial"
"""Ends the name of such a folder."""
_LOCK = "lock"


@contextmanager
def parts_of(result: str | Path, key: Mapping[str, Any]) -> Iterator[Path]:
    """Yield the folder of finished parts of `result`; it is removed when the block succeeds.

    On an exception, or a kill, the folder stays, and the next call with the same key finds the
    parts in it. Leave the block only once `result` itself stands.

    Args:
        result: the file or folder that is being made.
        key: everything that the parts depend on, as JSON values.

    Raises:
        InputError: another process is making the same result, or the place cannot be written.
    """
    final = Path(result)
    folder = final.parent / f".{final.name}{PARTIAL}"
    text = json.dumps(key, sort_keys=True, indent=1) + "\n"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / _LOCK).open("a")
    except OSError as error:
        raise InputError(
            f"{folder} cannot be written ({error.strerror}); choose another place"
        ) from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                raise InputError(f"{folder} cannot be locked ({error.strerror})") from error
            raise InputError(
                f"{final} is being made by another process; wait for it, or stop it"
            ) from None
        _keep_if_same(folder, text)
        yield folder
        shutil.rmtree(folder, ignore_errors=True)


def _keep_if_same(folder: Path, text: str) -> None:
    entries = [entry for entry in folder.iterdir() if entry.name != _LOCK]
    found = folder / KEY
    if found.is_file() and found.read_text(encoding="utf-8", errors="replace") == text:
        parts = len(entries) - 1
        if parts:
            print(f"going on with {parts} finished parts in {folder}", file=sys.stderr, flush=True)
        return
    for entry in entries:
        if entry.is_dir():
            shutil.rmtree(entry)
        else:
            entry.unlink()
    with atomic_file(found) as temporary:
        temporary.write_text(text, encoding="utf-8")


def save_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write named arrays of numbers as one file, whole or not at all.

    Raises:
        InputError: no space, or the place cannot be written.
    """
    with atomic_file(path) as temporary, temporary.open("wb") as stream:
        np.savez(stream, allow_pickle=False, **arrays)


def load_arrays(path: Path) -> dict[str, NDArray[Any]] | None:
    """Read what `save_arrays` wrote; None where there is no such file, or it is damaged.

    Every array carries a checksum (zip), so a damaged file is noticed and its work done again.
    """
    if not path.is_file():
        return None
    try:
        with np.load(path, allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        print(f"{path} is damaged ({error}); its work is done again", file=sys.stderr, flush=True)
        return None


def pack_strings(strings: list[str]) -> dict[str, NDArray[Any]]:
    """Strings as two arrays of numbers: their UTF-8 bytes and where each ends."""
    encoded = [string.encode("utf-8", "surrogatepass") for string in strings]
    return {
        "bytes": np.frombuffer(b"".join(encoded), dtype=np.uint8),
        "ends": np.cumsum([len(item) for item in encoded], dtype=np.int64),
    }


def unpack_strings(arrays: Mapping[str, NDArray[Any]]) -> list[str]:
    """The inverse of `pack_strings`."""
    text, ends = arrays["bytes"].tobytes(), arrays["ends"].tolist()
    return [
        text[start:end].decode("utf-8", "surrogatepass")
        for start, end in zip([0, *ends][: len(ends)], ends, strict=True)
    ]


def digest_of(path: str | Path) -> str:
    """SHA-256 of a file, or of the names and bytes of all files of a folder.

    Raises:
        InputError: it is not there, or cannot be read.
    """
    path = Path(path)
    try:
        if path.is_file():
            with path.open("rb") as stream:
                return hashlib.file_digest(stream, "sha256").hexdigest()
        total = hashlib.sha256()
        for entry in sorted(os.walk(path)):
            for name in sorted(entry[2]):
                inner = Path(entry[0]) / name
                total.update(f"{inner.relative_to(path)}\0{digest_of(inner)}\n".encode())
        if not path.is_dir():
            raise InputError(f"{path} is not there; check the path")
        return total.hexdigest()
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}); check the path") from error
