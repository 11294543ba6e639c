"""The families of rows whose table names none, told by their settings (study, section 4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

BUDGET, K1, B = "32/128", 1.2, 0.75
"""The default settings: budget and parameters of the primary rows."""

GRID = frozenset((k1, b) for k1 in (0.6, 1.2, 2.4) for b in (0.0, 0.5, 0.75))
"""The parameters of the family `parameters`."""

HELD_BACK = frozenset({"msmarco-dev", "trec-dl-2019", "trec-dl-2020"})
"""The collections whose other budgets were held back for the second registration."""

_INDEX = ["representation", "collection"]


def inferred_families(rows: pd.DataFrame) -> pd.Series:
    """The families each row belongs to, joined by spaces, as `rows.parquet` has them.

    * `primary`: default settings (32/128, k1 1.2, b 0.75), seed 0, no control; no shared
      dictionary, no external representation.
    * `parameters`: the nine (k1, b) of the grid at the default budget, seed 0 and no control, of
      every representation of a collection that has all nine.
    * `budgets`: default parameters, of every representation of a collection at several budgets.
    * `seeds`: default settings, other seeds. `controls`: default settings, a control.
    * `shared_dictionary`: default settings of a dictionary fitted on token states.
    * `held_back`: default parameters at the budgets 16/64 and 64/256 on the MS MARCO collections,
      which are in no `budgets`.

    Args:
        rows: with representation, basis, granularity, collection, seed, budget, k1, b, control.

    Returns:
        Text, on the index of `rows`; empty for a row of no family.
    """
    import pandas as pd

    shared = rows["basis"].str.endswith("_shared")
    own = ~shared & (rows["granularity"] != "external")
    default_budget = rows["budget"] == BUDGET
    default_parameters = (rows["k1"] == K1) & (rows["b"] == B)
    default = default_budget & default_parameters
    plain = (rows["seed"] == 0) & (rows["control"] == "")

    on_grid = np.array([pair in GRID for pair in zip(rows["k1"], rows["b"], strict=True)])
    gridded = plain & own & default_budget & on_grid
    cells = gridded.groupby([rows[key] for key in _INDEX]).transform("sum")
    budgeted = plain & own & default_parameters
    budgets = budgeted.groupby([rows[key] for key in _INDEX]).transform("sum")
    held = rows["collection"].isin(HELD_BACK)
    members = {
        "primary": default & plain & own,
        "budgets": budgeted & ~held & (budgets > 1),
        "parameters": gridded & (cells == len(GRID)),
        "seeds": default & own & (rows["seed"] != 0) & (rows["control"] == ""),
        "controls": default & own & (rows["seed"] == 0) & (rows["control"] != ""),
        "shared_dictionary": default & plain & shared,
        "held_back": budgeted & held & rows["budget"].isin(["16/64", "64/256"]),
    }
    names = np.full(len(rows), "", dtype=object)
    for family, member in members.items():
        names[member.to_numpy()] += f"{family} "
    return pd.Series([name.strip() for name in names], index=rows.index, dtype="str")
