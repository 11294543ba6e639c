"""Paired comparisons of scorers: seeds averaged, queries resampled, Holm's correction."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whencount.errors import InputError
from whencount.significance import FEWEST_QUERIES, holm, resamples

if TYPE_CHECKING:
    import pandas as pd

_LEVEL = 0.95
# Draws that reach the border up to rounding count, as in `whencount.significance`.
_BORDER = 1e-9

COMPARISONS = {
    "bm25_over_inner_untuned": (("bm25", "untuned"), ("inner", "untuned")),
    "bm25_over_inner_tuned": (("bm25", "tuned"), ("inner", "tuned")),
    "tuned_over_untuned_bm25": (("bm25", "tuned"), ("bm25", "untuned")),
    "tuned_over_untuned_inner": (("inner", "tuned"), ("inner", "untuned")),
    "untuned_over_words": (("bm25", "untuned"), ("words", "untuned")),
    "tuned_over_words": (("bm25", "tuned"), ("words", "untuned")),
}
"""Name to the two (scorer, setting) whose difference it is; each name is a family of Holm's."""


@dataclass(frozen=True)
class Paired:
    """A mean difference over queries.

    Attributes:
        mean: of the first less the second.
        low, high: 95 % percentile interval of a paired bootstrap over queries.
        p: two-sided, centred at the mean: `(1 + #{|m* - m| >= |m|}) / (draws + 1)`.
        queries: how many.
    """

    mean: float
    low: float
    high: float
    p: float
    queries: int

    @property
    def sign(self) -> int:
        """1 or -1 where the interval lies wholly on that side of 0, else 0."""
        return int(self.low > 0) - int(self.high < 0)


def paired(differences: ArrayLike, *, collection: str, draws: int, seed: int) -> Paired:
    """Mean, interval and p of per-query differences, shape (queries,).

    With fewer than FEWEST_QUERIES queries the interval is NaN and p is 1: nothing is told.
    Draws are those of `whencount.significance.resamples`, so rows of a collection share them.

    Raises:
        InputError: there is no query, or a difference is not finite.
    """
    values = np.asarray(differences, dtype=np.float64)
    if len(values) == 0 or not np.isfinite(values).all():
        raise InputError(
            f"collection {collection!r}: differences of {len(values)} queries, all must be finite"
            " and there must be one; compute the rows again from one set of qrels"
        )
    mean = float(values.mean())
    if len(values) < FEWEST_QUERIES:
        return Paired(mean, math.nan, math.nan, 1.0, len(values))
    drawn = drawn_means(values, collection=collection, draws=draws, seed=seed)
    low, high = interval(drawn)
    extreme = int((np.abs(drawn - mean) >= abs(mean) * (1 - _BORDER)).sum())
    return Paired(mean, low, high, (1 + extreme) / (draws + 1), len(values))


def drawn_means(
    values: NDArray[np.float64], *, collection: str, draws: int, seed: int
) -> NDArray[np.float64]:
    """Means of `values` over resampled queries, float64, shape (draws,)."""
    blocks = resamples(len(values), draws, collection=collection, seed=seed)
    return np.concatenate([block @ values for block in blocks]) / len(values)


def interval(drawn: NDArray[np.float64]) -> tuple[float, float]:
    """The 95 % percentile interval."""
    tail = 100 * (1 - _LEVEL) / 2
    low, high = np.percentile(drawn, [tail, 100 - tail])
    return float(low), float(high)


def comparisons(tuned: pd.DataFrame, words: pd.DataFrame, *, draws: int, seed: int) -> pd.DataFrame:
    """Every comparison of COMPARISONS on the test queries of every representation and collection.

    Args:
        tuned: tuned.parquet; the seeds of a representation are averaged query by query.
        words: columns collection, query_id, ndcg_10 of BM25 on the words of the text.
        draws: of the bootstrap.
        seed: of the study.

    Returns:
        One line each: representation, collection, comparison, seeds, queries, first, second (mean
        nDCG@10), difference, low, high, p, holm_p (within the comparison, over representations
        and collections), seed_sd (population standard deviation of the difference over seeds).

    Raises:
        InputError: a query of the text's BM25 is missing.
    """
    import pandas as pd

    test = tuned[tuned["part"] == "test"]
    lines: list[dict[str, Any]] = []
    for (representation, collection), mine in test.groupby(
        ["representation", "collection"], sort=True
    ):
        table = mine.pivot_table(
            index="query_id", columns=["scorer", "setting", "seed"], values="ndcg_10"
        ).sort_index()
        seeds = sorted(mine["seed"].unique())
        own = words[words["collection"] == collection].set_index("query_id")["ndcg_10"]
        missing = table.index.difference(own.index)
        if len(missing):
            raise InputError(
                f"text BM25 has no quality for query {missing[0]!r} of {collection!r}; run the"
                " study again"
            )
        for name, (first, second) in COMPARISONS.items():
            one = _by_seed(table, own, first, len(seeds))
            two = _by_seed(table, own, second, len(seeds))
            found = paired(
                (one - two).mean(axis=1), collection=str(collection), draws=draws, seed=seed
            )
            lines.append(
                {
                    "representation": representation,
                    "collection": collection,
                    "comparison": name,
                    "seeds": len(seeds),
                    "queries": found.queries,
                    "first": float(one.mean()),
                    "second": float(two.mean()),
                    "difference": found.mean,
                    "low": found.low,
                    "high": found.high,
                    "p": found.p,
                    "seed_sd": float((one - two).mean(axis=0).std()),
                }
            )
    result = pd.DataFrame(lines)
    result.insert(len(result.columns) - 1, "holm_p", np.nan)
    for _, group in result.groupby("comparison", sort=False):
        result.loc[group.index, "holm_p"] = holm(group["p"])
    return result


def _by_seed(
    table: pd.DataFrame, words: pd.Series, which: tuple[str, str], seeds: int
) -> NDArray[np.float64]:
    """Qualities, shape (queries, seeds)."""
    if which[0] == "words":
        own = words.loc[table.index].to_numpy(dtype=np.float64)
        return np.repeat(own[:, None], seeds, axis=1)
    return table[which].to_numpy(dtype=np.float64)
