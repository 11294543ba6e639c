"""Recording a stage: inputs are checked before it runs, manifests are written after it.

A check of an input compares sizes, then SHA-256. Hundreds of scoring jobs read the same vectors, so
what one of them hashed is kept beside the artefact, in a hidden file: the hash together with size,
inode, and times of change of content and of inode (mtime and ctime). As long as all of these are
the same the file is not read again. A program can set mtime back, ctime it cannot; and since two
changes within one tick of the clock look alike, a hash is only kept of a file that had been left
alone for two seconds. What this cannot see is a disk that returns other bytes than were written:
`whencount verify` reads every byte always.
"""

from __future__ import annotations

import json
import os
import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from whencount.errors import InputError
from whencount.files import atomic_file
from whencount.provenance.host import host_class, package_record, peak_memory, used_gpus
from whencount.provenance.manifest import (
    REMEDY,
    SUFFIX,
    FileRecord,
    InputRecord,
    Located,
    Manifest,
    files_of,
    hash_of_file,
    hash_of_path,
    locate,
    manifest_path,
    read_manifest,
    size_of,
    write_manifest,
)
from whencount.provenance.sources import stage_hash

_AT_REST_SECONDS = 2.0
_DEFAULT = "config.yaml"
_STUDIES = ("*.yaml", "configs/*.yaml")
KINDS = {
    "collection": "collection",
    "fit-text": "passages",
    "fit-states": "states",
    "fit-basis": "basis",
    "encode": "vectors",
    "encode-external": "vectors",
    "bm25": "run",
    "dense": "run",
    "rrf": "run",
    "external-run": "run",
    "pages": "pages",
    "kv-haystack": "passages",
    "economics-words": "vectors",
    "expert-training": "model",
    "expert-calibration": "calibration",
    "freeze": "frozen",
    "fusion-job": "tables",
    "late-job": "tables",
    "latent-train": "model",
    "learned-train": "model",
    "learned-encode": "vectors",
    "latent-encode": "vectors",
    "transfer-report": "figures",
    "site": "texts",
}
"""The kind of what a stage writes, where its name does not tell."""


@contextmanager
def recorded(
    *,
    outputs: Sequence[str | Path],
    inputs: Sequence[str | Path] = (),
    sources: Sequence[str | Path] = (),
    stage: str,
    configuration: Mapping[str, Any] | None = None,
    seed: int | None = None,
) -> Iterator[None]:
    """Run a stage whose inputs are checked and whose outputs get manifests.

    Args:
        outputs: the artefacts that the block writes; each must be there when it ends.
        inputs: artefacts, or parts of one, that it reads; each must agree with its manifest.
        sources: files or folders from outside the study that it reads. A notebook among them counts
            for the hash of the code.
        stage: the command of `whencount stage`.
        configuration: the part of the study it was given, keys as in the configuration
            (`encoder`, `search.depth`), so that `whencount verify --configuration` can compare.
        seed: of its random draws.

    Raises:
        InputError: an input has no manifest or disagrees with it, or changed while the block ran;
            names the file, what was expected and found, and the command that makes it again.
    """
    started = datetime.now(UTC)
    read = [_checked(Path(path)) for path in inputs]
    outside = [(Path(path), hash_of_path(Path(path))) for path in sources]
    notebook = next((path for path, _ in outside if path.suffix == ".ipynb"), None)
    code = stage_hash(stage, notebook)
    targets = [Path(path) for path in outputs]
    for target in targets:
        with suppress(FileNotFoundError):
            manifest_path(target).unlink()
    yield
    for located, digest in read:
        if read_manifest(located.manifest_path).part_digest(located.part) != digest:
            raise InputError(
                f"{located.part_path} was written anew while whencount stage {stage} read it; run"
                f" again: {rebuild_command(targets)}"
            )
    written = [{name: _record(path) for name, path in files_of(target)} for target in targets]
    for target, files in zip(targets, written, strict=True):
        if not files:
            raise InputError(f"whencount stage {stage} ended without writing {target}")
    common = Manifest(
        name="",
        kind="",
        files={},
        stage=stage,
        source=code,
        configuration=json.loads(json.dumps(configuration or {})),
        seed=seed,
        package=package_record(),
        host=host_class(),
        gpu=used_gpus(),
        run={
            "started": started.isoformat(timespec="seconds"),
            "ended": datetime.now(UTC).isoformat(timespec="seconds"),
            "peak_memory_bytes": peak_memory(),
        },
    )
    for target, files in zip(targets, written, strict=True):
        manifest = replace(
            common,
            name=target.name,
            kind=kind_of(stage, target),
            files=files,
            inputs=tuple(
                InputRecord(_from(target, located.part_path), digest) for located, digest in read
            ),
            sources=tuple(InputRecord(_from(target, path), digest) for path, digest in outside),
            together=tuple(_from(target, other) for other in targets if other != target),
        )
        write_manifest(manifest, target)


def files_named(options: Mapping[str, Any]) -> list[Path]:
    """The files and folders that a source of texts is told to read: for `sources` of a stage."""
    found: list[Path] = []
    for key in ("path", "paths", "documents", "queries", "qrels", "file", "files"):
        value = options.get(key)
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, str) and Path(one).exists():
                found.append(Path(one))
    return found


def kind_of(stage: str, artefact: Path) -> str:
    """What an artefact is, by the stage that wrote it and its own name."""
    if artefact.suffix == ".html":
        return "page"
    if stage in KINDS:
        return KINDS[stage]
    if artefact.suffix == ".parquet":
        return "table"
    return "figures" if artefact.is_dir() and stage == "report" else "other"


def rebuild_command(artefacts: Sequence[Path], asked: str = "") -> str:
    """The command that makes artefacts again, whatever stands there now.

    Args:
        artefacts: of one study; the configuration that has them in its folders is looked for below
            the working directory and named, unless it is the default one.
        asked: what stands in the command in place of their names.
    """
    targets = asked or " ".join(sorted(map(str, artefacts)))
    # The targets come first, since --configfile takes every word after it for a file.
    return f"snakemake --cores 2 --force {targets}{configuration_option(artefacts)}"


def configuration_option(paths: Sequence[Path]) -> str:
    """` --configfile FILE` for artefacts or folders of a study that is not the default one."""
    file = configuration_file(paths[0]) if paths else None
    return f" --configfile {shlex.quote(file)}" if file not in (None, _DEFAULT) else ""


def configuration_file(artefact: Path) -> str | None:
    """The file of the study in whose folder of results or reports an artefact lies, by name.

    Looked at are `config.yaml`, then the other YAML files here and in `configs`; the innermost
    folder counts, and among files with the same one the first. None where there is no such file.
    """
    place = Path(os.path.abspath(artefact))
    found: tuple[int, str] | None = None
    for folder, name in _folders_of_studies(os.getcwd()):
        if place.is_relative_to(folder) and (found is None or len(folder.parts) > found[0]):
            found = (len(folder.parts), name)
    return None if found is None else found[1]


@cache
def _folders_of_studies(root: str) -> tuple[tuple[Path, str], ...]:
    """The folders of results and reports of every configuration below a folder."""
    others = [path for where in _STUDIES for path in sorted(Path(root).glob(where))]
    names = [_DEFAULT, *(str(path.relative_to(root)) for path in others)]
    return tuple((folder, name) for name in names for folder in _folders(name))


def _folders(name: str) -> list[Path]:
    """Where a configuration puts results and reports; nothing for another kind of file."""
    from whencount.yaml_files import read_yaml

    try:
        study = read_yaml(Path(name).read_bytes(), name)
    except (OSError, InputError):
        return []
    if not isinstance(study, dict) or "study" not in study:
        return []
    folders = [study.get(key, key) for key in ("results", "reports")]
    return [Path(os.path.abspath(folder)) for folder in folders if isinstance(folder, str)]


def check_input(path: str | Path) -> str:
    """Check an artefact, or a part of one, against its manifest; return the digest of its content.

    Raises:
        InputError: it has no manifest, or a file is missing, of another size or of other content.
    """
    return _checked(Path(path))[1]


def _checked(path: Path) -> tuple[Located, str]:
    located = locate(path)
    if located is None:
        command = rebuild_command([path])
        state = "is missing" if not path.exists() else f"has no manifest ({path.name}{SUFFIX})"
        raise InputError(
            f"{path} {state}: the job that writes it did not end, or was an older version's; make"
            f" it again: {command}"
        )
    try:
        manifest = read_manifest(located.manifest_path)
    except InputError as error:
        fault = str(error).removesuffix(REMEDY)
        raise InputError(f"{fault}; make it again: {rebuild_command([located.path])}") from None
    expected = manifest.part(located.part)
    if not expected:
        raise InputError(
            f"{located.part_path} is no part of {located.path} by its manifest; make that again:"
            f" {rebuild_command([located.path])}"
        )
    found = dict(files_of(located.part_path))
    for name in sorted(expected.keys() | found.keys()):
        file = located.part_path if name == "." else located.part_path / name
        if name not in found or name not in expected:
            state = "is missing" if name not in found else "does not belong there"
            raise InputError(
                f"{file} {state} by {located.manifest_path}; make it again:"
                f" {rebuild_command([located.path])}"
            )
        size = size_of(file)
        if size != expected[name].size:
            raise _mismatch(file, f"{expected[name].size} bytes", f"{size} bytes", located)
    for name, digest in _hashes(located, found).items():
        if digest != expected[name].sha256:
            file = located.part_path if name == "." else located.part_path / name
            raise _mismatch(
                file, f"SHA-256 {expected[name].sha256[:16]}", f"{digest[:16]}", located
            )
    return located, manifest.part_digest(located.part)


def _mismatch(file: Path, expected: str, found: str, located: Located) -> InputError:
    return InputError(
        f"{file} is not what {located.manifest_path} says: expected {expected}, found {found};"
        f" make it again: {rebuild_command([located.path])}"
    )


def _hashes(located: Located, files: Mapping[str, Path]) -> dict[str, str]:
    """SHA-256 of every file, from the hidden record where that still holds."""
    cache = located.path.parent / f".{located.path.name}.checked.json"
    try:
        known = json.loads(cache.read_bytes())
    except (OSError, ValueError):
        known = {}
    known = known if isinstance(known, dict) else {}
    hashes, changed = {}, False
    for name, file in files.items():
        key = file.relative_to(located.path).as_posix()
        state = _state(file)
        entry = known.get(key)
        if isinstance(entry, list) and len(entry) == 2 and entry[0] == state:
            hashes[name] = str(entry[1])
            continue
        now = time.time()
        hashes[name] = hash_of_file(file)
        if _state(file) == state and now - max(state[1], state[2]) / 1e9 > _AT_REST_SECONDS:
            known[key] = [state, hashes[name]]
            changed = True
    if changed:
        # Where it cannot be kept, every reader hashes for itself.
        with suppress(InputError), atomic_file(cache) as temporary:
            temporary.write_text(json.dumps(known), encoding="utf-8")
    return hashes


def _state(file: Path) -> list[int]:
    status = file.stat()
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]


def _record(path: Path) -> FileRecord:
    return FileRecord(size_of(path), hash_of_file(path))


def _from(artefact: Path, path: Path) -> str:
    start = os.path.abspath(artefact.parent)
    return Path(os.path.relpath(os.path.abspath(path), start)).as_posix()
