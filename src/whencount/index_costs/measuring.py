"""One representation of one collection: what its index costs, how well it ranks, how fast."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from whencount.economics import Profile
from whencount.index_costs.sources import Searched, open_source
from whencount.measures import Judgements, mean_quality, ndcg
from whencount.naming import parse_budget
from whencount.progress import progress
from whencount.scoring import CONFIGURATIONS, Parameters

if TYPE_CHECKING:
    import pandas as pd

DEPTH = 10
"""Ranks that are searched and measured."""

RANKS_SHOWN = 120
"""Points of a profile that are kept, at ranks of about equal ratio."""

FULL = CONFIGURATIONS[-1:]
_QUERIES_AT_ONCE = 1024


def costs(
    documents: Sequence[Path],
    queries: Path,
    part: str,
    judgements: Judgements,
    keys: Mapping[str, Any],
    budgets: Sequence[str],
    parameters: Parameters,
    folder: Path,
    threads: int,
    exponent: float = 1.0,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Count, index and rank a representation at every budget; docs/tables.md has the columns.

    Documents are read a block at a time, and the index lies on disk while it is searched.

    Args:
        documents, queries, part, exponent: as `whencount.index_costs.sources.open_source`.
        judgements: of the collection.
        keys: columns that name the rows.
        budgets: `32/128` say, or `native`.
        parameters: k1 and b.
        folder: where an index may lie for a while.
        threads: of the search.

    Returns:
        A row per budget, and the profiles of each.
    """
    import pandas as pd

    rows, profiles = [], []
    for budget in budgets:
        source = open_source(documents, queries, part, parse_budget(budget), exponent)
        sides = source.profiles()
        named = {**keys, "budget": budget, "k1": parameters.k1, "b": parameters.b}
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            index = source.index(Path(scratch) / "index", parameters)
            row = named | source.costs(*sides).columns() | {"index_bytes": index.bytes}
            rows.append(row | _qualities(index, judgements, threads))
        for side, profile in zip(("documents", "queries"), sides, strict=True):
            place = {key: named[key] for key in ("representation", "collection", "budget")}
            profiles.append(profile_table(profile).assign(**place, side=side))
    leading = ["representation", "collection", "budget", "side"]
    shown = pd.concat(profiles, ignore_index=True)
    return pd.DataFrame(rows), shown[[*leading, *shown.columns.difference(leading, sort=False)]]


def _qualities(index: Searched, judgements: Judgements, threads: int) -> dict[str, float]:
    """nDCG@10 under every configuration."""
    per_query = np.full((len(CONFIGURATIONS), judgements.queries), np.nan)
    starts = range(0, judgements.queries, _QUERIES_AT_ONCE)
    positions = np.full((len(CONFIGURATIONS), judgements.queries, DEPTH), -1, dtype=np.int32)
    counts = np.zeros(positions.shape[:2], dtype=np.int32)
    for low in starts:
        high = min(low + _QUERIES_AT_ONCE, judgements.queries)
        found, lengths = index.rank(low, high, CONFIGURATIONS, DEPTH, threads)
        positions[:, low:high, : found.shape[-1]], counts[:, low:high] = found, lengths
    per_query = ndcg(positions, counts, judgements, DEPTH)
    means = mean_quality(per_query, judgements)
    return {f"q{one}": float(mean) for one, mean in zip(CONFIGURATIONS, means, strict=True)}


def profile_table(profile: Profile) -> pd.DataFrame:
    """Shares and mean weights by falling rank, at no more than RANKS_SHOWN ranks.

    Returns:
        `rank` (int64, from 1), `share` (float64: of vectors that have the feature of that rank),
        `weight` (float64: mean weight of the feature that is at that rank by weight).
    """
    import pandas as pd

    live = int(np.count_nonzero(profile.counts))
    ranks = shown_ranks(live)
    share, weight = (
        -np.sort(-values)[ranks - 1] for values in (profile.activation, profile.weights)
    )
    return pd.DataFrame({"rank": ranks, "share": share, "weight": weight})


def shown_ranks(live: int) -> NDArray[np.int64]:
    """Ranks from 1 to `live` of about equal ratio, each once."""
    if not live:
        return np.empty(0, dtype=np.int64)
    return np.unique(np.rint(np.geomspace(1, live, RANKS_SHOWN)).astype(np.int64))


def times(
    documents: Sequence[Path],
    queries: Path,
    part: str,
    count: int,
    keys: Mapping[str, Any],
    budgets: Sequence[str],
    parameters: Parameters,
    folder: Path,
    *,
    sample: int,
    rounds: int,
    threads: int,
    exponent: float = 1.0,
) -> pd.DataFrame:
    """Time queries one by one, under the full configuration alone and under all eight at once.

    Every query is asked once to warm up, then once in every round; a query's time is the median
    over its rounds. The index is memory-mapped and has been read whole before.

    Args:
        documents, queries, part, budgets, parameters, folder, exponent: as `costs`.
        count: how many queries there are.
        keys: columns that name the rows.
        sample: time no more than so many, evenly spread.
        rounds: at least 1.
        threads: of the search.

    Returns:
        A row per budget: `timed_queries`, `rounds`, `threads`, and milliseconds.
    """
    import pandas as pd

    rows = []
    for budget in budgets:
        source = open_source(documents, queries, part, parse_budget(budget), exponent)
        chosen = np.unique(np.linspace(0, count - 1, min(sample, count)).round().astype(np.int64))
        row: dict[str, Any] = {**keys, "budget": budget}
        row |= {"timed_queries": len(chosen), "rounds": rounds, "threads": threads}
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            index = source.index(Path(scratch) / "index", parameters)
            for name, configurations in (("full", FULL), ("eight", CONFIGURATIONS)):
                if name == "eight" and source.one_scorer:
                    row |= {"eight_median_ms": np.nan, "eight_p95_ms": np.nan}
                    continue
                spent = np.empty((rounds + 1, len(chosen)))
                what = f"timing {keys['representation']} at {budget}"
                for turn in progress(range(rounds + 1), rounds + 1, what, "round"):
                    for place, query in enumerate(chosen.tolist()):
                        start = time.perf_counter()
                        index.rank(query, query + 1, configurations, DEPTH, threads)
                        spent[turn, place] = time.perf_counter() - start
                each = np.median(spent[1:], axis=0) * 1000
                row[f"{name}_median_ms"] = float(np.median(each))
                row[f"{name}_p95_ms"] = float(np.quantile(each, 0.95))
        rows.append(row)
    return pd.DataFrame(rows)
