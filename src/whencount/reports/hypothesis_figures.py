"""A figure per registered hypothesis: the rows that its test is about, as its kind of test asks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from whencount import attribution
from whencount.hypotheses.definitions import Hypothesis
from whencount.hypotheses.selection import NotTestable, select
from whencount.reports.canvas import WIDTH, dot, legend
from whencount.reports.drawing import Drawing
from whencount.reports.style import (
    GRANULARITY_MARKERS,
    INK,
    SETTINGS,
    SWITCH_COLOURS,
    SWITCH_NAMES,
    basis_colour,
    basis_name,
)
from whencount.wording import capital, joined, percent

_PAIR = ["collection", "representation"]
_NAMES = {
    "value_cv": "variation of stored values, cv",
    "gain": "gain",
    "collection_gain": "G",
} | {f"shapley_{switch}": f"φ of {name}" for switch, name in SWITCH_NAMES.items()}


def figure_of(hypothesis: Hypothesis, rows: pd.DataFrame, name: str) -> Drawing | None:
    """The figure of a hypothesis; None where its rows are not there or its test has no figure.

    Args:
        rows: rows.parquet.
        name: of the drawing.
    """
    draw = _DRAWN.get(hypothesis.test)
    if draw is None:
        return None
    try:
        with mpl.rc_context(SETTINGS):
            return draw(hypothesis, rows, name)
    except (NotTestable, KeyError):
        # The table says why the test could not be made; there is nothing to draw of it.
        return None


def _share_within(hypothesis: Hypothesis, rows: pd.DataFrame, name: str) -> Drawing:
    options = hypothesis.options
    parts = list(options["parts"])
    figure = Figure(figsize=(0.75 * WIDTH, 2.4), layout="constrained")
    axes = figure.subplots()
    chosen = select(rows, hypothesis.rows)
    groups = [("all rows", chosen)]
    groups += [(str(value), part) for value, part in chosen.groupby("collection", sort=True)]
    axes.axvspan(options["low"], options["high"], color=SWITCH_COLOURS["idf"], alpha=0.18, lw=0)
    figure.set_figheight(1.3 + 0.3 * len(groups))
    for place, (_, part) in enumerate(groups):
        share = attribution.shares(part, parts=["+".join(parts)]).iloc[0]
        if not math.isfinite(float(share["share"])):
            continue
        if share["low"] < share["high"]:
            axes.hlines(place, share["low"], share["high"], color=INK, lw=1.6)
        axes.plot(share["share"], place, "o", color=INK, ms=6 if place == 0 else 4.5)
    axes.set_yticks(range(len(groups)), [label for label, _ in groups])
    axes.set_ylim(len(groups) - 0.4, -0.6)
    left, right = axes.get_xlim()
    axes.set_xlim(max(left, -0.5), min(right, 1.5))
    axes.xaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
    axes.tick_params(axis="y", length=0)
    named = joined([SWITCH_NAMES.get(part, part) for part in parts])
    axes.set_xlabel(f"share of the gain: {named}")
    return Drawing(
        name,
        figure,
        f"The share of {named}",
        f"The hypothesis holds if the mark of all rows lies in the band, {percent(options['low'])}"
        f" to {percent(options['high'])}. The line is a 95 % interval that resamples whole"
        " collections; the single collections below show how far they differ.",
        f"Dot plot of the share of {named} with the band of the hypothesis.",
    )


def _paired_greater(hypothesis: Hypothesis, rows: pd.DataFrame, name: str) -> Drawing:
    options = hypothesis.options
    value = options["value"]
    sides = [
        select(rows, hypothesis.rows, options[side]).set_index(_PAIR)
        for side in ("greater", "lesser")
    ]
    lesser = sides[1][[value]].rename(columns={value: f"{value}_lesser"})
    both = sides[0].join(lesser, how="inner").reset_index()
    figure = Figure(figsize=(0.55 * WIDTH, 0.5 * WIDTH), layout="constrained")
    axes = figure.subplots()
    _scatter(axes, both, f"{value}_lesser", value)
    axes.axline((0, 0), slope=1, color=INK, lw=0.8, ls=(0, (4, 2)))
    axes.set_aspect("equal", adjustable="datalim")
    _cross(axes)
    _label(axes, f"{_name(value)} at {_said(options['lesser'])}", "x")
    _label(axes, f"{_name(value)} at {_said(options['greater'])}", "y")
    _bases_legend(figure, both)
    above = int((both[value] > both[f"{value}_lesser"]).sum())
    same = int((both[value] == both[f"{value}_lesser"]).sum())
    return Drawing(
        name,
        figure,
        f"{_name(value)} at {_said(options['greater'])} against {_said(options['lesser'])}",
        "One mark per representation and collection. If the hypothesis holds, marks lie above the"
        f" dashed line: {above:,} of {len(both):,} do, {same:,} lie on it.",
        f"Scatter plot of {len(both)} pairs; {above} lie above the diagonal.",
    )


def _rank_correlation(hypothesis: Hypothesis, rows: pd.DataFrame, name: str) -> Drawing:
    first, second = hypothesis.options["values"]
    within = hypothesis.options.get("centred_within")
    if within is not None and within not in rows.columns:
        within = "collection"

    def chosen(setting: Mapping[str, Any]) -> pd.DataFrame:
        lines = select(rows, hypothesis.rows, setting).copy()
        if within is not None:
            for column in (first, second):
                lines[column] -= lines.groupby(within)[column].transform("mean")
        return lines

    less = f", each {within}'s mean taken off" if within else ""
    return _panels(
        hypothesis,
        name,
        {setting: chosen(extra) for setting, extra in hypothesis.settings.items()},
        (first, second),
        capital(f"{_name(first)} and {_name(second)}"),
        f"One mark per row{less}. If the hypothesis holds, marks rise to the right: the rank"
        f" correlation is at least {hypothesis.options['at_least']:g}.",
    )


def _model_ranking(hypothesis: Hypothesis, rows: pd.DataFrame, name: str) -> Drawing:
    predictor, target = hypothesis.options["predictor"], hypothesis.options["target"]
    return _panels(
        hypothesis,
        name,
        {
            setting: select(rows, hypothesis.rows, extra)
            for setting, extra in hypothesis.settings.items()
        },
        (predictor, target),
        f"{_name(target)} ranked by {_name(predictor)}",
        "One mark per row. A model of one predictor ranks rows as the predictor does, so the"
        " hypothesis holds if marks rise to the right (or fall, where they fall on the rows that"
        " the model was fitted on): the rank correlation is at least"
        f" {hypothesis.options['at_least']:g}.",
    )


def _exactly_zero(hypothesis: Hypothesis, rows: pd.DataFrame, name: str) -> Drawing:
    value = hypothesis.options["value"]
    chosen = select(rows, hypothesis.rows)
    fixed = {key: one for key, one in hypothesis.rows.items() if key in ("k1", "b", "budget")}
    other = {key: one for key, one in hypothesis.rows.items() if key not in fixed}
    every = select(rows, other) if fixed else chosen
    figure = Figure(figsize=(0.75 * WIDTH, 2.3), layout="constrained")
    axes = figure.subplots()
    # A fixed pattern spreads the marks, so that equal rows give equal bytes.
    for place, (lines, face) in enumerate(((chosen, INK), (every.drop(chosen.index), "none"))):
        spread = (np.arange(len(lines)) * 0.618) % 1 - 0.5
        axes.scatter(
            lines[value], place + 0.5 * spread, s=16, facecolor=face, edgecolor=INK, alpha=0.6
        )
    said = _said(fixed) or "these rows"
    axes.set_yticks([0, 1], [said, "other values"])
    axes.set_ylim(1.6, -0.6)
    axes.axvline(0, color=INK, lw=0.8)
    axes.tick_params(axis="y", length=0)
    _label(axes, _name(value), "x")
    return Drawing(
        name,
        figure,
        f"{_name(value)} at {said}",
        f"One mark per row. If the hypothesis holds, all {len(chosen):,} filled marks lie on 0"
        " exactly; the open ones show the same family at its other values.",
        f"Strip plot of {_name(value)} for {len(chosen)} rows that must be 0.",
    )


def _decision_rule(hypothesis: Hypothesis, rows: pd.DataFrame, name: str) -> Drawing:
    reference = hypothesis.options["reference"]
    chosen = select(rows, hypothesis.rows).copy()
    chosen["_said"] = chosen[f"pseudo_{reference}_111"] - chosen[f"pseudo_{reference}_010"]
    figure = Figure(figsize=(0.55 * WIDTH, 0.5 * WIDTH), layout="constrained")
    axes = figure.subplots()
    _scatter(axes, chosen, "_said", "collection_gain")
    _cross(axes)
    _label(axes, "G on pseudo-labels", "x")
    _label(axes, "G on labels", "y")
    _bases_legend(figure, chosen)
    right = int(((chosen["_said"] > 0) == (chosen["collection_gain"] > 0)).sum())
    return Drawing(
        name,
        figure,
        "What the rule goes by, and what it would have to know",
        "One mark per row. The rule uses IDF and length right of 0; that was right in the upper"
        " right quarter, and leaving them out in the lower left one: in"
        f" {right:,} of {len(chosen):,} rows.",
        f"Scatter plot of G on labels against G on pseudo-labels, {len(chosen)} rows.",
    )


_DRAWN = {
    "share_within": _share_within,
    "paired_greater": _paired_greater,
    "rank_correlation": _rank_correlation,
    "model_ranking": _model_ranking,
    "exactly_zero": _exactly_zero,
    "decision_rule": _decision_rule,
}


def _panels(
    hypothesis: Hypothesis,
    name: str,
    lines: Mapping[str, pd.DataFrame],
    columns: tuple[str, str],
    title: str,
    caption: str,
) -> Drawing:
    across = min(2, len(lines))
    down = math.ceil(len(lines) / across)
    figure = Figure(
        figsize=(WIDTH if across > 1 else 0.6 * WIDTH, 3.6 * down + 0.4), layout="constrained"
    )
    panels = list(figure.subplots(down, across, squeeze=False, sharey=True).reshape(-1))
    for spare in panels[len(lines) :]:
        spare.remove()
    for panel, (setting, rows) in zip(panels, lines.items(), strict=False):
        _scatter(panel, rows, *columns)
        panel.axhline(0, color=INK, lw=0.8)
        panel.set_title(setting)
        _label(panel, _name(columns[0]), "x")
    _label(panels[0], _name(columns[1]), "y")
    _bases_legend(figure, next(iter(lines.values())))
    return Drawing(
        name,
        figure,
        title,
        caption,
        f"Scatter plots of {title}, {len(lines)} in all.",
    )


def _scatter(axes: Axes, rows: pd.DataFrame, first: str, second: str) -> None:
    for (basis, granularity), part in rows.groupby(["basis", "granularity"], sort=True):
        axes.scatter(
            part[first],
            part[second],
            s=32,
            color=basis_colour(str(basis)),
            marker=GRANULARITY_MARKERS.get(str(granularity), "s"),
            alpha=0.85,
            linewidth=0,
        )


def _cross(axes: Axes) -> None:
    axes.axhline(0, color=INK, lw=0.6)
    axes.axvline(0, color=INK, lw=0.6)


def _bases_legend(figure: Figure, rows: pd.DataFrame) -> None:
    legend(
        figure,
        [
            *(
                dot(basis_colour(str(basis)), "none", basis_name(str(basis)))
                for basis in sorted(rows["basis"].unique())
            ),
            *(
                Line2D([], [], ls="", marker=marker, color=INK, ms=6, label=granularity)
                for granularity, marker in GRANULARITY_MARKERS.items()
                if granularity in set(rows["granularity"])
            ),
        ],
    )


def _label(axes: Axes, text: str, side: str) -> None:
    (axes.set_xlabel if side == "x" else axes.set_ylabel)(text)


def _name(column: str) -> str:
    return _NAMES.get(column, column)


def _said(choice: Mapping[str, Any]) -> str:
    parts: Sequence[str] = [
        f"{key} {value:g}" if isinstance(value, int | float) else f"{key} {value}"
        for key, value in choice.items()
    ]
    return ", ".join(parts)
