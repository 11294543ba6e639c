"""Tables of the page on costs; everything that comes from data is escaped."""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import Any

import pandas as pd

from whencount.index_costs.answer import KEYS, ONE_SCORER, CostsAnswer
from whencount.reports import setting_pieces
from whencount.reports.drawing import Table
from whencount.reports.economics_style import in_order, name_of
from whencount.reports.economics_words import amount, sentences
from whencount.reports.markup import folded
from whencount.reports.setting_pieces import bounded, paragraphs, tile, tiles
from whencount.wording import number

_PAGE_HEAD = (
    "representation",
    "budget",
    "documents' weights",
    "queries' weights",
    "support (activation)",
    "support (weight)",
    "posting work",
    "payload, MB",
    "our index, MB",
    "ms, median",
    "ms, 95 %",
    "ms, all eight",
    "inner product",
    "full BM25",
)
_MEGA = 1e6


def answer(found: CostsAnswer) -> Table:
    """The answer: the best of each collection, then sentences."""
    parts = [
        tile(
            number(one.best.quality),
            f"best nDCG@10, {one.collection}",
            name_of(one.best.representation, one.best.budget),
        )
        for one in found.collections
    ]
    return Table(f"{tiles(parts)}\n{paragraphs(sentences(found))}")


def table(costs: pd.DataFrame, times: pd.DataFrame) -> Table:
    """All numbers, a folded table per collection."""
    joined = costs.merge(times, on=KEYS, how="left")
    parts = []
    for name in dict.fromkeys(joined["collection"]):
        mine = joined[joined["collection"] == name]
        body = [
            _line(row)
            for one in in_order(mine["representation"])
            for row in mine[mine["representation"] == one].to_dict("records")
        ]
        first = mine.iloc[0]
        summary = (
            f"<b>{html.escape(str(name))}</b>, {int(first['documents']):,} documents,"
            f" {int(first['queries']):,} queries"
        )
        parts.append(folded(summary, bounded(_PAGE_HEAD, body, 2, "economics.parquet")))
    return Table("\n".join(parts))


def _line(row: Mapping[Any, Any]) -> list[str]:
    dense = row["kind"] in ONE_SCORER
    return [
        html.escape(name_of(str(row["representation"]))),
        html.escape(str(row["budget"])),
        f"{row['document_nnz']:.1f} <small>± {row['document_nnz_sd']:.1f}</small>",
        f"{row['query_nnz']:.1f} <small>± {row['query_nnz_sd']:.1f}</small>",
        amount(row["activation_support"]),
        amount(row["weight_support"]),
        amount(row["posting_work"]),
        f"{row['payload_bytes'] / _MEGA:,.2f}",
        f"{row['index_bytes'] / _MEGA:,.2f}",
        *[number(row[name], 2) for name in ("full_median_ms", "full_p95_ms")],
        "–" if dense else number(row["eight_median_ms"], 2),
        number(row["q000"]),
        "–" if dense else number(row["q111"]),
    ]


def making(tables: Mapping[str, pd.DataFrame], settings: Mapping[str, Any], study: str) -> Table:
    """What was computed and how."""
    return setting_pieces.making({"study": study, **settings}, tables)
