"""Two runs in one folder: one works, the other says so and leaves everything alone."""

from __future__ import annotations

import time
from pathlib import Path

from broken_study import Study, assert_same, stages_in, tree_of


def test_the_second_run_says_what_is_going_on_and_the_first_ends_well(
    reference: Study, tmp_path: Path, note: list[str]
) -> None:
    study = Study(tmp_path / "study")
    first = study.start()
    while not stages_in(tree_of(first)):
        assert first.poll() is None
        time.sleep(0.1)
    second = study.run()
    assert first.poll() is None
    assert second.status != 0
    assert "Another run works in this folder: process" in second.output
    assert "do not unlock" in second.output
    assert first.wait(1800) == 0, (study.folder / "output.log").read_text()
    assert_same(study, reference)
    note.append("two at once: the second was refused, the first ended well")


def test_two_runs_that_start_at_the_same_moment_do_no_harm(
    reference: Study, tmp_path: Path, note: list[str]
) -> None:
    study = Study(tmp_path / "study")
    both = [study.start(), study.start()]
    statuses = [process.wait(1800) for process in both]
    rest = study.run()
    assert rest.status == 0, rest.output
    assert_same(study, reference)
    note.append(f"two started at the same moment: exit statuses {statuses}, then a plain run")
