"""How many rows an admission floor leaves, and which lexical rows a pool-size gate lets through."""

from __future__ import annotations

import math

from whencount.fusion.arms import RANK_CONSTANT

SHOWN = 10
"""Rows that an answer shows."""


def starvation(
    eligible: int, tail: float, relevant: int = 0, acceptance: float = 1.0, shown: int = SHOWN
) -> float:
    """`P(A < shown)` of `A = Bin(n - m, alpha) + Bin(m, beta)` admitted rows.

    Args:
        eligible: n.
        tail: alpha, the chance that the floor admits an irrelevant row.
        relevant: m of the n.
        acceptance: beta, the chance that it admits a relevant one.
        shown: rows that are needed.
    """
    from scipy.stats import binom

    return float(
        sum(
            binom.pmf(count, relevant, acceptance)
            * binom.cdf(shown - 1 - count, eligible - relevant, tail)
            for count in range(min(relevant, shown - 1) + 1)
        )
    )


def allowance(eligible: int, risk: float = 0.05, shown: int = SHOWN) -> float:
    """The smallest alpha with `P(A < shown) <= risk` where all n rows are irrelevant.

    `F^-1` of Beta(shown, n - shown + 1) at `1 - risk`; NaN where n < shown, since no floor helps.
    """
    from scipy.stats import beta

    if eligible < shown:
        return math.nan
    return float(beta.ppf(1 - risk, shown, eligible - shown + 1))


def gate_margin(pool: int) -> float:
    """`m(P) = .5 - .3 min(1, ln(P + 1) / ln 500)`, rounded to four decimals."""
    return round(0.5 - 0.3 * min(1.0, math.log(pool + 1) / math.log(500)), 4)


def survives(rank: int, pool: int, constant: float = RANK_CONSTANT) -> bool:
    """Whether a row that only the lexical arm has, at a zero-based rank, passes the gate:
    `1 / (K + r + 1) >= 3 m(P) / (K + 1)`."""
    return 1.0 / (constant + rank + 1) >= 3 * gate_margin(pool) / (constant + 1)


def last_surviving_rank(pool: int, constant: float = RANK_CONSTANT) -> int | None:
    """The largest zero-based rank that passes the gate; None where none does."""
    if not survives(0, pool, constant):
        return None
    rank = 0
    while survives(rank + 1, pool, constant):
        rank += 1
    return rank
