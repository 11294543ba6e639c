"""Whether transfer holds: scores of frozen predictors, intervals, verdicts (study, section 11)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from whencount.prediction.scores import majority_sign, scores
from whencount.transfer.freezing import Criteria, Frozen
from whencount.transfer.predictors import KINDS, Predictor
from whencount.wording import FEW_COLLECTIONS, joined

if TYPE_CHECKING:
    import pandas as pd

HOLDS, FAILS, NOT_APPLICABLE = "holds", "does not hold", "not applicable"
FEW_ROWS = 30
"""Up to here a share of right signs moves by more than three points with every row."""

TRANSFER_COLUMNS = (
    "setting",
    "target",
    "predictors",
    "declared",
    "scope",
    "value",
    "rows",
    "left_out",
    "zeros",
    "outside",
    "resampled",
    "groups",
    "sign_accuracy",
    "sign_accuracy_low",
    "sign_accuracy_high",
    "least_sign_accuracy",
    "majority_sign",
    "majority_accuracy",
    "over_majority",
    "over_majority_low",
    "over_majority_high",
    "commonest_accuracy",
    "mae",
    "mae_low",
    "mae_high",
    "rmse",
    "retrieval_rmse",
    "largest_mae",
    "spearman",
    "signs_pass",
    "error_passes",
    "majority_beaten",
    "verdict",
    "reason",
    "thin",
    "status",
    "status_reason",
)
_NUMBERS = (
    *("sign_accuracy", "sign_accuracy_low", "sign_accuracy_high", "majority_accuracy"),
    *("over_majority", "over_majority_low", "over_majority_high", "commonest_accuracy"),
    *("mae", "mae_low", "mae_high", "rmse", "spearman", "outside"),
)
CONFIRMATORY, EXPLORATORY = "confirmatory", "exploratory"


def assess(
    frozen: Frozen, predictions: pd.DataFrame, late: Mapping[str, str] | None = None
) -> pd.DataFrame:
    """Score every predictor of every target in every setting, and say whether transfer holds.

    It holds if the share of right signs is at least the one frozen, the mean absolute error at most
    the frozen multiple of the retrieval error with corpora held out, and the signs are right more
    often than the majority sign of the retrieval rows would be. `commonest_accuracy` is what the
    commonest sign of these very rows would reach, which nobody knows beforehand. An outcome of
    exactly 0 is right only where exactly 0 was predicted.

    Intervals (95 %, percentiles) resample whole groups of rows of one model and task, since these
    share what they were measured on; where all rows are one such group, single rows.

    Args:
        frozen: what the predictions were made by.
        predictions: of `whencount.transfer.apply`, any number of settings.
        late: setting to a sentence that says why its outcomes are no test; others are one.

    Returns:
        The columns TRANSFER_COLUMNS; docs/tables.md explains them.
    """
    import pandas as pd

    lines = []
    late = late or {}
    by_name = {(one.target, one.kind): one for one in frozen.predictors}
    for setting in dict.fromkeys(predictions["setting"]):
        here = predictions[predictions["setting"] == setting]
        for (target, kind), predictor in by_name.items():
            part = here[(here["target"] == target) & (here["predictors"] == kind)]
            scopes = [("all", "", part)]
            variants = sorted(set(part["variant"]))
            if len(variants) > 1:
                scopes += [("variant", one, part[part["variant"] == one]) for one in variants]
            for scope, value, chosen in scopes:
                named = {
                    "setting": setting,
                    "target": target,
                    "predictors": kind,
                    "declared": KINDS[kind].declared,
                    "scope": scope,
                    "value": value,
                }
                status = {
                    "status": EXPLORATORY if setting in late else CONFIRMATORY,
                    "status_reason": late.get(setting, ""),
                }
                lines.append(named | _line(predictor, chosen, frozen.criteria) | status)
    table = pd.DataFrame(lines, columns=list(TRANSFER_COLUMNS))
    kinds: dict[str, str] = dict.fromkeys(("rows", "left_out", "zeros", "groups"), "int64")
    kinds |= dict.fromkeys(("signs_pass", "error_passes", "majority_beaten"), "boolean")
    kinds |= dict.fromkeys(_NUMBERS, "float64")
    return table.astype(kinds)


def _line(predictor: Predictor, rows: pd.DataFrame, criteria: Criteria) -> dict[str, Any]:
    used = rows[rows["left_out"] == ""]
    observed = used["observed"].to_numpy(dtype=np.float64)
    predicted = used["predicted"].to_numpy(dtype=np.float64)
    largest = criteria.mae_ratio * predictor.rmse
    line: dict[str, Any] = dict.fromkeys(_NUMBERS, float("nan"))
    line |= {
        "rows": len(used),
        "left_out": len(rows) - len(used),
        "zeros": int((observed == 0).sum()),
        "resampled": "",
        "groups": 0,
        "least_sign_accuracy": criteria.sign_accuracy,
        "majority_sign": predictor.majority_sign,
        "retrieval_rmse": predictor.rmse,
        "largest_mae": largest,
        "signs_pass": None,
        "error_passes": None,
        "majority_beaten": None,
        "thin": True,
    }
    if len(used) == 0:
        return line | {"verdict": NOT_APPLICABLE, "reason": _why_none(rows)}
    majority = np.full(len(used), predictor.majority_sign)
    found = scores(observed, predicted, majority)
    commonest = float((np.sign(observed) == majority_sign(observed)).mean())
    over = found["sign_accuracy"] - found["majority_accuracy"]
    resampled, groups = _groups(used)
    line |= {key: found[key] for key in ("sign_accuracy", "majority_accuracy", "mae", "rmse")}
    line |= {
        "spearman": found["spearman"],
        "over_majority": over,
        "commonest_accuracy": commonest,
        "outside": float(used["outside"].mean()),
        "resampled": resampled,
        "groups": int(groups.max()) + 1,
        "thin": len(used) < FEW_ROWS or int(groups.max()) + 1 < FEW_COLLECTIONS,
    }
    line |= _intervals(observed, predicted, predictor.majority_sign, groups, criteria)
    passes = {
        "signs_pass": found["sign_accuracy"] >= criteria.sign_accuracy,
        "error_passes": found["mae"] <= largest,
        "majority_beaten": found["sign_accuracy"] > found["majority_accuracy"],
    }
    failed = [_FAULTS[name] for name, passed in passes.items() if not passed]
    return (
        line
        | passes
        | {"verdict": FAILS if failed else HOLDS, "reason": joined(failed) if failed else ""}
    )


_FAULTS = {
    "signs_pass": "too few signs are right",
    "error_passes": "the error is too large",
    "majority_beaten": "the majority sign does no worse",
}


def _why_none(rows: pd.DataFrame) -> str:
    if len(rows) == 0:
        return "the setting has no row"
    reasons = rows["left_out"].value_counts()
    listed = [f"{reason} in {count} of {len(rows)} rows" for reason, count in reasons.items()]
    return "; ".join(sorted(listed))


def _groups(used: pd.DataFrame) -> tuple[str, NDArray[np.intp]]:
    """What is resampled whole, and the number of the group of each row from 0."""
    keys = list(zip(used["model"], used["task"], strict=True))
    numbers = {key: number for number, key in enumerate(sorted(set(keys)))}
    if len(numbers) > 1:
        return "model and task", np.array([numbers[key] for key in keys], dtype=np.intp)
    return "rows", np.arange(len(used))


def _intervals(
    observed: NDArray[np.float64],
    predicted: NDArray[np.float64],
    majority: float,
    groups: NDArray[np.intp],
    criteria: Criteria,
) -> dict[str, float]:
    """Percentile intervals of sign accuracy, of its lead over the majority sign, and of the MAE."""
    sign = np.sign(observed)
    right = (np.sign(predicted) == sign).astype(np.float64)
    lead = right - (sign == majority)
    count = int(groups.max()) + 1
    sums = np.zeros((count, 4))
    for column, values in enumerate(
        (np.ones(len(observed)), right, lead, np.abs(predicted - observed))
    ):
        sums[:, column] = np.bincount(groups, weights=values, minlength=count)
    random = np.random.default_rng(criteria.seed)
    drawn = random.multinomial(count, np.full(count, 1 / count), size=criteria.draws) @ sums
    means = drawn[:, 1:] / drawn[:, :1]
    low, high = np.percentile(means, [2.5, 97.5], axis=0)
    found: dict[str, float] = {}
    for column, name in enumerate(("sign_accuracy", "over_majority", "mae")):
        found |= {f"{name}_low": float(low[column]), f"{name}_high": float(high[column])}
    return found
