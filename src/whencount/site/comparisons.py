"""The comparisons of two configurations that the explorer tells of, query by query."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Comparison:
    """Two configurations, named by their bits, and what going from one to the other means."""

    before: str
    after: str
    meaning: str


COMPARISONS = (
    Comparison("000", "111", "full BM25 instead of the inner product"),
    Comparison("010", "111", "IDF and length on top of saturation"),
    Comparison("000", "010", "saturation alone instead of the inner product"),
)

RANKED = tuple(sorted({one for pair in COMPARISONS for one in (pair.before, pair.after)}))
"""The configurations whose ranks are kept: 000, 010 and 111."""
