"""The tables of all jobs in one: in the order of the study, none missing, none strange."""

from __future__ import annotations

import pandas as pd
import pytest

from whencount.errors import InputError
from whencount.pages.collecting import collect

JOBS = [("b", "vt", 1024), ("a", "vt", 512), ("a", "vt", 1024)]


def frame(model: str, task: str, context: int, lines: int = 2) -> pd.DataFrame:
    return pd.DataFrame(
        {"model": model, "task": task, "context": context, "line": range(lines)},
        columns=["model", "task", "context", "line"],
    )


def test_lines_keep_their_order_within_the_order_of_the_study() -> None:
    table = collect([frame(*job) for job in sorted(JOBS)], JOBS)
    expected = [(*job, line) for job in JOBS for line in range(2)]
    assert list(table.itertuples(index=False, name=None)) == expected


def test_a_job_without_a_line_is_told_where_every_job_has_one() -> None:
    frames = [frame(*JOBS[0]), frame(*JOBS[1]), frame(*JOBS[2], lines=0)]
    with pytest.raises(InputError, match=r"1 missing, 0 unasked: a, vt, 1024"):
        collect(frames, JOBS)
    assert len(collect(frames, JOBS, complete=False)) == 4
    empty = [frame(*job, lines=0) for job in JOBS]
    assert list(collect(empty, JOBS, complete=False).columns) == list(empty[0].columns)


def test_a_line_of_another_study_is_told() -> None:
    with pytest.raises(InputError, match=r"0 missing, 1 unasked: c, vt, 512"):
        collect([*(frame(*job) for job in JOBS), frame("c", "vt", 512)], JOBS)
