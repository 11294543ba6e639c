"""Tables and words of the page on KV pages; everything that comes from data is escaped."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from typing import Any

import pandas as pd

from whencount.reports import setting_pieces
from whencount.reports.drawing import Table
from whencount.reports.kv_page_figures import CELLS_SHOWN, statistic_columns
from whencount.reports.kv_page_words import sentences
from whencount.reports.markup import folded, markup
from whencount.reports.setting_pieces import bounded, paragraphs, switch_tiles, tile, tiles
from whencount.reports.setting_style import SELECTOR_MARKS, SELECTOR_NAMES, clipped, selector_name
from whencount.reports.setting_tables import PagesTables
from whencount.setting_summaries.kv_pages import PagesAnswer
from whencount.setting_summaries.selections import Selections, selectors_in_order
from whencount.wording import number, percent, plural, signed

WHY = {
    "head": "Selection per query head gives a page one feature, its score. Saturation and length"
    " grow with value over length, so saturation alone changes no ranking: 010 = 000 and"
    " 011 = 001. What a correction changes comes from IDF and length, and from saturation on top of"
    " them.",
    "group": "Scores are summed over the query heads that share a key head, so a page has several"
    " features and nothing must coincide; the same pairs are shown to compare.",
}
KEYS = ("model", "context", "budget", "task")
"""What names a line of the figure of Shapley values; the last two where there are many."""

ROW_KEYS = ("model", "task", "context", "budget", "variant")
_EXAMPLES_SHOWN = 3


def answer(found: PagesAnswer) -> Table:
    """The answer: key numbers, then sentences."""
    parts = []
    if found.budgets:
        tight = found.budgets[0]
        for name in ("full", "mass", "quest", "random"):
            level = found.level(name, tight)
            if level is not None:
                where = "all tokens" if name == "full" else f"budget {tight:,}"
                parts.append(
                    tile(
                        number(level.score),
                        f"mean score, {SELECTOR_NAMES[name]}",
                        where,
                        SELECTOR_MARKS[name].colour,
                    )
                )
        for best in found.best:
            if best.budget == tight:
                parts.append(
                    tile(
                        signed(best.difference.mean),
                        f"best of eight less all-off, {best.variant}",
                        f"{best.configuration}, budget {tight:,}",
                    )
                )
    for effects in found.effects[:1]:
        parts += switch_tiles(effects)
    return Table(f"{tiles(parts)}\n{paragraphs(sentences(found))}")


def unavailable(tables: PagesTables) -> Table:
    """The tasks that could not be run, and why."""
    table = tables.unavailable
    if table is None:
        return Table("<p>This run did not record which tasks it could not run.</p>")
    if len(table) == 0:
        return Table("<p>Every task that was asked for was run.</p>")
    columns = [name for name in ("task", "reason", "remedy") if name in table.columns]
    body = [
        [html.escape(clipped(str(line[name]), 400)) for name in columns]
        for _, line in table.iterrows()
    ]
    shown = bounded(columns, body, 1, "unavailable")
    return Table(shown.replace("<table ", '<table class="said" ', 1))


def scores(baselines: pd.DataFrame) -> Table | None:
    """The score of every selector on every task, with its interval, a folded table per task."""
    parts = []
    for (model, context, task), lines in baselines.groupby(
        ["model", "context", "task"], sort=False
    ):
        budgets = sorted({int(one) for one in lines.loc[lines["selector"] != "full", "budget"]})
        body = []
        for selector, variant in selectors_in_order(lines):
            chosen = (lines["selector"] == selector) & (lines["variant"].fillna("") == variant)
            mine = lines[chosen]
            cells = [html.escape(selector_name(selector, variant))]
            for budget in budgets:
                here = mine if selector == "full" else mine[mine["budget"] == budget]
                cells.append(_score(here.iloc[0]) if len(here) else "–")
            body.append(cells)
        head = ["selector", *(f"budget {one:,}" for one in budgets)]
        examples = int(lines["examples"].max())
        summary = (
            f"<b>{html.escape(clipped(str(task), 60))}</b>, {int(str(context)):,} tokens,"
            f" {html.escape(clipped(str(model), 60))}, {plural(examples, 'example')}"
        )
        parts.append(folded(summary, markup(head, body)))
    if not parts:
        return None
    shown = parts[:_TASKS_SHOWN]
    left = len(parts) - len(shown)
    more = f"<p><small>{left:,} more are in baselines.parquet.</small></p>" if left else ""
    figures = baselines[["model", "context"]].drop_duplicates()
    if len(figures) > CELLS_SHOWN:
        more += f"<p><small>Figures show {CELLS_SHOWN} of {len(figures):,} pairs of a model and a"
        more += " context.</small></p>"
    return Table("\n".join(shown) + more)


_TASKS_SHOWN = 60


def _score(line: pd.Series) -> str:
    score = number(float(line["score"]), 3)
    if pd.isna(line["low"]):
        return score
    low, high = number(float(line["low"]), 2), number(float(line["high"]), 2)
    return f"{score} <small>{low} to {high}</small>"


def outputs(per_example: pd.DataFrame, found: Selections | None) -> Table | None:
    """What was answered in the example of the heat map, or in the first one, by every selector."""
    if len(per_example) == 0:
        return None
    first = per_example.iloc[0]
    wanted = {key: first[key] for key in ("model", "task", "context", "example")}
    budget = int(per_example["budget"].min())
    if found is not None:
        own = {
            "model": found.model,
            "task": found.task,
            "context": found.context,
            "example": found.example,
        }
        if len(_where(per_example, own)):
            wanted, budget = own, found.budget
    lines = _where(per_example, wanted)
    reads = {}
    if found is not None and wanted["example"] == found.example:
        reads = dict(zip(found.selectors, found.read, strict=True))
    body = []
    for selector, variant in selectors_in_order(lines):
        mine = lines[(lines["selector"] == selector) & (lines["variant"].fillna("") == variant)]
        mine = mine if selector == "full" else mine[mine["budget"] == budget]
        if len(mine) == 0:
            continue
        line = mine.iloc[0]
        read = reads.get((selector, variant))
        body.append(
            [
                html.escape(selector_name(selector, variant)),
                number(float(line["score"]), 2),
                "–" if read is None else f"{read:,.1f}",
                html.escape(clipped(str(line["prediction"]))),
            ]
        )
    head = ["selector", "score", "pages read", "what was generated"]
    table = markup(head, body).replace("<table ", '<table class="said" ', 1)
    expected = "; ".join(_references(lines.iloc[0]["references"]))
    where = f"{wanted['task']}, example {wanted['example']}, budget {budget:,}"
    said = f"Expected: {clipped(expected, 300)}. ({clipped(where, 160)})"
    return Table(f"<p>{html.escape(said)}</p>\n{table}")


def _where(table: pd.DataFrame, wanted: Mapping[str, Any]) -> pd.DataFrame:
    kept = table
    for key, value in wanted.items():
        kept = kept[kept[key].astype(str) == str(value)]
    return kept


def _references(text: Any) -> list[str]:
    try:
        found = json.loads(str(text))
    except ValueError:
        return [str(text)]
    return [str(one) for one in found] if isinstance(found, list) else [str(found)]


def answer_shares(found: Selections | None) -> Table | None:
    """How often each selector read a page of the answer in the example of the heat map."""
    if found is None or not found.answer:
        return None
    body = []
    for place, key in enumerate(found.selectors):
        layers = found.answer_by_layer[place]
        known = layers[layers == layers]  # noqa: PLR0124 - NaN alone differs from itself
        if len(known):
            body.append(
                [
                    html.escape(selector_name(*key)),
                    percent(float(known.mean())),
                    percent(float(known.max())),
                    f"{int((known > 0).sum()):,} of {len(known):,}",
                ]
            )
    head = ["selector", "mean over layers", "best layer", "layers that read it at all"]
    return Table(folded("The numbers", markup(head, body)))


def making(tables: PagesTables, settings: Mapping[str, Any], study: str) -> Table:
    """What was computed and how."""
    return setting_pieces.making(
        {"study": study, **settings},
        {
            "rows": tables.rows,
            "per_example": tables.per_example,
            "baselines": tables.baselines,
            "selected": tables.selected,
            "page_statistics": tables.page_statistics,
        },
    )


def statistics(table: pd.DataFrame | None) -> Table | None:
    """Means, least and largest of every statistic of pages, folded."""
    if table is None or not statistic_columns(table):
        return None
    body = []
    for column in statistic_columns(table):
        known = table[column].dropna()
        numbers = [known.mean(), known.min(), known.median(), known.max()]
        body.append([html.escape(column), *(f"{float(value):.3g}" for value in numbers)])
    head = ["statistic", "mean", "least", "median", "largest"]
    return Table(folded("The numbers, over layers and heads", markup(head, body)))
