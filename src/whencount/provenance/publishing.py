"""Which files of a study are published, and what is said of them.

Published are the pages, the tables at the top of the results, and every table, run and figure that
they were made from, by their manifests; and the files of hypotheses that the study tests, with the
records of their registration. Of the rest (collections, fit passages, states, bases,
vectors) the manifests are; vectors, states and bases too where asked for. Texts never are: not a
collection, and not a table with a column that holds text.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from whencount.errors import InputError
from whencount.provenance.archive import common_folder, write_archive
from whencount.provenance.manifest import (
    Manifest,
    beside,
    locate,
    manifest_path,
    manifest_text,
    read_manifest,
    shown,
)
from whencount.provenance.metadata import describe, mapping_of
from whencount.provenance.scanning import scan
from whencount.provenance.verification import verify
from whencount.registration import record_path

PUBLISHED = frozenset({"table", "run", "frozen", "page", "pages", "figures"})
LARGE = frozenset({"vectors", "basis", "states"})
METADATA = "ir_metadata.yaml"
_TEXT_COLUMNS = frozenset({"text", "title", "body", "contents", "passage"})
_ABSOLUTE = re.compile(r"/|~|\\\\|[A-Za-z]:[\\/]")
_EXTRA = ("requirements.lock", "CITATION.cff", "LICENSE")


@dataclass(frozen=True)
class Export:
    """What was published.

    Attributes:
        members: how many files there are in the archive.
        bytes: their size, not compressed.
        sha256: of the archive.
        left_out: path, kind, digest, size and reason of every artefact that is not in it.
        places: absolute paths that a person wrote in the configuration and that it shows, each with
            its key.
    """

    members: int
    bytes: int
    sha256: str
    left_out: tuple[Mapping[str, Any], ...]
    places: tuple[str, ...] = ()


def export_study(
    results: Path,
    reports: Path | None,
    out: Path,
    *,
    configuration: Path | None = None,
    with_vectors: bool = False,
) -> Export:
    """Write the archive of a study, after a check of everything that goes into it.

    Args:
        results: the folder of the study's results.
        reports: the folder of its pages; None for tables alone.
        out: the archive.
        configuration: the study's configuration; becomes `config.yaml` in the archive.
        with_vectors: put vectors, states and bases in too.

    Raises:
        InputError: an artefact is missing, changed or stale; there is nothing to publish; a file of
            hypotheses is missing; or the place cannot be written.
    """
    manifests = _closure(_beginnings(results, reports))
    base = common_folder([results, *([reports] if reports is not None else [])])
    reasons = {path: _reason_by_kind(one, with_vectors) for path, one in manifests.items()}
    _refuse_findings([path for path, reason in reasons.items() if not reason])
    files: dict[str, Path | bytes] = {}
    left_out: list[Mapping[str, Any]] = []
    for artefact, manifest in sorted(manifests.items()):
        files[_name(manifest_path(artefact), base)] = _public(manifest_path(artefact), base)
        reason = reasons[artefact] or _reason_by_columns(artefact, manifest)
        if reason:
            left_out.append(
                {
                    "path": _name(artefact, base),
                    "kind": manifest.kind,
                    "digest": manifest.digest,
                    "bytes": sum(record.size for record in manifest.files.values()),
                    "reason": reason,
                }
            )
            continue
        for inner in manifest.files:
            path = artefact if inner == "." else artefact / inner
            files[_name(path, base)] = path
        for one in manifest.sources:
            notebook = beside(manifest_path(artefact), one.path)
            if notebook.suffix == ".ipynb" and _is_below(notebook, base) and notebook.is_file():
                files[_name(notebook, base)] = notebook
    places = {place for one in manifests.values() for place in _absolute_paths(one.configuration)}
    if configuration is not None:
        files["config.yaml"] = configuration
        study = mapping_of(configuration)
        places |= set(_absolute_paths(study))
        files |= _registered(study, base)
    files |= {name: Path(name) for name in _EXTRA if Path(name).is_file()}
    files[METADATA] = describe(manifests, configuration).encode()
    digest = write_archive(out, files, left_out)
    size = sum(len(one) if isinstance(one, bytes) else one.stat().st_size for one in files.values())
    return Export(len(files), size, digest, tuple(left_out), tuple(sorted(places)))


def _registered(study: Mapping[str, Any], base: Path) -> dict[str, Path | bytes]:
    """The study's files of hypotheses, and the records of those that are registered."""
    found: dict[str, Path | bytes] = {}
    for name in study.get("hypotheses") or ():
        file = Path(str(name))
        if not file.is_file():
            raise InputError(
                f"{file}, hypotheses that the configuration names, is not here; run this at the"
                " root of the repository"
            )
        for path in (file, record_path(file)):
            if path.is_file():
                inner = _name(path, base) if _is_below(path, base) else f"hypotheses/{path.name}"
                if inner in found:
                    raise InputError(
                        f"two files of hypotheses would be called {inner}; put them into the"
                        " folder of the study"
                    )
                found[inner] = path
    return found


def _absolute_paths(value: Any, key: str = "") -> Iterator[str]:
    """`key: path` of every path in a configuration that tells where on a machine something lies."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _absolute_paths(inner, f"{key}.{name}" if key else str(name))
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _absolute_paths(inner, key)
    elif isinstance(value, str) and _ABSOLUTE.match(value):
        yield f"{key}: {value}"


def _beginnings(results: Path, reports: Path | None) -> list[Path]:
    """The pages, and the tables at the top of the results: all else is what they were made from."""
    folders = [results, *([reports] if reports is not None else [])]
    found = [path for path in scan(folders).artefacts if path.parent in folders]
    if not any(path.parent == results for path in found):
        raise InputError(
            f"{results} has no table with a manifest; run the study, then whencount verify"
        )
    return found


def _closure(beginnings: Sequence[Path]) -> dict[Path, Manifest]:
    """Artefacts and their manifests, from some back to the first."""
    manifests: dict[Path, Manifest] = {}
    waiting = list(beginnings)
    while waiting:
        artefact = waiting.pop()
        if artefact in manifests:
            continue
        manifest = manifests[artefact] = read_manifest(manifest_path(artefact))
        for recorded in [*(one.path for one in manifest.inputs), *manifest.together]:
            path = beside(manifest_path(artefact), recorded)
            located = locate(path)
            if located is None:
                raise InputError(
                    f"{path}, from which {artefact} was made, has no manifest; run the study again"
                )
            waiting.append(shown(Path(os.path.abspath(located.path)), beginnings[0]))
    return manifests


def _refuse_findings(artefacts: Sequence[Path]) -> None:
    findings = verify(artefacts).findings
    if findings:
        more = f" (and {len(findings) - 1} more findings)" if len(findings) > 1 else ""
        raise InputError(f"nothing was exported: {findings[0].sentence}{more}")


def _reason_by_kind(manifest: Manifest, with_vectors: bool) -> str:
    if manifest.kind in ("collection", "passages"):
        return "holds the text of a corpus"
    if manifest.kind in LARGE:
        return "" if with_vectors else "large; export it with --with-vectors"
    if manifest.kind not in PUBLISHED:
        return f"of a kind that is not published ({manifest.kind})"
    return ""


def _reason_by_columns(artefact: Path, manifest: Manifest) -> str:
    columns = sorted(_text_columns(artefact, manifest))
    return f"has a column of text ({', '.join(columns)})" if columns else ""


def _text_columns(artefact: Path, manifest: Manifest) -> set[str]:
    import pyarrow as pa
    from pyarrow import parquet

    found: set[str] = set()
    for inner in manifest.files:
        path = artefact if inner == "." else artefact / inner
        if path.suffix == ".parquet" and path.is_file():
            try:
                names = parquet.read_schema(path).names
            except (OSError, pa.ArrowException) as error:
                raise InputError(f"{path} cannot be read as a table ({error})") from None
            found |= {name for name in names if name.lower() in _TEXT_COLUMNS}
    return found


def _public(manifest: Path, base: Path) -> Path | bytes:
    """A manifest as it is published: of a file outside the study's folder only the name.

    Where a person keeps a collection is nobody's business; the digest tells which one it was.
    """
    record = json.loads(manifest.read_bytes())
    changed = False
    for one in record["sources"]:
        path = beside(manifest, one["path"])
        if not _is_below(path, base):
            one["path"], changed = path.name, True
    return manifest if not changed else manifest_text(record).encode()


def _name(path: Path, base: Path) -> str:
    if not _is_below(path, base):
        raise InputError(
            f"{path} lies outside {base}, where results and reports are; export them from one tree"
        )
    return Path(os.path.abspath(path)).relative_to(base).as_posix()


def _is_below(path: Path, base: Path) -> bool:
    return Path(os.path.abspath(path)).is_relative_to(base)
