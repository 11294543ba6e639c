"""Claims on what the switches bring: shares, saturation, budgets, controls, representations."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from whencount import attribution, published, summaries
from whencount.comparison.claims import Claim, Study, held, untold
from whencount.scoring import SWITCHES
from whencount.wording import FEW_COLLECTIONS, joined, percent, plural, signed

if TYPE_CHECKING:
    import pandas as pd

NOTEWORTHY_RHO = 0.3
"""The bar that hypothesis H3 of the study sets for a rank correlation."""

_NAMES = {"idf": "IDF", "saturation": "saturation", "length": "length"}
_ENDS = ("share", "low", "high")
_CV = ("value_cv", "shapley_saturation")


def effects(study: Study) -> list[Claim]:
    """Every claim that rows and shares decide."""
    primary = _published_primary()
    return [
        *_order_of_shares(study, primary),
        *_size_of_shares(study, primary),
        *_saturation(study, primary),
        _even_codes(study, primary),
        _granularity(study, primary),
        *_budgets(study),
        _uniform_control(study),
    ]


def _published_primary() -> pd.DataFrame:
    rows = published.rows()
    return rows[rows["value_cv"].notna()]


def _order_of_shares(study: Study, primary: pd.DataFrame) -> list[Claim]:
    theirs = attribution.shares(primary)["share"]
    ours = {share.switch: share.share for share in _overall(study)}
    claims = []
    for statement, pick in (
        ("saturation carries the largest share of the gain", max),
        ("IDF carries the smallest share of the gain", min),
    ):
        wanted = pick(SWITCHES, key=lambda switch: float(theirs[switch]))
        listed = _listed({switch: float(theirs[switch]) for switch in SWITCHES})
        if not _gains(study.reported):
            claims.append(untold("shares", statement, listed, _NO_GAIN))
            continue
        found = pick(SWITCHES, key=lambda switch: ours[switch])
        claims.append(held("shares", statement, listed, _listed(ours), agrees=found == wanted))
    return claims


def _size_of_shares(study: Study, primary: pd.DataFrame) -> list[Claim]:
    theirs = attribution.shares(primary)
    count = study.reported["collection"].nunique()
    claims = []
    for share in _overall(study):
        their, low, high = (float(theirs[end].to_dict()[share.switch]) for end in _ENDS)
        statement = (
            f"the share of {_NAMES[share.switch]} is as large as published: the two 95 % intervals"
            " overlap"
        )
        text = f"{percent(their)} ({percent(low)} to {percent(high)})"
        if not _gains(study.reported):
            claims.append(untold("shares", statement, text, _NO_GAIN))
            continue
        where = "inside" if low <= share.share <= high else "outside"
        here = f"{percent(share.share)}, {where} the published interval"
        if share.has_interval:
            spread = f" ({percent(share.low)} to {percent(share.high)}), {where}"
            here = here.replace(f", {where}", spread)
        if count < FEW_COLLECTIONS:
            reason = f"an interval from {plural(count, 'collection')} is too coarse"
            if count == 1:
                reason = "one collection gives no interval"
            claims.append(untold("shares", statement, text, reason, here))
            continue
        overlap = share.low <= high and low <= share.high
        claims.append(held("shares", statement, text, here, agrees=bool(overlap)))
    return claims


def _saturation(study: Study, primary: pd.DataFrame) -> list[Claim]:
    claims = []
    for statement, within in (
        ("the more uneven the stored values (cv), the more saturation brings", False),
        (
            "the more uneven the stored values, the more saturation brings within a collection too,"
            " each collection's mean taken off",
            True,
        ),
    ):
        their, our = (
            summaries.spearman(summaries.centred(rows, _CV) if within else rows, *_CV)
            for rows in (primary, study.reported)
        )
        published_text = f"Spearman {signed(their.rho, 2)} over {plural(their.rows, 'row')}"
        if math.isnan(our.rho):
            claims.append(
                untold("saturation", statement, published_text, "the rows do not differ enough")
            )
            continue
        here = f"{signed(our.rho, 2)} over {plural(our.rows, 'row')} (the bar is 0.3)"
        claims.append(
            held(
                "saturation",
                statement,
                published_text,
                here,
                agrees=our.rho >= NOTEWORTHY_RHO,
            )
        )
    return claims


def _even_codes(study: Study, primary: pd.DataFrame) -> Claim:
    statement = (
        "saturation and length change no ranking of pooled PQ and RQ vectors, whose values are all"
        " equal: both Shapley values are exactly 0"
    )
    theirs, ours = _even(primary), _even(study.rows)
    published_text = f"largest |φ| {_largest(theirs)}"
    if len(ours) == 0:
        return untold("representations", statement, published_text, "the study has no such rows")
    here = f"largest |φ| {_largest(ours)}"
    values = ours[["shapley_saturation", "shapley_length"]].to_numpy(dtype=float)
    return held("representations", statement, published_text, here, agrees=not values.any())


def _even(rows: pd.DataFrame) -> pd.DataFrame:
    return rows[rows["basis"].isin(["pq", "rq"]) & (rows["granularity"] == "pooled")]


def _largest(rows: pd.DataFrame) -> str:
    values = rows[["shapley_saturation", "shapley_length"]].abs().to_numpy(dtype=float)
    most = float(values.max())
    return f"{'0' if most == 0 else f'{most:.2g}'} over {plural(len(rows), 'row')}"


def _granularity(study: Study, primary: pd.DataFrame) -> Claim:
    statement = "token representations gain more from full BM25 than pooled ones"
    theirs = primary.groupby("granularity")["gain"].mean()
    ours = study.reported.groupby("granularity")["gain"].mean()
    published_text = _granularities(theirs)
    if not {"pooled", "token"} <= set(ours.index):
        return untold(
            "representations", statement, published_text, "the rows have one granularity only"
        )
    return held(
        "representations",
        statement,
        published_text,
        _granularities(ours),
        agrees=bool(ours["token"] > ours["pooled"]),
    )


def _granularities(means: pd.Series) -> str:
    return f"mean gain {signed(means['token'])} (token) and {signed(means['pooled'])} (pooled)"


def budget_shares(study: Study) -> pd.DataFrame:
    """Share of the gain per switch at every budget, the other settings as reported.

    Returns:
        Columns budget, collections, rows, gain, and per switch SWITCH, SWITCH_low, SWITCH_high; a
        line per budget, from small to large, `native` last. Only the collections of the reported
        rows count.
    """
    import pandas as pd

    swept = summaries.varied(study.rows, "budget", study.reported)
    swept = swept[swept["collection"].isin(study.reported["collection"])]
    swept = swept[swept["representation"].isin(study.reported["representation"])]
    lines = []
    for budget in sorted(set(swept["budget"]), key=_size):
        rows = swept[swept["budget"] == budget]
        line = {
            "budget": budget,
            "collections": rows["collection"].nunique(),
            "rows": len(rows),
            "gain": float(rows["gain"].sum()),
        }
        for switch, share in attribution.shares(rows).iterrows():
            line |= {
                str(switch): share["share"],
                f"{switch}_low": share["low"],
                f"{switch}_high": share["high"],
            }
        lines.append(line)
    return pd.DataFrame(lines)


def _budgets(study: Study) -> list[Claim]:
    printed = published.shares().rename(index={"native_3": "native", "primary_140": "32/128"})
    printed = printed.loc[["16/64", "32/128", "64/256", "native"]]
    ours = budget_shares(study)
    claims = []
    for statement, switch, direction in (
        ("the share of IDF falls as more weights are kept", "idf", -1),
        ("the share of length grows as more weights are kept", "length", 1),
    ):
        text = _series(dict(zip(printed.index, printed[switch], strict=True)))
        if len(ours) < 2:
            claims.append(untold("settings", statement, text, "the study has one budget only"))
        elif (ours["gain"] <= 0).any():
            claims.append(
                untold(
                    "settings", statement, text, "the summed gain is not positive at each budget"
                )
            )
        else:
            change = float(ours[switch].iloc[-1] - ours[switch].iloc[0])
            here = _series(dict(zip(ours["budget"], ours[switch], strict=True)))
            claims.append(held("settings", statement, text, here, agrees=change * direction > 0))
    return claims


def _series(values: dict[str, float]) -> str:
    return joined([f"{percent(value)} at {budget}" for budget, value in values.items()])


def _size(budget: str) -> float:
    return math.inf if budget == "native" else float(budget.rsplit("/", maxsplit=1)[-1])


def _uniform_control(study: Study) -> Claim:
    statement = (
        "IDF brings exactly 0 where every live feature has the same document frequency, since it"
        " scales every score alike"
    )
    text = "0 by construction; the shipped rows hold no controls"
    rows = study.rows[study.rows["control"] == "uniform_df"]
    if len(rows) == 0:
        return untold("settings", statement, text, "the study has no rows of that control")
    most = float(rows["shapley_idf"].abs().max())
    here = f"largest |φ| {'0' if most == 0 else f'{most:.2g}'} over {plural(len(rows), 'row')}"
    return held("settings", statement, text, here, agrees=most == 0)


def _overall(study: Study) -> tuple[summaries.Share, ...]:
    groups = summaries.share_groups(study.shares)
    return next(group.shares for group in groups if group.scope == "all")


def _gains(rows: pd.DataFrame) -> bool:
    return float(rows["gain"].sum()) > 0


_NO_GAIN = "the summed gain is not positive, so its shares mean little"


def _listed(values: dict[str, float]) -> str:
    return joined([f"{_NAMES[switch]} {percent(value)}" for switch, value in values.items()])
