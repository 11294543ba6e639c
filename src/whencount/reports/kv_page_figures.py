"""The figures of the study of KV pages: accuracy, what each page selector reads, statistics."""

from __future__ import annotations

from collections.abc import Iterator

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from whencount.reports.canvas import dot, legend, panels_of
from whencount.reports.drawing import Drawing
from whencount.reports.setting_style import (
    BLUE,
    BUDGET_MARKS,
    BUDGETS_SHOWN,
    GREEN,
    RED,
    Mark,
    clipped,
    selector_marks,
    selector_name,
    spread_out,
    variant_name,
)
from whencount.reports.style import FAINT, INK, SETTINGS
from whencount.setting_summaries.effects import variants_in_order
from whencount.setting_summaries.selections import selectors_in_order
from whencount.wording import plural

CELLS_SHOWN = 4
"""Models and contexts that get figures of their own; of more the tables tell."""

STATISTICS_SHOWN = 15
_VARIANT_MARKS = (Mark(BLUE, "o"), Mark(RED, "^", (0, (4, 1.5))), Mark(GREEN, "s"))
_KEYS = {"model", "task", "context", "layer", "head", "example", "examples", "budget"}


def cells(baselines: pd.DataFrame) -> list[tuple[str, int]]:
    """(model, context) of every pair of figures, in order, at most CELLS_SHOWN."""
    pairs = baselines[["model", "context"]].drop_duplicates()
    named = sorted((str(one), int(two)) for one, two in pairs.itertuples(index=False, name=None))
    return named[:CELLS_SHOWN]


def accuracy(baselines: pd.DataFrame) -> Iterator[Drawing]:
    """Two figures per model and context: selectors against budget, and all configurations."""
    for number, (model, context) in enumerate(cells(baselines), 1):
        chosen = (baselines["model"] == model) & (baselines["context"] == context)
        lines = baselines[chosen]
        where = f"{clipped(model, 60)}, {context:,} tokens"
        yield _against_budget(lines, f"budgets_{number}", where)
        yield _configurations(lines, f"configurations_{number}", where)


@mpl.rc_context(SETTINGS)
def _against_budget(lines: pd.DataFrame, name: str, where: str) -> Drawing:
    tasks = list(dict.fromkeys(lines["task"].astype(str)))
    others = lines[lines["selector"] != "full"]
    budgets = sorted({int(one) for one in others["budget"]})
    figure, panels = panels_of(len(tasks), 2.2, share_x=True)
    best = _corrected(lines)
    chosen = (lines["variant"].fillna("") == "") | (lines["selector"] == "111")
    marks = selector_marks(lines.loc[chosen, "selector"].astype(str))
    shown = [one for one in marks if one != "111" or best]
    for panel, task in zip(panels, tasks, strict=True):
        here = lines[lines["task"] == task]
        for place, selector in enumerate(shown):
            mine = here[here["selector"] == selector]
            if selector == "111":
                mine = mine[mine["variant"] == best]
            _line(
                panel, mine, marks[selector], (place - len(shown) / 2) * 0.012, selector == "full"
            )
        panel.set_title(clipped(task, 40))
        panel.set_ylim(-0.04, 1.06)
        panel.set_xscale("log", base=2)
        panel.set_xticks(budgets, [f"{one:,}" for one in budgets], minor=False)
        panel.set_xticks([], minor=True)
        panel.set_xlim(budgets[0] / 1.3, budgets[-1] * 1.3)
        panel.set_xlabel("budget, tokens")
    panels[0].set_ylabel("mean score")
    legend(figure, [_handle(one, marks[one], best) for one in shown])
    return Drawing(
        name,
        figure,
        f"Accuracy against budget: {where}",
        "The mean score of each selector, a panel per task: 1 is every answer found. The budget is"
        " how many tokens of the context a decode step may read; full attention reads all of them"
        " at any budget. Lines are 95 % intervals of a bootstrap over examples. The oracle picks"
        " the pages that hold most of the exact attention, which no selector can know without"
        " reading all. Marks of one budget stand a little apart, so that none hides another.",
        f"Line plots of accuracy against budget for {plural(len(shown), 'selector')} on"
        f" {plural(len(tasks), 'task')}.",
    )


def _corrected(lines: pd.DataFrame) -> str:
    """The variant whose full correction stands beside the baselines; '' where there is none."""
    known = lines.loc[lines["selector"] == "111", "variant"].unique()
    return "head" if "head" in known else str(sorted(known)[0]) if len(known) else ""


def _line(panel: Axes, mine: pd.DataFrame, mark: Mark, shift: float, level: bool) -> None:
    if len(mine) == 0:
        return
    if level:
        first = mine.iloc[0]
        if first["low"] < first["high"]:
            panel.axhspan(first["low"], first["high"], color=FAINT, alpha=0.35, lw=0, zorder=1)
        panel.axhline(first["score"], color=mark.colour, ls=mark.line, lw=1.3, zorder=2)
        return
    mine = mine.sort_values("budget")
    places = mine["budget"].to_numpy(dtype=np.float64) * 2.0 ** (6 * shift)
    panel.vlines(places, mine["low"], mine["high"], color=mark.colour, lw=1.4, alpha=0.7)
    panel.plot(places, mine["score"], color=mark.colour, ls=mark.line, lw=1.1, zorder=3)
    panel.plot(places, mine["score"], mark.marker, color=mark.colour, ms=6, zorder=4)


def _handle(selector: str, mark: Mark, variant: str) -> Line2D:
    label = selector_name(selector)
    if selector == "111":
        label = f"full correction, 111 {variant}"
    return Line2D(
        [], [], color=mark.colour, ls=mark.line, marker=mark.marker or None, ms=6, label=label
    )


@mpl.rc_context(SETTINGS)
def _configurations(lines: pd.DataFrame, name: str, where: str) -> Drawing:
    tasks = list(dict.fromkeys(lines["task"].astype(str)))
    selectors = [one for one in selectors_in_order(lines) if one[0] != "full"]
    places = {one: number for number, one in enumerate(selectors)}
    budgets = sorted({int(one) for one in lines.loc[lines["selector"] != "full", "budget"]})
    shown = spread_out(budgets, BUDGETS_SHOWN)
    offsets = np.linspace(-0.22, 0.22, len(shown)) if len(shown) > 1 else np.zeros(1)
    figure, panels = panels_of(len(tasks), 0.25 * len(selectors) + 0.75)
    for panel, task in zip(panels, tasks, strict=True):
        here = lines[lines["task"] == task]
        full = here[here["selector"] == "full"]
        if len(full):
            panel.axvline(full["score"].iloc[0], color=INK, lw=1.0, ls=(0, (5, 2)), zorder=1)
        for budget, offset, mark in zip(shown, offsets, BUDGET_MARKS, strict=False):
            mine = here[(here["budget"] == budget) & (here["selector"] != "full")]
            keys = zip(mine["selector"].astype(str), mine["variant"].fillna(""), strict=True)
            heights = np.array([places[key] for key in keys]) + offset
            panel.hlines(heights, mine["low"], mine["high"], color=mark.colour, lw=1.4, alpha=0.7)
            panel.plot(mine["score"], heights, mark.marker, color=mark.colour, ms=5, zorder=3)
        for height in _borders(selectors):
            panel.axhline(height, color=FAINT, lw=0.8)
        panel.set_title(clipped(task, 40))
        panel.set_xlim(-0.04, 1.06)
        panel.set_xlabel("mean score")
        panel.grid(axis="y", visible=False)
        panel.tick_params(axis="y", length=0)
    panels[0].set_yticks(range(len(selectors)), [selector_name(*one) for one in selectors])
    panels[0].set_ylim(len(selectors) - 0.4, -0.6)
    handles = [
        Line2D([], [], ls="", marker=m.marker, color=m.colour, ms=5, label=f"{b:,} tokens")
        for b, m in zip(shown, BUDGET_MARKS, strict=False)
    ]
    handles.append(Line2D([], [], color=INK, ls=(0, (5, 2)), label="full attention"))
    legend(figure, handles)
    left = len(budgets) - len(shown)
    more = f" {plural(left, 'budget')} between these stand in the table alone." if left else ""
    return Drawing(
        name,
        figure,
        f"All selectors and configurations: {where}",
        "The mean score under each selector and under the eight configurations (bits: IDF,"
        " saturation, length) of every variant; 000 has all off. Lines are 95 % intervals of a"
        " bootstrap over examples: two that overlap may still differ, since all selectors answer"
        f" the same examples. The dashed line is full attention.{more}",
        f"Dot plots of accuracy with intervals for {plural(len(selectors), 'selector')} on"
        f" {plural(len(tasks), 'task')} at {plural(len(shown), 'budget')}.",
    )


def _borders(selectors: list[tuple[str, str]]) -> list[float]:
    """Where one group of selectors ends: baselines, the eight of a variant, baselines."""
    variants = [variant for _, variant in selectors]
    return [
        place + 0.5 for place in range(len(variants) - 1) if variants[place] != variants[place + 1]
    ]


@mpl.rc_context(SETTINGS)
def page_statistics(table: pd.DataFrame | None, name: str = "page_statistics") -> Drawing | None:
    """Each statistic of pages by layer: the mean over heads, tasks and models, and its range."""
    names = [] if table is None else statistic_columns(table)[:STATISTICS_SHOWN]
    if table is None or not names:
        return None
    parts = [("", table)]
    if "variant" in table.columns:
        parts = [
            (one, table[table["variant"] == one]) for one in variants_in_order(table["variant"])
        ]
    figure, panels = panels_of(len(names), 2.1, share_x=True, share_y=False)
    for panel, column in zip(panels, names, strict=True):
        for (_, part), mark in zip(parts, _VARIANT_MARKS, strict=False):
            by_layer = part.groupby("layer")[column]
            low, mean, high = by_layer.min(), by_layer.mean(), by_layer.max()
            panel.fill_between(mean.index, low, high, color=mark.colour, alpha=0.15, lw=0)
            panel.plot(
                mean.index,
                mean,
                color=mark.colour,
                ls=mark.line,
                lw=1.2,
                marker=mark.marker,
                ms=3.5,
            )
        panel.set_title(column.replace("_", " "))
        panel.set_xlabel("layer")
        panel.locator_params(nbins=5)
    if len(parts) > 1:
        legend(
            figure,
            [
                dot(mark.colour, "none", variant_name(variant), mark.marker)
                for (variant, _), mark in zip(parts, _VARIANT_MARKS, strict=False)
            ],
        )
    return Drawing(
        name,
        figure,
        "Statistics of pages",
        "A panel per statistic, over the layers: the mean over heads, tasks, budgets and models,"
        " with the range shaded. They come from calibration on the prefill alone and need no"
        " answer; docs/tables.md defines each. Each panel has its own scale.",
        f"Line plots of {plural(len(names), 'statistic')} of pages against the layer.",
    )


def statistic_columns(table: pd.DataFrame) -> list[str]:
    """The columns of page_statistics.parquet that hold a statistic, in its order."""
    numeric = table.select_dtypes("number").columns
    return [str(name) for name in numeric if name not in _KEYS and table[name].notna().any()]
