"""Paired differences between two selectors over the same examples or documents."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from whencount.significance import FEWEST_QUERIES, resamples

if TYPE_CHECKING:
    import pandas as pd

DRAWS = 2_000
_LEVEL = 0.95


@dataclass(frozen=True)
class Difference:
    """A mean difference with its interval.

    Attributes:
        mean: of the first less the second; NaN where no unit has both.
        low, high: 95 % percentile interval of a paired bootstrap over units.
        units: how many examples or documents have both.
        few: some group has fewer than five, too few to resample; then low = high = mean.
    """

    mean: float
    low: float
    high: float
    units: int
    few: bool

    @property
    def apart(self) -> bool:
        """Whether the interval lies wholly on one side of 0."""
        return not self.few and (self.low > 0 or self.high < 0)


def paired_difference(
    units: pd.DataFrame,
    rule: str,
    first: str,
    second: str,
    *,
    value: str,
    group: Sequence[str],
    unit: str,
    weight: str | None = None,
    draws: int = DRAWS,
    seed: int = 0,
) -> Difference:
    """Mean difference of two rules over the units that both have, and its interval.

    Units are resampled with replacement within their group, the same for both rules. The mean of a
    group weighs its units by `weight`; the result is the plain mean over groups.

    Args:
        units: a line per unit and rule.
        rule: the column that names the rule.
        first, second: the rules.
        value: the column that is compared.
        group: columns of what is resampled apart, task and context say.
        unit: the column that names a unit within its group.
        weight: column of weights, tokens say; all equal where left out.
        draws: resamples.
        seed: of the resampling.
    """
    keys = [*group, unit]
    kept = [*keys, value, *([weight] if weight else [])]
    both = units.loc[units[rule] == first, kept].merge(
        units.loc[units[rule] == second, [*keys, value]], on=keys, suffixes=("", "_other")
    )
    both = both.dropna(subset=[value, f"{value}_other"])
    if len(both) == 0:
        return Difference(math.nan, math.nan, math.nan, 0, few=True)
    means, drawn, few = [], np.zeros(draws), False
    groups = list(both.groupby(list(group), sort=True)) if group else [((), both)]
    for name, lines in groups:
        apart = (lines[value] - lines[f"{value}_other"]).to_numpy(dtype=np.float64)
        weights = lines[weight].to_numpy(dtype=np.float64) if weight else np.ones(len(lines))
        few |= len(lines) < FEWEST_QUERIES
        means.append(float((apart * weights).sum() / weights.sum()))
        blocks = resamples(len(lines), draws, collection=str(name), seed=seed)
        both_sums = np.column_stack([apart * weights, weights])
        sums = np.concatenate([block @ both_sums for block in blocks])
        drawn += sums[:, 0] / sums[:, 1] / len(groups)
    mean = float(np.mean(means))
    if few:
        return Difference(mean, mean, mean, len(both), few=True)
    tail = 100 * (1 - _LEVEL) / 2
    low, high = np.percentile(drawn, [tail, 100 - tail])
    return Difference(mean, float(low), float(high), len(both), few=False)
