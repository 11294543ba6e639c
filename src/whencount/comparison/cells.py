"""A run of the published configuration, cell by cell beside the publication."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from whencount import published, summaries

if TYPE_CHECKING:
    import pandas as pd

MEASURED = ("gain", "shapley_idf", "shapley_saturation", "shapley_length")
"""What the published rows hold of each cell."""


@dataclass(frozen=True)
class RowDifferences:
    """How far rows lie from the published ones, in one column.

    Attributes:
        column: one of MEASURED.
        rows: how many rows are published too.
        median, largest: of the absolute differences, in nDCG@10.
        where: the row of the largest, `sae_token on limit, 32/128, k1 1.2, b 0.75`.
    """

    column: str
    rows: int
    median: float
    largest: float
    where: str


def with_published(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows that are published too, with `published_COLUMN` for every column of MEASURED.

    Rows are matched by representation, collection, budget, k1, b, seed and control; so this means
    something for a run of the published configuration only (`published.departures`).
    """
    keys = list(summaries.ROW_KEYS)
    theirs = published.rows()[[*keys, *MEASURED]]
    theirs = theirs.rename(columns={column: f"published_{column}" for column in MEASURED})
    return rows.merge(theirs, on=keys, how="inner", validate="one_to_one")


def row_differences(rows: pd.DataFrame) -> list[RowDifferences]:
    """Median and largest difference per column of MEASURED; empty where no row is published."""
    both = with_published(rows)
    if len(both) == 0:
        return []
    found = []
    for column in MEASURED:
        apart = (both[column] - both[f"published_{column}"]).abs()
        line = both.iloc[int(apart.to_numpy().argmax())]
        found.append(
            RowDifferences(
                column,
                len(both),
                float(apart.median()),
                float(apart.max()),
                f"{line['representation']} on {line['collection']}, {line['budget']},"
                f" k1 {line['k1']:g}, b {line['b']:g}",
            )
        )
    return found
