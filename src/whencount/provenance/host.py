"""On what a stage ran: the class of the machine, never its name or a person's."""

from __future__ import annotations

import os
import platform
import resource
import sys
from pathlib import Path
from typing import Any

import whencount


def host_class() -> dict[str, Any]:
    """Processor, cores, memory in GiB, system and Python of this machine."""
    return {
        "processor": _processor(),
        "architecture": platform.machine(),
        "cores": os.cpu_count() or 1,
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "system": f"{platform.system()} {platform.release()}",
        "distribution": _distribution(),
        "python": platform.python_version(),
    }


def package_record() -> dict[str, Any]:
    """The version of whencount, and the SHA-256 of the lock file it is installed from."""
    from whencount.provenance.manifest import hash_of_file

    lock = lock_file()
    return {
        "version": whencount.__version__,
        "lock": None if lock is None else hash_of_file(lock),
    }


def lock_file() -> Path | None:
    """requirements.lock of the working directory or of the checkout; None where there is none."""
    for folder in (Path(), Path(whencount.__file__).parents[2]):
        if (folder / "requirements.lock").is_file():
            return folder / "requirements.lock"
    return None


def used_gpus() -> tuple[str, ...]:
    """The cards that this process used, by name and memory; torch is not loaded to ask."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return ()
    cards = [torch.cuda.get_device_properties(one) for one in range(torch.cuda.device_count())]
    return tuple(f"{card.name}, {card.total_memory / 2**30:.0f} GiB" for card in cards)


def peak_memory() -> int:
    """The most memory, in bytes, that this process or one of its children held at a time."""
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * max(
        resource.getrusage(who).ru_maxrss
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _distribution() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return ""
