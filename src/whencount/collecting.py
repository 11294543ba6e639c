"""The rows of all jobs of a study in one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from whencount.errors import InputError
from whencount.grid import expand
from whencount.naming import CELL_KEYS, KEYS

if TYPE_CHECKING:
    import pandas as pd


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
