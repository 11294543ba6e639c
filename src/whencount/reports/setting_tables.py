"""The tables that the reports on KV pages and on expert routing draw from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from whencount.attribution import QUALITY_COLUMNS, TARGET_COLUMNS
from whencount.errors import InputError
from whencount.setting_summaries.selections import EXAMPLE
from whencount.tables import read_table

if TYPE_CHECKING:
    import pandas as pd

_LINES_AT_ONCE = 1 << 20
_TARGETS = tuple(name for name in TARGET_COLUMNS if not name.startswith("main_effect"))
_PAGES: dict[str, tuple[str, ...]] = {
    "rows": (
        "model",
        "task",
        "context",
        "budget",
        "variant",
        "k1",
        "b",
        "examples",
        *QUALITY_COLUMNS,
        *_TARGETS,
    ),
    "per_example": (
        "model",
        "task",
        "context",
        "example",
        "selector",
        "variant",
        "budget",
        "score",
        "prediction",
        "references",
    ),
    "baselines": (
        "model",
        "task",
        "context",
        "budget",
        "selector",
        "variant",
        "score",
        "low",
        "high",
        "examples",
    ),
}
_PAGES_MORE: dict[str, tuple[tuple[str, ...], str]] = {
    "selected": (
        (
            "model",
            "task",
            "context",
            "example",
            "selector",
            "variant",
            "budget",
            "layer",
            "head",
            "step",
            "page",
        ),
        "which pages each selector reads in one example is not shown",
    ),
    "page_statistics": (
        ("model", "task", "context", "layer", "head"),
        "frequency, value and length of pages are not shown",
    ),
    "unavailable": (("task", "reason"), "tasks that could not be run are not listed"),
}
_EXPERTS: dict[str, tuple[str, ...]] = {
    "rows": (
        "model",
        "evaluation",
        "active",
        "variant",
        "k1",
        "b",
        *QUALITY_COLUMNS,
        *_TARGETS,
    ),
    "per_document": ("model", "evaluation", "document", "rule", "variant", "active", "tokens"),
    "baselines": (
        "model",
        "evaluation",
        "active",
        "variant",
        "rule",
        "quality",
        "low",
        "high",
        "documents",
    ),
}
_EXPERTS_MORE: dict[str, tuple[tuple[str, ...], str]] = {
    "routing": (
        ("model", "layer", "expert", "frequency", "rule", "variant", "share", "entered", "left"),
        "how often each expert is chosen, and which enter and leave, is not shown",
    ),
    "training": (
        ("step", "loss", "validation"),
        "the training curve of the small model is not shown",
    ),
}


@dataclass(frozen=True)
class PagesTables:
    """The tables of a study of KV pages (docs/tables.md has their columns).

    Attributes:
        rows, per_example, baselines: the tables of these names.
        selected, page_statistics, unavailable: the tables of these names, of the first its first
            example alone; None where a run has none, or one without the columns that are needed.
        notes: a sentence per table that is missing or lacks columns, plain text.
    """

    rows: pd.DataFrame
    per_example: pd.DataFrame
    baselines: pd.DataFrame
    selected: pd.DataFrame | None = None
    page_statistics: pd.DataFrame | None = None
    unavailable: pd.DataFrame | None = None
    notes: tuple[str, ...] = field(default=())


@dataclass(frozen=True)
class ExpertsTables:
    """The tables of a study of expert routing (docs/tables.md has their columns).

    Attributes:
        rows, baselines: the tables of these names.
        per_document: the table of that name, with a column `quality`: minus the NLL, or the
            accuracy, so that more is better.
        routing, training: the tables of these names; None where a run has none, or one without the
            columns that are needed.
        notes: a sentence per table that is missing or lacks columns, plain text.
    """

    rows: pd.DataFrame
    per_document: pd.DataFrame
    baselines: pd.DataFrame
    routing: pd.DataFrame | None = None
    training: pd.DataFrame | None = None
    notes: tuple[str, ...] = field(default=())


def load_pages(paths: Mapping[str, str | Path]) -> PagesTables:
    """Read the tables of a study of KV pages.

    Args:
        paths: by the names of PagesTables; those after `baselines` may be left out.

    Raises:
        InputError: one of the first three is missing, damaged or lacks a column; another is
            damaged.
    """
    needed = {name: needed_table(paths, name, columns) for name, columns in _PAGES.items()}
    more, notes = _further(paths, _PAGES_MORE)
    return PagesTables(
        **needed,
        selected=more["selected"],
        page_statistics=more["page_statistics"],
        unavailable=more["unavailable"],
        notes=notes,
    )


def load_experts(paths: Mapping[str, str | Path]) -> ExpertsTables:
    """Read the tables of a study of expert routing.

    Args:
        paths: by the names of ExpertsTables; those after `baselines` may be left out.

    Raises:
        InputError: as `load_pages`.
    """
    needed = {name: needed_table(paths, name, columns) for name, columns in _EXPERTS.items()}
    needed["per_document"] = _with_quality(needed["per_document"], paths["per_document"])
    more, notes = _further(paths, _EXPERTS_MORE)
    return ExpertsTables(**needed, routing=more["routing"], training=more["training"], notes=notes)


def needed_table(
    paths: Mapping[str, str | Path], name: str, columns: tuple[str, ...]
) -> pd.DataFrame:
    """Read a table that a page cannot do without.

    Raises:
        InputError: it is not named, missing, damaged or lacks a column.
    """
    if not paths.get(name):
        raise InputError(f"the report needs the table {name}; name its file")
    table = read_table(paths[name])
    missing = [column for column in columns if column not in table.columns]
    if missing:
        raise InputError(
            f"{paths[name]} lacks the columns {', '.join(missing[:5])}; write it again with this"
            " version of whencount"
        )
    return table


def _further(
    paths: Mapping[str, str | Path], wanted: Mapping[str, tuple[tuple[str, ...], str]]
) -> tuple[dict[str, pd.DataFrame | None], tuple[str, ...]]:
    found: dict[str, pd.DataFrame | None] = {}
    notes = []
    for name, (columns, without) in wanted.items():
        path = paths.get(name)
        found[name] = None
        if not path or not Path(path).exists():
            notes.append(f"This run has no table {name}, so {without}.")
            continue
        if Path(path).suffix == ".json":
            table = _list(Path(path))
        else:
            table = first_example(path) if name == "selected" else read_table(path)
        missing = [column for column in columns if column not in table.columns]
        if missing:
            lacking = ", ".join(missing[:5])
            notes.append(f"The table {name} lacks the columns {lacking}, so {without}.")
            continue
        found[name] = table
    return found, tuple(notes)


def first_example(path: str | Path) -> pd.DataFrame:
    """The lines at the head of selected.parquet that belong to its first example.

    The table of a large study does not fit in memory, and one example is what a page shows.

    Raises:
        InputError: the file is missing, truncated or no Parquet.
    """
    import pandas as pd
    import pyarrow as pa
    import pyarrow.parquet as pq

    parts: list[pd.DataFrame] = []
    try:
        file = pq.ParquetFile(path)
        keys = [name for name in EXAMPLE if name in file.schema_arrow.names]
        for batch in file.iter_batches(_LINES_AT_ONCE):
            part = batch.to_pandas()
            first = parts[0].iloc[0] if parts else part.iloc[0]
            same = (part[keys] == first[keys]).all(axis=1)
            parts.append(part[same])
            if not same.all():
                break
        none = file.schema_arrow.empty_table().to_pandas()
    except (OSError, pa.ArrowException) as error:
        reason = " ".join(str(error).split())[:200]
        raise InputError(
            f"{path} cannot be read as a Parquet table ({reason}); delete it and run again"
        ) from error
    return pd.concat(parts, ignore_index=True) if parts else none


def _list(path: Path) -> pd.DataFrame:
    """A JSON list of objects as a table of texts; of an empty one, one with every column."""
    import pandas as pd

    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path} is no JSON list ({error}); delete it and run again") from None
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise InputError(f"{path} holds no list of objects; delete it and run again")
    return pd.DataFrame(found) if found else pd.DataFrame(columns=["task", "reason", "remedy"])


def _with_quality(table: pd.DataFrame, path: str | Path) -> pd.DataFrame:
    parts = [-table["nll"]] if "nll" in table.columns else []
    parts += [table["accuracy"]] if "accuracy" in table.columns else []
    if not parts:
        raise InputError(
            f"{path} has neither a column nll nor a column accuracy; write it again with this"
            " version of whencount"
        )
    quality = parts[0] if len(parts) == 1 else parts[0].fillna(parts[1])
    return table.assign(quality=quality.astype("float64"))
