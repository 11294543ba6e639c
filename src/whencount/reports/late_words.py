"""The answer of the study of late interaction in sentences: the numbers choose the words."""

from __future__ import annotations

import pandas as pd

from whencount.reports.late_style import ARM_NAMES, LateTables, arm_name
from whencount.wording import number, percent, plural, signed


def sentences(tables: LateTables) -> list[str]:
    """What was run, each ablation, the codes, their bound, and the funnel."""
    rows = tables.rows
    wide = rows.pivot_table(index="collection", columns="arm", values="ndcg_10")
    asked = int(rows.groupby("collection")["queries"].first().sum())
    mean = number(float(wide["maxsim"].mean()))
    run = f"{plural(len(wide), 'collection')}, {asked:,} queries; mean nDCG@10 of MaxSim {mean}."
    arms = [one for one in ARM_NAMES if one in wide and one != "maxsim"]
    return [
        run,
        *[_arm(wide, one) for one in arms],
        _bound(tables.codes),
        *_funnel(tables.funnel),
    ]


def _arm(wide: pd.DataFrame, arm: str) -> str:
    off = wide[arm] - wide["maxsim"]
    name = arm_name(arm)
    return (
        f"{name[0].upper()}{name[1:]}: {number(float(wide[arm].mean()))}"
        f" ({signed(float(off.mean()))}), below MaxSim on {int((off < 0).sum())} of"
        f" {plural(len(off), 'collection')}."
    )


def _bound(codes: pd.DataFrame) -> str:
    decided = float(codes["decided"].sum()) / max(1, int(codes["pairs"].sum()))
    turned = float(codes["inversions"].sum()) / max(1, int(codes["pairs"].sum()))
    return (
        f"The bound on compressed scores was held against {int(codes['scores'].sum()):,} scores:"
        f" {int(codes['broken'].sum()):,} broke it. It promises the order of"
        f" {percent(decided, 2)} of {int(codes['pairs'].sum()):,} pairs of documents;"
        f" {int(codes['reversed'].sum()):,} of those do not stand so. Promised or not,"
        f" {percent(turned, 2)} of the pairs turn round."
    )


def _funnel(funnel: pd.DataFrame) -> list[str]:
    found = []
    for bits, mine in funnel[funnel["cutoff"] == 10].groupby("bits"):
        share = mine.groupby("stage", sort=False)["share"].mean()
        steps = ", ".join(f"{name} {percent(float(value))}" for name, value in share.items())
        found.append(f"Of the exhaustive first ten, there are left at {bits} bits: {steps}.")
    return found
