"""What the steps of the workflow share: values given as JSON, held threads, one table written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click


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


JSON = Json()
JSON_LIST = Json(list)
FILE = click.Path(path_type=Path)


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
