"""The tables that the reports draw from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from whencount import summaries
from whencount.attribution import QUALITY_COLUMNS, TARGET_COLUMNS
from whencount.errors import InputError
from whencount.scoring import CONFIGURATIONS
from whencount.significance import EFFECTS
from whencount.tables import read_table

if TYPE_CHECKING:
    import pandas as pd

_NEEDED = {
    "rows": (
        *summaries.ROW_KEYS,
        "basis",
        "granularity",
        "families",
        "queries",
        *QUALITY_COLUMNS,
        *TARGET_COLUMNS,
        *(f"tie_share_{configuration}" for configuration in CONFIGURATIONS),
        *(f"expected_{configuration}" for configuration in CONFIGURATIONS),
        "value_cv",
    ),
    "significance": (
        "representation",
        "collection",
        *(f"{kind}_{effect}" for kind in ("statistic", "holm") for effect in EFFECTS),
    ),
    "shares": ("scope", "value", "part", "share", "low", "high", "rows", "gain"),
    "references": ("collection", "reference", "ndcg_10"),
    "predictors": (
        "target",
        "predictors",
        "model",
        "axis",
        "rows",
        "r2",
        "spearman",
        "sign_accuracy",
        "majority_accuracy",
        "always_accuracy",
        "never_accuracy",
    ),
    "predictions": (
        "representation",
        "collection",
        "target",
        "predictors",
        "model",
        "axis",
        "observed",
        "predicted",
    ),
    "decisions": (
        "reference",
        "scope",
        "value",
        "rows",
        "never",
        "always",
        "rule",
        "oracle",
        "recovered",
        "gain_over_always",
        "low",
        "high",
    ),
    "hypotheses": (
        "registration",
        "hypothesis",
        "statement",
        "test",
        "rows",
        "estimate",
        "comparison",
        "threshold",
        "p",
        "holm_p",
        "passes",
        "status",
        "reason",
    ),
}


@dataclass(frozen=True)
class StudyTables:
    """The tables of a run (docs/tables.md has their columns).

    Attributes:
        rows: rows.parquet.
        significance: significance.parquet.
        shares: shares.parquet.
        references: references.parquet.
        reported: the rows of the reported family that were tested.
        predictors, predictions, decisions, hypotheses: the tables of these names; None where a run
            has none.
    """

    rows: pd.DataFrame
    significance: pd.DataFrame
    shares: pd.DataFrame
    references: pd.DataFrame
    reported: pd.DataFrame
    predictors: pd.DataFrame | None = None
    predictions: pd.DataFrame | None = None
    decisions: pd.DataFrame | None = None
    hypotheses: pd.DataFrame | None = None


def load(
    rows: str | Path,
    significance: str | Path,
    shares: str | Path,
    references: str | Path,
    predictors: str | Path | None = None,
    predictions: str | Path | None = None,
    decisions: str | Path | None = None,
    hypotheses: str | Path | None = None,
    *,
    family: str,
) -> StudyTables:
    """Read the tables of a run and pick the reported rows.

    Raises:
        InputError: a table is missing or damaged, lacks a column, or is of another run.
    """
    read = {
        name: _read(path, name)
        for name, path in {
            "rows": rows,
            "significance": significance,
            "shares": shares,
            "references": references,
            "predictors": predictors,
            "predictions": predictions,
            "decisions": decisions,
            "hypotheses": hypotheses,
        }.items()
        if path
    }
    reported = summaries.reported_rows(read["rows"], read["significance"], family)
    return StudyTables(**read, reported=reported)


def _read(path: str | Path, name: str) -> pd.DataFrame:
    table = read_table(path)
    missing = [column for column in _NEEDED[name] if column not in table.columns]
    if missing:
        raise InputError(
            f"{path} lacks the columns {', '.join(missing[:5])}; write it again with this version"
            " of whencount"
        )
    return table
