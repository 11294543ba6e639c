"""Selection of pages as the study prints it (section 9): plain loops, float64, no torch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
PAGE = 16


def page_of(keys: Array, page: int) -> Array:
    """The keys of one page, [at most 16, size]."""
    return keys[page * PAGE : (page + 1) * PAGE]


def bound(query: Array, keys: Array, scaling: float) -> float:
    """`sum_i max(q_i min_i, q_i max_i)` times the scale, for one page's keys."""
    low, high = keys.min(axis=0), keys.max(axis=0)
    total = sum(max(q * a, q * b) for q, a, b in zip(query, low, high, strict=True))
    return scaling * float(total)


def length(keys: Array) -> float:
    """Norm of the concatenated minimum and maximum."""
    return math.sqrt(float((keys.min(axis=0) ** 2).sum() + (keys.max(axis=0) ** 2).sum()))


def softplus(value: float) -> float:
    """`ln(1 + e^x)`, without overflow."""
    return max(value, 0.0) + math.log1p(math.exp(-abs(value)))


def best(scores: dict[int, float], count: int) -> set[int]:
    """The pages with the highest scores."""
    return set(sorted(scores, key=lambda page: (-scores[page], page))[:count])


def candidates(tokens: int, sinks: int) -> list[int]:
    """Pages to choose from when `tokens` have been written: not the current one, not the sinks."""
    return list(range(sinks, (tokens - 1) // PAGE))


@dataclass(frozen=True)
class HeadCalibration:
    """Counts and values of one query head at the calibration positions."""

    existed: dict[int, int]
    entered: dict[int, int]
    values: list[float]


def calibrate(
    queries: Array, keys: Array, positions: Sequence[int], count: int, sinks: int, scaling: float
) -> HeadCalibration:
    """Queries [positions, size] of one head, keys [tokens, size] that it reads."""
    existed: dict[int, int] = {}
    entered: dict[int, int] = {}
    values = []
    for query, position in zip(queries, positions, strict=True):
        scores = {
            page: bound(query, page_of(keys[: position + 1], page), scaling)
            for page in candidates(position + 1, sinks)
        }
        chosen = best(scores, count)
        for page, score in scores.items():
            existed[page] = existed.get(page, 0) + 1
            entered[page] = entered.get(page, 0) + (page in chosen)
            values.append(softplus(score))
    return HeadCalibration(existed, entered, values)


def corrected(
    configuration: str,
    queries: Array,
    keys: Array,
    context: int,
    calibrations: Sequence[HeadCalibration],
    count: int,
    sinks: int,
    scaling: float,
    k1: float,
    b: float,
    average: float | None = None,
) -> set[int]:
    """Pages that the heads of one unit choose: queries [heads, size], keys [tokens, size].

    The unit is one head, or all heads of a group; the scale is the median of all its values,
    the average length that of the context's complete pages unless it is given.
    """
    idf_on, saturation_on, length_on = (bit == "1" for bit in configuration)
    scale = float(np.median([value for one in calibrations for value in one.values]))
    if average is None:
        complete = [length(page_of(keys, page)) for page in range(context // PAGE)]
        average = sum(complete) / len(complete)
    scores = {}
    for page in candidates(len(keys), sinks):
        own = page_of(keys, page)
        factor = 1 - b + b * length(own) / average if length_on else 1.0
        scores[page] = 0.0
        for query, calibration in zip(queries, calibrations, strict=True):
            value = softplus(bound(query, own, scaling)) / scale
            weight = (k1 + 1) * value / (value + k1 * factor) if saturation_on else value / factor
            documents = calibration.existed.get(page, 0)
            if idf_on and documents:
                df = calibration.entered[page]
                weight *= math.log(1 + (documents - df + 0.5) / (df + 0.5))
            scores[page] += weight
    return best(scores, count)


def quest(query: Array, keys: Array, count: int, sinks: int, scaling: float) -> set[int]:
    """The pages with the highest bound."""
    pages = candidates(len(keys), sinks)
    return best({page: bound(query, page_of(keys, page), scaling) for page in pages}, count)


def heaviest(query: Array, keys: Array, count: int, sinks: int, scaling: float) -> set[int]:
    """The pages with the most attention mass."""
    weights = np.exp(scaling * (keys @ query) - (scaling * (keys @ query)).max())
    pages = candidates(len(keys), sinks)
    return best({page: float(page_of(weights, page).sum()) for page in pages}, count)


def streaming(tokens: int, count: int, sinks: int) -> set[int]:
    """The first page and the most recent ones."""
    pages = candidates(tokens, sinks)
    if sinks or len(pages) <= count:
        return set(pages[-count:])
    return {0, *pages[len(pages) - count + 1 :]}


class HeavyHitters:
    """Pages of one head, step by step; what is left out never comes back."""

    def __init__(self, received: Array, count: int, sinks: int) -> None:
        self._received = received
        self._count, self._sinks = count, sinks
        self._lost: set[int] = set()

    def choose(self, tokens: int) -> set[int]:
        """Half of all pages read, the current one included, are recent; the rest heavy."""
        pages = [page for page in candidates(tokens, self._sinks) if page not in self._lost]
        if len(pages) <= self._count:
            return set(pages)
        last = (tokens - 1) // PAGE
        recents = (self._count + 1 + self._sinks) // 2 - 1
        recent = {page for page in pages if page >= last - recents}
        mass = {
            page: float(page_of(self._received, page).sum()) for page in pages if page not in recent
        }
        chosen = recent | best(mass, self._count - len(recent))
        self._lost |= set(pages) - chosen
        return chosen
