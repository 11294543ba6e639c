"""The figures on what the study varies: budgets, parameters, seeds, controls, dictionaries.

Each takes rows.parquet and the rows that the statistics report, whose settings are the default.
It returns None where the study varies nothing there, and a notebook shows nothing then.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from whencount import summaries
from whencount.naming import Representation
from whencount.reports import figures
from whencount.reports.canvas import WIDTH, legend, name_rows, panels_of
from whencount.reports.drawing import Drawing
from whencount.reports.style import (
    CONTROL_NAMES,
    INK,
    SETTINGS,
    SWITCH_COLOURS,
    SWITCH_NAMES,
    budgets_in_order,
    in_order,
)
from whencount.scoring import SWITCHES

_CONTROL_FACES = {"": INK, "shuffled_df": "none", "uniform_df": "none"}
_CONTROL_MARKERS = {"": "o", "shuffled_df": "o", "uniform_df": "D"}


@mpl.rc_context(SETTINGS)
def budgets(rows: pd.DataFrame, reported: pd.DataFrame, name: str = "budgets") -> Drawing | None:
    """Mean Shapley values against the budget, a panel per granularity."""
    swept = summaries.varied(rows, "budget", reported)
    if len(swept) == 0:
        return None
    granularities = sorted(swept["granularity"].unique())
    values = budgets_in_order(swept["budget"])
    figure = Figure(figsize=(WIDTH * 0.9, 3.4), layout="constrained")
    panels = figure.subplots(1, len(granularities), squeeze=False, sharey=True)[0]
    for panel, granularity in zip(panels, granularities, strict=True):
        _sweep(panel, swept[swept["granularity"] == granularity], "budget", values)
        panel.set_title(granularity)
        panel.set_xlabel("budget, weights per query/document")
    panels[0].set_ylabel("Shapley value, nDCG@10")
    legend(figure, _switch_lines())
    return Drawing(
        name,
        figure,
        "Budgets",
        "What each switch brings when queries and documents keep fewer or more of their largest"
        f" weights. {_SWEEP_WORDS} Parameters, seed and document frequencies stay at their"
        " defaults.",
        "Line plots of the mean Shapley value of each switch against the budget.",
    )


@mpl.rc_context(SETTINGS)
def parameters(
    rows: pd.DataFrame, reported: pd.DataFrame, name: str = "parameters"
) -> Drawing | None:
    """Mean Shapley values against k1, and against b."""
    swept = {key: summaries.varied(rows, key, reported) for key in ("k1", "b")}
    swept = {key: lines for key, lines in swept.items() if len(lines)}
    if not swept:
        return None
    figure = Figure(figsize=(WIDTH * 0.9, 3.4), layout="constrained")
    panels = figure.subplots(1, len(swept), squeeze=False, sharey=True)[0]
    for panel, (key, lines) in zip(panels, swept.items(), strict=True):
        _sweep(panel, lines, key, sorted(lines[key].unique()))
        other = "b" if key == "k1" else "k1"
        panel.set_title(f"{key} ({other} = {lines[other].iloc[0]:g})")
        panel.set_xlabel("k1, where saturation sets in" if key == "k1" else "b, share of length")
    panels[0].set_ylabel("Shapley value, nDCG@10")
    legend(figure, _switch_lines())
    return Drawing(
        name,
        figure,
        "Parameters",
        "What each switch brings at other values of BM25's two parameters: a small <i>k</i>1"
        " saturates early, <i>b</i> = 0 takes no account of length, so that its Shapley value is"
        f" exactly 0 there. {_SWEEP_WORDS}",
        "Line plots of the mean Shapley value of each switch against k1 and against b.",
    )


@mpl.rc_context(SETTINGS)
def seeds(rows: pd.DataFrame, reported: pd.DataFrame, name: str = "seeds") -> Drawing | None:
    """How far the seed of a fitted basis moves each Shapley value."""
    swept = summaries.varied(rows, "seed", reported)
    if len(swept) == 0:
        return None
    names = in_order(swept["representation"])
    heights = swept["representation"].map({one: place for place, one in enumerate(names)})
    figure = Figure(figsize=(WIDTH, 0.24 * len(names) + 1.3), layout="constrained")
    panels = figure.subplots(1, 3, sharey=True, sharex=True)
    for panel, switch in zip(panels, SWITCHES, strict=True):
        value = swept[f"shapley_{switch}"]
        mean = value.groupby([swept["representation"], swept["collection"]]).transform("mean")
        panel.scatter(
            value - mean, heights, s=26, color=SWITCH_COLOURS[switch], alpha=0.75, linewidth=0
        )
        panel.axvline(0, color=INK, lw=0.8)
        panel.set_title(SWITCH_NAMES[switch])
        panel.set_xlabel("φ less its mean over seeds")
        panel.tick_params(axis="y", length=0)
    name_rows(panels[0], names)
    count = swept["seed"].nunique()
    return Drawing(
        name,
        figure,
        "Seeds",
        f"The bases that draw random numbers, fitted with {count} seeds. A mark per seed and"
        " collection: how far the Shapley value (in nDCG@10) lies from its mean over the seeds."
        " Compare the spread with the values in the figures above.",
        f"Three dot plots of how Shapley values of {len(names)} representations move with the"
        " seed.",
    )


@mpl.rc_context(SETTINGS)
def controls(rows: pd.DataFrame, reported: pd.DataFrame, name: str = "controls") -> Drawing | None:
    """The Shapley value of IDF with true, shuffled and uniform document frequencies."""
    swept = summaries.varied(rows, "control", reported)
    if len(swept) == 0:
        return None
    names = in_order(swept["representation"])
    collections = sorted(swept["collection"].unique())
    figure, panels = panels_of(len(collections), 0.24 * len(names) + 0.8)
    places = {one: place for place, one in enumerate(names)}
    present = [control for control in CONTROL_NAMES if control in set(swept["control"])]
    for panel, collection in zip(panels, collections, strict=True):
        for control in present:
            chosen = (swept["collection"] == collection) & (swept["control"] == control)
            lines = swept[chosen]
            panel.scatter(
                lines["shapley_idf"],
                lines["representation"].map(places),
                s=28,
                **_control_style(control),
                zorder=3,
            )
        panel.axvline(0, color=INK, lw=0.8)
        panel.set_title(collection)
        panel.set_xlabel("Shapley value of IDF")
        panel.tick_params(axis="y", length=0)
    name_rows(panels[0], names)
    legend(
        figure,
        [
            Line2D(
                [],
                [],
                ls="",
                marker=_CONTROL_MARKERS[control],
                markerfacecolor=_CONTROL_FACES[control],
                markeredgecolor=_control_style(control)["edgecolor"],
                label=CONTROL_NAMES[control],
            )
            for control in present
        ],
    )
    return Drawing(
        name,
        figure,
        "Controls of IDF",
        "If rare features matter because they are rare, IDF with the true document frequencies"
        " (filled) lies to the right of IDF with the same frequencies dealt out at random (open"
        " circles). With one frequency for all live features (diamonds) IDF scales every score"
        " alike and must bring exactly 0.",
        f"Dot plot of the Shapley value of IDF under {len(present)} kinds of document frequency.",
    )


def shared_dictionary(
    rows: pd.DataFrame,
    reported: pd.DataFrame,
    references: pd.DataFrame,
    name: str = "shared_dictionary",
) -> Drawing | None:
    """Quality of a dictionary of each granularity's own beside the one fitted on tokens."""
    default = reported.iloc[0]
    same = pd.Series(True, index=rows.index)
    for key in summaries.CELL_KEYS:
        same &= rows[key] == default[key]
    at_default = rows[same]
    parsed = at_default["representation"].map(Representation.parse)
    bases = {one.basis for one in parsed if one.shared}
    if not bases:
        return None
    lines = at_default[parsed.map(lambda one: one.basis in bases).astype(bool)]
    drawing = figures.quality(lines, references, name=name, title="One dictionary for both")
    return Drawing(
        name,
        drawing.figure,
        drawing.title,
        "A dictionary fitted on token states, used for pooled and token vectors alike"
        " (<i>shared</i>), beside one fitted for each. Marks and lines as in the figure of quality"
        " per collection.",
        drawing.alternative,
    )


_SWEEP_WORDS = (
    "Thin lines are single collections, averaged over representations; the thick line is their"
    " mean over the collections that have every value shown."
)


def _sweep(axes: Axes, lines: pd.DataFrame, key: str, values: Sequence[Any]) -> None:
    places = {value: place for place, value in enumerate(values)}
    whole = lines.groupby("collection")[key].nunique() == len(values)
    complete = set(whole[whole].index)
    for switch in SWITCHES:
        column, colour = f"shapley_{switch}", SWITCH_COLOURS[switch]
        means = lines.groupby(["collection", key])[column].mean().unstack(key)[list(values)]
        for _, line in means.iterrows():
            known = line.dropna()
            axes.plot(
                [places[value] for value in known.index], known, color=colour, lw=0.9, alpha=0.45
            )
        if complete:
            mean = means.loc[sorted(complete)].mean()
            axes.plot(np.arange(len(values)), mean, color=colour, lw=2.4, marker="o", ms=5)
    axes.axhline(0, color=INK, lw=0.8)
    labels = [value if isinstance(value, str) else f"{value:g}" for value in values]
    axes.set_xticks(range(len(values)), labels)
    axes.set_xlim(-0.15, len(values) - 0.85)


def _switch_lines() -> list[Line2D]:
    return [
        Line2D([], [], color=SWITCH_COLOURS[switch], lw=2.4, marker="o", label=SWITCH_NAMES[switch])
        for switch in SWITCHES
    ]


def _control_style(control: str) -> dict[str, Any]:
    colour = INK if control == "" else SWITCH_COLOURS["idf"]
    if control == "uniform_df":
        colour = SWITCH_COLOURS["saturation"]
    return {
        "marker": _CONTROL_MARKERS[control],
        "facecolor": _CONTROL_FACES[control],
        "edgecolor": colour,
    }
