"""Rows of the study: tables of what the cells of its jobs gave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from whencount import attribution
from whencount.cells import CellResult
from whencount.errors import InputError
from whencount.grid import Cell, Job, Representation, expand
from whencount.scoring import CONFIGURATIONS

if TYPE_CHECKING:
    import pandas as pd

KEYS = (
    "representation",
    "basis",
    "granularity",
    "collection",
    "corpus",
    "budget",
    "query_budget",
    "document_budget",
    "k1",
    "b",
    "seed",
    "control",
)
"""The columns that name a row."""

CELL_KEYS = ("representation", "collection", "seed", "budget", "k1", "b", "control")
"""The fewest columns that tell a row from every other."""


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


def collect(frames: Sequence[pd.DataFrame], config: Mapping[str, Any]) -> pd.DataFrame:
    """All rows of a study in one table, sorted by their keys, with the families of each.

    Args:
        frames: the row tables of the jobs.
        config: the parts of the configuration that say what the families are (`grid.expand`).

    Returns:
        The rows, with a column `families`: the names of the families the row belongs to, joined
        by spaces.

    Raises:
        InputError: a row that no family asks for, or one that is missing.
    """
    import pandas as pd

    families = {
        (
            job.representation,
            job.collection,
            job.seed,
            cell.budget,
            cell.k1,
            cell.b,
            cell.control,
        ): (" ".join(members))
        for job, cells in expand(config).items()
        for cell, members in cells.items()
    }
    table = pd.concat(frames, ignore_index=True)
    order = list(CELL_KEYS)
    keys = list(table[order].itertuples(index=False, name=None))
    missing = families.keys() - set(keys)
    strange = set(keys) - families.keys()
    if missing or strange or len(keys) != len(set(keys)):
        found = sorted(missing or strange)[:1]
        raise InputError(
            f"the tables of the jobs do not hold the rows of the configuration"
            f" ({len(missing)} missing, {len(strange)} unasked, {found}); run the study again"
        )
    place = sum(column in table.columns for column in KEYS)
    table.insert(place, "families", [families[key] for key in keys])
    return table.sort_values(order, ignore_index=True)


def reported(
    rows: pd.DataFrame, family: str, collections: Sequence[str] | None = None
) -> pd.DataFrame:
    """The rows of one family, on some collections (None: on all).

    Raises:
        InputError: there is none.
    """
    chosen = rows["families"].str.split().map(lambda names: family in names)
    if collections is not None:
        chosen &= rows["collection"].isin(collections)
    if not chosen.any():
        raise InputError(
            f"no row belongs to the family {family!r} that the statistics report; name another in"
            " statistics.family"
        )
    return rows[chosen]


def row_names(rows: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """The jobs that the rows are from: name of each, and the columns that its table lacks."""
    jobs = rows[["representation", "collection", "seed"]].drop_duplicates()
    return {
        Job(str(job["representation"]), str(job["collection"]), int(job["seed"])).name: {
            str(column): value for column, value in job.items()
        }
        for job in jobs.to_dict("records")
    }
