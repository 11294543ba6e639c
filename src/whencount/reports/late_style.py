"""Names, marks and tables of the report on late interaction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from whencount.errors import InputError
from whencount.reports.setting_style import BLUE, GREEN, GREY, PINK, RED, YELLOW, Mark
from whencount.tables import read_table

ARM_NAMES = {
    "maxsim": "MaxSim, exact",
    "no_augmentation": "without query augmentation",
    "augmentation": "with query augmentation",
    "mean_for_max": "mean in the place of the maximum",
    "one_vector": "one vector per text",
    "residual_1": "MaxSim at 1 bit",
    "residual_2": "MaxSim at 2 bits",
}
ARM_MARKS = {
    "maxsim": Mark(BLUE, "o"),
    "no_augmentation": Mark(GREEN, "D"),
    "augmentation": Mark(GREEN, "D"),
    "mean_for_max": Mark(YELLOW, "s"),
    "one_vector": Mark(RED, "^"),
    "residual_1": Mark(GREY, "X"),
    "residual_2": Mark(PINK, "v"),
}
STAGE_NAMES = {
    "probe": "near a centroid",
    "pruned": "pruned interaction",
    "interaction": "centroid interaction",
    "decoded": "decoded MaxSim",
    "exact": "exact MaxSim",
}
_COLUMNS = {
    "rows": ("collection", "arm", "ndcg_10", "recall_100", "overlap_10", "payload_bytes"),
    "funnel": ("collection", "bits", "stage", "cutoff", "documents", "share"),
    "codes": ("collection", "bits", "scores", "broken", "pairs", "decided", "reversed"),
}


@dataclass(frozen=True)
class LateTables:
    """The tables of the study of late interaction (docs/tables.md has their columns)."""

    rows: pd.DataFrame
    funnel: pd.DataFrame
    codes: pd.DataFrame

    def named(self) -> dict[str, pd.DataFrame]:
        """Every table by its name."""
        return {name: getattr(self, name) for name in _COLUMNS}


def load_late(tables: Mapping[str, str | Path]) -> LateTables:
    """Read the tables that the page shows.

    Raises:
        InputError: one is not named, cannot be read or lacks a column.
    """
    found = {}
    for name, columns in _COLUMNS.items():
        if name not in tables:
            raise InputError(f"the report on late interaction needs the table {name!r}")
        found[name] = read_table(tables[name])
        lacking = [column for column in columns if column not in found[name]]
        if lacking:
            raise InputError(f"{tables[name]} lacks the column {lacking[0]!r}; make it again")
    return LateTables(**found)


def arm_name(arm: str) -> str:
    """The name of an arm in words."""
    return ARM_NAMES.get(arm, arm)
