"""Downloads that go on where they broke off, are checked, and say what to do by hand."""

from __future__ import annotations

import fcntl
import hashlib
import http.client
import logging
import os
import shutil
import time
import urllib.error
import urllib.request
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from whencount.errors import InputError
from whencount.files import cannot_write
from whencount.progress import progress

_ATTEMPTS = 3
_BLOCK = 1 << 20
_SECONDS = 30.0
# Answers of a host that is busy, not of one that lacks the file.
_TRANSIENT = (403, 408, 429, 500, 502, 503, 504)
_HUB = "https://huggingface.co"
_LOG = logging.getLogger(__name__)
_verified: set[tuple[str, int, int]] = set()


@dataclass(frozen=True)
class Remote:
    """A file of a public collection.

    Attributes:
        path: where it belongs.
        urls: where it is to be had, the first that answers.
        bytes: its size, or about that; None where unknown.
        algorithm: `md5` or `sha256`.
        digest: its checksum in hexadecimal digits; empty where unknown.
        headers: what the hosts want to be told.
        exact: whether `bytes` is its very size.
    """

    path: Path
    urls: tuple[str, ...]
    bytes: int | None = None
    algorithm: str = "md5"
    digest: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    exact: bool = False

    @property
    def name(self) -> str:
        """What its hosts call it."""
        return self.urls[0].rsplit("/", maxsplit=1)[-1]


def data_home() -> Path:
    """The folder of all downloads: the variable IR_DATASETS_HOME, else `~/.ir_datasets`."""
    return Path(os.environ.get("IR_DATASETS_HOME") or "~/.ir_datasets").expanduser()


def fetch(remote: Remote) -> None:
    """Download a file to its place, unless it is there; go on with what an earlier try left.

    Half a file stands beside its place with `.part` appended; what is in place is whole and has
    its checksum. Of several processes that want a file one fetches it and the others wait. Hosts
    of the Hugging Face hub are replaced by the variable HF_ENDPOINT where it is set.

    Raises:
        InputError: it cannot be had, what came has another checksum, or there is no space or no
            permission; the message says what to put where by hand.
    """
    if os.path.exists(remote.path):
        return
    part = remote.path.with_name(f"{remote.path.name}.part")
    try:
        part.parent.mkdir(parents=True, exist_ok=True)
        with _locked(part, remote.path) as stream:
            if stream is None:
                return
            _require_space(remote, stream)
            source = _from_any(remote, stream)
            os.fsync(stream.fileno())
            if remote.digest and digest_of(part, remote.algorithm) != remote.digest:
                stream.truncate(0)
                part.unlink()
                raise InputError(
                    f"{remote.name}: what came from {source} does not have the"
                    f" {remote.algorithm} {remote.digest} and was removed; {by_hand(remote)}"
                )
            os.replace(part, remote.path)
    except OSError as error:
        raise cannot_write(error, remote.path) from error


def check(remote: Remote, path: Path | None = None) -> None:
    """Hold a file that is there to its checksum; once per process as long as it stays the same.

    Args:
        remote: what it should be.
        path: where it stands, if not at its own place.

    Raises:
        InputError: it is another one or only part of it, or cannot be read.
    """
    path = path or remote.path
    if not remote.digest:
        return
    try:
        state = path.stat()
        key = (str(path), state.st_size, state.st_mtime_ns)
        if key in _verified:
            return
        found = digest_of(path, remote.algorithm)
    except OSError as error:
        raise InputError(
            f"{path} cannot be read ({error.strerror}); check its permissions"
        ) from error
    if found != remote.digest:
        wanted = f"{remote.bytes:,} bytes and " if remote.exact and remote.bytes else ""
        raise InputError(
            f"{path} is incomplete or damaged: it has {state.st_size:,} bytes and the"
            f" {remote.algorithm} {found}, but as published it has {wanted}{remote.digest}; remove"
            f" it and run again, or {by_hand(remote, path)}"
        )
    _verified.add(key)


def by_hand(remote: Remote, path: Path | None = None) -> str:
    """What a person can do without this program, as the end of a sentence."""
    size = "" if remote.bytes is None else f" ({size_in_words(remote.bytes)})"
    return f"fetch {remote.urls[0]}{size} by other means and put it at {path or remote.path}"


def digest_of(path: Path, algorithm: str) -> str:
    """The checksum of a file in hexadecimal digits."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, algorithm).hexdigest()


def size_in_words(size: int) -> str:
    """A number of bytes as a person writes it: `2.8 MB`."""
    if size < 1000:
        return f"{size} bytes"
    value = float(size)
    for unit in ("kB", "MB", "GB", "TB"):
        value /= 1000
        if value < 999.95 or unit == "TB":
            break
    return f"{value:.1f} {unit}"


@contextmanager
def _locked(part: Path, place: Path) -> Iterator[IO[bytes] | None]:
    """Yield the half file, open for appending and locked; None where another finished it."""
    while True:
        with part.open("ab", buffering=0) as stream:
            _lock(stream, place)
            # While this process waited, another may have finished the file or given it up.
            if os.path.exists(place):
                if _is_open(part, stream):
                    part.unlink()
                yield None
                return
            if _is_open(part, stream):
                yield stream
                return


def _lock(stream: IO[bytes], place: Path) -> None:
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        _LOG.warning("waiting for another process that fetches %s", place)
        fcntl.flock(stream, fcntl.LOCK_EX)
    except OSError:
        # Some network file systems have no locks: a file fetched twice is still a good file.
        pass


def _is_open(path: Path, stream: IO[bytes]) -> bool:
    try:
        return path.stat().st_ino == os.fstat(stream.fileno()).st_ino
    except FileNotFoundError:
        return False


def _require_space(remote: Remote, stream: IO[bytes]) -> None:
    if remote.bytes is None:
        return
    missing = remote.bytes - stream.tell()
    free = shutil.disk_usage(remote.path.parent).free
    if missing > free:
        raise InputError(
            f"{remote.path} needs {size_in_words(missing)}, but only {size_in_words(free)} are"
            " free there; free some, or set IR_DATASETS_HOME to a folder with more space"
        )


def _from_any(remote: Remote, stream: IO[bytes]) -> str:
    faults = []
    for url in remote.urls:
        source = url.replace(_HUB, os.environ.get("HF_ENDPOINT", _HUB).rstrip("/"), 1)
        try:
            _append(remote, source, stream)
            return source
        except (OSError, http.client.HTTPException) as error:
            faults.append(f"{source}: {_reason(error)}")
    kept = stream.seek(0, os.SEEK_END)
    if not kept:
        Path(stream.name).unlink(missing_ok=True)
    again = f"; {kept:,} bytes of it are kept and the next run goes on there" if kept else ""
    raise InputError(
        f"{remote.name} could not be downloaded ({'; '.join(faults)}){again}; connect and run"
        f" again, or {by_hand(remote)}"
    )


def _reason(error: Exception) -> str:
    reason = getattr(error, "reason", None) or error
    code = f"{error.code} " if isinstance(error, urllib.error.HTTPError) else ""
    return f"{code}{getattr(reason, 'strerror', None) or reason or type(error).__name__}"


def _append(remote: Remote, url: str, stream: IO[bytes]) -> None:
    """Append what is missing of a file, trying again where the connection breaks."""
    for attempt in range(1, _ATTEMPTS + 1):
        start = stream.seek(0, os.SEEK_END)
        headers = {"User-Agent": "whencount", **remote.headers}
        if start:
            headers["Range"] = f"bytes={start}-"
        try:
            request = urllib.request.Request(url, headers=headers)
            with urllib.request.urlopen(request, timeout=_SECONDS) as response:
                if start and response.status != http.HTTPStatus.PARTIAL_CONTENT:
                    stream.truncate(0)
                    start = 0
                _copy(response, stream, remote.name, start)
            return
        except urllib.error.HTTPError as error:
            if error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and start:
                # Nothing follows: the file is whole, or what is kept is of another one.
                if error.headers.get("Content-Range", "").endswith(f"/{start}"):
                    return
                stream.truncate(0)
            elif error.code not in _TRANSIENT or attempt == _ATTEMPTS:
                raise
        except (OSError, http.client.HTTPException):
            if attempt == _ATTEMPTS or stream.seek(0, os.SEEK_END) <= start:
                raise
        time.sleep(attempt)


def _copy(response: http.client.HTTPResponse, stream: IO[bytes], name: str, start: int) -> None:
    length = response.headers.get("Content-Length")
    total = int(length) if length else None
    sizes: deque[int] = deque()

    def blocks() -> Iterator[bytes]:
        while block := response.read(_BLOCK):
            sizes.append(len(block))
            yield block

    came = 0
    weights = iter(sizes.popleft, None)
    for block in progress(blocks(), total, f"fetching {name}", "byte", weights):
        left = memoryview(block)
        try:
            while left:
                left = left[stream.write(left) :]
        except OSError as error:
            raise cannot_write(error, Path(stream.name)) from error
        came += len(block)
    if total is not None and came < total:
        raise ConnectionError(f"broke off at {start + came:,} of {start + total:,} bytes")
