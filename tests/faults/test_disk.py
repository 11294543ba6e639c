"""A disk that fills up: one sentence, no half file under a final name, and the same end."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from broken_study import Study, assert_nothing_half, assert_same

# Kilobytes; the whole study takes about 10 MB.
SIZES = [300, 700, 1500, 3000, 5000, 7000, 9000]
WHOLE_SIZES = [2500, 6000]
WITH_SPACE = "size=200m"


class Disk:
    """A file system in memory, of a size that can be changed."""

    def __init__(self, folder: Path, kilobytes: int) -> None:
        folder.mkdir(parents=True)
        self.folder = folder
        command = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k,mode=755", "none", str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            pytest.skip(f"mounting a small disk needs root: {done.stderr.strip()}")

    def remount(self, options: str) -> None:
        command = ["mount", "-o", f"remount,{options}", str(self.folder)]
        subprocess.run(command, check=True)

    def unmount(self) -> None:
        subprocess.run(["umount", "--lazy", str(self.folder)], check=True)


@pytest.fixture
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Disk]:
    if os.geteuid() != 0:
        pytest.skip("mounting a small disk needs root")
    kilobytes: int = request.param
    disk = Disk(tmp_path / "disk", kilobytes)
    yield disk
    disk.unmount()


@pytest.mark.parametrize("disk", SIZES[:1], indirect=True)
def test_full_results_are_told_and_runs_with_more_space_go_on_to_the_same_end(
    reference: Study, disk: Disk, tmp_path: Path, note: list[str]
) -> None:
    study = Study(tmp_path / "study", results=disk.folder)
    for size in SIZES:
        disk.remount(f"size={size}k")
        done = study.run()
        assert done.status != 0
        sentences = [
            line for line in done.output.splitlines() if "no space left while writing" in line
        ]
        assert sentences, done.output
        assert "Traceback" not in done.output, done.output
        assert_nothing_half(study, reference)
        note.append(f"results on a disk of {size} kB: {sentences[0].strip()}")
    disk.remount(WITH_SPACE)
    rest = study.run()
    assert rest.status == 0, rest.output
    assert_same(study, reference)
    note.append("results on a disk with space: went on, same bytes")


@pytest.mark.parametrize("disk", WHOLE_SIZES[:1], indirect=True)
def test_a_disk_that_is_full_for_snakemake_too_does_no_harm(
    reference: Study, disk: Disk, note: list[str]
) -> None:
    study = Study(disk.folder / "study")
    for size in WHOLE_SIZES:
        disk.remount(f"size={size}k")
        done = study.run()
        assert done.status != 0
        assert "no space left" in done.output.lower(), done.output
        disk.remount(WITH_SPACE)
        assert_nothing_half(study, reference)
        note.append(f"the whole folder on a disk of {size} kB: told, nothing half")
    rest = study.run()
    assert rest.status == 0, rest.output
    assert_same(study, reference)
    note.append("the whole folder on a disk with space: went on, same bytes")
