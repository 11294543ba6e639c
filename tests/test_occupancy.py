"""Locks of dead runs are cleared, and only where nobody works in the folder."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from whencount import occupancy

ROOTS = ["results", "reports"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What a killed run leaves: Snakemake's lock and a half-written table."""
    locks = tmp_path / ".snakemake" / "locks"
    locks.mkdir(parents=True)
    (locks / "0.input.lock").write_text("results/a.parquet\nnotebook.ipynb\n")
    (locks / "0.output.lock").write_text("results/b.parquet\n")
    (tmp_path / "results").mkdir()
    for name in (".b.parquet.abcdefgh", ".b.parquet.manifest.json.abcdefgh", ".other.abcdefgh"):
        (tmp_path / "results" / name).write_text("half")
    return tmp_path


def code(folder: Path, call: str) -> list[str]:
    line = f"from whencount import occupancy; {call}"
    return [sys.executable, "-c", line.replace("FOLDER", repr(str(folder)))]


BEGIN = f"occupancy.tell(occupancy.begin(FOLDER, {ROOTS!r})); occupancy.sweep_left()"


def begin(folder: Path) -> str:
    """Begin a run in a process of its own; what it says."""
    done = subprocess.run(code(folder, BEGIN), capture_output=True, text=True, check=True)
    return done.stderr


def locks(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / ".snakemake" / "locks").iterdir())


def left(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "results").iterdir())


@pytest.fixture
def at_work(request: pytest.FixtureRequest, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that works in the folder until it is killed: a run, or a step of one."""
    begin(folder)
    waiting = f"{request.param}; print('ready', flush=True); import time; time.sleep(600)"
    process = subprocess.Popen(code(folder, waiting), stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def test_what_a_killed_run_left_is_cleared(folder: Path) -> None:
    assert begin(folder) == "A run in this folder was broken off; going on where it stopped.\n"
    assert locks(folder) == []
    assert left(folder) == [".other.abcdefgh"]
    assert begin(folder) == ""


@pytest.mark.parametrize("at_work", ["occupancy.join(FOLDER)", BEGIN], indirect=True)
def test_while_another_works_here_nothing_is_cleared_and_after_its_kill_all_is(
    folder: Path, at_work: subprocess.Popen[str]
) -> None:
    write_lock(folder)
    (folder / "results" / ".b.parquet.abcdefgh").write_text("half")
    said = begin(folder)
    assert "Another run works in this folder" in said
    if Path("/proc/locks").exists():
        assert f"process {at_work.pid} (" in said
    assert locks(folder) == ["0.output.lock"]
    assert ".b.parquet.abcdefgh" in left(folder)
    at_work.kill()
    at_work.wait()
    assert "broken off" in begin(folder)
    assert locks(folder) == []
    assert ".b.parquet.abcdefgh" not in left(folder)


def write_lock(folder: Path, path: str = "results/b.parquet") -> None:
    """The lock that a running Snakemake writes after it began."""
    (folder / ".snakemake" / "locks" / "0.output.lock").write_text(f"{path}\n")


def test_the_locks_of_another_workflow_stay(folder: Path) -> None:
    for path in (folder / ".snakemake" / "locks").iterdir():
        path.unlink()
    write_lock(folder, "resultsother/b.parquet")
    assert begin(folder) == ""
    assert locks(folder) == ["0.output.lock"]


def test_after_a_run_on_another_machine_nothing_is_cleared(folder: Path) -> None:
    # Its file system may lock within one machine only, so that its run may still live.
    (folder / ".snakemake" / "whencount.lock").write_text("node17")
    said = begin(folder)
    assert "on node17" in said
    assert "snakemake --unlock" in said
    assert locks(folder) == ["0.input.lock", "0.output.lock"]
    assert len(left(folder)) == 3


def test_many_that_begin_at_once_all_begin(folder: Path) -> None:
    processes = [subprocess.Popen(code(folder, BEGIN), stderr=subprocess.PIPE) for _ in range(4)]
    said = [process.communicate(timeout=60)[1] for process in processes]
    assert [process.returncode for process in processes] == [0] * 4
    assert sum(b"broken off" in one for one in said) == 1
    assert locks(folder) == []


def test_beginning_twice_in_one_process_says_nothing(tmp_path: Path) -> None:
    assert occupancy.begin(tmp_path, ROOTS) == []
    assert occupancy.begin(tmp_path, ROOTS) == []


def test_outside_of_a_studys_folder_a_step_leaves_nothing(tmp_path: Path) -> None:
    occupancy.join(tmp_path)
    assert list(tmp_path.iterdir()) == []
