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
from broken_study import Done, Study, assert_same, kill_tree, stages_in, tree_of

KILLS = int(os.environ.get("WHENCOUNT_TEST_KILLS", "20"))
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


@pytest.mark.parametrize("number", range(KILLS))
def test_a_killed_study_goes_on_to_the_same_bytes(
    undisturbed: tuple[Study, Done], tmp_path: Path, note: list[str], number: int
) -> None:
    reference, done = undisturbed
    study = Study(tmp_path / "study")
    draw = random.Random(f"{SEED} {number}")
    # One in each part of the run's duration, so that together they cover it.
    moment = done.seconds * (number + draw.random()) / KILLS
    steps = killed_after(study, moment)
    while steps is None:
        shutil.rmtree(tmp_path / "study")
        study = Study(tmp_path / "study")
        moment *= 0.8
        steps = killed_after(study, moment)
    again = ""
    if number % 4 == 3:
        # The run that goes on is killed too.
        second = draw.random() * (done.seconds - moment)
        running = killed_after(study, second)
        if running is not None:
            again = f", then again after {second:.0f} s in {' '.join(running) or 'no step'}"
    rest = study.run()
    note.append(
        f"kill {number + 1}: after {moment:.0f} of {done.seconds:.0f} s"
        f" in {' '.join(steps) or 'no step'}{again}; the rest took {rest.seconds:.0f} s"
    )
    assert rest.status == 0, rest.output
    assert_same(study, reference)
    shutil.rmtree(tmp_path / "study")


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


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_study_that_is_stopped_politely_goes_on(
    undisturbed: tuple[Study, Done], tmp_path: Path, note: list[str], number: signal.Signals
) -> None:
    reference, done = undisturbed
    study = Study(tmp_path / "study")
    process = study.start()
    time.sleep(done.seconds / 3)
    os.killpg(process.pid, number)
    status = process.wait(300)
    assert status != 0
    rest = study.run()
    assert rest.status == 0, rest.output
    assert_same(study, reference)
    note.append(f"{number.name} to all of it after {done.seconds / 3:.0f} s: went on")
