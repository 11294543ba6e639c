"""Two worlds with the same nulls and the same observations in which opposite orders are right.

In both the null of both tails is uniform on the unit square, `f0 = 1`. In `W_D` only the dense arm
is informed: relevant rows have the density `f1 = 1 / (2 sqrt p_v)` there, and the lexical arm adds
nothing given the dense one. In `W_L` the roles are exchanged. A rule that sees of a row its scores
and null tails alone gives the same order in both, so it is wrong in one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from whencount.fusion.arms import Arms

Density = Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]]


@dataclass(frozen=True)
class World:
    """Laws of the two null tails over irrelevant and relevant rows.

    Attributes:
        name: `W_D` or `W_L`, or that of another.
        irrelevant, relevant: f0 and f1, densities of (p_v, p_l) on the unit square.
    """

    name: str
    irrelevant: Density
    relevant: Density

    def ratio(self, arms: Arms) -> NDArray[np.float64]:
        """`f1 / f0` of each row: the Bayes order ranks by it."""
        tails = (arms.dense_tail, arms.lexical_tail)
        return self.relevant(*tails) / self.irrelevant(*tails)


def _even(dense: NDArray[np.float64], lexical: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.ones(np.broadcast(dense, lexical).shape)


DENSE_WORLD = World("W_D", _even, lambda dense, lexical: 0.5 / np.sqrt(dense) + 0 * lexical)
LEXICAL_WORLD = World("W_L", _even, lambda dense, lexical: 0.5 / np.sqrt(lexical) + 0 * dense)

WITNESS = Arms.of([2.0, 1.0], [1.0, 2.0], [1e-4, 0.05], [1.0, 1e-4])
"""Rows g and b that the two worlds order oppositely."""


def mixture_ratio(
    irrelevant: NDArray[np.float64], relevant: NDArray[np.float64], share: float
) -> NDArray[np.float64]:
    """`S* = log h / f0` of a population `h = (1 - rho) f0 + rho f1`.

    A rising function of `f1 / f0` for every rho in (0, 1], so that rho needs no fitting.

    Args:
        irrelevant, relevant: f0 and f1 at each row, shape (rows,).
        share: rho.
    """
    return np.log((1 - share) + share * relevant / irrelevant)


def redundant_difference(rows: int = 2_000, seed: int = 0) -> tuple[int, int]:
    """Strict reversals of the dense order by S* under a law of redundancy, exact densities.

    A relevant row's dense score is normal around 1, an irrelevant one's around 0; whatever the
    dense score, the lexical one is normal around it: `f1(l | v) = f0(l | v)`. S* is computed from
    the joint densities, without cancelling what cancels.

    Returns:
        Reversals among pairs whose dense ratios differ by more than 1e-12, and these pairs.
    """
    from scipy.stats import norm

    random = np.random.default_rng(seed)
    dense = random.normal(random.random(rows) < 0.2, 1.0)
    lexical = random.normal(dense, 1.0)
    given = norm.logpdf(lexical, dense)
    irrelevant, relevant = (norm.logpdf(dense, mean) for mean in (0.0, 1.0))
    share = 0.2
    joint = np.log((1 - share) + share * np.exp((relevant + given) - (irrelevant + given)))
    order = np.argsort(relevant - irrelevant, kind="stable")
    ratio, score = (relevant - irrelevant)[order], joint[order]
    # Every pair by its distance in the dense order, so that memory stays small.
    reversals = pairs = 0
    for step in range(1, rows):
        apart = ratio[step:] - ratio[:-step] > 1e-12
        pairs += int(apart.sum())
        reversals += int((score[step:] - score[:-step] < -1e-12)[apart].sum())
    return reversals, pairs
