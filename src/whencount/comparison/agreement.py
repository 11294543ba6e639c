"""All claims of the published study, held against a run."""

from __future__ import annotations

from whencount.comparison.claims import Claim, Study
from whencount.comparison.effects import effects
from whencount.comparison.prediction import decisions, predictions
from whencount.comparison.registered import registered


def agreement(study: Study) -> list[Claim]:
    """Every claim with its published figures, this run's, and whether they agree.

    A claim whose rows or tables a run lacks says so and why.
    """
    return [*effects(study), *registered(study), *predictions(study), *decisions(study)]
