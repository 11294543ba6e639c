"""What a rule does to the dense top ten: intruders, lifted rows, rows pushed out; and reversals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from whencount.fusion.arms import Arms
from whencount.fusion.gates import SHOWN

EVENTS = (
    "intruder_lexical_only",
    "intruder_lifted",
    "pushed_out_without_vote",
    "pushed_out_despite_vote",
)
"""Intruders are irrelevant rows that the rule brings into the top ten: from the lexical list alone,
or dense rows below it that it lifts. Pushed out are relevant rows that leave the dense top ten,
without or despite a lexical vote."""

Turns = Callable[[NDArray[np.int64]], NDArray[np.bool_]]


def events(
    arms: Arms,
    dense_top: NDArray[np.int64],
    fused_top: NDArray[np.int64],
    relevance: NDArray[np.float64],
) -> Counter[str]:
    """Count the events of one query.

    Args:
        arms: of the query.
        dense_top, fused_top: positions of both top tens, best first.
        relevance: grades of the rows, shape (rows,).
    """
    found: Counter[str] = Counter()
    entered = np.setdiff1d(fused_top, dense_top)
    left = np.setdiff1d(dense_top, fused_top)
    intruders = entered[relevance[entered] <= 0]
    lifted = ~np.isnan(arms.dense[intruders])
    found["intruder_lifted"] = int(lifted.sum())
    found["intruder_lexical_only"] = int((~lifted).sum())
    lost = left[relevance[left] > 0]
    voted = ~np.isnan(arms.lexical[lost])
    found["pushed_out_despite_vote"] = int(voted.sum())
    found["pushed_out_without_vote"] = int((~voted).sum())
    return found


def relevant_left(
    dense_top: NDArray[np.int64], fused_top: NDArray[np.int64], relevance: NDArray[np.float64]
) -> bool:
    """Whether a relevant row of the dense top ten is not in the fused one."""
    left = np.setdiff1d(dense_top[:SHOWN], fused_top[:SHOWN])
    return bool((relevance[left] > 0).any())


def checked_reversals(
    scores: NDArray[np.float64],
    place: NDArray[np.int64],
    pairs: NDArray[np.int64],
    turns: Turns,
    margin: float = 1e-12,
) -> tuple[int, int, int, int]:
    """Hold a rule's condition of reversal against its sorted order, pair by pair.

    Args:
        scores: of the rule, shape (rows,).
        place: where each row stands in the sorted order, shape (rows,).
        pairs: (g, b), dense order, shape (pairs, 2).
        turns: the condition.
        margin: pairs whose scores differ by no more than this, relative to the larger, are left to
            the order of ties and not held against the condition.

    Returns:
        Pairs held against it, reversals among them, violations, and pairs left out.
    """
    g, b = pairs[:, 0], pairs[:, 1]
    size = np.maximum(1.0, np.maximum(np.abs(scores[g]), np.abs(scores[b])))
    near = np.abs(scores[g] - scores[b]) <= margin * size
    apart = pairs[~near]
    turned = place[apart[:, 1]] < place[apart[:, 0]]
    predicted = turns(apart)
    return len(apart), int(turned.sum()), int((turned != predicted).sum()), int(near.sum())
