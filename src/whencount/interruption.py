"""A polite kill (SIGTERM) ends a command like Ctrl-C does, and cannot be lost on the way.

Python raises what a handler raises wherever it happens to be. Inside an import, a callback of C
code or a finaliser it may be swallowed there; so the wish is also remembered, and asked after
where it matters: before a file gets its final name, and when the command is done.
"""

from __future__ import annotations

import signal
import sys
from dataclasses import dataclass


@dataclass
class _Wish:
    number: int | None = None


_wish = _Wish()


def heed_polite_kills() -> None:
    """From now on SIGTERM unwinds the command, so that half-written files are taken away."""
    _wish.number = None
    signal.signal(signal.SIGTERM, _leave)


def leave_if_asked() -> None:
    """End with status 128 + 15 where a polite kill came and what it raised was swallowed.

    Raises:
        SystemExit: a polite kill came.
    """
    if _wish.number is not None:
        sys.exit(128 + _wish.number)


def _leave(number: int, _: object) -> None:
    _wish.number = number
    leave_if_asked()
