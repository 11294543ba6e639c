"""Progress of long work: a bar with a rate on a terminal, a log line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

from tqdm import tqdm

from whencount.interruption import leave_if_asked

Item = TypeVar("Item")
_SECONDS_BETWEEN_LINES = 15.0


def progress(
    items: Iterable[Item],
    total: int | None,
    description: str,
    unit: str = "item",
    weights: Iterable[int] | None = None,
) -> Iterator[Item]:
    """Yield `items`, showing how far the work is on standard error, until a polite kill comes.

    Args:
        items: what to iterate.
        total: how many units there are in all, None where unknown.
        description: what is being done, for a person.
        unit: the noun of a unit, singular.
        weights: how many units each item stands for (batches); 1 each where left out.
    """
    sizes = iter(weights) if weights is not None else None
    if sys.stderr.isatty():
        with tqdm(total=total, desc=description, unit=f" {_plural(unit)}", unit_scale=True) as bar:
            for item in items:
                leave_if_asked()
                yield item
                bar.update(1 if sizes is None else next(sizes))
        return
    started = shown = time.monotonic()
    done = 0
    for item in items:
        leave_if_asked()
        yield item
        done += 1 if sizes is None else next(sizes)
        now = time.monotonic()
        if now - shown >= _SECONDS_BETWEEN_LINES:
            shown = now
            _line(description, done, total, unit, now - started)
    _line(description, done, total, unit, time.monotonic() - started)


def _line(description: str, done: int, total: int | None, unit: str, seconds: float) -> None:
    of = "" if total is None else f" of {total:,}"
    rate = done / seconds if seconds > 0 else 0.0
    units = _plural(unit)
    print(
        f"{description}: {done:,}{of} {units}, {rate:,.1f} {units}/s, {seconds:,.0f} s",
        file=sys.stderr,
        flush=True,
    )


def _plural(noun: str) -> str:
    return f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
