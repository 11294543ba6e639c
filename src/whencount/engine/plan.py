"""Which rankings a search needs: distinct document transforms, and the lane of every ranking."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from whencount.scoring import Configuration, Parameters, length_factor

MAXIMUM_TRANSFORMS = 12
"""Twelve transforms are 24 lanes: all distinct rankings of a grid of three k1 by three b."""


@dataclass(frozen=True, order=True)
class Transform:
    """A document transform T; k1 is 0 without saturation, b is 0 without length.

    A saturated transform with k1 = 0 is 1 everywhere, so its b is 0 too.
    """

    saturation: bool
    k1: float
    b: float

    @classmethod
    def of(cls, configuration: Configuration, parameters: Parameters) -> Transform:
        """The transform that `configuration` applies with `parameters`."""
        k1 = float(parameters.k1) if configuration.saturation else 0.0
        length = configuration.length and not (configuration.saturation and k1 == 0.0)
        return cls(configuration.saturation, k1, float(parameters.b) if length else 0.0)


@dataclass(frozen=True)
class Plan:
    """The distinct transforms of a search, four to a group, and where each ranking is found.

    Attributes:
        transforms: distinct, at most `MAXIMUM_TRANSFORMS`.
        lanes: int64, shape (cells, configurations): lane of each ranking.
    """

    transforms: tuple[Transform, ...]
    lanes: NDArray[np.int64]

    @property
    def groups(self) -> int:
        """How many groups of eight lanes there are."""
        return -(-len(self.transforms) // 4)

    @property
    def needed(self) -> NDArray[np.bool_]:
        """Which lanes somebody asked for, shape (8 * groups,)."""
        needed = np.zeros(8 * self.groups, dtype=np.bool_)
        needed[self.lanes.ravel()] = True
        return needed


def lane_of(transform: int, inverse_frequency: bool) -> int:
    """The lane of transform number `transform` with IDF off or on."""
    return transform // 4 * 8 + 4 * inverse_frequency + transform % 4


def plans(
    parameters: Sequence[Parameters], configurations: Sequence[Configuration]
) -> list[tuple[slice, Plan]]:
    """Split `parameters` into runs whose distinct transforms fit one pass, with a plan each."""
    result = []
    start = 0
    while start < len(parameters):
        found: dict[Transform, int] = {}
        stop = start
        while stop < len(parameters):
            wanted = {Transform.of(item, parameters[stop]) for item in configurations}
            new = sorted(wanted - found.keys())
            if stop > start and len(found) + len(new) > MAXIMUM_TRANSFORMS:
                break
            for transform in new:
                found[transform] = len(found)
            stop += 1
        lanes = np.array(
            [
                [lane_of(found[Transform.of(item, cell)], item.idf) for item in configurations]
                for cell in parameters[start:stop]
            ],
            dtype=np.int64,
        )
        result.append((slice(start, stop), Plan(tuple(found), lanes)))
        start = stop
    return result


@dataclass(frozen=True)
class References:
    """Per transform, what its document factors are divided by; see `whencount.search`.

    The arrays are filled up to a multiple of four transforms, a group of lanes.

    Attributes:
        slope: float64, (transforms,): 1 where saturated, else 0.
        k1, b: float64, (transforms,).
        peak: float64, (transforms,): the largest of max_j x_dj, or of T(max_j x_dj, l_d) /
            (k1 + 1) where saturated, over the documents that are not empty.
        length: float64, (transforms,): the least l_d of those documents; 1 where saturated.
        length_range: the least and the largest l_d seen, over all transforms.
        scale: float64, (transforms,): a key times this, times the largest IDF, is a score.
    """

    slope: NDArray[np.float64]
    k1: NDArray[np.float64]
    b: NDArray[np.float64]
    peak: NDArray[np.float64]
    length: NDArray[np.float64]
    length_range: tuple[float, float]
    scale: NDArray[np.float64]


def references(
    transforms: Sequence[Transform],
    lengths: NDArray[np.float64],
    peaks: NDArray[np.float32],
    average_length: float,
) -> References:
    """Find the references of `transforms` over a whole collection, in bounded memory."""
    unused = Transform(saturation=False, k1=0.0, b=0.0)
    transforms = [*transforms, *[unused] * (-len(transforms) % 4)]
    count = len(transforms)
    peak = np.zeros(count)
    shortest, longest = np.full(count, np.inf), np.zeros(count)
    step = 1 << 20
    for start in range(0, len(lengths), step):
        top = peaks[start : start + step].astype(np.float64)
        live = top > 0
        top, own = top[live], lengths[start : start + step][live]
        if len(top) == 0:
            continue
        for number, transform in enumerate(transforms):
            factor = length_factor(own, average_length, transform.b)
            shortest[number] = min(shortest[number], factor.min())
            longest[number] = max(longest[number], factor.max())
            if transform.saturation:
                value = top / (top + transform.k1 * factor)
                peak[number] = max(peak[number], value.max())
            else:
                peak[number] = max(peak[number], top.max())
    saturated = np.array([item.saturation for item in transforms], dtype=np.bool_)
    k1 = np.array([item.k1 for item in transforms], dtype=np.float64)
    empty = peak == 0
    peak = np.where(empty, 1.0, peak)
    shortest, longest = np.where(empty, 1.0, shortest), np.where(empty, 1.0, longest)
    length = np.where(saturated, 1.0, shortest)
    return References(
        slope=saturated.astype(np.float64),
        k1=k1,
        b=np.array([item.b for item in transforms], dtype=np.float64),
        peak=peak,
        length=length,
        length_range=(float(shortest.min()), float(longest.max())),
        scale=np.where(saturated, (k1 + 1.0) * peak, peak / length),
    )
