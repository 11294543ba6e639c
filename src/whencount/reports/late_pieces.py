"""Tables of the page on late interaction; everything that comes from data is escaped here."""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import Any

import pandas as pd

from whencount.reports import setting_pieces
from whencount.reports.drawing import Table
from whencount.reports.late_style import STAGE_NAMES, LateTables, arm_name
from whencount.reports.late_words import sentences
from whencount.reports.setting_pieces import bounded, paragraphs, tile, tiles
from whencount.wording import number, percent, plural

_MIB = 2**20


def answer(tables: LateTables) -> Table:
    """The answer: key numbers, then sentences."""
    means = tables.rows.groupby("arm", sort=False)["ndcg_10"].mean()
    where = f"mean of {plural(tables.rows['collection'].nunique(), 'collection')}"
    shown = ("maxsim", "one_vector", "residual_2", "residual_1")
    parts = [
        tile(number(float(means[one])), html.escape(arm_name(one)), where)
        for one in shown
        if one in means
    ]
    return Table(f"{tiles(parts)}\n{paragraphs(sentences(tables))}")


def rows(table: pd.DataFrame) -> Table:
    """Quality and size of every arm."""
    body = [
        (
            html.escape(str(one["collection"])),
            html.escape(arm_name(str(one["arm"]))),
            number(float(one["ndcg_10"])),
            number(float(one["recall_100"])),
            percent(float(one["overlap_10"])),
            f"{one['payload_bytes'] / _MIB:,.1f}",
            f"{one['queries']:,}",
        )
        for one in table.to_dict("records")
    ]
    head = ["collection", "score", "nDCG@10", "recall@100", "of MaxSim's first ten", "MiB"]
    return Table(bounded([*head, "queries"], body, 2, "late_interaction/rows.parquet"))


def codes(table: pd.DataFrame) -> Table:
    """What codes lose, and the bound."""
    body = [
        (
            html.escape(str(one["collection"])),
            f"{one['bits']}",
            f"{one['centroids']:,}",
            number(float(one["mean_squared_error"])),
            f"{one['scores']:,}",
            f"{one['broken']:,}",
            percent(float(one["tightest"])),
            f"{one['pairs']:,}",
            percent(one["decided"] / max(1, one["pairs"]), 2),
            f"{one['reversed']:,}",
            percent(one["inversions"] / max(1, one["pairs"]), 1),
        )
        for one in table.to_dict("records")
    ]
    head = ["collection", "bits", "centroids", "squared error", "scores", "broken bounds"]
    head += ["largest error / bound", "pairs", "promised", "promised and broken", "reversed"]
    return Table(bounded(head, body, 1, "late_interaction/codes.parquet"))


def funnel(table: pd.DataFrame) -> Table:
    """Documents left and survivors per stage."""
    body = [
        (
            html.escape(str(one["collection"])),
            html.escape(STAGE_NAMES.get(str(one["stage"]), str(one["stage"]))),
            f"{one['bits']}",
            f"{one['cutoff']}",
            number(float(one["documents"]), 1),
            number(float(one["survivors"]), 2),
            percent(float(one["share"]), 1),
        )
        for one in table.to_dict("records")
    ]
    head = ["collection", "stage", "bits", "of the first", "documents left", "survivors", "share"]
    return Table(bounded(head, body, 2, "late_interaction/funnel.parquet"))


def making(tables: LateTables, settings: Mapping[str, Any], study: str) -> Table:
    """What was run."""
    return setting_pieces.making({"study": study, **settings}, tables.named())
