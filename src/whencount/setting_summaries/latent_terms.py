"""The answer of the study of latent terms in numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from whencount import summaries
from whencount.attribution import QUALITY_COLUMNS
from whencount.scoring import SWITCHES
from whencount.summaries import Signs

if TYPE_CHECKING:
    import pandas as pd

ALPHA = 0.05
KEPT = 0.99
"""Pruning is asked how far it goes while BM25 keeps this share of its quality."""

_PAIR = ["representation", "collection"]


@dataclass(frozen=True)
class Compared:
    """One comparison over all representations and collections.

    Attributes:
        differences: of the test queries.
        above, below: how many have a Holm p of at most ALPHA and lie on that side of 0.
        first, second: mean nDCG@10 of the two.
    """

    differences: Signs
    above: int
    below: int
    first: float
    second: float


@dataclass(frozen=True)
class Pruned:
    """How far saturated features can be dropped.

    Attributes:
        threshold: the smallest df / N at which BM25 keeps KEPT of its mean quality; 1 is none.
        features: share of the features left.
        work: share of the posting work left.
    """

    threshold: float
    features: float
    work: float


@dataclass(frozen=True)
class LatentAnswer:
    """What came out of a study of latent terms.

    Attributes:
        representations, collections, seeds: what there is.
        inner, bm25: mean nDCG@10 over representations and collections, untuned, all queries.
        best: the configuration with the best mean, and that mean.
        switches: Shapley values, by switch.
        compared: by the names of `latent_terms.comparing.COMPARISONS`.
        recall: (collection, scorer) to recall at its rank; untuned, all queries, mean over models.
        cutoff: that rank.
        pruned: by collection.
        slopes: (collection, `latent` or `words`) to the Zipf slope, mean over models and seeds.
        seed_sd: mean over rows of the population deviation of BM25's quality over seeds.
    """

    representations: tuple[str, ...]
    collections: tuple[str, ...]
    seeds: int
    inner: float
    bm25: float
    best: tuple[str, float]
    switches: dict[str, Signs]
    compared: dict[str, Compared]
    recall: dict[tuple[str, str], float]
    cutoff: int
    pruned: dict[str, Pruned]
    slopes: dict[tuple[str, str], float]
    seed_sd: float


def over_seeds(rows: pd.DataFrame) -> pd.DataFrame:
    """Means over seeds of the eight qualities and Shapley values, with `sd_q...` beside.

    Args:
        rows: rows.parquet of latent terms.

    Returns:
        One line per representation and collection.
    """
    values = [*QUALITY_COLUMNS, "gain", *(f"shapley_{switch}" for switch in SWITCHES)]
    grouped = rows.groupby(_PAIR, sort=True)
    mean = grouped[values].mean()
    spread = grouped[list(QUALITY_COLUMNS)].std(ddof=0).add_prefix("sd_")
    return mean.join(spread).assign(seeds=grouped["seed"].nunique()).reset_index()


def latent_answer(
    rows: pd.DataFrame,
    comparisons: pd.DataFrame,
    recall: pd.DataFrame,
    reference_recall: pd.DataFrame,
    pruning: pd.DataFrame,
    frequencies: pd.DataFrame,
    reference_frequencies: pd.DataFrame,
) -> LatentAnswer:
    """Sum up the tables of a study of latent terms (docs/tables.md has their columns)."""
    means = over_seeds(rows)
    quality = means[list(QUALITY_COLUMNS)].mean()
    best = str(quality.idxmax())
    found, cutoff = _recall(recall, reference_recall)
    return LatentAnswer(
        representations=tuple(sorted(means["representation"].unique())),
        collections=tuple(sorted(means["collection"].unique())),
        seeds=int(means["seeds"].max()),
        inner=float(quality["q000"]),
        bm25=float(quality["q111"]),
        best=(best[1:], float(quality[best])),
        switches={one: summaries.signs(means[f"shapley_{one}"]) for one in SWITCHES},
        compared={str(name): _compared(part) for name, part in comparisons.groupby("comparison")},
        recall=found,
        cutoff=cutoff,
        pruned=_pruned(pruning),
        slopes=_slopes(frequencies, reference_frequencies),
        seed_sd=float(means["sd_q111"].mean()),
    )


def _compared(lines: pd.DataFrame) -> Compared:
    told = lines["holm_p"] <= ALPHA
    return Compared(
        summaries.signs(lines["difference"]),
        int((told & (lines["difference"] > 0)).sum()),
        int((told & (lines["difference"] < 0)).sum()),
        float(lines["first"].mean()),
        float(lines["second"].mean()),
    )


def _recall(
    recall: pd.DataFrame, reference_recall: pd.DataFrame
) -> tuple[dict[tuple[str, str], float], int]:
    import pandas as pd

    both = pd.concat(
        [table for table in (recall, reference_recall) if len(table)] or [recall],
        ignore_index=True,
    )
    both = both[(both["part"] == "all") & (both["setting"] == "untuned")]
    if len(both) == 0:
        return {}, 0
    # The deepest rank at which not everything is found tells the most.
    means = both.groupby(["cutoff", "collection", "scorer"])["recall"].mean()
    cutoffs = sorted(both["cutoff"].unique())
    telling = [one for one in cutoffs if means.loc[one].min() < 1] or cutoffs
    cutoff = 100 if 100 in telling else int(telling[-1])
    here = means.loc[cutoff]
    return {(str(one), str(two)): float(value) for (one, two), value in here.items()}, cutoff


def _pruned(pruning: pd.DataFrame) -> dict[str, Pruned]:
    found = {}
    columns = ["features", "posting_work", "bm25"]
    for collection, lines in pruning.groupby("collection", sort=True):
        means = lines.groupby("threshold")[columns].mean().sort_index()
        whole = means.iloc[-1]
        # Going down from the whole, until the first threshold that costs more.
        good = (means["bm25"] >= KEPT * whole["bm25"])[::-1].cummin()
        last = means.loc[good[good].index[-1]]
        work = last["posting_work"] / whole["posting_work"] if whole["posting_work"] else 1.0
        found[str(collection)] = Pruned(
            float(good[good].index[-1]), float(last["features"] / whole["features"]), float(work)
        )
    return found


def _slopes(latent: pd.DataFrame, words: pd.DataFrame) -> dict[tuple[str, str], float]:
    found = {}
    for kind, table in (("latent", latent), ("words", words)):
        for collection, value in table.groupby("collection")["zipf_slope"].mean().items():
            found[str(collection), kind] = float(value)
    return found
