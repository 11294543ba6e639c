"""Slurm, before a study is handed to it: does it answer, and is this folder's last run over?"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from whencount.errors import InputError

COMMANDS = ("sinfo", "sbatch", "squeue", "scancel", "scontrol")
# What `slurm-jobname-prefix` in cluster/config.yaml says; jobs of a study are found by it.
JOB_NAMES = "whencount"
SECONDS_TO_ANSWER = 20
# A finished job must stay in the queue's memory for three rounds of status checks, or the workflow
# never learns of its end.
ROUNDS = 3


@dataclass(frozen=True)
class Cluster:
    """What Slurm said of itself.

    Attributes:
        name: of the cluster.
        nodes: nodes that take jobs.
        gpus: cards on them.
        remembers: seconds for which it remembers a finished job.
        accounting: whether it keeps accounts (`sacct` works).
    """

    name: str
    nodes: int
    gpus: int
    remembers: int
    accounting: bool


def check(folder: str | Path = ".", *, seconds_between_checks: int = 15) -> Cluster:
    """Ask Slurm whether a study can be handed to it from `folder`.

    Args:
        folder: where the study runs; jobs of an earlier run there must be over.
        seconds_between_checks: the profile's `slurm-init-seconds-before-status-checks`.

    Raises:
        InputError: a command is missing, the scheduler does not answer, no node takes jobs, it
            forgets finished jobs too soon, or jobs of an earlier run are still there.
    """
    missing = [command for command in COMMANDS if shutil.which(command) is None]
    if missing:
        raise InputError(
            f"{', '.join(missing)} not found: Slurm is not here; go to the login node of the"
            " cluster (on some, `module load slurm` is needed), or run without `--profile cluster`"
        )
    nodes, gpus = _nodes_that_take_jobs()
    if nodes == 0:
        raise InputError(
            "Slurm answers, but every node is down or drained; `sinfo` shows them, the"
            " administrators can tell more"
        )
    settings = _settings()
    found = Cluster(
        name=settings.get("ClusterName", "unnamed"),
        nodes=nodes,
        gpus=gpus,
        remembers=_seconds(settings.get("MinJobAge", "300")),
        accounting="none" not in settings.get("AccountingStorageType", "none"),
    )
    if found.remembers < ROUNDS * seconds_between_checks and not found.accounting:
        raise InputError(
            f"Slurm forgets a finished job after {found.remembers} s and keeps no accounts, so the"
            " end of a job would never be noticed; set `slurm-init-seconds-before-status-checks`"
            f" in cluster/config.yaml to {found.remembers // ROUNDS} or less, or ask the"
            " administrators to raise MinJobAge"
        )
    left = earlier_jobs(folder)
    if left:
        shown = " ".join(left[:20]) + (" ..." if len(left) > 20 else "")
        raise InputError(
            f"{len(left)} jobs of an earlier run in {Path(folder).resolve()} still wait or run"
            f" ({shown}); let them end (`squeue --me` shows them) or cancel them"
            f" (`scancel {shown}`), then start again: both at once would write the same files"
        )
    return found


def earlier_jobs(folder: str | Path = ".") -> list[str]:
    """Ids of this person's jobs that a study in `folder` has handed in and that still wait or run.

    Raises:
        InputError: the scheduler does not answer.
    """
    here = Path(folder).resolve()
    listed = _ask("squeue", f"--user={os.getuid()}", "--noheader", "--format=%i|%j|%Z")
    found = []
    for line in listed.splitlines():
        job, _, rest = line.strip().partition("|")
        name, _, place = rest.partition("|")
        if name.startswith(f"{JOB_NAMES}_") and Path(place).resolve() == here:
            found.append(job)
    return found


def _nodes_that_take_jobs() -> tuple[int, int]:
    """How many nodes are up, and the cards on them."""
    nodes = {}
    for line in _ask("sinfo", "--noheader", "--Node", "--format=%N|%t|%G").splitlines():
        name, state, resources = [*line.split("|"), "", ""][:3]
        if not re.match(r"(down|drain|drng|fail|boot|inval|unk|maint)", state) and "*" not in state:
            nodes[name] = resources
    cards = sum(
        int(count)
        for resources in nodes.values()
        for count in re.findall(r"\bgpu(?::[^:,()]+)?:(\d+)", resources)
    )
    return len(nodes), cards


def _settings() -> dict[str, str]:
    lines = (line.partition("=") for line in _ask("scontrol", "show", "config").splitlines())
    return {key.strip(): value.strip() for key, sign, value in lines if sign}


def _seconds(text: str) -> int:
    found = re.match(r"\d+", text)
    return int(found.group()) if found else 0


def _ask(*command: str) -> str:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=SECONDS_TO_ANSWER
        )
    except subprocess.TimeoutExpired:
        raise InputError(
            f"Slurm does not answer: `{command[0]}` said nothing for {SECONDS_TO_ANSWER} s; try"
            " again later, or ask the administrators whether slurmctld runs"
        ) from None
    if done.returncode != 0:
        said = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        raise InputError(
            f"Slurm does not answer: `{command[0]}` said: {said}; try again later, or ask the"
            " administrators whether slurmctld runs"
        )
    return done.stdout
