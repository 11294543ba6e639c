"""The answer of the study of two arms in sentences: every word is chosen by the numbers."""

from __future__ import annotations

import pandas as pd

from whencount.reports.fusion_style import FusionTables, rule_name
from whencount.wording import joined, number, percent, plural, signed

_LEVEL = 0.05


def sentences(tables: FusionTables) -> list[str]:
    """The answer as plain text: the run, each rule, the decision without labels, the claims."""
    rules = tables.rules
    if rules.empty:
        return ["No query could be evaluated, so nothing can be told of any rule."]
    arms = sorted(rules["dense_arm"].unique())
    tasks = rules[["dense_arm", "collection"]].drop_duplicates()
    base = rules[rules["rule"] == "dense_first"]
    run = (
        f"{plural(rules['collection'].nunique(), 'collection')} under"
        f" {plural(len(arms), 'dense arm')} ({joined(arms)}): {plural(len(tasks), 'task')}, each"
        f" evaluated on the half of its queries that calibrated nothing. The dense order alone has"
        f" a mean nDCG@10 of {number(float(base['ndcg_10'].mean()))}."
    )
    return [
        run,
        *[_rule(rules, name) for name in _fused(rules)],
        _oracle(rules),
        _decision(tables.decisions),
        _conditions(tables.reversals),
        _claims(tables.claims),
    ]


def _fused(rules: pd.DataFrame) -> list[str]:
    return [
        name
        for name in dict.fromkeys(rules["rule"])
        if name not in ("dense_first", "oracle", "lexical_first")
    ]


def _rule(rules: pd.DataFrame, name: str) -> str:
    mine = rules[rules["rule"] == name]
    significant = mine["holm"] <= _LEVEL
    better = int((significant & (mine["difference"] > 0)).sum())
    worse = int((significant & (mine["difference"] < 0)).sum())
    return (
        f"{rule_name(name)}: {signed(float(mine['difference'].mean()))} against the dense order in"
        f" the mean of {plural(len(mine), 'task')}; above it on"
        f" {int((mine['difference'] > 0).sum())}, significantly on {better}; below it on"
        f" {int((mine['difference'] < 0).sum())}, significantly on {worse}."
    )


def _oracle(rules: pd.DataFrame) -> str:
    mine = rules[rules["rule"] == "oracle"]
    return (
        "Whoever knew for every query which rule is best would gain"
        f" {signed(float(mine['difference'].mean()))} against the dense order: that much there is"
        " to decide."
    )


def _decision(decisions: pd.DataFrame) -> str:
    means = decisions.groupby("policy")["ndcg_10"].mean()
    constants = {name: means[name] for name in ("always_dense", "always_fused")}
    best = max(constants, key=lambda name: constants[name])
    told = {"always_dense": "never fusing", "always_fused": "always fusing"}
    free = {name: means[name] - means[best] for name in ("per_collection", "per_query")}
    room = means["oracle"] - means[best]
    right = decisions.loc[decisions["policy"] == "per_query", "right"].mean()
    better = [name for name, apart in free.items() if apart > 0]
    verdict = (
        f"deciding {joined([name.replace('_', ' ') for name in better])} is above it"
        if better
        else "deciding without labels, per query or per collection, is not above it"
    )
    return (
        f"Between fusing (RRF) and not, the better constant policy is {told[best]}"
        f" ({number(float(means[best]))}); {verdict} (per collection"
        f" {signed(float(free['per_collection']))}, per query {signed(float(free['per_query']))};"
        f" the oracle {signed(float(room))}). Where the two differ, the label-free choice per query"
        f" is right in {percent(float(right))}."
    )


def _conditions(reversals: pd.DataFrame) -> str:
    pairs = int(reversals["pairs"].sum())
    wrong = int(reversals["violations"].sum())
    if not pairs:
        return "There was no pair of rows to hold the conditions of reversal against."
    turned = int(reversals["reversals"].sum())
    verdict = (
        "each of them satisfies its condition, and no other pair does"
        if wrong == 0
        else f"{wrong:,} PAIRS CONTRADICT THEIR CONDITION"
    )
    return f"Of {pairs:,} pairs of dense rows the rules turned {turned:,} round: {verdict}."


def _claims(claims: pd.DataFrame) -> str:
    counts = claims["verdict"].value_counts()
    refuted = list(claims.loc[claims["verdict"] == "refuted", "claim"])
    listed = f" ({joined([name.replace('_', ' ') for name in refuted])})" if refuted else ""
    return (
        f"Of the {len(claims)} claims of the derivation {int(counts.get('held', 0))} held,"
        f" {int(counts.get('refuted', 0))} were refuted{listed}, and"
        f" {int(counts.get('undecided', 0))} cannot be decided by this run."
    )
