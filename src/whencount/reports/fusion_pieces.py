"""Tables of the page on two arms; everything that comes from data is escaped here."""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from whencount.reports import setting_pieces
from whencount.reports.drawing import Table
from whencount.reports.fusion_style import (
    POLICY_NAMES,
    VERDICTS,
    FusionTables,
    rule_name,
)
from whencount.reports.fusion_words import sentences
from whencount.reports.markup import folded
from whencount.reports.setting_pieces import bounded, paragraphs, tile, tiles
from whencount.wording import number, percent, plural, signed


def answer(tables: FusionTables) -> Table:
    """The answer: key numbers, then sentences."""
    parts = []
    for name in ("reciprocal_rank", "joint_density", "oracle"):
        mine = tables.rules[tables.rules["rule"] == name]
        if len(mine):
            parts.append(
                tile(
                    signed(float(mine["difference"].mean())),
                    f"{rule_name(name)} against the dense order",
                    f"mean of {len(mine)} tasks",
                )
            )
    counts = tables.claims["verdict"].value_counts()
    for verdict, word in VERDICTS.items():
        parts.append(tile(str(int(counts.get(verdict, 0))), f"claims: {word.lower()}"))
    return Table(f"{tiles(parts)}\n{paragraphs(sentences(tables))}")


def claims(table: pd.DataFrame) -> Table:
    """Every claim with its verdict, what that rests on, and its refutation rule."""
    items = "\n".join(
        f"<li><b>{html.escape(VERDICTS.get(one.verdict, one.verdict))}</b>:"
        f" {html.escape(one.statement)}<br>{html.escape(one.evidence)}.<br><small>Refuted when"
        f" {html.escape(one.refuted_when)}.</small></li>"
        for one in _lines(table)
    )
    return Table(f'<ul class="answer">\n{items}\n</ul>')


def rules(table: pd.DataFrame) -> Table:
    """nDCG@10 of every rule on every task."""
    body = [
        (
            html.escape(str(one.dense_arm)),
            html.escape(str(one.collection)),
            html.escape(rule_name(str(one.rule))),
            number(one.ndcg_10),
            signed(one.difference),
            "–" if math.isnan(one.low) else f"{signed(one.low)} to {signed(one.high)}",
            "–" if math.isnan(one.holm) else f"{one.holm:.3g}",
            f"{one.wins:,} / {one.ties:,} / {one.losses:,}",
        )
        for one in _lines(table)
    ]
    head = ["dense arm", "collection", "rule", "nDCG@10", "less dense", "95 % interval"]
    head += ["Holm p", "win / tie / loss"]
    shown = bounded(head, body, 3, "fusion/rules.parquet")
    return Table(folded(f"All rules on all tasks ({plural(len(body), 'line')})", shown))


def decisions(table: pd.DataFrame) -> Table:
    """Every policy on every task."""
    body = [
        (
            html.escape(str(one.dense_arm)),
            html.escape(str(one.collection)),
            html.escape(POLICY_NAMES.get(str(one.policy), str(one.policy))),
            number(one.ndcg_10),
            percent(one.fused),
            "–" if math.isnan(one.right) else percent(one.right),
        )
        for one in _lines(table)
    ]
    head = [
        "dense arm",
        "collection",
        "policy",
        "nDCG@10",
        "queries fused",
        "right where it matters",
    ]
    shown = bounded(head, body, 3, "fusion/decisions.parquet")
    return Table(folded(f"All policies on all tasks ({plural(len(body), 'line')})", shown))


def reversals(table: pd.DataFrame) -> Table:
    """Pairs held against the exact condition of each rule."""
    body = [
        (
            html.escape(str(one.dense_arm)),
            html.escape(str(one.collection)),
            html.escape(rule_name(str(one.rule))),
            f"{one.pairs:,}",
            f"{one.reversals:,}",
            f"{one.violations:,}",
            f"{one.left_out:,}",
        )
        for one in _lines(table)
    ]
    head = ["dense arm", "collection", "rule", "pairs", "reversals", "against the condition"]
    head.append("left out: equal to 1e-12")
    shown = bounded(head, body, 3, "fusion/reversals.parquet")
    return Table(folded(f"Every rule on every task ({plural(len(body), 'line')})", shown))


def nulls(table: pd.DataFrame) -> Table:
    """Held-out rates of small tails, and what the draws can resolve."""
    body = [
        (
            html.escape(str(one.dense_arm)),
            html.escape(str(one.collection)),
            html.escape(f"{one.arm}, {one.null}"),
            f"{one.level:g}",
            number(one.rate, 4),
            f"{number(one.low, 4)} to {number(one.high, 4)}",
            f"{one.draws:,}",
            f"{one.smallest_tail:.2g}",
        )
        for one in _lines(table)
    ]
    head = ["dense arm", "collection", "arm, null", "level", "observed", "95 % interval"]
    head += ["draws", "smallest tail"]
    shown = bounded(head, body, 3, "fusion/nulls.parquet")
    return Table(folded(f"All nulls at all levels ({plural(len(body), 'line')})", shown))


def drift(table: pd.DataFrame) -> Table:
    """Observed rates at .05 by fifths of document length."""
    wide = table.pivot_table(
        index=["dense_arm", "collection", "arm", "null"], columns="fifth", values="rate"
    )
    body = [
        (
            *[html.escape(str(part)) for part in key],
            *[number(float(value), 3) for value in line],
        )
        for key, line in zip(wide.index, wide.to_numpy(), strict=True)
    ]
    head = ["dense arm", "collection", "arm", "null"]
    head += [f"fifth {one}" for one in wide.columns]
    return Table(bounded(head, body, 4, "fusion/drift.parquet"))


def making(tables: FusionTables, settings: Mapping[str, Any], study: str) -> Table:
    """What was run."""
    return setting_pieces.making({"study": study, **settings}, tables.named())


def _lines(table: pd.DataFrame) -> Iterator[Any]:
    """The lines of a table, columns as attributes."""
    yield from table.itertuples()
