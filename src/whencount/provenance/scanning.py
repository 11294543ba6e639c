"""Finding the artefacts of a tree of results, and what stands there without being one."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from whencount.errors import InputError
from whencount.provenance.manifest import SUFFIX, entries_of, locate, manifest_path

CONTENTS = "contents.json"
"""In the root of an imported archive: its members, and the artefacts left out of it."""

_NOT_ARTEFACTS = frozenset({"logs", "benchmarks"})
_OF_TABLES = frozenset({"rows", "per_query", "references"})
_NOT_FILES = frozenset({"README.md", CONTENTS})
_OWN = (".checked.json",)
_OTHERS = frozenset({".snakemake_timestamp", ".gitkeep", ".DS_Store"})


@dataclass
class Scan:
    """What a walk found.

    Attributes:
        artefacts: every path that has a manifest, sorted; the artefact itself may be missing.
        strays: files and folders without a manifest.
        leftovers: hidden files and folders that a killed job left.
    """

    artefacts: list[Path] = field(default_factory=list)
    strays: list[Path] = field(default_factory=list)
    leftovers: list[Path] = field(default_factory=list)


def scan(roots: Iterable[Path]) -> Scan:
    """Find the artefacts in folders; a path that is an artefact, or in one, stands for that.

    Raises:
        InputError: a path does not exist or cannot be read.
    """
    found = Scan()
    for root in roots:
        try:
            _scan_one(root, found)
        except OSError as error:
            raise InputError(
                f"{error.filename or root} cannot be read ({error.strerror}); check it"
            ) from error
    found.artefacts = sorted(set(found.artefacts))
    return found


def _scan_one(root: Path, found: Scan) -> None:
    located = locate(root)
    if located is not None:
        found.artefacts.append(located.path)
    elif root.is_dir():
        _walk(root, found, _members(root))
    else:
        state = "is no artefact" if root.exists() else "does not exist"
        raise InputError(f"{root} {state}; name a folder of results or an artefact")


def _walk(folder: Path, found: Scan, members: frozenset[Path]) -> bool:
    """Add what is in `folder`; return whether there is a manifest in it."""
    entries = {entry.name: entry for entry in entries_of(folder)}
    named = {name.removesuffix(SUFFIX) for name in entries if _is_manifest(name)}
    found.artefacts += [folder / name for name in named]
    strays: list[Path] = []
    any_manifest = bool(named)
    for name in sorted(entries.keys() - named):
        path = folder / name
        if name.startswith("."):
            if name not in _OTHERS and not name.endswith(_OWN):
                found.leftovers.append(path)
        elif _is_manifest(name) or path in members:
            continue
        elif entries[name].is_dir(follow_symlinks=False):
            if name not in _NOT_ARTEFACTS:
                inner = Scan()
                if _walk(path, inner, members):
                    any_manifest = True
                    strays += inner.strays
                elif inner.strays:
                    strays += _artefacts_in(path)
                found.artefacts += inner.artefacts
                found.leftovers += inner.leftovers
        elif name not in _NOT_FILES:
            strays.append(path)
    found.strays += strays
    return any_manifest


def _artefacts_in(folder: Path) -> list[Path]:
    """What a job would have written of a folder in which nothing has a manifest.

    A folder that holds a file is written whole, but for the few that hold single tables.
    """
    entries = [Path(entry.path) for entry in entries_of(folder) if not entry.name.startswith(".")]
    if any(entry.is_file() for entry in entries) and folder.name not in _OF_TABLES:
        return [folder]
    return sorted(
        one for entry in entries for one in (_artefacts_in(entry) if entry.is_dir() else [entry])
    )


def _is_manifest(name: str) -> bool:
    return name.endswith(SUFFIX) and not name.startswith(".")


def archive_root(path: Path) -> Path | None:
    """The imported archive that a path lies in; None where it lies in none."""
    whole = Path(os.path.abspath(path))
    for folder in (whole, *whole.parents):
        if (folder / CONTENTS).is_file():
            return folder
    return None


def _members(root: Path) -> frozenset[Path]:
    """The members of an archive below `root`, as paths that start with it."""
    return frozenset(root / one for one in _listed(root, "members"))


def left_out(paths: Iterable[Path]) -> frozenset[Path]:
    """Absolute paths of the artefacts that the archives around `paths` left out."""
    roots = {root for path in paths if (root := archive_root(path)) is not None}
    return frozenset(root / one for root in roots for one in _listed(root, "left_out"))


def _listed(root: Path, key: str) -> list[str]:
    try:
        listed = json.loads((root / CONTENTS).read_bytes())[key]
        return [str(one["path"]) for one in listed]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return []


def is_left_out(artefact: Path, absent: frozenset[Path]) -> bool:
    """Whether an artefact is absent because the archive was made without it."""
    whole = Path(os.path.abspath(artefact))
    return whole in absent and not artefact.exists() and manifest_path(artefact).is_file()
