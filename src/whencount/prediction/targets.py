"""What is predicted, and the rows that cannot be asked (study, sections 5 and 7)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from whencount import attribution
from whencount.attribution import UNDEFINED_BELOW
from whencount.scoring import SWITCHES

if TYPE_CHECKING:
    import pandas as pd

TARGETS = {
    "idf": "shapley_idf",
    "saturation": "shapley_saturation",
    "length": "shapley_length",
    "collection_gain": "collection_gain",
    "margin": "margin",
}
"""Targets by name, and the columns of rows.parquet that hold them."""

UNDEFINED = "no configuration differs from another, so the margin is undefined"
FEW_SWITCHES = "fewer than two switches change the outcome"
MISSING = "the target is missing"


@dataclass(frozen=True)
class Target:
    """A target in every row.

    Attributes:
        outcome: float64, shape (rows,).
        reason: why a row is left out, shape (rows,); "" where it is used.
    """

    outcome: NDArray[np.float64]
    reason: NDArray[np.object_]

    @property
    def usable(self) -> NDArray[np.bool_]:
        """Rows that are used, shape (rows,)."""
        return np.asarray(self.reason == "")


def targets_of(rows: pd.DataFrame) -> tuple[dict[str, Target], list[str]]:
    """Every target that the rows have, and notes on those that they have not.

    Rows with an undefined margin (population sd of the eight qualities at most 1e-12) are left out
    of every target: nothing happens there to be predicted. From the margin those are left out too
    whose outcome responds to fewer than two switches. A switch has a response if it changes the
    quality by more than 1e-12 in one of its four configuration pairs; where the rows lack the
    eight qualities, if its Shapley value is above that.

    Args:
        rows: with q000 ... q111, or with any of the columns of TARGETS.
    """
    columns: dict[str, NDArray[np.float64]] = {}
    notes = []
    quality = None
    if set(attribution.QUALITY_COLUMNS) <= set(rows.columns):
        quality = rows[list(attribution.QUALITY_COLUMNS)].to_numpy(dtype=np.float64)
        computed = attribution.targets(rows)
        columns = {name: computed[name].to_numpy() for name in TARGETS.values()}
    else:
        for name in TARGETS.values():
            if name in rows.columns:
                columns[name] = rows[name].to_numpy(dtype=np.float64)
    undefined = np.zeros(len(rows), dtype=bool)
    if "margin" in columns:
        undefined = np.isnan(columns["margin"])
    else:
        notes.append(
            "Rows in which nothing changes are not left out: the rows have neither the eight"
            " qualities nor a margin."
        )
    few = _responses(rows, quality) < 2
    targets = {}
    for target, column in TARGETS.items():
        if column not in columns:
            notes.append(f"Target {target} is left out: the rows have no column {column}.")
            continue
        outcome = columns[column]
        reason = np.full(len(rows), "", dtype=object)
        reason[~np.isfinite(outcome)] = MISSING
        if target == "margin":
            reason[few] = FEW_SWITCHES
        reason[undefined] = UNDEFINED
        targets[target] = Target(outcome, reason)
    return targets, notes


def _responses(rows: pd.DataFrame, quality: NDArray[np.float64] | None) -> NDArray[np.int64]:
    """How many switches the outcome responds to, shape (rows,)."""
    count = np.zeros(len(rows), dtype=np.int64)
    for switch in SWITCHES:
        if quality is not None:
            pairs = attribution.switch_pairs(switch)
            change = np.max([np.abs(quality[:, on] - quality[:, off]) for off, on in pairs], axis=0)
        elif f"shapley_{switch}" in rows.columns:
            change = np.abs(rows[f"shapley_{switch}"].to_numpy(dtype=np.float64))
        else:
            change = np.full(len(rows), np.inf)
        count += change > UNDEFINED_BELOW
    return count
