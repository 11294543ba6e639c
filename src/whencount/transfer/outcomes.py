"""Which outcomes of other settings exist: predictors are frozen before the first of them.

An outcome is a table that gives a quality under one of the corrected configurations, of a whole
setting or of a single example, wherever it lies in the setting's folder. Parts of unfinished work
count as well: from them a quality can be told before its table stands.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from whencount.errors import InputError

_QUALITY = re.compile(r"q[01]{3}|gain|margin|collection_gain|(shapley|main_effect)_.+")
_RULES = frozenset({"selector", "rule", "configuration"})
_SCORES = frozenset({"score", "nll", "quality", "accuracy", "prediction"})
_PARTIAL = ".partial"
PREPARATIONS = ("calibration.", "haystack.", "model.", "text.")
"""Beginnings of the names of what a setting makes in its folder before any outcome."""
_UNFINISHED_PREPARATIONS = tuple(f".{name}" for name in PREPARATIONS)


def outcomes(folders: Iterable[str | Path]) -> list[Path]:
    """The outcomes that stand below folders, and the parts of unfinished ones; sorted.

    Args:
        folders: one per setting, `results/pages` say; they need not exist.

    Raises:
        InputError: a folder cannot be read, or a table in it is damaged.
    """
    found = [
        path
        for folder in map(Path, folders)
        for path in _below(folder)
        if not (path.parent == folder and path.name.startswith(_UNFINISHED_PREPARATIONS))
    ]
    return sorted(set(found))


def is_outcome(path: Path) -> bool:
    """Whether a table tells how a corrected configuration did.

    Raises:
        InputError: it cannot be read as a table.
    """
    import pyarrow as pa
    from pyarrow import parquet

    try:
        names = set(parquet.read_schema(path).names)
    except (OSError, pa.ArrowException) as error:
        reason = " ".join(str(error).split())[:200]
        raise InputError(
            f"{path} cannot be read as a table ({reason}), so whether it holds outcomes cannot be"
            " told; delete it, then run again"
        ) from error
    if any(_QUALITY.fullmatch(name) for name in names):
        return True
    return bool(names & _RULES) and bool(names & _SCORES)


def _below(folder: Path, above: frozenset[str] = frozenset()) -> Iterator[Path]:
    """Outcomes below a folder, through links too; `above` holds the real folders on the way."""
    real = os.path.realpath(folder)
    if real in above or not folder.is_dir():
        return
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        raise InputError(f"{folder} cannot be read ({error.strerror}); check it") from error
    for entry in entries:
        path = Path(entry.path)
        if entry.name.startswith("."):
            unfinished = entry.name.endswith(_PARTIAL) and entry.is_dir()
            if unfinished and _holds_parts(path):
                yield path
        elif entry.is_dir():
            yield from _below(path, above | {real})
        elif path.suffix == ".parquet" and is_outcome(path):
            yield path


def _holds_parts(folder: Path) -> bool:
    """Whether any part is finished; the key and the lock alone say nothing."""
    return any(path.name not in ("key.json", "lock") for path in folder.iterdir())


def started_before(moment: datetime, rows: str | Path) -> list[Path]:
    """The outcomes behind a table of rows whose computation began before a moment.

    Looked at are the manifests of the table and of every outcome that it was made from. A table
    without one counts by the time of its file.

    Args:
        moment: with a time zone, in whole seconds.
        rows: a table of rows.

    Raises:
        InputError: a manifest is damaged.
    """
    from whencount.provenance.manifest import beside, locate, manifest_path, read_manifest

    late: list[Path] = []
    waiting, seen = [Path(rows)], set()
    while waiting:
        path = waiting.pop()
        if os.path.abspath(path) in seen:
            continue
        seen.add(os.path.abspath(path))
        located = locate(path)
        if located is None:
            if path.is_file() and datetime.fromtimestamp(path.stat().st_mtime, UTC) < moment:
                late.append(path)
            continue
        manifest = read_manifest(located.manifest_path)
        table = located.path.suffix == ".parquet" and located.path.is_file()
        if not table or not is_outcome(located.path):
            continue
        if datetime.fromisoformat(str(manifest.run["started"])) < moment:
            late.append(located.path)
        waiting += [beside(manifest_path(located.path), one.path) for one in manifest.inputs]
    return sorted(late)


def too_early(outcomes: Sequence[Path], moment: datetime) -> str:
    """Why outcomes that were begun before the freeze are no test, in words."""
    when = moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")
    more = f" and {len(outcomes) - 1} more" if len(outcomes) > 1 else ""
    return (
        f"the computation of {outcomes[0].name}{more} began before the predictors were frozen"
        f" ({when})"
    )
