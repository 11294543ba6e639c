"""Who works in a study's folder, so that what a killed run left can be cleared up safely.

Snakemake's own lock is a list of files that stays when its process is killed; nothing in it tells
whether that process lives. So every run of the workflow, and every step of it, also holds a shared
flock on `.snakemake/whencount.lock`, which the kernel ends with the process however that ends. Who
can take it exclusively is alone in the folder: locks that stand there are of dead runs.
"""

from __future__ import annotations

import fcntl
import os
import platform
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from whencount.files import sweep
from whencount.provenance.manifest import SUFFIX

_STATE = Path(".snakemake")
_NAME = "whencount.lock"
_SHOWN = 3
_held: dict[Path, int] = {}
"""Descriptors that stay open, and so locked, until this process ends."""
_left: list[Path] = []
"""What a killed run may have been writing."""


def begin(folder: str | Path, roots: Sequence[str]) -> list[str]:
    """Begin a run of the workflow in `folder`; where nobody else works there, clear up first.

    Locks of Snakemake that a killed run left on files under `roots` are removed; what it left half
    written is for `sweep_left`. Where others work there, or that cannot be known, nothing is
    touched and Snakemake's own lock decides.

    Args:
        folder: where Snakemake was started.
        roots: folders of results and pages, relative to it.

    Returns:
        What to tell the person, in sentences; often nothing.
    """
    state = Path(folder).absolute() / _STATE
    path = state / _NAME
    if path in _held:
        return []
    try:
        state.mkdir(exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError:
        # A folder that cannot be written is told by the first job, with its name.
        return []
    _held[path] = descriptor
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        sentences = _others(path)
    except OSError:
        # A file system without locks: nothing is known, so nothing is cleared.
        return []
    else:
        sentences = _clear(state, descriptor, roots)
    with suppress(OSError):
        # Others may take the exclusive lock in between: then they find nothing of ours yet, and
        # this waits until they have looked.
        fcntl.flock(descriptor, fcntl.LOCK_SH)
    return sentences


def join(folder: str | Path = ".") -> None:
    """Hold the folder of a study as one of those that work there, until this process ends.

    Outside of a study's folder this does nothing.
    """
    path = Path(folder).absolute() / _STATE / _NAME
    if path in _held:
        return
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return
    _held[path] = descriptor
    with suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_SH)


def sweep_left() -> None:
    """Remove what the run whose locks `begin` found left half written, once this run has started.

    On a cluster that is after Slurm said that none of its jobs is left.
    """
    sweep(_left)
    _left.clear()


def _clear(state: Path, descriptor: int, roots: Sequence[str]) -> list[str]:
    """Remove the locks of dead runs and what they left half written."""
    host = platform.node()
    before = os.pread(descriptor, 1000, 0).decode("utf-8", "replace").strip()
    found = [lock for lock in sorted((state / "locks").glob("*.lock")) if _is_ours(lock, roots)]
    if found and before not in ("", host):
        # Some file systems lock within one machine only.
        return [
            f"The last run in this folder was on {before} and left its lock. If nothing works here"
            " any more, run snakemake --unlock once."
        ]
    with suppress(OSError):
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, host.encode(), 0)
    if not found:
        return []
    written = [
        path for lock in found if lock.name.endswith(".output.lock") for path in _paths(lock)
    ]
    with suppress(OSError):
        for lock in found:
            lock.unlink()
        _left.extend(_written_with(state.parent, written))
        return ["A run in this folder was broken off; going on where it stopped."]
    return []


def _is_ours(lock: Path, roots: Sequence[str]) -> bool:
    """Whether a lock holds files of this study; another workflow's are its own matter."""
    return any(path.startswith(f"{root}/") for path in _paths(lock) for root in roots)


def _paths(lock: Path) -> list[str]:
    try:
        return lock.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return []


def _written_with(folder: Path, outputs: Iterable[str]) -> Iterator[Path]:
    """Every file that a step writes for one of its outputs."""
    for output in outputs:
        path = folder / output
        yield path
        yield path.with_name(f"{path.name}{SUFFIX}")
        yield path.with_name(f".{path.name}.checked.json")


def _others(path: Path) -> list[str]:
    """Who else holds the lock, as far as this machine can tell."""
    processes = [_described(number) for number in _holders(path)]
    shown = ", ".join(processes[:_SHOWN]) or "on another machine"
    more = f" and {len(processes) - _SHOWN} more" if len(processes) > _SHOWN else ""
    return [
        f"Another run works in this folder: {shown}{more}. If it makes the same files, Snakemake"
        " refuses now: wait until it ends, and do not unlock."
    ]


def _holders(path: Path) -> list[int]:
    """Process numbers from Linux's list of locks; nothing elsewhere."""
    status = path.stat()
    place = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    try:
        lines = Path("/proc/locks").read_text(encoding="ascii").splitlines()
    except OSError:
        return []
    fields = [line.split() for line in lines]
    numbers = {int(one[4]) for one in fields if len(one) > 5 and one[5] == place}
    return sorted(numbers - {os.getpid()})


def _described(number: int) -> str:
    try:
        words = Path(f"/proc/{number}/cmdline").read_bytes().decode("utf-8", "replace").split("\0")
    except OSError:
        return f"process {number}"
    # Without the interpreter and the folder of the program.
    start = 1 if Path(words[0]).name.startswith("python") else 0
    line = (
        " ".join([Path(words[start]).name, *words[start + 1 : start + 6]]) if words[start:] else ""
    )
    return f"process {number} ({line.strip()})"


def tell(sentences: Iterable[str]) -> None:
    """Print sentences for the person who started the run."""
    for sentence in sentences:
        print(sentence, file=sys.stderr, flush=True)
