"""The answer of the study of learned sparse vectors in sentences: the numbers choose the words."""

from __future__ import annotations

import pandas as pd

from whencount.reports.learned_style import LearnedTables, model_of
from whencount.wording import joined, number, plural, signed


def sentences(tables: LearnedTables) -> list[str]:
    """What was run, what FLOPS did, and what BM25 does to each model."""
    rows, costs = tables.rows, tables.costs
    models = list(dict.fromkeys(map(model_of, rows["representation"])))
    run = (
        f"{plural(len(models), 'model')} ({joined(models)}) on"
        f" {plural(rows['collection'].nunique(), 'collection')}."
    )
    return [run, *_equal(costs[costs["cut"] == "equal"]), *(_quality(rows, one) for one in models)]


def _equal(costs: pd.DataFrame) -> list[str]:
    found = []
    for model, mine in costs.groupby("model", sort=False):
        less = mine["posting_work_ratio"] < 1
        wider = mine["support_ratio"] > 1
        found.append(
            f"Cut to as many weights as the baseline, {model} works"
            f" {number(float(mine['posting_work_ratio'].mean()))} times as much per query, and its"
            f" effective support is {number(float(mine['support_ratio'].mean()))} times as large"
            f" (means over {plural(len(mine), 'collection')}). Less work and a larger support"
            f" together: on {int((less & wider).sum())} of {len(mine)}."
        )
    return found


def _quality(rows: pd.DataFrame, model: str) -> str:
    mine = rows[rows["representation"].map(model_of) == model]
    difference = mine["q111"] - mine["q000"]
    return (
        f"{model}: inner product {number(float(mine['q000'].mean()))}, BM25 on the same vectors"
        f" {number(float(mine['q111'].mean()))} ({signed(float(difference.mean()))}; above it in"
        f" {int((difference > 0).sum())} of {plural(len(mine), 'row')})."
    )
