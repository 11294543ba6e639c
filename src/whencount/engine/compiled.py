"""How kernels are compiled: without the interpreter's lock, and kept on disk once compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba as _numba

numba: Any = _numba
Function = TypeVar("Function", bound=Callable[..., Any])


def kernel(function: Function) -> Function:
    """Compile with numba, free of the interpreter's lock; the machine code is cached."""
    compiled: Function = numba.njit(cache=True, nogil=True)(function)
    return compiled


def inlined(function: Function) -> Function:
    """As `kernel`, and written out at every place that calls it."""
    compiled: Function = numba.njit(cache=True, nogil=True, inline="always")(function)
    return compiled
