"""Claims on what can be told without labels: predictors and the decision rule."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from whencount import published
from whencount.comparison.claims import Claim, Study, held, untold
from whencount.wording import joined, number, percent, signed

if TYPE_CHECKING:
    import pandas as pd

AXES = {
    "family": "bases of an unseen family",
    "corpus": "unseen corpora",
    "parameters": "other k1 and b",
}
"""What is held out on each axis, as it follows "predict on"."""

TARGETS = {
    "saturation": "φ of saturation",
    "length": "φ of length",
    "idf": "φ of IDF",
    "collection_gain": "G",
}

REFERENCES = {"bm25": "text BM25", "dense": "dense retrieval", "rrf": "both fused"}


def predictions(study: Study) -> list[Claim]:
    """Pseudo-labels against the registered predictors, and both against the majority sign."""
    theirs = published.predictors()
    return [
        *(_better_tier(theirs, study.predictors, axis) for axis in AXES),
        *_unfitted_sign(theirs, study.predictors),
        *_fitted_sign(theirs, study.predictors),
    ]


def decisions(study: Study) -> list[Claim]:
    """The decision rule against using the collection statistics always.

    The publication has one rule, so there is one verdict: that of the first of `REFERENCES` which
    the run has. What the other references say stands beside it and is not counted again.
    """
    theirs = published.decision()
    beats = "the decision rule on pseudo-labels beats using IDF and length always"
    recovers = (
        "the decision rule on pseudo-labels recovers more than half of what an oracle would gain"
        " over using them always"
    )
    beaten = (
        f"{number(theirs['rule'], 4)} against {number(theirs['always'], 4)}"
        f" (oracle {number(theirs['oracle'], 4)})"
    )
    recovered = percent(theirs["recovered"])
    lines = _by_reference(study.decisions)
    if not lines:
        reason = "the run applied no decision rule"
        return [
            untold("decision", beats, beaten, reason),
            untold("decision", recovers, recovered, reason),
        ]
    first = next(iter(lines.values()))
    return [
        _beats(beats, beaten, _sourced(lines, _difference), first),
        _recovers(recovers, recovered, _sourced(lines, _share), first),
    ]


def _by_reference(table: pd.DataFrame | None) -> dict[str, pd.Series]:
    """The line of all collections per reference, in the order of `REFERENCES`."""
    if table is None:
        return {}
    everywhere = table[table["scope"] == "all"]
    lines = {str(line["reference"]): line for _, line in everywhere.iterrows()}
    order = [*REFERENCES, *sorted(set(lines) - set(REFERENCES))]
    return {reference: lines[reference] for reference in order if reference in lines}


def _sourced(lines: dict[str, pd.Series], told: Callable[[pd.Series], str]) -> str:
    return "; ".join(
        f"labels from {REFERENCES.get(reference, reference)}: {told(line)}"
        for reference, line in lines.items()
    )


def _difference(line: pd.Series) -> str:
    text = (
        f"{number(line['rule'], 4)} against {number(line['always'], 4)}"
        f" (oracle {number(line['oracle'], 4)}), difference"
        f" {signed(float(line['gain_over_always']), 4)}"
    )
    low, high = float(line["low"]), float(line["high"])
    if not math.isnan(low):
        text += f" (95 % interval {signed(low, 4)} to {signed(high, 4)})"
    return text


def _share(line: pd.Series) -> str:
    share = float(line["recovered"])
    return "nothing to recover" if math.isnan(share) else percent(share)


def _beats(statement: str, published: str, here: str, line: pd.Series) -> Claim:
    """Agrees or disagrees only where the whole interval lies on one side of no difference."""
    low, high = float(line["low"]), float(line["high"])
    if low <= 0 <= high:
        reason = "the interval of the difference reaches across 0"
        return untold("decision", statement, published, reason, here)
    return held("decision", statement, published, here, agrees=line["gain_over_always"] > 0)


def _recovers(statement: str, published: str, here: str, line: pd.Series) -> Claim:
    share = float(line["recovered"])
    if math.isnan(share):
        reason = "the oracle gains nothing over using them always"
        return untold("decision", statement, published, reason)
    return held("decision", statement, published, here, agrees=share > 0.5)


def score(
    table: pd.DataFrame | None, target: str, predictors: str, model: str, axis: str, column: str
) -> float:
    """One score of predictors.parquet (or the published ones); NaN where it is not there."""
    if table is None:
        return math.nan
    found = table[
        (table["target"] == target)
        & (table["predictors"] == predictors)
        & (table["model"] == model)
        & (table["axis"] == axis)
    ]
    return float(found[column].iloc[0]) if len(found) else math.nan


def majority_score(
    table: pd.DataFrame | None, target: str, predictors: str, model: str, axis: str
) -> float:
    """How often the majority sign is right: that of the rows fitted on.

    Without a fit there are none, and it is the commonest sign of the rows themselves.
    """
    found, always, never = (
        score(table, target, predictors, model, axis, column)
        for column in ("majority_accuracy", "always_accuracy", "never_accuracy")
    )
    return max(always, never, 1 - always - never) if math.isnan(found) else found


def _better_tier(theirs: pd.DataFrame, ours: pd.DataFrame | None, axis: str) -> Claim:
    statement = (
        "pseudo-labels from text BM25 predict every effect better than the registered predictors"
        f" (R² of ridge models) on {AXES[axis]}"
    )
    pairs = {}
    for side, table in (("published", theirs), ("here", ours)):
        pairs[side] = {
            target: tuple(
                score(table, target, tier, "ridge", axis, "r2")
                for tier in ("pseudo_bm25", "registered")
            )
            for target in TARGETS
        }
    known = {
        target: pair
        for target, pair in pairs["here"].items()
        if not any(math.isnan(value) for value in pair)
    }
    text = _pairs(pairs["published"])
    if not known:
        return untold("prediction", statement, text, "the run has no such prediction")
    agrees = all(pseudo > registered for pseudo, registered in known.values())
    return held("prediction", statement, text, _pairs(known), agrees=agrees)


def _pairs(values: dict[str, tuple[float, ...]]) -> str:
    return joined(
        [
            f"{TARGETS[target]} {number(pseudo, 2)} against {number(registered, 2)}"
            for target, (pseudo, registered) in values.items()
        ]
    )


def _unfitted_sign(theirs: pd.DataFrame, ours: pd.DataFrame | None) -> list[Claim]:
    claims = []
    for target in ("saturation", "length", "idf"):
        key = (target, "pseudo_bm25", "unfitted", "primary")
        statement = (
            f"pseudo-labels alone, without any fit, tell the sign of {TARGETS[target]} more often"
            " than the majority sign does"
        )
        claims.append(_against_majority(theirs, ours, key, statement))
    return claims


def _fitted_sign(theirs: pd.DataFrame, ours: pd.DataFrame | None) -> list[Claim]:
    claims = []
    for target in ("saturation", "length"):
        key = (target, "pseudo_bm25", "ridge", "corpus")
        better = score(theirs, *key, "sign_accuracy") > _published_majority(target)
        statement = (
            f"a ridge model on pseudo-labels {'tells' if better else 'does not tell'} the sign of"
            f" {TARGETS[target]} on {AXES['corpus']} more often than the majority sign does"
        )
        claims.append(_against_majority(theirs, ours, key, statement))
    return claims


def _against_majority(
    theirs: pd.DataFrame,
    ours: pd.DataFrame | None,
    key: tuple[str, str, str, str],
    statement: str,
) -> Claim:
    published_sign, published_majority = (
        score(theirs, *key, "sign_accuracy"),
        _published_majority(key[0]),
    )
    text = f"right in {percent(published_sign)} against {percent(published_majority)}"
    sign, majority = score(ours, *key, "sign_accuracy"), majority_score(ours, *key)
    if math.isnan(sign) or math.isnan(majority):
        return untold("prediction", statement, text, "the run has no such prediction")
    here = f"right in {percent(sign)} against {percent(majority)}"
    agrees = (sign > majority) == (published_sign > published_majority)
    return held("prediction", statement, text, here, agrees=agrees)


def _published_majority(target: str) -> float:
    """How often the commonest sign is right on the published primary rows."""
    rows = published.rows()
    values = rows.loc[rows["value_cv"].notna(), f"shapley_{target}"]
    return max(float((values > 0).mean()), float((values < 0).mean()), float((values == 0).mean()))
