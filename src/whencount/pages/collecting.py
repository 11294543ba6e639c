"""The tables of all jobs of a study of pages, each kind in one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from whencount.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

JOB = ("model", "task", "context")
"""What names a job, in every table."""

COMPLETE = ("rows", "per_example", "baselines")
KINDS = (*COMPLETE, "page_statistics", "selected")
"""The tables of a job; those of `COMPLETE` have a line of every job."""


def collect(
    frames: Sequence[pd.DataFrame], jobs: Sequence[tuple[str, str, int]], *, complete: bool = True
) -> pd.DataFrame:
    """One table of the tables of all jobs, in the order of the jobs.

    Args:
        frames: a table per job, in any order.
        jobs: those of the study.
        complete: whether every job must have a line. Where all layers of a model are dense, no page
            has statistics, and none is selected.

    Raises:
        InputError: a job has no line and needs one, or a line is of a job that the study does not
            have.
    """
    import pandas as pd

    filled = [frame for frame in frames if len(frame)] or list(frames)[:1]
    table = pd.concat(filled, ignore_index=True)
    keys = pd.MultiIndex.from_frame(table[list(JOB)])
    place = pd.Series(range(len(jobs)), index=pd.MultiIndex.from_tuples(jobs, names=JOB))
    found = set(keys)
    missing = set(jobs) - found if complete else set()
    strange = found - set(jobs)
    if missing or strange:
        example = ", ".join(map(str, sorted(missing or strange)[0]))
        raise InputError(
            f"the tables of the jobs do not hold what the configuration asks for ({len(missing)}"
            f" missing, {len(strange)} unasked: {example}); run snakemake pages again"
        )
    order = place.loc[keys].to_numpy().argsort(kind="stable")
    return table.iloc[order].reset_index(drop=True)
