"""Where a page, a figure or a table comes from, down to the files of the collections."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from whencount.errors import InputError
from whencount.provenance.manifest import (
    Located,
    Manifest,
    beside,
    locate,
    manifest_path,
    read_manifest,
)
from whencount.provenance.scanning import is_left_out, left_out

_WIDTH = 100
_REPEATED = 3
"""More inputs than this that were explained before stand on one line."""


@dataclass(frozen=True)
class Origin:
    """One artefact, or a file from outside, and what it was made from.

    Attributes:
        path: as seen from the working directory.
        manifest: None for a file from outside the study, or where there is none.
        digest: of what was read when the artefact above it was made; its own for the first.
        state: `` where it still is what was read; else `changed since`, `missing`, `not here`, or
            `left out of the archive`.
        repeated: `above` or `below` where another line explains it, else ``.
        inputs: what it was made from; empty where another line has them or it lies too deep.
    """

    path: Path
    manifest: Manifest | None
    digest: str
    state: str = ""
    repeated: str = ""
    inputs: tuple[Origin, ...] = ()

    def record(self) -> dict[str, Any]:
        """As plain JSON."""
        found: dict[str, Any] = {"path": str(self.path), "digest": self.digest}
        if self.state:
            found["state"] = self.state
        if self.repeated:
            found["repeated"] = True
        elif self.manifest is not None:
            one = self.manifest
            found |= {
                "kind": one.kind,
                "stage": one.stage,
                "code": one.source,
                "configuration": dict(one.configuration),
                "seed": one.seed,
                "package": dict(one.package),
                "host": dict(one.host),
                "gpu": list(one.gpu),
                "run": dict(one.run),
            }
        return found | {"inputs": [one.record() for one in self.inputs]}


def explain(path: str | Path, depth: int | None = None) -> Origin:
    """Follow the manifests from an artefact, or a file in one, to its beginnings.

    Each artefact is followed once, where `depth` is given at the line that is nearest to the first:
    there most of it is within reach. `depth` is how many steps to go down; all where left out.

    Raises:
        InputError: there is no manifest for the path, or a manifest is damaged.
    """
    located = locate(path)
    if located is None:
        raise InputError(
            f"{path} has no manifest and lies in nothing that has one; name an artefact of a study"
        )
    manifest = read_manifest(located.manifest_path)
    digest = manifest.part_digest(located.part)
    absent = left_out([located.path])
    return _Walk(depth, absent).artefact(located.path, located.part_path, digest, 0)


class _Walk:
    def __init__(self, depth: int | None, absent: frozenset[Path]) -> None:
        self._depth = depth
        self._absent = absent
        self._seen: set[tuple[Path, str]] = set()
        self._levels: dict[tuple[Path, str], int] = {}

    def artefact(self, artefact: Path, path: Path, digest: str, level: int) -> Origin:
        manifest = read_manifest(manifest_path(artefact))
        part = path.relative_to(artefact).as_posix()
        if manifest.part_digest(part) != digest:
            state = "changed since"
        elif is_left_out(artefact, self._absent):
            state = "left out of the archive"
        else:
            state = "" if path.exists() else "missing"
        if self._depth is not None and not self._levels:
            self._find_levels(artefact, part)
        if (artefact, part) in self._seen:
            return Origin(path, manifest, digest, state, repeated="above")
        if level > self._levels.get((artefact, part), level):
            return Origin(path, manifest, digest, state, repeated="below")
        self._seen.add((artefact, part))
        if self._depth is not None and level >= self._depth:
            return Origin(path, manifest, digest, state)
        inputs = self._inputs(artefact, part, manifest, level)
        return Origin(path, manifest, digest, state, inputs=tuple(inputs))

    def _find_levels(self, first: Path, first_part: str) -> None:
        """How many steps the nearest line of every artefact is away, as far down as is asked."""
        found = [(first, first_part)]
        self._levels[first, first_part] = 0
        for level in range(1, (self._depth or 0) + 1):
            further = []
            for artefact, part in found:
                manifest = read_manifest(manifest_path(artefact))
                for _, _, located in _made_from(artefact, part, manifest):
                    if located is not None:
                        key = (located.path, located.part or ".")
                        if key not in self._levels:
                            self._levels[key] = level
                            further.append(key)
            found = further

    def _inputs(
        self, artefact: Path, part: str, manifest: Manifest, level: int
    ) -> Iterator[Origin]:
        for path, digest, located in _made_from(artefact, part, manifest):
            if located is None:
                yield Origin(path, None, digest, "missing")
            else:
                yield self.artefact(located.path, located.part_path, digest, level + 1)
        for one in manifest.sources:
            path = beside(manifest_path(artefact), one.path)
            yield Origin(path, None, one.digest, "" if path.exists() else "not here")


def _made_from(
    artefact: Path, part: str, manifest: Manifest
) -> Iterator[tuple[Path, str, Located | None]]:
    """(path, digest that was read, where it is) of every input of a part."""
    # The vectors of one representation are a part that has the name of the basis they are made
    # with; the bases of the other parts are no beginnings of it.
    others = {name.split("/")[0] for name in manifest.files} - {part.split("/", maxsplit=1)[0]}
    for one in manifest.inputs:
        path = beside(manifest_path(artefact), one.path)
        if part == "." or path.name not in others:
            yield path, one.digest, locate(path)


def lines_of_origin(origin: Origin, indent: int = 0) -> Iterator[str]:
    """The tree as indented lines for a person."""
    yield "  " * indent + _line(origin)
    manifest = origin.manifest
    described = manifest is not None and manifest.kind in ("collection", "passages")
    if manifest is not None and described and not origin.repeated:
        text = json.dumps(dict(manifest.configuration), sort_keys=True)
        room = _WIDTH - 2 * indent
        yield "  " * (indent + 1) + (text if len(text) <= room else f"{text[: room - 3]}...")
    again = [one for one in origin.inputs if one.repeated]
    for one in origin.inputs:
        if not one.repeated or len(again) <= _REPEATED:
            yield from lines_of_origin(one, indent + 1)
    if len(again) > _REPEATED:
        yield (
            f"{'  ' * (indent + 1)}{len(again)} explained elsewhere: {again[0].path} to"
            f" {again[-1].path}"
        )


def _line(origin: Origin) -> str:
    states = [
        *([origin.state] if origin.state else []),
        *([origin.repeated] if origin.repeated else []),
    ]
    state = f"  ({', '.join(states)})" if states else ""
    if origin.manifest is None:
        return f"{origin.path}  from outside  content {origin.digest[:12]}{state}"
    manifest = origin.manifest
    if origin.repeated:
        return f"{origin.path}  {manifest.kind}  content {origin.digest[:12]}{state}"
    seed = "" if manifest.seed is None else f"  seed {manifest.seed}"
    return (
        f"{origin.path}  {manifest.kind} by {manifest.stage}  content {origin.digest[:12]}"
        f"  code {manifest.source[:12]}  configuration {manifest.configuration_hash[:12]}{seed}"
        f"  {manifest.run.get('ended', '')}{state}"
    )
