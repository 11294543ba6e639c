"""A real Slurm on this machine alone: two nodes of four fake GPUs, for tests.

    python tests/cluster/loopback.py             start it, print what it has, wait for Ctrl-C
    python tests/cluster/loopback.py COMMAND     start it, run COMMAND, take it down again

It installs Debian's packages where they are missing (root and apt are needed), listens on the
loopback address only, and takes everything away at the end but the packages. A machine that has a
Slurm of its own is left alone.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

# Clients that are started by jobs know this place only: the job-step plugin strips SLURM_CONF.
SETTINGS = Path("/etc/slurm/slurm.conf")
GENERIC_RESOURCES = SETTINGS.with_name("gres.conf")
OURS = "# A loopback Slurm for tests"
PACKAGES = {"slurmctld": "slurmctld", "slurmd": "slurmd", "sbatch": "slurm-client"}
NODES = 2
GPUS = 4
SECONDS_TO_START = 30
# Has the kernel end a daemon when these tests are killed.
WITH_PARENT = ["setpriv", "--pdeathsig", "TERM"]


class UnavailableError(RuntimeError):
    """This machine cannot run a loopback Slurm; the message says why."""


@dataclass(frozen=True)
class Loopback:
    """A running Slurm.

    Attributes:
        folder: its state, logs and devices.
        log: what slurmctld wrote.
    """

    folder: Path
    log: Path

    def ask(self, *command: str) -> str:
        """The output of a Slurm command; it must succeed."""
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def running(self) -> list[str]:
        """Ids of jobs that wait or run."""
        return self.ask("squeue", "--noheader", "--format=%i").split()

    def submitted(self) -> int:
        """How many jobs were handed in since it started."""
        return self.log.read_text().count("_slurm_rpc_submit_batch_job: JobId=")

    def pause(self) -> None:
        """Stop the controller from answering, as one that hangs."""
        os.kill(_process(self.folder / "slurmctld.pid"), signal.SIGSTOP)

    def resume(self) -> None:
        """Let a paused controller go on."""
        os.kill(_process(self.folder / "slurmctld.pid"), signal.SIGCONT)


def install() -> None:
    """Install what is missing of Debian's Slurm.

    Raises:
        UnavailableError: there is no apt, no network, or Slurm is in use here.
    """
    if SETTINGS.exists() and OURS not in SETTINGS.read_text():
        raise UnavailableError(
            f"this machine has a Slurm of its own ({SETTINGS}); it is left alone"
        )
    missing = sorted({name for tool, name in PACKAGES.items() if shutil.which(tool) is None})
    if not missing:
        return
    if shutil.which("apt-get") is None:
        raise UnavailableError(
            f"{', '.join(missing)} is missing, and there is no apt to install it"
        )
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for arguments in (["update"], ["install", "--yes", "--no-install-recommends", *missing]):
        done = subprocess.run(
            ["apt-get", "-qq", *arguments],
            capture_output=True,
            text=True,
            check=False,
            env=environment,
        )
        if done.returncode != 0:
            raise UnavailableError(f"apt-get {arguments[0]} failed: {done.stderr.strip()[-300:]}")


@contextmanager
def loopback() -> Iterator[Loopback]:
    """Start Slurm, yield it, take it down: jobs, daemons, sockets, spool, settings.

    Raises:
        UnavailableError: this machine cannot run it.
    """
    # Asked before the lock, which another user may not open.
    if os.geteuid() != 0:
        raise UnavailableError("a loopback Slurm needs root")
    with (Path(tempfile.gettempdir()) / "loopback-slurm.lock").open("w") as lock:
        # One at a time: its settings have one place.
        fcntl.flock(lock, fcntl.LOCK_EX)
        install()
        _take_away_what_a_killed_run_left()
        yield from _run()


def _run() -> Iterator[Loopback]:
    folder = Path(tempfile.mkdtemp(prefix="loopback-slurm."))
    daemons: list[subprocess.Popen[bytes]] = []
    try:
        _write_settings(folder)
        names = [f"node{number}" for number in range(1, NODES + 1)]
        commands = [["slurmctld", "-D"], *[["slurmd", "-D", "-N", name] for name in names]]
        for command in commands:
            with (folder / f"{command[0]}.out").open("ab") as output:
                daemons.append(
                    subprocess.Popen(
                        [*WITH_PARENT, *command],
                        stdout=output,
                        stderr=output,
                        stdin=subprocess.DEVNULL,
                    )
                )
        _wait_until_idle(folder, daemons)
        yield Loopback(folder, folder / "slurmctld.log")
    finally:
        _cancel_jobs(folder)
        _end_daemons([daemon.pid for daemon in reversed(daemons)])
        for daemon in daemons:
            daemon.wait()
        for path in (SETTINGS, GENERIC_RESOURCES):
            if path.exists() and OURS in path.read_text():
                path.unlink()
        shutil.rmtree(folder, ignore_errors=True)


def _write_settings(folder: Path) -> None:
    for number in range(GPUS):
        # Regular files are refused as GPUs; a second name of /dev/null is a device.
        try:
            os.mknod(folder / f"gpu{number}", stat.S_IFCHR | 0o666, os.makedev(1, 3))
        except PermissionError:
            raise UnavailableError("this container may not make device files") from None
    ports = _free_ports(1 + NODES)
    host = socket.gethostname()
    nodes = "\n".join(
        f"NodeName=node{number} NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[number]}"
        f" CPUs=16 RealMemory=128000 Gres=gpu:{GPUS}"
        for number in range(1, NODES + 1)
    )
    SETTINGS.parent.mkdir(parents=True, exist_ok=True)
    SETTINGS.write_text(
        f"""{OURS}; made by tests/cluster/loopback.py and taken away by it.
ClusterName=loopback
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
SlurmUser=root
AuthType=auth/none
CredType=cred/none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SlurmdParameters=config_overrides
SchedulerParameters=batch_sched_delay=1,sched_interval=2,bf_interval=2
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
JobAcctGatherParams=OverMemoryKill
AccountingStorageType=accounting_storage/none
MinJobAge=600
KillWait=2
InactiveLimit=0
ReturnToService=2
GresTypes=gpu
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
SlurmctldDebug=info
SlurmdDebug=info
{nodes}
PartitionName=test Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
    )
    GENERIC_RESOURCES.write_text(
        f"{OURS}\n"
        + "".join(
            f"NodeName=node{number} Name=gpu File={folder}/gpu[0-{GPUS - 1}]\n"
            for number in range(1, NODES + 1)
        )
    )


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in sockets]
    finally:
        for one in sockets:
            one.close()


def _wait_until_idle(folder: Path, daemons: list[subprocess.Popen[bytes]]) -> None:
    end = time.monotonic() + SECONDS_TO_START
    while time.monotonic() < end:
        if any(daemon.poll() is not None for daemon in daemons):
            break
        states = subprocess.run(
            ["sinfo", "--noheader", "--Node", "--format=%t"],
            capture_output=True,
            text=True,
            check=False,
        ).stdout.split()
        if states == ["idle"] * NODES:
            return
        time.sleep(0.2)
    last = "\n".join(
        line
        for path in [*sorted(folder.glob("*.log")), *sorted(folder.glob("*.out"))]
        for line in path.read_text(errors="replace").splitlines()[-8:]
    )
    raise RuntimeError(f"Slurm did not start:\n{last}")


def _process(path: Path) -> int:
    return int(path.read_text())


def _take_away_what_a_killed_run_left() -> None:
    folders = [path for path in Path(tempfile.gettempdir()).glob("loopback-slurm.*/")]
    found = []
    for path in [path for folder in folders for path in folder.glob("slurm*.pid")]:
        try:
            process = _process(path)
            name = Path(f"/proc/{process}/comm").read_text().strip()
        except (OSError, ValueError):
            continue
        if name in ("slurmctld", "slurmd"):
            found.append(process)
    _end_daemons(found)
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


def _cancel_jobs(folder: Path) -> None:
    """End the jobs, so that no process of one outlives the daemons."""
    if not (folder / "slurmctld.pid").exists():
        return
    try:
        subprocess.run(["scancel", "--full", "--user=root"], check=False, timeout=20)
        end = time.monotonic() + 15
        while time.monotonic() < end:
            left = subprocess.run(
                ["squeue", "--noheader", "--format=%i"],
                capture_output=True,
                text=True,
                check=False,
                timeout=20,
            )
            if left.returncode != 0 or not left.stdout.split():
                return
            time.sleep(0.3)
    except subprocess.TimeoutExpired:
        return


def _end_daemons(processes: list[int]) -> None:
    for number in (signal.SIGCONT, signal.SIGTERM):
        for process in processes:
            with suppress(ProcessLookupError):
                os.kill(process, number)
    end = time.monotonic() + 10
    while time.monotonic() < end and any(_alive(process) for process in processes):
        time.sleep(0.1)
    for process in processes:
        if _alive(process):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)


def _alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def main() -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        with loopback() as slurm:
            if len(sys.argv) > 1:
                return subprocess.run(sys.argv[1:], check=False).returncode
            print(slurm.ask("sinfo", "--Node", "--format=%N %c CPUs %m MB %G %t"))
            signal.pause()
    except UnavailableError as error:
        print(f"No loopback Slurm: {error}.", file=sys.stderr)
        return 77
    except KeyboardInterrupt:
        pass
    return 0


if __name__ == "__main__":
    sys.exit(main())
