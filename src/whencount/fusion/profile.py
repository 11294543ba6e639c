"""S*: the joint density ratio of both scores, from a declared reference panel.

The rows of a query that pass a floor (a null tail of at most alpha in one arm) follow
`h = (1 - rho) f0 + rho f1`, so `S* = log h / f0` orders rows as `f1 / f0` does. Both densities are
kernel estimates (scikit-learn's, Gaussian, the bandwidth of Scott, 1992, on scores in units of
their standard deviation) on one grid; their log ratio is projected on tables that rise in both
scores, and read off between grid points linearly, which keeps it rising. Beyond the grid it stays
at the border: what no panel row has shown is not extrapolated. The panel is fixed beforehand, so
a row's value depends on its own two scores and on nothing of the list it stands in.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from whencount.errors import InputError
from whencount.fusion.isotonic import project

_GRID = 25
_MOST_POINTS = 10_000
FEWEST_ROWS = 50
"""Rows of the panel, and of its null, below which no density is estimated."""


@dataclass(frozen=True)
class Profile:
    """The ratio on a grid.

    Attributes:
        dense, lexical: float64, shape (n,), rising: scores at the grid's lines.
        ratio: float64, shape (n, n), S* at the grid points, rising along both axes.
        alone: float64, shape (n,), `A = log h(v) / f0(v)`: the dense score by itself, rising.
        panel_rows, null_rows: how many rows either density was estimated from.
    """

    dense: NDArray[np.float64]
    lexical: NDArray[np.float64]
    ratio: NDArray[np.float64]
    alone: NDArray[np.float64]
    panel_rows: int
    null_rows: int

    def score(
        self, dense: NDArray[np.float64], lexical: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """S* of rows by their two scores, float64, shape (rows,)."""
        at, low = _place(self.dense, dense), _place(self.lexical, lexical)
        i, j = at.astype(np.int64), low.astype(np.int64)
        s, t = at - i, low - j
        i1, j1 = np.minimum(i + 1, len(self.dense) - 1), np.minimum(j + 1, len(self.lexical) - 1)
        # Steps from the lower corner, each at least 0: rounding cannot turn the order round.
        corner = self.ratio[i, j]
        up = self.ratio[i1, j] - corner
        over = self.ratio[i, j1] - corner
        both = self.ratio[i1, j1] - corner
        return corner + (1 - t) * (s * up) + t * ((1 - s) * over + s * both)

    def dense_alone(self, dense: NDArray[np.float64]) -> NDArray[np.float64]:
        """A of rows by their dense score, float64, shape (rows,)."""
        found: NDArray[np.float64] = np.interp(dense, self.dense, self.alone)
        return found

    def conditional(
        self, dense: NDArray[np.float64], lexical: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """`J = S* - A`: what the lexical score adds given the dense one."""
        return self.score(dense, lexical) - self.dense_alone(dense)


def estimate(
    panel: NDArray[np.float64], null: NDArray[np.float64], seed: int, grid: int = _GRID
) -> Profile:
    """Estimate the profile of a panel against its null.

    Args:
        panel: float64, shape (rows, 2): dense and lexical scores of the panel's rows that pass the
            floor, relevant ones among them.
        null: the same of irrelevant rows that pass it.
        seed: of the draws, where more rows are given than are needed.
        grid: lines per axis.

    Raises:
        InputError: either has fewer than FEWEST_ROWS rows, or a score has no spread.
    """
    from sklearn.neighbors import KernelDensity

    if min(len(panel), len(null)) < FEWEST_ROWS:
        raise InputError(
            f"{len(panel)} rows of the panel and {len(null)} of its null pass the floor; at least"
            f" {FEWEST_ROWS} of each are needed: take more queries or a wider floor"
        )
    random = np.random.default_rng(seed)
    rows, zero = (_sample(random, one) for one in (panel, null))
    spread = rows.std(axis=0)
    if not (spread > 0).all():
        raise InputError("the panel's rows all have one score in one arm; take another panel")
    lines = [
        np.linspace(min(a.min(), b.min()), max(a.max(), b.max()), grid)
        for a, b in zip(rows.T, zero.T, strict=True)
    ]
    points = np.stack(np.meshgrid(*lines, indexing="ij"), axis=-1).reshape(-1, 2)
    bandwidth = min(len(rows), len(zero)) ** (-1 / 6)
    above, below = (
        KernelDensity(bandwidth=bandwidth, rtol=1e-3)
        .fit(one / spread)
        .score_samples(points / spread)
        .reshape(grid, grid)
        for one in (rows, zero)
    )
    # A density below what one row in all would give is not resolved by either sample.
    least = -np.log(2 * np.pi * bandwidth**2 * max(len(rows), len(zero)))
    raw = np.maximum(above, least) - np.maximum(below, least)
    mass = np.exp(np.maximum(above, least))
    ratio = project(raw, mass / mass.max() + 1e-6)
    return Profile(
        lines[0], lines[1], ratio, _dense_alone(above, below, least), len(panel), len(null)
    )


def _dense_alone(
    above: NDArray[np.float64], below: NDArray[np.float64], least: float
) -> NDArray[np.float64]:
    """The log ratio of the marginals along the dense axis, projected on rising ones."""
    from sklearn.isotonic import isotonic_regression

    top, base = (np.exp(np.maximum(one, least)).sum(axis=1) for one in (above, below))
    found: NDArray[np.float64] = isotonic_regression(np.log(top / base), sample_weight=top)
    return found


def _sample(random: np.random.Generator, rows: NDArray[np.float64]) -> NDArray[np.float64]:
    if len(rows) <= _MOST_POINTS:
        return rows
    return rows[np.sort(random.choice(len(rows), _MOST_POINTS, replace=False))]


def _place(lines: NDArray[np.float64], scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Where scores stand between grid lines, from 0 to n - 1."""
    return np.interp(scores, lines, np.arange(len(lines), dtype=np.float64))
