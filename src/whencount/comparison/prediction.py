"""Claims on what can be told without labels: predictors and the decision rule."""

from __future__ import annotations

import math
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
    """The decision rule against using the collection statistics always, per reference."""
    theirs = published.decision()
    beats = "the decision rule on pseudo-labels{} beats using IDF and length always"
    recovers = (
        "the decision rule on pseudo-labels{} recovers more than half of what an oracle would gain"
        " over using them always"
    )
    beaten = (
        f"{number(theirs['rule'], 4)} against {number(theirs['always'], 4)}"
        f" (oracle {number(theirs['oracle'], 4)})"
    )
    recovered = percent(theirs["recovered"])
    table = study.decisions
    lines = None if table is None else table[table["scope"] == "all"]
    if lines is None or len(lines) == 0:
        reason = "the run applied no decision rule"
        return [
            untold("decision", beats.format(""), beaten, reason),
            untold("decision", recovers.format(""), recovered, reason),
        ]
    claims = []
    for _, line in lines.iterrows():
        reference = str(line["reference"])
        source = f" from {REFERENCES.get(reference, reference)}"
        here = (
            f"{number(line['rule'], 4)} against {number(line['always'], 4)}"
            f" (oracle {number(line['oracle'], 4)}), difference"
            f" {signed(float(line['gain_over_always']), 4)}"
        )
        low, high = float(line["low"]), float(line["high"])
        if not math.isnan(low):
            here += f" (95 % interval {signed(low, 4)} to {signed(high, 4)})"
        claims.append(
            held(
                "decision", beats.format(source), beaten, here, agrees=line["rule"] > line["always"]
            )
        )
        share = float(line["recovered"])
        if math.isnan(share):
            claims.append(
                untold(
                    "decision",
                    recovers.format(source),
                    recovered,
                    "the oracle gains nothing over using them always",
                )
            )
        else:
            claims.append(
                held(
                    "decision",
                    recovers.format(source),
                    recovered,
                    percent(share),
                    agrees=share > 0.5,
                )
            )
    return claims


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
