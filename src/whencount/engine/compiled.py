"""How kernels are compiled: without the interpreter's lock, and kept on disk once compiled."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba as _numba

numba: Any = _numba
Function = TypeVar("Function", bound=Callable[..., Any])


def _sources() -> str:
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


_STAMP = _sources()


def kernel(function: Function, *, fastmath: bool = False) -> Function:
    """Compile with numba, free of the interpreter's lock; the machine code is cached.

    With `fastmath` sums may be taken in any order, which lets them use whole vectors of numbers.
    """
    try:
        compiled = numba.njit(cache=True, nogil=True, fastmath=fastmath)(function)
    except RuntimeError:  # nowhere to keep it: compile in every process
        plain: Function = numba.njit(nogil=True, fastmath=fastmath)(function)
        return plain
    # numba looks at the date of the kernel's own file only; the code that it includes from its
    # neighbours would be kept when they change.
    storage = getattr(compiled._cache, "_cache_file", None)
    if storage is not None:
        storage._source_stamp = _STAMP
    result: Function = compiled
    return result


def inlined(function: Function) -> Function:
    """Compile with numba, written out at every place that calls it."""
    compiled: Function = numba.njit(nogil=True, inline="always")(function)
    return compiled
