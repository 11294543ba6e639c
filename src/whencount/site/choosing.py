"""Which queries of a row are shown with their documents: those whose quality changes most."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from whencount.naming import Cell
from whencount.site.comparisons import COMPARISONS

if TYPE_CHECKING:
    import pandas as pd

CELL_COLUMNS = ["budget", "k1", "b", "control"]
PER_COMPARISON = 4
"""Queries that each comparison brings in, those that gain and those that lose together."""


def cells_of(per_query: pd.DataFrame) -> Iterator[tuple[Cell, pd.DataFrame]]:
    """The cells of a job and their lines, in the order of the table (docs/tables.md)."""
    for key, lines in per_query.groupby(CELL_COLUMNS, sort=False):
        budget, k1, b, control = key
        yield Cell(str(budget), float(str(k1)), float(str(b)), str(control)), lines


def most_changed(lines: pd.DataFrame, per_comparison: int = PER_COMPARISON) -> NDArray[np.int64]:
    """The places of the queries whose nDCG@10 any comparison changes most.

    Args:
        lines: of one cell, with the columns q000 ... q111.
        per_comparison: how many each comparison may bring; a query that it leaves as it was is
            never among them, and of equal changes the first query is.

    Returns:
        int64, rising, at most `per_comparison` times the number of comparisons.
    """
    places: set[int] = set()
    for pair in COMPARISONS:
        change = (lines[f"q{pair.after}"] - lines[f"q{pair.before}"]).to_numpy(dtype=np.float64)
        order = np.argsort(-np.abs(change), kind="stable")[:per_comparison]
        places.update(order[change[order] != 0].tolist())
    return np.array(sorted(places), dtype=np.int64)
