"""Manifests: what an artefact is, what it was made from, by which code, where and when.

An artefact is a file or a folder that one job writes. Its manifest stands beside it under the name
of the artefact with `.manifest.json` added, for files and folders alike: what reads an artefact
never meets the manifest, and two folders of the same content stay the same. It is removed before
the artefact is written and comes last, so that an artefact without one is not finished.

Paths in a manifest start at the folder the manifest is in, so a tree of results can be moved.
Times, host and memory are here and nowhere in the artefacts, which hold the same bytes every run.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from whencount.errors import InputError
from whencount.files import atomic_file

FORMAT = "whencount-manifest-1"
REMEDY = "; make its artefact again"
"""Ends every fault of a manifest; who knows the command puts it there."""
SUFFIX = ".manifest.json"
_BLOCK = 1 << 20


@dataclass(frozen=True)
class FileRecord:
    """Size in bytes and SHA-256 (hexadecimal) of one file."""

    size: int
    sha256: str


@dataclass(frozen=True)
class InputRecord:
    """What was read: a path from the folder of the manifest, and the digest of its content."""

    path: str
    digest: str


@dataclass(frozen=True)
class Manifest:
    """What is known of one artefact.

    Attributes:
        name: of the artefact, a file or folder beside the manifest.
        kind: collection, passages, states, basis, vectors, run, table, frozen, page, pages,
            figures, other.
        files: {path within the artefact: record}; a single file has the path `.`.
        stage: the command of `whencount stage` that wrote it.
        source: `stage_hash` of that stage.
        configuration: the part of the study that the stage was given.
        seed: of its random draws; None where it draws none.
        inputs: artefacts it read. A part of one (the vectors of one representation) stands alone.
        sources: files from outside the study that it read (a notebook, a collection's files).
        together: the other artefacts of the same job, as paths like those of inputs.
        package: version of whencount; `lock`, the SHA-256 of requirements.lock, or null.
        host: processor, cores, memory, system, Python; no name of a machine or a person.
        gpu: the names of the cards used.
        run: `started` and `ended` (UTC), `peak_memory_bytes`.
    """

    name: str
    kind: str
    files: Mapping[str, FileRecord]
    stage: str
    source: str
    configuration: Mapping[str, Any] = field(default_factory=dict)
    seed: int | None = None
    inputs: tuple[InputRecord, ...] = ()
    sources: tuple[InputRecord, ...] = ()
    together: tuple[str, ...] = ()
    package: Mapping[str, Any] = field(default_factory=dict)
    host: Mapping[str, Any] = field(default_factory=dict)
    gpu: tuple[str, ...] = ()
    run: Mapping[str, Any] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """The digest of the whole content."""
        return self.part_digest("")

    @property
    def configuration_hash(self) -> str:
        """SHA-256 of the configuration as JSON with sorted keys."""
        return hash_of_json(self.configuration)

    def part(self, part: str) -> dict[str, FileRecord]:
        """The files of one part (a file or folder within the artefact), by their path in it."""
        if part in ("", "."):
            return dict(self.files)
        if part in self.files:
            return {".": self.files[part]}
        start = f"{part}/"
        return {
            path.removeprefix(start): record
            for path, record in self.files.items()
            if path.startswith(start)
        }

    def part_digest(self, part: str) -> str:
        """SHA-256 over path and SHA-256 of every file of a part, in the order of the paths."""
        lines = [f"{record.sha256} {path}\n" for path, record in sorted(self.part(part).items())]
        return hashlib.sha256("".join(lines).encode()).hexdigest()


@dataclass(frozen=True)
class Located:
    """An artefact on disk, and which part of it is meant (`` for all)."""

    path: Path
    part: str = ""

    @property
    def manifest_path(self) -> Path:
        """Where its manifest is."""
        return manifest_path(self.path)

    @property
    def part_path(self) -> Path:
        """Where the part is."""
        return self.path / self.part if self.part else self.path


def manifest_path(artefact: Path) -> Path:
    """Where the manifest of an artefact is: beside it."""
    return artefact.parent / f"{artefact.name}{SUFFIX}"


def locate(path: str | Path) -> Located | None:
    """The artefact that a path is or lies in, the innermost one; None where there is no manifest.

    The path of a manifest stands for its artefact. The artefact itself need not exist.

    Raises:
        InputError: the path cannot be looked at, a name too long for the disk say.
    """
    whole = Path(os.path.abspath(path))
    if whole.name.endswith(SUFFIX):
        whole = whole.with_name(whole.name.removesuffix(SUFFIX))
    for candidate in (whole, *whole.parents):
        try:
            there = candidate.name and manifest_path(candidate).is_file()
        except OSError as error:
            raise InputError(
                f"{str(path)[:300]} cannot be read ({error.strerror}); check the path"
            ) from error
        if there:
            part = whole.relative_to(candidate).as_posix()
            return Located(shown(candidate, path), "" if part == "." else part)
    return None


def shown(whole: Path, like: str | Path) -> Path:
    """An absolute path as a person would write it who wrote `like`: from the working directory."""
    if Path(like).is_absolute():
        return whole
    return Path(os.path.relpath(whole))


def beside(manifest: Path, recorded: str) -> Path:
    """The path that a manifest records, seen from the working directory."""
    return Path(os.path.normpath(manifest.parent / recorded))


def read_manifest(path: Path) -> Manifest:
    """Read a manifest.

    Raises:
        InputError: it is missing, damaged, or of another format.
    """
    try:
        record = json.loads(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}){REMEDY}") from (error)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is damaged ({error}){REMEDY}") from None
    try:
        return _parse(record)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{path} is no manifest of format {FORMAT!r} ({error}){REMEDY}") from None


def _parse(record: Any) -> Manifest:
    if record["format"] != FORMAT:
        raise ValueError(f"found {record['format']!r}")
    manifest = Manifest(
        name=str(record["name"]),
        kind=str(record["kind"]),
        files={
            _inside(path): FileRecord(int(one["size"]), str(one["sha256"]))
            for path, one in record["files"].items()
        },
        stage=str(record["stage"]),
        source=str(record["source"]),
        configuration=dict(record["configuration"]),
        seed=record["seed"],
        inputs=tuple(InputRecord(**one) for one in record["inputs"]),
        sources=tuple(InputRecord(**one) for one in record["sources"]),
        together=tuple(record["together"]),
        package=dict(record["package"]),
        host=dict(record["host"]),
        gpu=tuple(record["gpu"]),
        run=dict(record["run"]),
    )
    for key, found in (
        ("digest", manifest.digest),
        ("configuration_hash", manifest.configuration_hash),
    ):
        if record[key] != found:
            raise ValueError(f"its {key} does not agree with its content")
    return manifest


def _inside(path: str) -> str:
    """A path within an artefact; refuses one that leads out of it."""
    parts = path.split("/")
    if path != "." and (not all(parts) or {".", ".."} & {*parts} or "\0" in path):
        raise ValueError(f"{path!r} leads out of its artefact")
    return path


def write_manifest(manifest: Manifest, artefact: Path) -> None:
    """Write the manifest of `artefact` beside it, whole or not at all."""
    record = {
        "format": FORMAT,
        **asdict(manifest),
        "digest": manifest.digest,
        "configuration_hash": manifest.configuration_hash,
    }
    with atomic_file(manifest_path(artefact)) as temporary:
        temporary.write_text(manifest_text(record), encoding="utf-8")


def manifest_text(record: Mapping[str, Any]) -> str:
    """A manifest as its file holds it."""
    return json.dumps(record, indent=1, sort_keys=True) + "\n"


def hash_of_json(value: Any) -> str:
    """SHA-256 of a JSON value, its keys sorted."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def hash_of_file(path: Path) -> str:
    """SHA-256 of a file.

    Raises:
        InputError: it cannot be read.
    """
    digest = hashlib.sha256()
    try:
        with path.open("rb", buffering=0) as stream:
            while block := stream.read(_BLOCK):
                digest.update(block)
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}); check it") from error
    return digest.hexdigest()


def size_of(path: Path) -> int:
    """The size of a file in bytes.

    Raises:
        InputError: it cannot be looked at.
    """
    try:
        return path.stat().st_size
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}); check it") from error


def hash_of_path(path: Path) -> str:
    """The digest that a manifest would give to a file or folder from outside the study.

    Raises:
        InputError: it is missing or cannot be read.
    """
    files = {name: FileRecord(0, hash_of_file(one)) for name, one in files_of(path)}
    if not files:
        raise InputError(f"{path} is missing or empty; check the path")
    return Manifest(path.name, "other", files, "", "").digest


def files_of(artefact: Path) -> Iterator[tuple[str, Path]]:
    """(path within the artefact, file) of every file of it, sorted; nothing where it is missing.

    Hidden files do not belong to it: Snakemake's time stamps, what a killed job left.
    """
    if artefact.is_file():
        yield ".", artefact
    elif artefact.is_dir():
        for path in sorted(_visible(artefact)):
            yield path.relative_to(artefact).as_posix(), path


def entries_of(folder: Path) -> list[os.DirEntry[str]]:
    """What is in a folder, by name.

    Raises:
        InputError: it cannot be read.
    """
    try:
        return sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        raise InputError(f"{folder} cannot be read ({error.strerror}); check it") from error


def _visible(folder: Path) -> Iterable[Path]:
    for entry in entries_of(folder):
        if not entry.name.startswith("."):
            if entry.is_dir():
                yield from _visible(Path(entry.path))
            else:
                yield Path(entry.path)
