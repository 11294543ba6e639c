"""What the published study claims, and whether a run agrees: computed, claim by claim."""

from __future__ import annotations

from whencount.comparison.agreement import agreement
from whencount.comparison.cells import RowDifferences, row_differences
from whencount.comparison.claims import (
    AGREES,
    CANNOT_TELL,
    DISAGREES,
    VERDICTS,
    Claim,
    Study,
)

__all__ = [
    "AGREES",
    "CANNOT_TELL",
    "DISAGREES",
    "VERDICTS",
    "Claim",
    "RowDifferences",
    "Study",
    "agreement",
    "row_differences",
]
