"""Verification of results: every artefact against its manifest, every manifest against its inputs.

Sizes are compared first, which finds most damage in no time; then every byte is read and hashed, in
threads, the largest files first. Nothing that an earlier check left behind is trusted.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from whencount.errors import InputError
from whencount.progress import progress
from whencount.provenance.manifest import (
    REMEDY,
    Manifest,
    beside,
    files_of,
    hash_of_file,
    hash_of_path,
    locate,
    manifest_path,
    read_manifest,
    size_of,
)
from whencount.provenance.recording import configuration_option, rebuild_command
from whencount.provenance.scanning import is_left_out, left_out, scan
from whencount.provenance.sources import stage_hash

_MISSING = object()


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong.

    Attributes:
        path: the file or folder it is about.
        problem: `manifest missing`, `manifest damaged`, `file missing`, `extra file`, `size`,
            `content`, `input missing`, `input changed`, `code changed`, `file outside changed` or
            `configuration changed`.
        expected, found: in words.
        artefact: what is to be made again.
        command: how.
    """

    path: str
    problem: str
    expected: str
    found: str
    artefact: str
    command: str

    @property
    def sentence(self) -> str:
        """For a person: the file, what is wrong, and the remedy."""
        return (
            f"{self.path}: {self.problem}: expected {self.expected}, found {self.found};"
            f" make it again: {self.command}"
        )


@dataclass
class Verification:
    """What was checked and what was found.

    Attributes:
        artefacts, files, bytes: how much was checked.
        findings: everything that is wrong, by path.
        notes: what a person may want to know; nothing of it is wrong.
    """

    artefacts: int = 0
    files: int = 0
    bytes: int = 0
    findings: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def verify(
    paths: Sequence[Path],
    *,
    source: bool = False,
    configuration: Mapping[str, Any] | None = None,
    quick: bool = False,
    workers: int | None = None,
) -> Verification:
    """Check artefacts, or all in a tree, against their manifests and these against their inputs.

    Args:
        paths: folders of results, or artefacts.
        source: compare the code of each stage, and files from outside the study, with today's.
        configuration: a validated study; recorded keys that it has must have its values.
        quick: compare sizes and leave the content unread.
        workers: threads that hash; one per core where left out.

    Raises:
        InputError: a path does not exist, or a file cannot be read.
    """
    found = scan(paths)
    check = _Check(left_out(paths), Verification(artefacts=len(found.artefacts)))
    if found.artefacts:
        for stray in found.strays:
            check.add(stray, "manifest missing", "a manifest beside it", "none", stray)
    elif found.strays:
        check.result.findings.append(_nothing_recorded(paths))
    if found.leftovers:
        shown = ", ".join(str(path) for path in found.leftovers[:3])
        check.result.notes.append(
            f"{len(found.leftovers)} hidden files or folders of jobs that did not end (a rerun goes"
            f" on from a .partial): {shown}"
        )
    for artefact in found.artefacts:
        manifest = check.manifest(artefact)
        if manifest is not None:
            check.files(artefact, manifest)
            check.inputs(artefact, manifest)
            if source:
                check.code(artefact, manifest)
            if configuration is not None:
                check.configuration(artefact, manifest, configuration)
    if not quick:
        check.contents(workers or os.cpu_count() or 1)
    if check.absent_here:
        check.result.notes.append(
            f"{check.absent_here} artefacts were left out of the archive; only their manifests are"
            " here"
        )
    check.result.findings.sort(key=lambda one: (one.path, one.problem))
    return check.result


def _nothing_recorded(paths: Sequence[Path]) -> Finding:
    shown = " ".join(str(path) for path in paths)
    return Finding(
        shown,
        "manifest missing",
        "artefacts with manifests",
        "none: these results are an older version's, or not a study's",
        shown,
        f"snakemake --cores 2 --forceall study{configuration_option(paths)}",
    )


class _Check:
    """The state of one verification: manifests read, files still to be hashed."""

    def __init__(self, absent: frozenset[Path], result: Verification) -> None:
        self.absent = absent
        self.result = result
        self.absent_here = 0
        self._manifests: dict[Path, Manifest | None] = {}
        self._codes: dict[tuple[str, Path | None], str] = {}
        self._to_hash: list[tuple[int, Path, str, Path]] = []

    def add(self, path: Path, problem: str, expected: str, found: str, artefact: Path) -> None:
        """Note what is wrong."""
        command = rebuild_command([artefact])
        self.result.findings.append(
            Finding(str(path), problem, expected, found, str(artefact), command)
        )

    def manifest(self, artefact: Path) -> Manifest | None:
        """The manifest of an artefact; a damaged one is told once."""
        if artefact not in self._manifests:
            try:
                self._manifests[artefact] = read_manifest(manifest_path(artefact))
            except InputError as error:
                self._manifests[artefact] = None
                where = manifest_path(artefact)
                fault = str(error).removesuffix(REMEDY)
                self.add(where, "manifest damaged", "a manifest", f"({fault})", artefact)
        return self._manifests[artefact]

    def files(self, artefact: Path, manifest: Manifest) -> None:
        """Compare names and sizes; what agrees is hashed later."""
        if is_left_out(artefact, self.absent):
            self.absent_here += 1
            return
        present = dict(files_of(artefact))
        if not present:
            self.add(artefact, "file missing", "what its manifest lists", "nothing", artefact)
            return
        for name in sorted(manifest.files.keys() | present.keys()):
            path = artefact if name == "." else artefact / name
            if name not in present:
                self.add(path, "file missing", f"{manifest.files[name].size} bytes", "no", artefact)
            elif name not in manifest.files:
                self.add(path, "extra file", "no such file", "one", artefact)
            else:
                record, size = manifest.files[name], size_of(path)
                self.result.files += 1
                self.result.bytes += size
                if size != record.size:
                    self.add(path, "size", f"{record.size} bytes", f"{size} bytes", artefact)
                else:
                    self._to_hash.append((size, path, record.sha256, artefact))

    def contents(self, workers: int) -> None:
        """Hash every file whose size agrees."""
        tasks = sorted(self._to_hash, key=lambda task: (-task[0], task[1]))
        with ThreadPoolExecutor(workers) as pool:
            hashes = pool.map(lambda task: hash_of_file(task[1]), tasks)
            shown = progress(hashes, len(tasks), "verifying", "file")
            for (_, path, expected, artefact), digest in zip(tasks, shown, strict=True):
                if digest != expected:
                    self.add(path, "content", _short(expected), _short(digest), artefact)

    def inputs(self, artefact: Path, manifest: Manifest) -> None:
        """Compare what the artefact was made from with what stands there now."""
        for one in manifest.inputs:
            path = beside(manifest_path(artefact), one.path)
            located = locate(path)
            if located is None:
                self.add(path, "input missing", _short(one.digest), "no manifest", artefact)
                continue
            other = self.manifest(located.path)
            if other is None:
                continue
            digest = other.part_digest(located.part) if other.part(located.part) else "no such part"
            if digest != one.digest:
                self.add(
                    artefact,
                    "input changed",
                    f"to be made from {path} {_short(digest)}",
                    f"made from {_short(one.digest)}",
                    artefact,
                )

    def code(self, artefact: Path, manifest: Manifest) -> None:
        """Compare the code, and the files outside the study, with today's."""
        notebook: Path | None = None
        for one in manifest.sources:
            path = beside(manifest_path(artefact), one.path)
            if not path.exists():
                self.result.notes.append(f"{path}, from which {artefact} was made, is not here")
                continue
            digest = hash_of_path(path)
            if digest != one.digest:
                self.add(path, "file outside changed", _short(one.digest), _short(digest), artefact)
            notebook = path if path.suffix == ".ipynb" else notebook
        key = (manifest.stage, notebook)
        if key not in self._codes:
            self._codes[key] = stage_hash(manifest.stage, notebook)
        if self._codes[key] != manifest.source:
            self.add(
                artefact,
                "code changed",
                f"code {_short(self._codes[key])} of whencount stage {manifest.stage}",
                f"made by {_short(manifest.source)}",
                artefact,
            )

    def configuration(self, artefact: Path, manifest: Manifest, study: Mapping[str, Any]) -> None:
        """Compare recorded keys with those of the study, where it has them."""
        for path, was, now in _differences(manifest.configuration, study):
            self.add(artefact, "configuration changed", f"{path} {now!r}", f"{was!r}", artefact)


def _differences(
    recorded: Mapping[str, Any], study: Mapping[str, Any]
) -> Iterator[tuple[str, Any, Any]]:
    """(key, value recorded, value now) where a recorded key stands in the study and differs."""
    for key, was in sorted(recorded.items()):
        now: Any = study
        for part in key.split("."):
            now = now.get(part, _MISSING) if isinstance(now, Mapping) else _MISSING
        if now is _MISSING:
            continue
        if isinstance(was, Mapping) and isinstance(now, Mapping):
            for inner, value, current in _differences(was, now):
                yield f"{key}.{inner}", value, current
            for inner in sorted(was.keys() - now.keys()):
                yield f"{key}.{inner}", was[inner], None
        elif was != now:
            yield key, was, now


def _short(digest: str) -> str:
    return digest[:16]
