"""What predictors and the decision rule came to, in sentences."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pandas as pd

from whencount.comparison.prediction import AXES, REFERENCES
from whencount.wording import capital, joined, number, percent, signed

TARGET_NAMES = {
    "saturation": "φ of saturation",
    "length": "φ of length",
    "idf": "φ of IDF",
    "collection_gain": "G",
    "margin": "margin",
}

TIER_NAMES = {
    "registered": "registered three",
    "frequency": "frequencies",
    "index": "+ index",
    "rankings": "+ rankings",
    "pseudo_bm25": "+ pseudo, text BM25",
    "pseudo_dense": "+ pseudo, dense",
    "pseudo_rrf": "+ pseudo, both fused",
}

AXIS_NAMES = {
    "family": "the basis family",
    "corpus": "the corpus",
    "parameters": "other k1 and b",
    "budgets": "other budgets",
    "seeds": "other seeds",
    "primary": "nothing (no fit)",
}

_TIERS_IN_WORDS = {
    "registered": "the three registered predictors",
    "frequency": "feature frequencies",
    "index": "index statistics",
    "rankings": "rankings",
    "pseudo_bm25": "pseudo-labels from text BM25",
    "pseudo_dense": "pseudo-labels from dense retrieval",
    "pseudo_rrf": "pseudo-labels from both fused",
}


@dataclass(frozen=True)
class Best:
    """The predictors with the largest held-out R² for a target on an axis, ridge models only.

    Attributes:
        target, predictors, model, axis: the line of predictors.parquet.
        r2: held out.
        sign_accuracy, majority_accuracy: how often the sign is right, and that of the majority.
    """

    target: str
    predictors: str
    model: str
    axis: str
    r2: float
    sign_accuracy: float
    majority_accuracy: float


def best_predictors(predictors: pd.DataFrame, axis: str) -> list[Best]:
    """One per target that has a ridge model on the axis, in the order of TARGET_NAMES."""
    lines = predictors[(predictors["axis"] == axis) & (predictors["model"] == "ridge")]
    lines = lines.dropna(subset=["r2"])
    found: list[Best] = []
    for target in TARGET_NAMES:
        part = lines[lines["target"] == target]
        if len(part) == 0:
            continue
        line = part.iloc[int(part["r2"].to_numpy(dtype=float).argmax())]
        found.append(
            Best(
                target,
                str(line["predictors"]),
                "ridge",
                axis,
                float(line["r2"]),
                float(line["sign_accuracy"]),
                float(line["majority_accuracy"]),
            )
        )
    return found


def predictors_in_words(predictors: pd.DataFrame) -> list[str]:
    """A sentence per axis: how well the effects are predicted there, and against the majority."""
    found = []
    for axis, where in AXES.items():
        best = [one for one in best_predictors(predictors, axis) if one.target != "margin"]
        if not best:
            found.append(f"Prediction on {where} was not possible here.")
            continue
        useful = [one for one in best if one.r2 > 0]
        useless = [TARGET_NAMES[one.target] for one in best if one.r2 <= 0]
        text = f"On {where}, "
        if useful:
            text += "the best ridge models reach " + "; ".join(
                _of_tier(tier, [one for one in useful if one.predictors == tier])
                for tier in dict.fromkeys(one.predictors for one in useful)
            )
        if useless:
            text += ("; " if useful else "") + (
                f"nothing predicts {joined(useless)} better than a mean does"
            )
        text += "."
        signs = [one for one in best if not math.isnan(one.sign_accuracy - one.majority_accuracy)]
        better = [one for one in signs if one.sign_accuracy > one.majority_accuracy]
        if signs and better:
            listed = joined(
                [
                    f"{TARGET_NAMES[one.target]} ({percent(one.sign_accuracy)} against"
                    f" {percent(one.majority_accuracy)})"
                    for one in better
                ]
            )
            text += f" They tell the sign more often than the majority sign does for {listed}."
        elif signs:
            text += " None of them tells the sign more often than the majority sign does."
        found.append(text)
    return found


def _of_tier(tier: str, best: list[Best]) -> str:
    listed = joined([f"R² {number(one.r2, 2)} for {TARGET_NAMES[one.target]}" for one in best])
    return f"{listed} with {_TIERS_IN_WORDS.get(tier, tier)}"


def decisions_in_words(decisions: pd.DataFrame) -> list[str]:
    """A sentence per reference over all rows: the rule against always, and the headroom."""
    found = []
    for _, line in decisions[decisions["scope"] == "all"].iterrows():
        reference = str(line["reference"])
        gain, low, high = (float(line[key]) for key in ("gain_over_always", "low", "high"))
        text = f"with pseudo-labels from {REFERENCES.get(reference, reference)} the rule reaches "
        text += f"a mean nDCG@10 of {number(float(line['rule']), 4)}, {_compared(gain)} always"
        text += f" using the collection statistics ({number(float(line['always']), 4)}; never"
        text += f" using them {number(float(line['never']), 4)}"
        text += "" if math.isnan(low) else f"; 95 % interval of the difference {signed(low, 4)}"
        text += "" if math.isnan(low) else f" to {signed(high, 4)}"
        text += f"), where an oracle would reach {number(float(line['oracle']), 4)}"
        share = float(line["recovered"])
        if math.isnan(share):
            text += ": there is no headroom"
        elif share > 0:
            text += f": it recovers {percent(share)} of the headroom"
        else:
            text += ": it recovers none of the headroom"
        found.append(capital(text) + ".")
    return found


def _compared(gain: float) -> str:
    if gain == 0:
        return "the same as"
    return f"{number(abs(gain), 4)} {'above' if gain > 0 else 'below'}"
