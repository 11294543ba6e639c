"""Tables over all collections and dense arms: rules against dense-first, and what to decide."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from whencount.significance import FEWEST_QUERIES, holm, resamples

KEYS = ("dense_arm", "collection")
CONSTANT = (
    "dense_first",
    "lexical_first",
    "reciprocal_rank",
    "min_max",
    "square_root",
    "joint_density",
    "joint_density_foreign",
)
"""Rules that order every query alike; the oracle takes the best of them query by query."""
BASE = "dense_first"


def rules_table(per_query: pd.DataFrame, draws: int, seed: int) -> pd.DataFrame:
    """Each rule's mean nDCG@10 and its paired difference from dense-first.

    p as in `whencount.significance` (two-sided, centred), corrected by Holm over all lines but
    those of dense-first and of the oracle, which needs labels.

    Returns:
        A line per dense arm, collection and rule: `queries`, `ndcg_10`, `difference`, `low`, `high`
        (95 % percentile interval), `p`, `holm` (NaN where not tested), `wins`, `ties`, `losses`.
    """
    lines = []
    for (arm, collection), qualities in _tables(per_query):
        base = qualities[BASE].to_numpy()
        everything = qualities.assign(oracle=_oracle(qualities))
        for rule in everything:
            apart = everything[rule].to_numpy() - base
            found = _bootstrap(apart, draws, f"{arm} {collection}", seed)
            tested = rule not in (BASE, "oracle")
            lines.append(
                {
                    "dense_arm": arm,
                    "collection": collection,
                    "rule": rule,
                    "queries": len(apart),
                    "ndcg_10": float(everything[rule].mean()),
                    "difference": float(apart.mean()),
                    "low": found[0],
                    "high": found[1],
                    "p": found[2] if tested else np.nan,
                    "wins": int((apart > 1e-12).sum()),
                    "ties": int((np.abs(apart) <= 1e-12).sum()),
                    "losses": int((apart < -1e-12).sum()),
                }
            )
    table = pd.DataFrame(lines)
    p = table["p"].to_numpy(dtype=np.float64)
    corrected = np.full(len(p), np.nan)
    if not np.isnan(p).all():
        corrected[~np.isnan(p)] = holm(p[~np.isnan(p)])
    return table.assign(holm=corrected)


def decisions_table(per_query: pd.DataFrame) -> pd.DataFrame:
    """To fuse or not to fuse, without labels: each arm's top ten judges for the other.

    By the lexical top ten as labels fusion gains what the lexical arm knows; by the dense top ten
    it loses what the dense arm knew. Where the sum of both differences is above 0, fuse (RRF).

    Returns:
        A line per dense arm, collection and policy (`always_dense`, `always_fused`, `per_query`,
        `per_collection`, `oracle` of the two per query): `ndcg_10`, `fused` (share of queries),
        `right` (share of the queries on which the two differ where the better one was taken).
    """
    lines = []
    keys = list(KEYS)
    for (arm, collection), mine in per_query.groupby(keys, sort=True):
        dense, fused = (
            mine[mine["rule"] == rule].set_index("query_id") for rule in (BASE, "reciprocal_rank")
        )
        estimate = sum(
            fused[column] - dense[column] for column in ("against_lexical", "against_dense")
        )
        apart = (fused["ndcg_10"] - dense["ndcg_10"]).to_numpy()
        wanted = np.asarray(estimate, dtype=np.float64)
        policies = {
            "always_dense": np.zeros(len(apart), dtype=bool),
            "always_fused": np.ones(len(apart), dtype=bool),
            "per_query": wanted > 0,
            "per_collection": np.full(len(apart), wanted.mean() > 0),
            "oracle": apart > 0,
        }
        differ = np.abs(apart) > 1e-12
        for policy, chosen in policies.items():
            right = (chosen == (apart > 0))[differ]
            lines.append(
                {
                    "dense_arm": arm,
                    "collection": collection,
                    "policy": policy,
                    "ndcg_10": float((dense["ndcg_10"].to_numpy() + chosen * apart).mean()),
                    "fused": float(chosen.mean()),
                    "right": float(right.mean()) if len(right) else np.nan,
                }
            )
    return pd.DataFrame(lines)


def gathered(jobs: Mapping[tuple[str, str], Mapping[str, pd.DataFrame]]) -> dict[str, pd.DataFrame]:
    """The tables of all jobs, (dense arm, collection) in front of every line."""
    kinds = next(iter(jobs.values()))
    return {
        kind: pd.concat(
            [
                tables[kind].assign(dense_arm=arm, collection=collection)[
                    [*KEYS, *tables[kind].columns]
                ]
                for (arm, collection), tables in jobs.items()
            ],
            ignore_index=True,
        )
        for kind in kinds
    }


def _tables(per_query: pd.DataFrame) -> Iterator[tuple[tuple[str, str], pd.DataFrame]]:
    for (arm, collection), mine in per_query.groupby(list(KEYS), sort=True):
        order = list(dict.fromkeys(mine["rule"]))
        wide = mine.pivot(index="query_id", columns="rule", values="ndcg_10")
        yield (str(arm), str(collection)), wide[order]


def _oracle(qualities: pd.DataFrame) -> pd.Series:
    return qualities[[rule for rule in CONSTANT if rule in qualities]].max(axis=1)


def _bootstrap(
    apart: NDArray[np.float64], draws: int, name: str, seed: int
) -> tuple[float, float, float]:
    """95 % percentile interval of the mean, and its p; NaN with fewer than five queries."""
    if len(apart) < FEWEST_QUERIES:
        return np.nan, np.nan, np.nan
    blocks = resamples(len(apart), draws, collection=name, seed=seed)
    means = np.concatenate([block @ apart for block in blocks]) / len(apart)
    low, high = np.percentile(means, [2.5, 97.5])
    reached = np.abs(means - apart.mean()) >= abs(apart.mean()) - 1e-12
    return float(low), float(high), float((1 + reached.sum()) / (draws + 1))
