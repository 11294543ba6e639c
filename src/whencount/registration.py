"""Registering a file before the rows it speaks of exist, and reading the record again.

A record is plain JSON beside the file: the hash of its bytes, the code, the time, and the keys of
every row that a folder of results held at that moment. A person commits it; what that proves and
what it cannot is in docs/hypotheses.md.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whencount import __version__
from whencount.checkpoints import KEY, PARTIAL
from whencount.errors import InputError
from whencount.files import atomic_file
from whencount.naming import CELL_KEYS, Cell, Job

if TYPE_CHECKING:
    import pandas as pd

FORMAT = "whencount registration 1"
_FIELDS = ("format", "file", "sha256", "registered", "code", "results", "rows", "digest")
_GIT_SECONDS = 10

RowKey = tuple[Job, Cell]
"""A row: the job that computes it and its cell."""


@dataclass(frozen=True)
class Record:
    """A registration as it was read.

    Attributes:
        path: of the record.
        file: name of the registered file.
        sha256: of its bytes.
        registered: when, UTC.
        code: version and sources of the package, and the commit where there was one.
        results: the folder whose rows were looked at.
        rows: the rows that existed.
        faults: why the record is not as it was written; empty for a whole one.
    """

    path: Path
    file: str
    sha256: str
    registered: datetime
    code: Mapping[str, Any]
    results: Path
    rows: frozenset[RowKey]
    faults: tuple[str, ...]


def record_path(file: str | Path) -> Path:
    """Where the record of a file stands: `NAME.registration.json` beside it."""
    file = Path(file)
    return file.with_name(f"{file.stem}.registration.json")


def register(
    file: str | Path,
    *,
    results: str | Path = "results",
    out: str | Path | None = None,
    now: datetime | None = None,
) -> Record:
    """Record a file of hypotheses and the rows that exist now.

    Args:
        file: a valid file of hypotheses.
        results: folder of the study's results, looked through by `existing_rows`. It need not exist
            yet.
        out: the record; beside the file where left out.
        now: the time to record; the clock's where left out.

    Raises:
        InputError: the file is not valid, is registered already, or a table of rows is damaged.
    """
    from whencount.hypotheses import load_file

    checked = load_file(file)
    place = record_path(file) if out is None else Path(out)
    if place.exists():
        raise InputError(
            f"{place} exists already, and a registration is made once: put a changed hypothesis"
            " into a file of another name and register that; remove the record only if no row of"
            " it was ever computed or looked at"
        )
    existing = existing_rows(results)
    body: dict[str, Any] = {
        "format": FORMAT,
        "file": checked.path.name,
        "sha256": checked.sha256,
        "registered": (now or datetime.now(UTC)).astimezone(UTC).isoformat(timespec="seconds"),
        "code": code_version(),
        "results": Path(os.path.relpath(results, place.parent)).as_posix(),
        "rows": _listed(existing),
    }
    body["digest"] = _digest(body)
    with atomic_file(place) as temporary:
        temporary.write_text(json.dumps(body, indent=2) + "\n", encoding="utf-8")
    return read_record(place)


def read_record(path: str | Path) -> Record:
    """Read a record and see whether it is as it was written.

    An edited record is no error but has `faults`: its digest covers every field. One who edits the
    digest too is not noticed; the history of a repository that holds the record shows that.

    Raises:
        InputError: the file is missing, not JSON, or no record at all.
    """
    path = Path(path)
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}); check the path") from error
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{path} is no registration: not valid JSON ({error}); restore it from the history of"
            " your repository"
        ) from None
    missing = [field for field in _FIELDS if not isinstance(body, dict) or field not in body]
    if missing or body["format"] != FORMAT:
        found = f"lacks {', '.join(missing)}" if missing else f"has the format {body['format']!r}"
        raise InputError(
            f"{path} is no registration of this version ({found}); restore it from the history of"
            " your repository, or register anew under another name"
        )
    try:
        rows, faults = _read_rows(body["rows"])
        registered = datetime.fromisoformat(body["registered"])
        results = path.parent / str(body["results"])
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise InputError(
            f"{path} is damaged ({error}); restore it from the history of your repository"
        ) from None
    if registered.tzinfo is None:
        raise InputError(f"{path}: the time {body['registered']!r} has no zone; restore the record")
    if body["digest"] != _digest(body):
        faults = ("the record was edited: its digest does not fit its content", *faults)
    return Record(
        path,
        str(body["file"]),
        str(body["sha256"]),
        registered,
        body["code"],
        results,
        rows,
        faults,
    )


def existing_rows(results: str | Path) -> frozenset[RowKey]:
    """The rows that a folder of results holds, in `rows.parquet`, `rows/` and `per_query/`.

    Qualities per query are the outcomes too: without the rows they are a mean away. So are the
    cells that a job which was broken off had finished; they stand beside its table.

    Raises:
        InputError: a table is damaged or has no keys, or `results` is a file.
    """
    folder = Path(results)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; name the folder of results of your study")
    found: set[RowKey] = set()
    for path in [folder / "rows.parquet", *sorted((folder / "rows").glob("*.parquet"))]:
        if path.exists():
            found |= _keys_of_table(path, CELL_KEYS)
    for path in sorted((folder / "per_query").glob("*.seed*.parquet")):
        found |= _keys_of_table(path, ("budget", "k1", "b", "control"))
    for path in sorted((folder / "rows").glob(f".*.parquet{PARTIAL}")):
        found |= _keys_of_parts(path)
    return frozenset(found)


def written_before(record: Record, source: str | Path, used: pd.DataFrame) -> int:
    """How many tables that rows were read from are older than a registration.

    Looked at are the table itself and those in `rows/` beside it that it was collected from: the
    times of the files, and those in their manifests, which no copy and no `touch` changes. Times
    can be forged; an old one never arises by itself.

    Args:
        source: rows.parquet, or a table of `rows/`.
        used: the rows that are asked about.
    """
    source = Path(source)
    jobs = {job for job, _ in row_keys(used)}
    paths = {source, *(source.parent / "rows" / f"{job.name}.parquet" for job in jobs)}
    return sum(any(time < record.registered for time in _times_of(path)) for path in paths)


def _times_of(path: Path) -> list[datetime]:
    """When a table was written, by its file and by its manifest; nothing where it is missing."""
    from whencount.provenance.manifest import manifest_path, read_manifest

    try:
        times = [datetime.fromtimestamp(path.stat().st_mtime, UTC)]
    except OSError:
        return []
    try:
        ended = datetime.fromisoformat(str(read_manifest(manifest_path(path)).run["ended"]))
    except (InputError, KeyError, ValueError):
        return times
    return times if ended.tzinfo is None else [*times, ended]


def row_keys(rows: pd.DataFrame) -> list[RowKey]:
    """The keys of rows that have the columns of `whencount.rows.CELL_KEYS`."""
    columns = ["representation", "collection", "seed", "budget", "k1", "b", "control"]
    return [
        (
            Job(str(representation), str(collection), int(seed)),
            Cell(str(budget), float(k1), float(b), str(control)),
        )
        for representation, collection, seed, budget, k1, b, control in rows[columns].itertuples(
            index=False, name=None
        )
    ]


def code_version() -> dict[str, Any]:
    """Version of the package, hash of its sources, and the commit it is at where git knows one."""
    package = Path(__file__).parent
    # A package inside an unrelated repository, a virtual environment in one say, is not tracked.
    tracked = bool(_git(package, "ls-files", "--", "registration.py"))
    changes = _git(package, "status", "--porcelain", "--", ".") if tracked else None
    return {
        "version": __version__,
        "sources": source_hash(package),
        "commit": _git(package, "rev-parse", "HEAD") if tracked else None,
        "uncommitted_changes": None if changes is None else bool(changes),
    }


def source_hash(package: Path) -> str:
    """SHA-256 over the paths and bytes of all Python files below a folder."""
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        digest.update(f"{path.relative_to(package).as_posix()}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _keys_of_table(path: Path, columns: Sequence[str]) -> set[RowKey]:
    """The keys of a table that has these columns; those it lacks are in its file's name."""
    import pandas as pd
    import pyarrow as pa

    try:
        keys = pd.read_parquet(path, columns=list(columns)).drop_duplicates()
        if "collection" not in columns:
            job = _job_of(path.name)
            keys = keys.assign(
                representation=job.representation, collection=job.collection, seed=job.seed
            )
        return set(row_keys(keys))
    except (OSError, pa.ArrowException, KeyError, ValueError, TypeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise InputError(
            f"{path} cannot be read as a table of rows ({reason}), so the rows that exist cannot be"
            " told; delete it or run the study again, then register"
        ) from error


def _keys_of_parts(folder: Path) -> set[RowKey]:
    """The cells that a job which has not ended has finished."""
    try:
        job = _job_of(folder.name.removeprefix(".").removesuffix(PARTIAL))
        key = folder / KEY
        listed = json.loads(key.read_bytes())["cells"] if key.exists() else []
        cells = [
            Cell(str(budget), float(k1), float(b), str(what)) for budget, k1, b, what in listed
        ]
        return {(job, cell) for cell in cells if (folder / cell.checkpoint).exists()}
    except (OSError, KeyError, ValueError, TypeError, RecursionError) as error:
        raise InputError(
            f"{folder} cannot be read as the parts of a job that was broken off ({error}), so the"
            " rows that exist cannot be told; delete it or run the study again, then register"
        ) from error


def _job_of(name: str) -> Job:
    """The job whose table is called `REPRESENTATION.COLLECTION.seedN.parquet`."""
    representation, _, rest = name.removesuffix(".parquet").partition(".")
    collection, _, seed = rest.rpartition(".seed")
    return Job(representation, collection, int(seed))


def _nested(rows: Iterable[RowKey]) -> dict[str, dict[str, dict[str, str]]]:
    """By representation, collection and seed: `32/128 1.2 0.75; 16/64 1.2 0.75 uniform_df`."""
    keys: dict[str, dict[str, dict[str, str]]] = {}
    for job, cell in sorted(rows):
        text = " ".join(filter(None, (cell.budget, repr(cell.k1), repr(cell.b), cell.control)))
        seeds = keys.setdefault(job.representation, {}).setdefault(job.collection, {})
        before = seeds.get(str(job.seed))
        seeds[str(job.seed)] = text if before is None else f"{before}; {text}"
    return keys


def _listed(rows: frozenset[RowKey]) -> dict[str, Any]:
    keys = _nested(rows)
    return {"count": len(rows), "digest": _digest(keys), "keys": keys}


def _read_rows(listed: Mapping[str, Any]) -> tuple[frozenset[RowKey], tuple[str, ...]]:
    found = frozenset(
        (Job(representation, collection, int(seed)), _cell(text))
        for representation, collections in listed["keys"].items()
        for collection, seeds in collections.items()
        for seed, cells in seeds.items()
        for text in cells.split("; ")
    )
    faults = []
    if listed["count"] != len(found):
        faults.append(f"it counts {listed['count']} rows and lists {len(found)}")
    if listed["digest"] != _digest(listed["keys"]):
        faults.append("the list of rows does not fit its digest")
    return found, tuple(faults)


def _cell(text: str) -> Cell:
    budget, k1, b, *control = text.split(" ")
    return Cell(budget, float(k1), float(b), " ".join(control))


def _digest(content: Mapping[str, Any]) -> str:
    """SHA-256 of the JSON of a mapping without its own `digest`, keys sorted, no blanks."""
    body = {key: value for key, value in content.items() if key != "digest"}
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _git(folder: Path, *arguments: str) -> str | None:
    """What git says about the folder of the package; None without git or outside a repository."""
    try:
        result = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            capture_output=True,
            text=True,
            timeout=_GIT_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return result.stdout.strip()
