"""The files behind a data set of ir_datasets: found, fetched, checked, and named when damaged.

ir_datasets takes a file that is in place as it is, and begins an interrupted download anew. Here
its own list of addresses, checksums and places is read, so that a file is checked before it is
used and a download goes on where it broke off. What only ir_datasets can fetch it fetches itself.
"""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from whencount.collections.fetching import Remote, by_hand, check, data_home, fetch
from whencount.errors import InputError
from whencount.files import cannot_write

_PARTS = {"documents": "docs", "queries": "queries", "judgements": "qrels"}
_NOT_WRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS)
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class DataFile:
    """A file that a data set needs.

    Attributes:
        remote: where it comes from and belongs.
        made: what ir_datasets makes of it; where one of these stands the file is not needed.
        elsewhere: a second place that ir_datasets looks at, None where there is none.
        agreement: the terms that its owners want told before a download.
        fetchable: whether it has an address that `fetching` can read.
    """

    remote: Remote
    made: tuple[Path, ...]
    elsewhere: Path | None
    agreement: str
    fetchable: bool

    def in_place(self) -> Path | None:
        """Where it stands, None where it does not."""
        for path in (self.remote.path, self.elsewhere):
            if path is not None and os.path.exists(path):
                return path
        return None

    def made_of_it(self) -> Path | None:
        """What was made of it, None where nothing was."""
        return next((path for path in self.made if os.path.exists(path)), None)


def load_dataset(identifier: str) -> Any:
    """The ir_datasets object of an id; nothing is downloaded yet.

    Raises:
        InputError: ir_datasets is not installed, cannot use its folder, or does not know the id.
    """
    # Let it look for small files, too, in its folder of files put there by hand.
    os.environ.setdefault("IR_DATASETS_SMALL_FILE_SIZE", "0")
    try:
        import ir_datasets
    except ImportError:
        raise InputError(
            f"data set {identifier!r} needs the package ir-datasets, which is not installed;"
            " install whencount[study]"
        ) from None
    except OSError as error:
        raise InputError(
            f"data set {identifier!r}: its folder {data_home()} cannot be made or written"
            f" ({error.strerror}); set the variable IR_DATASETS_HOME to one that can"
        ) from error
    try:
        return ir_datasets.load(identifier)
    except KeyError:
        raise InputError(
            f"ir_datasets knows no data set {identifier!r}; its ids are listed at"
            " https://ir-datasets.com"
        ) from None


def data_files(dataset: Any, part: str) -> list[DataFile]:
    """The files of a part of a data set: `documents`, `queries` or `judgements`."""
    # Asking for the store first lets ir_datasets throw away what an older version of it made.
    store = _store(dataset) if part == "documents" else None
    handler = getattr(dataset, f"{_PARTS[part]}_handler")()
    return list(_walk(handler, () if store is None else (store,), set()))


def read(identifier: str, dataset: Any, part: str) -> Iterator[Any]:
    """Yield the rows of a part of a data set, after its files are there and checked.

    Raises:
        InputError: a file cannot be had, or is damaged; it names the file and the remedy.
    """
    number = 0
    try:
        prepare_files(dataset, part)
        for row in getattr(dataset, f"{_PARTS[part]}_iter")():
            number += 1
            yield row
    except (InputError, GeneratorExit, KeyboardInterrupt):
        raise
    except Exception as error:
        raise _fault(identifier, dataset, part, number, error) from error


def prepare_files(dataset: Any, part: str) -> None:
    """Check the files of a part of a data set that are there, and fetch those that are not.

    Raises:
        InputError: one is damaged or cannot be had.
    """
    for file in data_files(dataset, part):
        if file.made_of_it() is not None:
            continue
        place = file.in_place()
        if place is not None:
            check(file.remote, place)
        elif file.fetchable:
            if file.agreement:
                _LOG.warning("%s", " ".join(file.agreement.split()))
            fetch(file.remote)


def files_read(dataset: Any, part: str) -> list[Path]:
    """The downloaded files of a part that are there, else what was made of them."""
    found: list[Path] = []
    for file in data_files(dataset, part):
        path = file.in_place() or file.made_of_it()
        if path is not None and path.is_file():
            found.append(path)
    return found


def _fault(identifier: str, dataset: Any, part: str, number: int, error: Exception) -> InputError:
    if isinstance(error, OSError) and error.errno in _NOT_WRITABLE:
        return cannot_write(error, Path(error.filename or data_home()))
    first = (str(error).strip().splitlines() or [""])[0][:200]
    what = f"{type(error).__name__}: {first}" if first else type(error).__name__
    where = f"data set {identifier!r}: its {part} could not be read after number {number:,}"
    files = data_files(dataset, part)
    there = [file.made_of_it() or file.in_place() for file in files]
    named = dict.fromkeys(str(path) for path in there if path is not None)
    if named and len(there) == len(files):
        return InputError(
            f"{where} ({what}); {' or '.join(named)} is damaged or incomplete: remove it and run"
            " again"
        )
    hands = "; ".join(by_hand(file.remote) for file in files if file.in_place() is None)
    return InputError(f"{where} ({what}); connect and run again, or {hands or 'see its page'}")


def _store(dataset: Any) -> Path | None:
    """The store that ir_datasets has built of the documents, None where it has not."""
    try:
        store = dataset.docs_store()
        return Path(store.path) if store.built() else None
    except (AttributeError, NotImplementedError):
        return None


def _walk(item: Any, made: tuple[Path, ...], seen: set[int]) -> Iterator[DataFile]:
    from ir_datasets.util import Cache, Download

    if id(item) in seen:
        return
    seen.add(id(item))
    if isinstance(item, Download):
        file = _data_file(item, made)
        if file is not None:
            yield file
        return
    if isinstance(item, Cache):
        made = (Path(item.path(force=False)), *made)
    parts = item if isinstance(item, list | tuple) else getattr(item, "__dict__", {}).values()
    for part in parts:
        if isinstance(part, list | tuple) or hasattr(part, "__dict__"):
            yield from _walk(part, made, seen)


def _data_file(download: Any, made: tuple[Path, ...]) -> DataFile | None:
    """A download of ir_datasets as ours; its attributes are read as version 0.6 has them."""
    from ir_datasets.util import LocalDownload, RequestsDownload

    local = [mirror for mirror in download.mirrors if isinstance(mirror, LocalDownload)]
    hosts = [mirror for mirror in download.mirrors if isinstance(mirror, RequestsDownload)]
    elsewhere = Path(local[0].path(force=False)) if local else None
    cached = download._cache_path
    place = Path(cached) if cached is not None else elsewhere
    if place is None or not hosts:
        return None
    return DataFile(
        remote=Remote(
            path=place,
            urls=tuple(mirror.url for mirror in hosts),
            bytes=download._size_hint,
            digest=download.expected_md5 or "",
            headers=dict(hosts[0].headers or {}),
        ),
        made=made,
        elsewhere=elsewhere,
        agreement=download.dua or "",
        fetchable=all(mirror.auth is None for mirror in hosts),
    )
