"""A real Slurm on this machine alone (two nodes of four fake GPUs), driven by the cluster profile.

What it proves: the profile's options are accepted by Slurm and by the plugin; jobs get the card,
memory and time that they ask for; failure, retry, kill and recovery go as docs/cluster.md says.
What it does not: that a GPU computes (the cards are devices that do nothing), or that a file system
shared by several machines is fast enough (the nodes are one machine).
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
import pytest
from loopback import Loopback, UnavailableError, loopback

from whencount import cluster
from whencount.errors import InputError

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
STUDY = HERE / "small.yaml"
ROWS = [f"results/cluster/rows/{basis}_pooled.limit.seed0.parquet" for basis in ("gaussian", "sae")]

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def slurm() -> Iterator[Loopback]:
    try:
        with loopback() as running:
            yield running
    except UnavailableError as error:
        pytest.skip(str(error))


def command(folder: Path, *arguments: str, snakefile: Path = HERE / "Snakefile") -> list[str]:
    return [
        *[sys.executable, str(HERE / "quick.py"), "--profile", "cluster", "-s", str(snakefile)],
        *["-d", str(folder), *arguments],
    ]


def snakemake(
    folder: Path, *arguments: str, snakefile: Path = HERE / "Snakefile"
) -> tuple[int, str]:
    done = subprocess.run(
        command(folder, *arguments, snakefile=snakefile),
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        timeout=400,
    )
    return done.returncode, done.stdout + done.stderr


def wait_until(holds: Callable[[], bool], what: str, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, f"{what} did not happen in {seconds} s"
        time.sleep(0.3)


def test_slurm_is_found_ready_and_its_silence_is_told(
    slurm: Loopback, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found = cluster.check(tmp_path)
    assert (found.name, found.nodes, found.gpus) == ("loopback", 2, 8)
    assert (found.remembers, found.accounting) == (600, False)
    with pytest.raises(InputError, match="forgets a finished job after 600 s"):
        cluster.check(tmp_path, seconds_between_checks=201)
    monkeypatch.setattr(cluster, "SECONDS_TO_ANSWER", 2)
    slurm.pause()
    try:
        with pytest.raises(InputError, match="does not answer: `sinfo` said nothing for 2 s"):
            cluster.check(tmp_path)
    finally:
        slurm.resume()


def test_each_gpu_job_has_one_card_and_a_killed_job_comes_back_with_more_memory(
    slurm: Loopback, tmp_path: Path
) -> None:
    status, output = snakemake(tmp_path, "jobs")
    assert status == 0, output
    jobs = [line.split() for line in map(str.strip, _read((tmp_path / "results").glob("card.*")))]
    assert len(jobs) == 5
    assert all(re.fullmatch(r"[0-3]", device) for _, _, device in jobs), jobs
    # They ran at once: no two on one card, and five need both nodes of four.
    assert len({(node, device) for _, node, device in jobs}) == 5
    assert {node for _, node, _ in jobs} == {"node1", "node2"}
    # The first attempt at the memory of the rule and the time of the profile, the second at twice.
    assert (tmp_path / "history" / "hungry").read_text().split("\n") == ["500 60", "1000 120", ""]
    killed = [path.read_text() for path in tmp_path.glob(".snakemake/slurm_logs/rule_hungry/*.log")]
    assert any("exceeded memory limit" in text for text in killed)


def _read(paths: Iterator[Path]) -> list[str]:
    return [path.read_text() for path in sorted(paths)]


def test_an_interrupt_cancels_the_jobs_that_wait_and_run(slurm: Loopback, tmp_path: Path) -> None:
    head = subprocess.Popen(
        command(tmp_path, "slow_ones"),
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.STDOUT,
    )
    wait_until(lambda: len(slurm.running()) == 2, "both jobs")
    os.kill(head.pid, signal.SIGINT)
    assert head.wait(timeout=60) != 0
    wait_until(lambda: not slurm.running(), "the end of the jobs")
    assert not list((tmp_path / "results").glob("slow.*"))


def test_a_kill_of_the_head_process_loses_nothing_and_hands_nothing_in_twice(
    slurm: Loopback, tmp_path: Path
) -> None:
    history = tmp_path / "history"
    before = slurm.submitted()
    head = subprocess.Popen(
        command(tmp_path, "slow_ones"),
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.STDOUT,
    )
    wait_until(lambda: len(list(history.glob("slow.*"))) == 2, "the start of both jobs")
    os.kill(head.pid, signal.SIGKILL)
    head.wait()
    assert slurm.submitted() - before == 2

    if len(cluster.earlier_jobs(tmp_path)) == 2:
        status, output = snakemake(tmp_path, "slow_ones")
        assert status != 0
        assert re.search(r"[12] jobs of an earlier run in .* still wait or run", output), output
    assert slurm.submitted() - before == 2

    wait_until(lambda: not slurm.running(), "the end of the jobs")
    status, output = snakemake(tmp_path, "slow_ones")
    assert status == 0, output
    assert "--unlock" not in output
    there = {path.name for path in (tmp_path / "results").glob("slow.*")}
    assert there == {"slow.0", "slow.1"}
    for path in history.glob("slow.*"):
        # Where one was run again, its first run had ended.
        assert re.fullmatch(r"(start end ?)+", " ".join(path.read_text().split()))
    status, output = snakemake(tmp_path, "slow_ones")
    assert status == 0
    assert "Nothing to be done" in output


def test_a_small_study_runs_on_slurm_and_equals_one_that_runs_here(
    slurm: Loopback, tmp_path: Path
) -> None:
    before = slurm.submitted()
    there = tmp_path / "there"
    there.mkdir()
    options = [*ROWS, "--configfile", str(STUDY)]
    status, output = snakemake(there, *options, snakefile=ROOT / "Snakefile")
    assert status == 0, output
    assert slurm.submitted() - before == 9

    jobs = _jobs(slurm, there)
    assert {name: jobs[name]["gpus"] for name in jobs} == {
        "rule_fit_text": 0,
        "rule_collection_wildcards_limit": 0,
        "rule_fit_states": 1,
        "rule_fit_basis_wildcards_gaussian_pooled_0": 0,
        "rule_fit_basis_wildcards_sae_pooled_0": 1,
        "rule_encode_documents_wildcards_limit_0_2": 1,
        "rule_encode_documents_wildcards_limit_1_2": 1,
        "rule_encode_queries_wildcards_limit": 1,
        "rule_scores_limit_score": 0,
    }
    # Two scoring jobs in one: the memory and the core of one (two shards), the time of both.
    assert jobs["rule_scores_limit_score"] == {
        "gpus": 0,
        "megabytes": 7000 + 2 * 1300,
        "minutes": 2 * (30 + 2 * 10),
        "cores": 1,
    }

    here = tmp_path / "here"
    here.mkdir()
    done = subprocess.run(
        [
            *[sys.executable, "-m", "snakemake", "-s", str(ROOT / "Snakefile"), "-d", str(here)],
            *["--cores", "2", *options],
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    for name in ROWS:
        pd.testing.assert_frame_equal(pd.read_parquet(there / name), pd.read_parquet(here / name))


def _jobs(slurm: Loopback, folder: Path) -> dict[str, dict[str, int]]:
    """What Slurm gave to every job handed in from `folder`, by its comment."""
    found = {}
    for text in slurm.ask("scontrol", "show", "job", "--details").split("\n\n"):
        values = dict(re.findall(r"(\S+?)=(\S*)", text))
        if values.get("WorkDir") != str(folder):
            continue
        hours, minutes, _ = values["TimeLimit"].rpartition("-")[2].split(":")
        gpus = re.search(r"gpu:(\d+)", values.get("TresPerJob", ""))
        found[values["Comment"]] = {
            "gpus": int(gpus.group(1)) if gpus else 0,
            "megabytes": int(values["MinMemoryNode"].removesuffix("M")),
            "minutes": 60 * int(hours) + int(minutes),
            "cores": int(values["NumCPUs"]),
        }
    return found
