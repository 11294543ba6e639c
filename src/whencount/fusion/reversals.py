"""When a rule turns a pair of the dense order round: exact conditions.

Of a pair (g, b) the dense arm has g above b. Each function says for which pairs b ends above g,
strictly, from what the rule itself adds up; a test holds it against actual sorts.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from whencount.fusion.arms import RANK_CONSTANT, Arms, votes

Pairs = NDArray[np.int64]
"""Positions of g and b, shape (pairs, 2)."""


def reciprocal_rank_turns(
    arms: Arms, pairs: Pairs, constant: float = RANK_CONSTANT
) -> NDArray[np.bool_]:
    """`L_b - L_g > V_g - V_b`, votes of zero-based ranks, an absent vote being 0."""
    return _exceeds(votes(arms.lexical, constant), votes(arms.dense, constant), pairs)


def square_root_turns(arms: Arms, pairs: Pairs) -> NDArray[np.bool_]:
    """`W_b - W_g > U_g - U_b` with `U = p_v^-1/2`, `W = p_l^-1/2`."""
    return _exceeds(arms.lexical_tail**-0.5, arms.dense_tail**-0.5, pairs)


def conditional_evidence_turns(
    dense: NDArray[np.float64], conditional: NDArray[np.float64], pairs: Pairs
) -> NDArray[np.bool_]:
    """`J_b - J_g > A_g - A_b`: what the lexical score adds, given the dense one, decides.

    Args:
        dense: A, the log density ratio of the dense score, shape (rows,).
        conditional: J, that of the lexical score given the dense one, shape (rows,).
        pairs: see `Pairs`.
    """
    return _exceeds(conditional, dense, pairs)


def dense_pairs(arms: Arms) -> Pairs:
    """All pairs of rows with a dense vote in which the first has the strictly higher score."""
    there = np.flatnonzero(~np.isnan(arms.dense))
    scores = arms.dense[there]
    above, below = np.nonzero(scores[:, None] > scores[None, :])
    return np.column_stack((there[above], there[below]))


def _exceeds(gain: NDArray[Any], margin: NDArray[Any], pairs: Pairs) -> NDArray[np.bool_]:
    g, b = pairs[:, 0], pairs[:, 1]
    turned: NDArray[np.bool_] = gain[b] - gain[g] > margin[g] - margin[b]
    return turned
