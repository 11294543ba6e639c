"""How the eight configurations rank the same pages for the same queries: no label, no answer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from whencount.pages.calibration import Calibration
from whencount.pages.prefill import Prefix
from whencount.scoring import Parameters


@dataclass(frozen=True)
class PageRankings:
    """Means over the calibration positions, layers and heads in which there is a choice.

    Attributes:
        disruption: [3], by switch: share of the selected pages that change, mean over the four
            pairs of configurations that differ in it alone.
        spread: [8], by configuration: sd / |mean| of the scores of the best 100 pages.
        drop: [8]: `(s1 - s10) / |s1|`, of pages.
        mass: [8]: attention mass of the selected pages over that of as many of the heaviest.
    """

    disruption: NDArray[np.float64]
    spread: NDArray[np.float64]
    drop: NDArray[np.float64]
    mass: NDArray[np.float64]


def page_rankings(
    prefix: Prefix, calibration: Calibration, budget: int, variant: str, parameters: Parameters
) -> PageRankings:
    """Compare the eight configurations at the calibration positions of a context."""
    raise NotImplementedError
