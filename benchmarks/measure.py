"""Timing by turns: every job runs once per round, so a change of the machine meets all alike."""

from __future__ import annotations

import platform
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Timing:
    """Seconds of one job over the rounds, by the process's CPU clock and by the wall's."""

    processor: tuple[float, ...]
    wall: tuple[float, ...]

    @property
    def median(self) -> float:
        """Median CPU seconds."""
        return statistics.median(self.processor)


def by_turns(jobs: Mapping[str, Callable[[], Any]], rounds: int) -> dict[str, Timing]:
    """Run every job once to warm up, then `rounds` times in turn."""
    for job in jobs.values():
        job()
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in jobs}
    for _ in range(rounds):
        for name, job in jobs.items():
            wall, processor = time.perf_counter(), time.process_time()
            job()
            times[name].append((time.process_time() - processor, time.perf_counter() - wall))
    return {
        name: Timing(*(tuple(column) for column in zip(*found, strict=True)))
        for name, found in times.items()
    }


def machine() -> str:
    """The processor and how many of them, in words."""
    model = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return model
    fields: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        fields.setdefault(name.strip(), value.strip())
    count = sum(line.startswith("processor") for line in lines)
    flags = fields.get("flags", "").split()
    widest = next((flag for flag in ("avx512f", "avx2", "avx") if flag in flags), "no AVX")
    return f"{fields.get('model name', model)}, {count} processors, {widest}"


def table(rows: list[dict[str, Any]], columns: Mapping[str, str]) -> str:
    """A Markdown table; `columns` maps keys of the rows to headings."""
    lines = ["| " + " | ".join(columns.values()) + " |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(_cell(row.get(key)) for key in columns) + " |" for row in rows]
    return "\n".join(lines)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
