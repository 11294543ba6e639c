"""Tables of the page on learned sparse vectors; everything that comes from data is escaped here."""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import Any

import pandas as pd

from whencount.reports import setting_pieces
from whencount.reports.drawing import Table
from whencount.reports.learned_style import LearnedTables, model_of
from whencount.reports.learned_words import sentences
from whencount.reports.setting_pieces import bounded, paragraphs, tile, tiles
from whencount.wording import number, plural, signed


def answer(tables: LearnedTables) -> Table:
    """The answer: key numbers, then sentences."""
    parts = []
    equal = tables.costs[tables.costs["cut"] == "equal"]
    for model, mine in equal.groupby("model", sort=False):
        name = html.escape(str(model))
        where = f"mean of {plural(len(mine), 'collection')}"
        ratios = ("posting_work_ratio", "posting work"), ("support_ratio", "effective support")
        for column, words in ratios:
            value = number(float(mine[column].mean()))
            parts.append(tile(f"{value} x", f"{name}: {words} at equal weights", where))
    return Table(f"{tiles(parts)}\n{paragraphs(sentences(tables))}")


def rows(table: pd.DataFrame) -> Table:
    """nDCG@10 of the inner product, of each switch and of BM25."""
    body = [
        (
            html.escape(model_of(str(one["representation"]))),
            html.escape(str(one["collection"])),
            html.escape(str(one["budget"])),
            *[number(float(one[f"q{switches}"])) for switches in ("000", "100", "010", "001")],
            number(float(one["q111"])),
            signed(float(one["q111"] - one["q000"])),
        )
        for one in table.to_dict("records")
    ]
    head = ["model", "collection", "budget", "inner product", "IDF", "saturation", "length"]
    head += ["BM25", "BM25 less inner product"]
    return Table(bounded(head, body, 3, "learned_sparse/rows.parquet"))


def costs(table: pd.DataFrame) -> Table:
    """What the vectors cost as they are, and at equal weights."""
    body = [
        (
            html.escape(str(one["model"])),
            html.escape(str(one["collection"])),
            "as they are" if one["cut"] == "none" else "cut to equal weights",
            number(float(one["document_nnz"]), 1),
            number(float(one["query_nnz"]), 1),
            f"{one['live_features']:,.0f}",
            f"{one['activation_support']:,.0f}",
            f"{one['posting_work']:,.0f}",
            "–" if pd.isna(one["posting_work_ratio"]) else number(one["posting_work_ratio"]),
            "–" if pd.isna(one["support_ratio"]) else number(one["support_ratio"]),
        )
        for one in table.to_dict("records")
    ]
    head = ["model", "collection", "weights", "per document", "per query", "live features"]
    head += ["effective support", "posting work", "work / baseline", "support / baseline"]
    return Table(bounded(head, body, 3, "learned_sparse/costs.parquet"))


def making(tables: LearnedTables, settings: Mapping[str, Any], study: str) -> Table:
    """What was run."""
    return setting_pieces.making({"study": study, **settings}, tables.named())
