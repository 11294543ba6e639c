"""The kinds of test a hypothesis file can name, each a function of rows.

A p is raw here; Holm's correction over a file is `whencount.hypotheses.confirmation`'s.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from whencount.hypotheses.definitions import Hypothesis
from whencount.hypotheses.selection import NotTestable, need, need_numbers, select

if TYPE_CHECKING:
    import pandas as pd

FEWEST = 5
"""Fewer pairs or rows are not tested: the smallest one-sided p of 4 pairs is 1/16, above 0.05."""

DECIMALS = 12
"""Differences are ranked after rounding: 0.3 - 0.2 and 0.2 - 0.1 are equal."""

PAIR = ("collection", "representation")
"""What the two rows of a pair share."""


@dataclass(frozen=True)
class Finding:
    """What a test found.

    Attributes:
        rows: how many rows, or pairs of rows, the test is over.
        used: the rows that entered, fitted ones too.
        estimate: what the hypothesis is about: a share, a mean, a correlation, a largest value.
        holds: whether the estimate is as claimed, whatever the p.
        comparison: what `estimate` is compared with, the second mean.
        threshold: the bound that `estimate` must reach.
        p: raw; None for a kind of test without one.
    """

    rows: int
    used: pd.DataFrame
    estimate: float
    holds: bool
    comparison: float | None = None
    threshold: float | None = None
    p: float | None = None


@dataclass(frozen=True)
class Resampling:
    """Draws and seed of what is resampled: the interval of the decision rule."""

    draws: int = 2_000
    seed: int = 0


def run(
    hypothesis: Hypothesis,
    rows: pd.DataFrame,
    setting: Mapping[str, Any],
    resampling: Resampling,
) -> Finding:
    """Test a hypothesis at one of its settings.

    Args:
        rows: as `whencount.foreign_rows.read_rows` gives them.
        setting: the choice of rows that the setting adds.

    Raises:
        NotTestable: rows or columns are missing, or too few.
    """
    return TESTS[hypothesis.test](hypothesis, rows, setting, resampling)


def share_within(
    hypothesis: Hypothesis, rows: pd.DataFrame, setting: Mapping[str, Any], _: Resampling
) -> Finding:
    """Whether the summed Shapley values of `parts` over the summed gain lie in [low, high]."""
    options = hypothesis.options
    chosen = select(rows, hypothesis.rows, setting)
    columns = [f"shapley_{part}" for part in options["parts"]]
    need_numbers(chosen, "gain", *columns)
    gain = float(chosen["gain"].sum())
    if gain == 0:
        raise NotTestable("the summed gain is 0 and has no shares")
    share = float(chosen[columns].sum().sum()) / gain
    return Finding(len(chosen), chosen, share, options["low"] <= share <= options["high"])


def paired_greater(
    hypothesis: Hypothesis, rows: pd.DataFrame, setting: Mapping[str, Any], _: Resampling
) -> Finding:
    """Whether a value is greater in one setting than in another: Wilcoxon's signed rank, one-sided.

    Pairs without a difference are left out (Wilcoxon, 1945). The p is exact up to 50 pairs without
    ties or zeros, else that of the normal approximation with the correction of its variance for
    ties and none for continuity: scipy's default, and the published study's.
    """
    from scipy.stats import wilcoxon

    value = hypothesis.options["value"]
    sides = [
        select(rows, hypothesis.rows, setting, hypothesis.options[side])
        for side in ("greater", "lesser")
    ]
    for side, chosen in zip(("greater", "lesser"), sides, strict=True):
        need_numbers(chosen, value)
        if chosen.duplicated(list(PAIR)).any():
            raise NotTestable(
                f"{side}: several rows of a representation of a collection; choose one setting"
            )
    greater, lesser = (chosen.set_index(list(PAIR))[value].sort_index() for chosen in sides)
    pairs = greater.index.intersection(lesser.index).sort_values()
    greater, lesser = greater.loc[pairs], lesser.loc[pairs]
    _enough(len(pairs), "pairs")
    difference = (greater - lesser).to_numpy(dtype=np.float64).round(DECIMALS)
    used = _concatenated([side[side.set_index(list(PAIR)).index.isin(pairs)] for side in sides])
    means = float(greater.mean()), float(lesser.mean())
    if not difference.any():
        # Nothing to rank: no evidence at all.
        return Finding(len(pairs), used, means[0], False, means[1], p=1.0)
    result = wilcoxon(difference, zero_method="wilcox", alternative="greater", correction=False)
    return Finding(
        len(pairs), used, means[0], means[0] > means[1], means[1], p=float(result.pvalue)
    )


def rank_correlation(
    hypothesis: Hypothesis, rows: pd.DataFrame, setting: Mapping[str, Any], _: Resampling
) -> Finding:
    """Whether Spearman's correlation of two columns is at least a threshold.

    `centred_within` subtracts each group's mean from both first. The p is two-sided, of no
    correlation (Student's t with n - 2 degrees of freedom), as the published study's.
    """
    options = hypothesis.options
    chosen = select(rows, hypothesis.rows, setting)
    first, second = options["values"]
    need_numbers(chosen, first, second)
    values = chosen[[first, second]].astype(np.float64)
    within = options.get("centred_within")
    if within is not None:
        if within == "corpus" and within not in chosen.columns:
            within = "collection"
        need(chosen, within)
        values -= values.groupby(chosen[within]).transform("mean")
        values = values.round(DECIMALS)
    rho, p = _spearman(values[first], values[second], (first, second))
    threshold = float(options["at_least"])
    return Finding(len(chosen), chosen, rho, rho >= threshold, threshold=threshold, p=p)


def model_ranking(
    hypothesis: Hypothesis, rows: pd.DataFrame, setting: Mapping[str, Any], _: Resampling
) -> Finding:
    """Whether a ridge model of one predictor ranks a target that it was not fitted on.

    A ridge on one feature is `intercept + slope * feature` with the sign of the covariance,
    whatever the penalty, so its ranking is that of the feature, turned round where the slope is
    negative; nothing is fitted here but that sign. The p is that of `rank_correlation`.
    """
    options = hypothesis.options
    predictor, target = options["predictor"], options["target"]
    fitted = select(rows, options["fitted_on"])
    need_numbers(fitted, predictor, target)
    chosen = select(rows, hypothesis.rows, setting)
    need_numbers(chosen, predictor, target)
    _enough(len(fitted), "rows to fit on")
    feature = fitted[predictor].to_numpy(dtype=np.float64)
    outcome = fitted[target].to_numpy(dtype=np.float64)
    slope = float(np.sign(np.dot(feature - feature.mean(), outcome - outcome.mean())))
    if slope == 0:
        raise NotTestable(f"on the rows to fit on, {target} does not depend on {predictor}")
    rho, p = _spearman(slope * chosen[predictor], chosen[target], (predictor, target))
    threshold = float(options["at_least"])
    used = _concatenated([fitted, chosen])
    return Finding(len(chosen), used, rho, rho >= threshold, threshold=threshold, p=p)


def exactly_zero(
    hypothesis: Hypothesis, rows: pd.DataFrame, setting: Mapping[str, Any], _: Resampling
) -> Finding:
    """Whether a column is exactly 0 in every row: the estimate is its largest absolute value."""
    chosen = select(rows, hypothesis.rows, setting)
    value = hypothesis.options["value"]
    need_numbers(chosen, value)
    largest = float(chosen[value].abs().max())
    return Finding(len(chosen), chosen, largest, largest == 0, threshold=0.0)


def decision_rule(
    hypothesis: Hypothesis,
    rows: pd.DataFrame,
    setting: Mapping[str, Any],
    resampling: Resampling,
) -> Finding:
    """Whether the decision rule gives a higher mean nDCG@10 than full BM25 everywhere.

    The rule takes `Q111` where the pseudo-labels of a reference give `G~ > 0`, else `Q010`
    (`whencount.prediction.decisions`); nothing in it is fitted.
    """
    from whencount.attribution import QUALITY_COLUMNS
    from whencount.prediction import decisions
    from whencount.scoring import CONFIGURATIONS

    reference = hypothesis.options["reference"]
    chosen = select(rows, hypothesis.rows, setting)
    pseudo = [f"pseudo_{reference}_{configuration}" for configuration in CONFIGURATIONS]
    need_numbers(chosen, *QUALITY_COLUMNS, *pseudo)
    table = decisions(chosen, draws=resampling.draws, seed=resampling.seed)
    lines = table[(table["reference"] == reference) & (table["scope"] == "all")]
    if len(lines) == 0:
        raise NotTestable("no configuration differs from another, so there is nothing to decide")
    line = lines.iloc[0]
    rule, always = float(line["rule"]), float(line["always"])
    return Finding(int(line["rows"]), chosen, rule, rule > always, comparison=always)


TESTS: Mapping[
    str, Callable[[Hypothesis, pd.DataFrame, Mapping[str, Any], Resampling], Finding]
] = {
    "share_within": share_within,
    "paired_greater": paired_greater,
    "rank_correlation": rank_correlation,
    "model_ranking": model_ranking,
    "exactly_zero": exactly_zero,
    "decision_rule": decision_rule,
}


def _spearman(first: pd.Series, second: pd.Series, names: tuple[str, str]) -> tuple[float, float]:
    from scipy.stats import spearmanr

    _enough(len(first), "rows")
    for values, name in zip((first, second), names, strict=True):
        if values.nunique() < 2:
            raise NotTestable(f"{name} is the same in all {len(values):,} rows")
    result = spearmanr(first, second)
    rho, p = float(result.statistic), float(result.pvalue)
    if math.isnan(rho):
        raise NotTestable(f"{names[0]} and {names[1]} have no rank correlation")
    return rho, p


def _enough(count: int, noun: str) -> None:
    if count < FEWEST:
        raise NotTestable(f"{count} {noun}, and at least {FEWEST} are needed")


def _concatenated(frames: list[pd.DataFrame]) -> pd.DataFrame:
    import pandas as pd

    joined = pd.concat(frames)
    return joined[~joined.index.duplicated()]
