"""What the tables of costs say, in numbers: who costs what, who is best at its cost."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from whencount.prediction.scores import spearman

if TYPE_CHECKING:
    import pandas as pd

SCORERS = {"q000": "inner product", "q111": "full BM25"}
"""The two scorers that figures and fronts show, columns of the costs and their names."""

ONE_SCORER = ("dense", "late_interaction")
"""Kinds of representations without postings, which know one score only."""

COSTS = ("posting_work", "index_bytes")
KEYS = ["representation", "collection", "budget"]
_FEWEST = 3


@dataclass(frozen=True)
class Point:
    """One representation under one scorer, on one collection.

    Attributes:
        representation, budget, kind: which.
        scorer: a column of SCORERS; `` where the representation knows one scorer only.
        quality: nDCG@10.
        cost: posting work or bytes.
    """

    representation: str
    budget: str
    kind: str
    scorer: str
    quality: float
    cost: float


@dataclass(frozen=True)
class CollectionCosts:
    """One collection.

    Attributes:
        collection: its name.
        rows: of the table of costs.
        fronts: by cost, the points that no other beats in both quality and cost, cheapest first.
        best: the point of the highest quality (among equals the cheapest).
        work_against_time: Spearman correlation of posting work and median query time over sparse
            representations; None with fewer than three, or where either is constant.
    """

    collection: str
    rows: int
    fronts: dict[str, list[Point]]
    best: Point
    work_against_time: float | None


@dataclass(frozen=True)
class CostsAnswer:
    """All collections of a study, in order.

    Attributes:
        collections: one each.
        representations: how many there are, budgets apart.
        bytes_per_posting: the index's bytes over its postings, least, median and largest over the
            sparse rows; None where there is none.
    """

    collections: list[CollectionCosts]
    representations: int
    bytes_per_posting: tuple[float, float, float] | None


def answer(costs: pd.DataFrame, times: pd.DataFrame) -> CostsAnswer:
    """Sum the tables `economics.parquet` and `times.parquet` up."""
    found = []
    for name in dict.fromkeys(costs["collection"]):
        mine = costs[costs["collection"] == name]
        fronts = {cost: pareto_front(points(mine, cost)) for cost in COSTS}
        best = max(points(mine, "posting_work"), key=lambda one: (one.quality, -one.cost))
        found.append(CollectionCosts(str(name), len(mine), fronts, best, _agreement(mine, times)))
    sparse = costs[~costs["kind"].isin(ONE_SCORER)]
    each = None
    if len(sparse):
        ratio = sparse["index_bytes"] / (sparse["payload_bytes"] / 8).clip(lower=1)
        each = float(ratio.min()), float(ratio.median()), float(ratio.max())
    return CostsAnswer(found, int(costs["representation"].nunique()), each)


def points(rows: pd.DataFrame, cost: str) -> list[Point]:
    """Every row of a collection under each scorer; those of ONE_SCORER know only their own."""
    found = []
    for row in rows.to_dict("records"):
        scorers = {"": row["q000"]} if row["kind"] in ONE_SCORER else {s: row[s] for s in SCORERS}
        found += [
            Point(
                row["representation"],
                row["budget"],
                row["kind"],
                scorer,
                float(quality),
                float(row[cost]),
            )
            for scorer, quality in scorers.items()
        ]
    return found


def pareto_front(candidates: Iterable[Point]) -> list[Point]:
    """The points that none equals at lower cost or beats at equal cost, cheapest first."""
    front: list[Point] = []
    for one in sorted(candidates, key=lambda point: (point.cost, -point.quality)):
        if not front or one.quality > front[-1].quality:
            front.append(one)
    return front


def _agreement(rows: pd.DataFrame, times: pd.DataFrame) -> float | None:
    joined = rows[~rows["kind"].isin(ONE_SCORER)].merge(times, on=KEYS)
    if len(joined) < _FEWEST:
        return None
    found = spearman(joined["posting_work"], joined["full_median_ms"])
    return None if math.isnan(found) else found
