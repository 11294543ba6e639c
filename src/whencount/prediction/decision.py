"""The decision rule: collection statistics where pseudo-labels say so (study, section 7)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from whencount import attribution
from whencount.errors import InputError
from whencount.prediction.features import pseudo_targets, references_of

if TYPE_CHECKING:
    import pandas as pd

WITH_STATISTICS, WITHOUT_STATISTICS = "111", "010"
DECISION_COLUMNS = (
    "reference",
    "scope",
    "value",
    "rows",
    "never",
    "always",
    "rule",
    "oracle",
    "recovered",
    "recovered_low",
    "recovered_high",
    "gain_over_always",
    "low",
    "high",
    "accuracy",
    "gain_over_never",
    "gain_over_never_low",
    "gain_over_never_high",
    "majority",
    "gain_over_majority",
    "gain_over_majority_low",
    "gain_over_majority_high",
    "always_accuracy",
    "never_accuracy",
    "majority_accuracy",
)
# What is summed over the rows of a collection; everything in the table follows from the sums.
_SUMS = (
    "rows",
    "never",
    "always",
    "rule_over_always",
    "oracle_over_always",
    "rule_over_never",
    "majority",
    "rule_over_majority",
    "rule_right",
    "always_right",
    "never_right",
    "majority_right",
)


def decide(rows: pd.DataFrame, reference: str) -> pd.Series:
    """The configuration that the rule chooses in each row; nothing is fitted.

    `111`, full BM25 with its two collection statistics, where G~ = Q~111 - Q~010 > 0, else `010`,
    saturation alone.

    Args:
        rows: with the eight pseudo-label columns of the reference.
        reference: `bm25` say.

    Returns:
        Strings with the index of `rows`; None where a pseudo-label is missing.

    Raises:
        InputError: the rows lack the columns.
    """
    import pandas as pd

    estimate = pseudo_targets(rows, reference)["collection_gain"].to_numpy()
    choice = np.where(estimate > 0, WITH_STATISTICS, WITHOUT_STATISTICS).astype(object)
    choice[np.isnan(estimate)] = None
    return pd.Series(choice, index=rows.index, dtype=object)


def decisions(rows: pd.DataFrame, *, draws: int = 2_000, seed: int = 0) -> pd.DataFrame:
    """What the rule of each reference gains, over all rows and within each collection.

    Rows with an undefined margin (all eight qualities equal) take no part, as in the published
    study: there is nothing to decide. Nor do rows without pseudo-labels of the reference.

    `majority` is the constant choice that was the better one in most rows of the other
    collections (equal numbers: always): it needs labels, the rule does not. A choice is right
    where the other one is no better. Intervals resample whole collections, 95 %, percentiles; a
    resample without headroom has no recovered share and is left out of its percentiles. Within one
    collection an interval is the value itself.

    Args:
        rows: the rows to decide in, with q000 ... q111 and pseudo-labels.
        draws: resamples.
        seed: of the resampling.

    Returns:
        The columns DECISION_COLUMNS; docs/tables.md explains them. Without rows or references, no
        lines.

    Raises:
        InputError: the rows lack a quality column.
    """
    import pandas as pd

    missing = [name for name in attribution.QUALITY_COLUMNS if name not in rows.columns]
    if missing:
        raise InputError(
            f"the rows have no column {missing[0]}; decisions need the eight qualities"
        )
    quality = rows[list(attribution.QUALITY_COLUMNS)].to_numpy(dtype=np.float64)
    rows = rows[~np.isnan(attribution.margin(quality))]
    lines = []
    for reference in references_of(rows):
        choice = decide(rows, reference)
        known = rows[choice.notna()]
        if len(known) == 0:
            continue
        sums = _collection_sums(known, choice[choice.notna()] == WITH_STATISTICS)
        groups = [("all", "", sums)]
        groups += [("collection", str(name), sums.loc[[name]]) for name in sums.index]
        for scope, value, part in groups:
            named = {"reference": reference, "scope": scope, "value": value}
            lines.append(named | _line(part.to_numpy(), draws, seed))
    return pd.DataFrame(lines, columns=list(DECISION_COLUMNS)).astype({"rows": "int64"})


def _collection_sums(rows: pd.DataFrame, chosen: pd.Series) -> pd.DataFrame:
    """_SUMS per collection, sorted by its name."""
    import pandas as pd

    never = rows["q010"].to_numpy(dtype=np.float64)
    always = rows["q111"].to_numpy(dtype=np.float64)
    with_statistics = chosen.to_numpy(dtype=bool)
    # Differences are taken row by row: where two choices agree they are exactly 0.
    gain = always - never
    frame = pd.DataFrame(
        {
            "rows": 1.0,
            "never": never,
            "always": always,
            "rule_over_always": np.where(with_statistics, 0.0, -gain),
            "oracle_over_always": np.maximum(-gain, 0.0),
            "rule_over_never": np.where(with_statistics, gain, 0.0),
            "rule_right": np.where(with_statistics, gain >= 0, gain <= 0).astype(float),
            "always_right": (gain >= 0).astype(float),
            "never_right": (gain <= 0).astype(float),
        }
    )
    collection = rows["collection"].astype(str).to_numpy()
    majority = _majority(gain, collection)
    rule = np.where(with_statistics, always, never)
    frame["majority"] = np.where(np.isnan(majority), np.nan, np.where(majority, always, never))
    frame["rule_over_majority"] = rule - frame["majority"]
    right = np.where(majority > 0, gain >= 0, gain <= 0).astype(float)
    frame["majority_right"] = np.where(np.isnan(majority), np.nan, right)
    # A column without a majority has none in any row: its sum is missing, not 0.
    summed = frame.groupby(collection, sort=True).sum(min_count=1)
    return summed[list(_SUMS)]


def _majority(gain: NDArray[np.float64], collection: NDArray[np.object_]) -> NDArray[np.float64]:
    """1 where always was the better choice in most rows of the other collections, else 0.

    NaN where there are no other collections.
    """
    result = np.full(len(gain), np.nan)
    for name in sorted(set(collection)):
        here = collection == name
        other = gain[~here]
        if len(other):
            result[here] = float((other > 0).sum() >= (other < 0).sum())
    return result


def _line(sums: NDArray[np.float64], draws: int, seed: int) -> dict[str, float | int]:
    """The values of one line; `sums` has shape (collections, len(_SUMS))."""
    total = dict(zip(_SUMS, sums.sum(axis=0), strict=True))
    rows = total["rows"]
    random = np.random.default_rng(seed)
    counts = random.multinomial(len(sums), np.full(len(sums), 1 / len(sums)), size=draws)
    drawn = dict(zip(_SUMS, (counts @ sums).T, strict=True))
    with np.errstate(divide="ignore", invalid="ignore"):
        recovered = np.divide(total["rule_over_always"], total["oracle_over_always"])
        shares = drawn["rule_over_always"] / drawn["oracle_over_always"]
    line: dict[str, float | int] = {
        "rows": int(rows),
        "never": total["never"] / rows,
        "always": total["always"] / rows,
        "rule": (total["always"] + total["rule_over_always"]) / rows,
        "oracle": (total["always"] + total["oracle_over_always"]) / rows,
        "majority": total["majority"] / rows,
        "recovered": float(recovered) if np.isfinite(recovered) else float("nan"),
        "accuracy": total["rule_right"] / rows,
    }
    line["recovered_low"], line["recovered_high"] = _percentiles(shares)
    for choice in ("always", "never", "majority"):
        name, prefix = f"rule_over_{choice}", "" if choice == "always" else f"gain_over_{choice}_"
        line[f"gain_over_{choice}"] = total[name] / rows
        low, high = _percentiles(drawn[name] / drawn["rows"])
        line[f"{prefix}low"], line[f"{prefix}high"] = low, high
        line[f"{choice}_accuracy"] = total[f"{choice}_right"] / rows
    return line


def _percentiles(values: NDArray[np.float64]) -> tuple[float, float]:
    defined = values[np.isfinite(values)]
    if len(defined) == 0:
        return float("nan"), float("nan")
    low, high = np.percentile(defined, [2.5, 97.5])
    return float(low), float(high)
