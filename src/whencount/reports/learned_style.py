"""Tables and marks of the report on learned sparse vectors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

import pandas as pd

from whencount.errors import InputError
from whencount.reports.setting_style import BLUE, GREEN, PINK, RED, YELLOW, Mark
from whencount.tables import read_table

_COLUMNS = {
    "rows": ("representation", "collection", "budget", "k1", "b", "q000", "q111"),
    "costs": ("model", "collection", "cut", "document_nnz", "activation_support", "posting_work"),
    "training": ("model", "step", "base_loss", "document_regularizer_weight"),
}
_MARKS = (Mark(BLUE, "o"), Mark(RED, "^"), Mark(GREEN, "D"), Mark(YELLOW, "s"), Mark(PINK, "v"))


@dataclass(frozen=True)
class LearnedTables:
    """The tables of the study of learned sparse vectors (docs/tables.md has their columns)."""

    rows: pd.DataFrame
    costs: pd.DataFrame
    training: pd.DataFrame

    def named(self) -> dict[str, pd.DataFrame]:
        """Every table by its name."""
        return {name: getattr(self, name) for name in _COLUMNS}


def load_learned(tables: Mapping[str, str | Path]) -> LearnedTables:
    """Read the tables that the page shows.

    Raises:
        InputError: one is not named, cannot be read or lacks a column.
    """
    found = {}
    for name, columns in _COLUMNS.items():
        if name not in tables:
            raise InputError(f"the report on learned sparse vectors needs the table {name!r}")
        found[name] = read_table(tables[name])
        lacking = [column for column in columns if column not in found[name]]
        if lacking:
            raise InputError(f"{tables[name]} lacks the column {lacking[0]!r}; make it again")
    return LearnedTables(**found)


def model_of(representation: str) -> str:
    """`plain` of `plain_external`."""
    return representation.removesuffix("_external")


def marks_of(models: Iterable[str]) -> dict[str, Mark]:
    """A mark for each model, in order."""
    return dict(zip(models, cycle(_MARKS), strict=False))
