"""Which queries a choice of parameters may see."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from whencount.errors import InputError


def development_split(query_ids: NDArray[np.object_], share: float, seed: int) -> NDArray[np.bool_]:
    """Which queries belong to the development part; the others are for the test.

    A query's side follows from its id and the seed alone: neither labels, nor other queries, nor
    the order of a file can move it.

    Args:
        query_ids: str, shape (queries,).
        share: of queries that are expected in the development part.
        seed: of the study.

    Returns:
        bool, shape (queries,).

    Raises:
        InputError: the share is not between 0 and 1.
    """
    if not 0 < share < 1:
        raise InputError(f"the share of development queries is {share}; give one between 0 and 1")
    border = int(share * 2**64)
    return np.array([_place(str(one), seed) < border for one in query_ids], dtype=np.bool_)


def _place(query_id: str, seed: int) -> int:
    """Where an id falls in 0 .. 2^64 - 1."""
    text = f"{seed}\x1f{query_id}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "big")
