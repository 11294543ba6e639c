"""A graphics card for each process: which is free here, and a hold that dies with its holder.

A scheduler such as Slurm gives every job its cards. On a workstation nobody does, and each process
would compute on the first card. Here a process takes a free card before it loads torch. The hold is
a name in the kernel (an abstract Unix socket, bound and never listening): one process can have it,
and it ends with the process, however that ends. A killed job blocks no card, no file is left to
clean up, and any number of studies and people may share the machine.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import socket
import subprocess
import sys
import time
from dataclasses import dataclass

from whencount.errors import InputError

VISIBLE = "CUDA_VISIBLE_DEVICES"
# For machines where the cards are not all to be used, and for tests: "0,2" or a count.
CARDS = "WHENCOUNT_CARDS"
SCHEDULERS = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID")

# The names that this process holds; closing one lets its card go.
_held: list[socket.socket] = []


@dataclass(frozen=True)
class Claim:
    """What a process may compute on.

    Attributes:
        cards: names of the cards as CUDA_VISIBLE_DEVICES has them; none is the CPU.
        reason: in words, where they come from.
    """

    cards: tuple[str, ...]
    reason: str


def claim(count: int) -> Claim:
    """Hold `count` free cards until this process ends, and show it no others.

    Call it before torch is imported. It waits while the cards are taken. A job of a scheduler that
    was given as many cards as it wants keeps those; one with more (a whole node, say) chooses among
    them. On a machine without cards the process computes on the CPU. With `count` 0 the process
    sees no card, so that it disturbs no holder.

    Args:
        count: cards wanted.

    Raises:
        InputError: the machine has fewer, or the cards are named wrongly.
    """
    given = _names(os.environ.get(VISIBLE, ""))
    if _job() and len(given) <= count:
        return Claim(given, "given by the scheduler")
    if count == 0:
        os.environ[VISIBLE] = ""
        return Claim((), "none asked for")
    there = available()
    if not there:
        return Claim((), "none there")
    if count > len(there):
        raise InputError(
            f"{count} cards are asked for and {len(there)} may be used ({', '.join(there)});"
            f" ask for fewer, or name more in {CARDS}"
        )
    _release()
    taken = _wait_for(count, there)
    os.environ[VISIBLE] = ",".join(taken)
    # CUDA's own order is fastest first, nvidia-smi's is by bus; the names here mean the latter.
    os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    return Claim(tuple(taken), "held by this process")


def available() -> list[str]:
    """Names of the cards that this process may choose among, in order.

    They are those of WHENCOUNT_CARDS ("0,2", or a count), else those that CUDA_VISIBLE_DEVICES
    leaves, else all that the driver lists.

    Raises:
        InputError: the names repeat.
    """
    own = os.environ.get(CARDS, "").strip()
    visible = os.environ.get(VISIBLE)
    if own.isdigit():
        names: tuple[str, ...] = tuple(str(number) for number in range(int(own)))
    elif own:
        names = _names(own)
    elif visible is not None:
        names = _names(visible)
    else:
        names = _listed_by_driver()
    if len(set(names)) < len(names):
        raise InputError(f"{','.join(names)} names a card twice; name each once")
    return list(names)


def _job() -> str:
    """The id of the scheduler's job that this process is in, or nothing."""
    return next((os.environ[name] for name in SCHEDULERS if name in os.environ), "")


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _listed_by_driver() -> tuple[str, ...]:
    """The cards by their place on the bus, as nvidia-smi counts them."""
    if shutil.which("nvidia-smi") is None:
        return ()
    try:
        done = subprocess.run(
            ["nvidia-smi", "--query-gpu=index", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return tuple(done.stdout.split()) if done.returncode == 0 else ()


def _wait_for(count: int, names: list[str]) -> list[str]:
    told = False
    while True:
        taken = _try(count, names)
        if taken:
            return taken
        if not told:
            print(
                f"waiting for {count} of the cards {', '.join(names)} to be free", file=sys.stderr
            )
            told = True
        time.sleep(0.2)


def _try(count: int, names: list[str]) -> list[str]:
    # Choosing is one at a time, so that two who want two cards never hold one each for ever.
    chooser = _hold("choosing")
    if chooser is None:
        return []
    with chooser:
        taken: list[str] = []
        for name in names:
            if len(taken) == count:
                break
            # A scheduler may call the first card of every job 0.
            hold = _hold(f"job {_job()} card {name}")
            if hold is not None:
                _held.append(hold)
                taken.append(name)
        if len(taken) < count:
            _release()
            return []
        return taken


def _hold(name: str) -> socket.socket | None:
    """Have `name` for this process; None where another has it."""
    # Names come from the environment and may hold anything of any length.
    address = "\0whencount-" + hashlib.sha256(name.encode()).hexdigest()
    hold = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        hold.bind(address)
    except OSError as error:
        hold.close()
        if error.errno == errno.EADDRINUSE:
            return None
        raise
    return hold


def _release() -> None:
    while _held:
        _held.pop().close()
