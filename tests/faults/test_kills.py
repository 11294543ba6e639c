"""A study killed at any moment is finished by the same command, with the same bytes."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from broken_study import (
    Done,
    Study,
    assert_nothing_half,
    assert_same,
    kill_tree,
    stages_in,
    tree_of,
)

KILLS = 20
IN_A_ROW = 5
"""Kills of one study before the next one begins from nothing."""
SECONDS_TO_START = 3.0
"""Until a run that goes on has its first step; a little more than Snakemake needs."""
SEED = 20261130


def killed_after(study: Study, seconds: float) -> list[str] | None:
    """Start the study, kill all of it after so long; the steps that ran, None if it had ended."""
    process = study.start()
    time.sleep(seconds)
    steps = stages_in(tree_of(process))
    if process.poll() is not None:
        return None
    kill_tree(process)
    return steps


def holds_lock(process: psutil.Process) -> bool:
    """Whether a process has said that it works in a folder."""
    try:
        return any(Path(one.path).name == "whencount.lock" for one in process.open_files())
    except psutil.Error:
        return False


@pytest.mark.parametrize("number", range(KILLS // IN_A_ROW))
def test_a_study_killed_again_and_again_goes_on_to_the_same_bytes_after_each_kill(
    undisturbed: tuple[Study, Done], tmp_path: Path, note: list[str], number: int
) -> None:
    reference, done = undisturbed
    study, spent = Study(tmp_path / "study"), 0.0
    draw = random.Random(f"{SEED} {number}")
    for kill in range(IN_A_ROW):
        # One in each part of the run's duration, and of each part another in each study.
        share = (kill + (number + draw.random()) * IN_A_ROW / KILLS) / IN_A_ROW
        seconds = share * done.seconds - spent + (SECONDS_TO_START if kill else 0.0)
        spent = share * done.seconds
        before = study.copy(tmp_path / f"before.{kill}")
        while (steps := killed_after(study, seconds)) is None:
            shutil.rmtree(study.folder)
            before.copy(study.folder)
            seconds *= 0.8
        shutil.rmtree(before.folder)
        assert_nothing_half(study, reference)
        # A copy goes on to the end; the study itself is killed again.
        mended = study.copy(tmp_path / f"mended.{kill}")
        rest = mended.run()
        assert rest.status == 0, rest.output
        assert_same(mended, reference)
        shutil.rmtree(mended.folder)
        note.append(
            f"kill {IN_A_ROW * number + kill + 1}: at {share:.0%} of the study"
            f" in {' '.join(steps) or 'no step'}; the rest took {rest.seconds:.0f} s: same bytes"
        )


def test_steps_that_outlive_a_killed_snakemake_are_waited_for(
    undisturbed: tuple[Study, Done], tmp_path: Path, note: list[str]
) -> None:
    reference, _ = undisturbed
    study = Study(tmp_path / "study")
    process = study.start()
    steps: list[psutil.Process] = []
    while not steps:
        assert process.poll() is None
        time.sleep(0.1)
        processes = tree_of(process)
        steps = [one for one in processes if "fit-states" in stages_in([one]) and holds_lock(one)]
    for one in processes:
        with suppress(psutil.Error):
            if "snakemake" in " ".join(one.cmdline()) and one not in steps:
                one.kill()
    process.wait()
    assert any(one.is_running() for one in steps)
    for one in steps:
        one.suspend()
    refused = study.run()
    assert refused.status != 0
    assert "Another run works in this folder: process" in refused.output
    assert "fit-states" in refused.output
    for one in steps:
        with suppress(psutil.Error):
            one.resume()
    psutil.wait_procs(steps, timeout=300)
    rest = study.run()
    assert rest.status == 0, rest.output
    assert_same(study, reference)
    note.append("Snakemake alone killed: its step ended by itself, a run meanwhile was refused")


def test_a_study_that_is_stopped_politely_twice_goes_on(
    undisturbed: tuple[Study, Done], tmp_path: Path, note: list[str]
) -> None:
    reference, done = undisturbed
    study = Study(tmp_path / "study")
    for number in (signal.SIGINT, signal.SIGTERM):
        process = study.start()
        time.sleep(done.seconds / 3)
        os.killpg(process.pid, number)
        assert process.wait(300) != 0
        assert_nothing_half(study, reference)
        note.append(f"{number.name} to all of it after {done.seconds / 3:.0f} s")
    rest = study.run()
    assert rest.status == 0, rest.output
    assert_same(study, reference)
    note.append("stopped politely twice: went on, same bytes")
