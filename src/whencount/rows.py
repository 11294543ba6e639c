"""Rows of the study: tables of what the cells of its jobs gave."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from whencount import attribution
from whencount.cells import CellResult
from whencount.naming import Cell, Job, Representation
from whencount.scoring import CONFIGURATIONS

if TYPE_CHECKING:
    import pandas as pd


def row_keys(job: Job, cell: Cell, corpus: str | None = None) -> dict[str, Any]:
    """What names the row of a cell: the columns KEYS.

    `corpus` is the collection whose documents this one shares; None: they are its own.
    """
    representation = Representation.parse(job.representation)
    query_budget, document_budget = cell.budgets
    return {
        "representation": job.representation,
        "basis": representation.basis + ("_shared" if representation.shared else ""),
        "granularity": representation.granularity,
        "collection": job.collection,
        "corpus": corpus or job.collection,
        "budget": cell.budget,
        "query_budget": query_budget,
        "document_budget": document_budget,
        "k1": cell.k1,
        "b": cell.b,
        "seed": job.seed,
        "control": cell.control,
    }


def tables(
    job: Job,
    results: Mapping[Cell, CellResult],
    query_ids: NDArray[np.object_],
    evaluated: NDArray[np.bool_],
    corpus: str | None = None,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The rows and the per-query qualities of a job as tables; docs/tables.md has the columns.

    Args:
        job: whose they are.
        results: what `whencount.cells.score_cells` gave.
        query_ids: of all queries, in order.
        evaluated: shape (queries,), which queries have a positive judgement.
        corpus: the collection whose documents this one shares; None: they are its own.
    """
    import pandas as pd

    rows, per_query = [], []
    for cell in sorted(results):
        names = row_keys(job, cell, corpus)
        rows.append(names | results[cell].row)
        block = pd.DataFrame(
            results[cell].per_query[evaluated],
            columns=[f"q{configuration}" for configuration in CONFIGURATIONS],
        )
        block.insert(0, "query_id", query_ids[evaluated])
        for column in ("control", "b", "k1", "budget"):
            block.insert(0, column, names[column])
        per_query.append(block)
    frame = pd.DataFrame(rows).astype(
        {"query_budget": "Int64", "document_budget": "Int64", "seed": "int64", "queries": "int64"}
    )
    targets = attribution.targets(frame)
    place = frame.columns.get_loc("q111")
    assert isinstance(place, int)
    frame = pd.concat([frame.iloc[:, : place + 1], targets, frame.iloc[:, place + 1 :]], axis=1)
    return frame, pd.concat(per_query, ignore_index=True)
