"""Threads: how many there are, and work spread over them in bounded memory."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

import torch

Result = TypeVar("Result")
Item = TypeVar("Item")


def available_threads() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class one_thread:  # noqa: N801 - reads as a statement
    """Hold torch to one thread inside a `with` block, where `active`."""

    def __init__(self, active: bool) -> None:
        self._active = active

    def __enter__(self) -> None:
        self._before = torch.get_num_threads()
        if self._active:
            torch.set_num_threads(1)

    def __exit__(self, *_: object) -> None:
        torch.set_num_threads(self._before)


def bounded_map(
    pool: ThreadPoolExecutor, function: Callable[[Item], Result], items: Iterable[Item], ahead: int
) -> Iterator[Result]:
    """`pool.map` that holds at most `ahead` results which nobody has taken yet."""
    pending: deque[Future[Result]] = deque()
    iterator = iter(items)
    try:
        for item in islice(iterator, ahead):
            pending.append(pool.submit(function, item))
        while pending:
            result = pending.popleft().result()
            for item in islice(iterator, 1):
                pending.append(pool.submit(function, item))
            yield result
    finally:
        for future in pending:
            future.cancel()


def windows(
    items: Iterable[Item], size: int, prepare: Callable[[list[Item]], Result]
) -> Iterator[tuple[list[Item], Result]]:
    """Yield (items, prepare(items)) of consecutive groups; the next group is prepared meanwhile.

    Used to tokenise one group of texts while the transformer works on the one before.
    """
    iterator = iter(items)
    with ThreadPoolExecutor(1) as pool:

        def submit() -> tuple[list[Item], Future[Result]] | None:
            group = list(islice(iterator, size))
            return (group, pool.submit(prepare, group)) if group else None

        following = submit()
        while following is not None:
            group, future = following
            prepared = future.result()
            following = submit()
            yield group, prepared
