"""Attention over chosen pages in one pass on a CPU: nothing is gathered first."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whencount.engine.compiled import kernel

Array = NDArray[Any]


def _attend_pages(
    queries: Array,
    keys: Array,
    values: Array,
    places: Array,
    tokens: int,
    scaling: Any,
    output: Array,
    start: int,
    stop: int,
) -> None:
    heads, size = queries.shape[1:]
    page_tokens = keys.shape[1]
    shares = np.empty(tokens, dtype=np.float32)
    for unit in range(start, stop):
        for head in range(heads):
            query = queries[unit, head]
            result = output[unit, head]
            largest = np.float32(-np.inf)
            token = 0
            for place in places[unit]:
                for row in range(min(page_tokens, tokens - token)):
                    logit = np.float32(0.0)
                    for element in range(size):
                        logit += query[element] * keys[place, row, element]
                    logit *= scaling
                    shares[token] = logit
                    token += 1
                    largest = max(largest, logit)
            total = np.float32(0.0)
            for token in range(tokens):
                shares[token] = np.exp(shares[token] - largest)
                total += shares[token]
            result[:] = np.float32(0.0)
            token = 0
            for place in places[unit]:
                for row in range(min(page_tokens, tokens - token)):
                    share = shares[token]
                    token += 1
                    for element in range(size):
                        result[element] += share * values[place, row, element]
            for element in range(size):
                result[element] /= total


_attend: Any = kernel(_attend_pages, fastmath=True)


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads)


def attend_pages(
    queries: Array,
    keys: Array,
    values: Array,
    places: Array,
    tokens: int,
    scaling: float,
    threads: int,
) -> Array:
    """Attention of each query over the pages of its unit.

    Args:
        queries: [units, heads, size] float32; the heads of a unit read the same pages.
        keys, values: [pages, page tokens, size] float32.
        places: [units, n] int64, rows of `keys`; the last page may be partly filled.
        tokens: of the n pages together.
        scaling: the factor of query times key.
        threads: how many to use.

    Returns:
        [units, heads, size] float32.
    """
    output: Array = np.empty(queries.shape, dtype=np.float32)
    units = len(queries)
    given: tuple[Any, ...] = (queries, keys, values, places, tokens, np.float32(scaling), output)
    if threads == 1 or units < threads:
        _attend(*given, 0, units)
        return output
    edges = np.linspace(0, units, threads + 1).astype(np.int64).tolist()
    parts = [_pool(threads).submit(_attend, *given, *edge) for edge in pairwise(edges)]
    for part in parts:
        part.result()
    return output
