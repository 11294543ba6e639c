"""The reversal: BM25 against the inner product, on latent terms and on SPLADE-like vectors.

Published (the study, section 12): on latent terms BM25 reaches .582 and the inner product .381; on
SPLADE-v3, which was trained for the inner product, BM25 .455 and the inner product .568.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from whencount.errors import InputError
from whencount.latent_terms.comparing import drawn_means, interval, paired
from whencount.naming import parse_budget
from whencount.significance import FEWEST_QUERIES

if TYPE_CHECKING:
    import pandas as pd

SIDES = {"latent": 1, "learned_sparse": -1}
"""Latent terms and SPLADE-like vectors, and the published sign of BM25 less inner product."""
PUBLISHED = {"latent": (0.381, 0.582), "learned_sparse": (0.568, 0.455)}
"""Mean nDCG@10 of the inner product and of BM25 in the published study."""
VERDICTS = ("held", "partly", "refuted", "cannot be decided here")
ALL = "all"

_NEEDED = ("representation", "collection", "query_id", "q000", "q111")


def reversal(sides: Mapping[str, pd.DataFrame | None], *, draws: int, seed: int) -> pd.DataFrame:
    """The difference BM25 less inner product, per representation and collection and over all.

    Seeds of a representation are averaged query by query. Over all: the mean over the
    representations of a collection query by query, then the mean over collections, whose queries
    are resampled apart.

    Args:
        sides: by the names of SIDES, per-query qualities with the columns representation,
            collection, query_id, q000, q111 (several lines of one query are seeds); None where a
            study has none.
        draws: of the paired bootstrap over queries.
        seed: of the study.

    Returns:
        One line per side, representation and collection, then one of each side with
        representation and collection `all`: side, representation, collection, seeds, queries,
        inner, bm25, difference, low, high, p (NaN over all), published_inner, published_bm25,
        outcome (`as published`, `opposite` or `open`, by whether the interval excludes 0),
        verdict (the same on every line).

    Raises:
        InputError: a table lacks a column.
    """
    import pandas as pd

    lines: list[dict[str, Any]] = []
    for side, table in sides.items():
        if table is not None and len(table):
            missing = [column for column in _NEEDED if column not in table.columns]
            if missing:
                raise InputError(
                    f"the qualities per query of {side} lack the column {missing[0]!r}; run the"
                    " study again"
                )
            lines += _side(side, table, draws, seed)
    if not lines:
        raise InputError("there is no quality to compare; run the study of latent terms first")
    result = pd.DataFrame(lines)
    overall = result[result["collection"] == ALL].set_index("side")["outcome"].to_dict()
    return result.assign(verdict=verdict(overall.get("latent"), overall.get("learned_sparse")))


def learned_side(learned: pd.DataFrame, latent: pd.DataFrame) -> pd.DataFrame:
    """The lines of SPLADE-like vectors that stand beside those of latent terms.

    Those without a control, at the k1 and b of the latent terms, on their collections, at the
    budget `native` where there is one, else at the largest.

    Args:
        learned, latent: qualities per query with the columns collection, budget, k1, b, control.

    Raises:
        InputError: there is no such line.
    """
    k1, b = float(latent["k1"].iloc[0]), float(latent["b"].iloc[0])
    chosen = learned[
        (learned["control"] == "")
        & (learned["k1"] == k1)
        & (learned["b"] == b)
        & learned["collection"].isin(latent["collection"].unique())
    ]
    if len(chosen) == 0:
        raise InputError(
            f"no SPLADE-like vectors were scored at k1 {k1:g} and b {b:g} on a collection of the"
            " latent terms; give learned_sparse and latent_terms the same k1, b and collections"
        )

    def size(budget: str) -> float:
        document = parse_budget(budget)[1]
        return math.inf if document is None else document

    largest = max(chosen["budget"].unique(), key=size)
    kept: pd.DataFrame = chosen[chosen["budget"] == largest]
    return kept


def verdict(latent: str | None, learned: str | None) -> str:
    """Whether the reversal held, from the outcome of each side; None is a side without vectors.

    Held: both as published. Partly: one is. Refuted: none is, and one is the opposite. It cannot be
    decided where a side is missing or neither interval excludes 0.
    """
    outcomes = [latent, learned]
    if None in outcomes or outcomes == ["open", "open"]:
        return "cannot be decided here"
    agreeing = outcomes.count("as published")
    return ("refuted", "partly", "held")[agreeing]


def _side(side: str, table: pd.DataFrame, draws: int, seed: int) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = []
    means: list[NDArray[np.float64]] = []
    drawn: list[NDArray[np.float64]] = []
    for collection, here in table.groupby("collection", sort=True):
        pairs = []
        for representation, mine in here.groupby("representation", sort=True):
            grouped = mine.groupby("query_id", sort=True)[["q000", "q111"]]
            quality = grouped.mean().to_numpy(dtype=np.float64)
            pairs.append(quality)
            found = paired(
                quality[:, 1] - quality[:, 0], collection=str(collection), draws=draws, seed=seed
            )
            names = {"representation": str(representation), "collection": str(collection)}
            lines.append(
                _line(
                    side, names, int(grouped.size().max()), found.queries, quality.mean(axis=0),
                    (found.low, found.high), found.p,
                )
            )  # fmt: skip
        if len({len(one) for one in pairs}) != 1:
            raise InputError(
                f"the representations of {side} on {collection!r} have different queries; compute"
                " their rows again from one set of qrels"
            )
        mean = np.mean(pairs, axis=0)
        means.append(mean.mean(axis=0))
        drawn.append(
            drawn_means(mean[:, 1] - mean[:, 0], collection=str(collection), draws=draws, seed=seed)
            if len(mean) >= FEWEST_QUERIES
            else np.full(draws, np.nan)
        )
    together = np.mean(drawn, axis=0)
    bounds = (math.nan, math.nan) if np.isnan(together).any() else interval(together)
    names = {"representation": ALL, "collection": ALL}
    seeds = max(line["seeds"] for line in lines)
    queries = int(table.groupby("collection")["query_id"].nunique().sum())
    total = _line(side, names, seeds, queries, np.mean(means, axis=0), bounds, math.nan)
    return [*lines, total]


def _line(
    side: str,
    names: Mapping[str, str],
    seeds: int,
    queries: int,
    quality: NDArray[np.float64],
    bounds: tuple[float, float],
    p: float,
) -> dict[str, Any]:
    low, high = bounds
    sign = int(low > 0) - int(high < 0)
    outcome = "open" if sign == 0 else "as published" if sign == SIDES[side] else "opposite"
    inner, bm25 = map(float, quality)
    return {
        "side": side,
        **names,
        "seeds": seeds,
        "queries": queries,
        "inner": inner,
        "bm25": bm25,
        "difference": bm25 - inner,
        "low": low,
        "high": high,
        "p": p,
        "published_inner": PUBLISHED[side][0],
        "published_bm25": PUBLISHED[side][1],
        "outcome": outcome,
    }
