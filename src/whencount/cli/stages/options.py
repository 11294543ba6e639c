"""What the steps of the workflow share: what they read and write, and how that is recorded."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from whencount.errors import InputError


class Json(click.ParamType[Any]):
    """A JSON object (or, where asked for, a list) on the command line."""

    name = "json"

    def __init__(self, kind: type = dict) -> None:
        self.kind = kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            parsed = json.loads(value)
        except json.JSONDecodeError as error:
            self.fail(f"not valid JSON: {error}", param, ctx)
        if not isinstance(parsed, self.kind):
            self.fail(f"{value} is no JSON {'list' if self.kind is list else 'object'}", param, ctx)
        return parsed


class JsonPaths(Json):
    """A JSON object of names and paths, each an artefact of the study."""


class Reads(click.Path):
    """An artefact of the study that a step reads."""


class Writes(click.Path):
    """An artefact of the study that a step writes."""


class Outside(click.Path):
    """A file of a person's that a step reads."""


JSON = Json()
JSON_LIST = Json(list)
JSON_PATHS = JsonPaths()
READS = Reads(path_type=Path)
WRITES = Writes(path_type=Path)
OUTSIDE = Outside(path_type=Path)


class StageCommand(click.Command):
    """A step whose inputs are checked before it runs and whose outputs get manifests after it.

    Args:
        concerns: of the parameters, the part of the configuration that the step depends on, keys
            as in the configuration.
        reads: of the parameters, the artefacts (or parts of them) that it reads; the options of
            type READS and JSON_PATHS where left out.
        sources: of the parameters, files from outside the study beyond the options of type OUTSIDE.
    """

    def __init__(
        self,
        *args: Any,
        concerns: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
        reads: Callable[[dict[str, Any]], list[Path]] | None = None,
        sources: Callable[[dict[str, Any]], list[Path]] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self._concerns = concerns
        self._reads = reads
        self._sources = sources

    def invoke(self, ctx: click.Context) -> Any:
        from whencount.occupancy import join
        from whencount.provenance import recorded

        join()
        given = ctx.params
        read = self._reads(given) if self._reads else [*self._paths(given, Reads)]
        outside = [*self._paths(given, Outside)]
        with recorded(
            stage=str(self.name),
            outputs=[*self._paths(given, Writes)],
            inputs=sorted(set(read)),
            sources=sorted({*outside, *(self._sources(given) if self._sources else [])}),
            configuration=self._concerns(given) if self._concerns else {},
            seed=given.get("seed"),
        ):
            return super().invoke(ctx)

    def _paths(self, given: dict[str, Any], kind: type) -> Iterator[Path]:
        for parameter in self.params:
            value = given.get(str(parameter.name))
            if value is None:
                continue
            if isinstance(parameter.type, kind):
                yield from value if isinstance(value, tuple) else [value]
            elif kind is Reads and isinstance(parameter.type, JsonPaths):
                yield from map(Path, value.values())


def digests(paths: Iterable[str | Path]) -> dict[str, str]:
    """What the manifests of artefacts, or of parts of them, say of their content.

    Raises:
        InputError: one has no manifest.
    """
    from whencount.provenance import locate, read_manifest

    found = {}
    for path in paths:
        located = locate(path)
        if located is None:
            raise InputError(f"{path} has no manifest; make it again by the workflow")
        manifest = read_manifest(located.manifest_path)
        found[str(path)] = manifest.part_digest(located.part)
    return found


def checkpoint_key(stage: str, reads: Iterable[str | Path], **further: Any) -> dict[str, Any]:
    """What finished parts of a step depend on: its code, its inputs, its options."""
    from whencount.provenance import stage_hash

    return {"code": stage_hash(stage), "reads": digests(reads), **further}


@contextmanager
def held_threads(count: int) -> Iterator[None]:
    """Hold every pool of threads (BLAS, OpenMP, numba) to `count`, so that results repeat."""
    import os

    from threadpoolctl import threadpool_limits

    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = str(count)
    with threadpool_limits(limits=count):
        yield


def write_table(frame: Any, path: Path) -> None:
    """Write a table, whole or not at all."""
    from whencount import tables

    tables.write_table(frame, path)
