"""Which rows of a study are reported, and which jobs they are from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from whencount.errors import InputError
from whencount.naming import Job

if TYPE_CHECKING:
    import pandas as pd


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
