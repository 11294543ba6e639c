"""The figures of a page on one representation or one collection: a line per row."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from whencount.reports.canvas import (
    STAGE_EDGES,
    STAGE_FACES,
    STAGES,
    WIDTH,
    dot,
    legend,
)
from whencount.reports.drawing import Drawing
from whencount.reports.figures import reference_lines
from whencount.reports.style import (
    FAINT,
    INK,
    REFERENCE_LINES,
    REFERENCE_NAMES,
    SETTINGS,
    SWITCH_COLOURS,
    SWITCH_NAMES,
    in_order,
    representation_name,
)
from whencount.scoring import SWITCHES


@mpl.rc_context(SETTINGS)
def quality(rows: pd.DataFrame, references: pd.DataFrame, by: str) -> Drawing:
    """nDCG@10 of the inner product, with saturation, and of full BM25, a line per row.

    Args:
        rows: of one representation (`by` is "collection") or of one collection (`by` is
            "representation").
        references: references.parquet.
        by: the column that tells the rows apart.
    """
    lines, labels = _ordered(rows, by)
    figure = Figure(figsize=(WIDTH, 0.26 * len(lines) + 1.2), layout="constrained")
    axes = figure.subplots()
    heights = np.arange(len(lines))
    span = lines[[f"q{stage}" for stage in STAGES]]
    axes.hlines(heights, span.min(axis=1), span.max(axis=1), color=FAINT, zorder=2)
    for stage in STAGES:
        axes.scatter(
            lines[f"q{stage}"],
            heights,
            s=30,
            facecolor=STAGE_FACES[stage],
            edgecolor=STAGE_EDGES[stage],
            linewidth=1.1,
            zorder=3,
        )
    beside = references[references["collection"].isin(rows["collection"])]
    present = _references(axes, lines, beside, by, span)
    _name(axes, labels)
    axes.set_xlabel("nDCG@10")
    legend(
        figure,
        [
            *(dot(STAGE_FACES[s], STAGE_EDGES[s], f"{s}: {STAGES[s]}") for s in STAGES),
            *(
                Line2D(
                    [],
                    [],
                    color=INK,
                    ls=REFERENCE_LINES.get(name, "-"),
                    label=REFERENCE_NAMES.get(name, name),
                )
                for name in present
            ),
        ],
    )
    return Drawing(
        "quality",
        figure,
        "Quality",
        "The quality of the plain inner product (open), of the inner product with saturation alone"
        " (orange) and of full BM25 (solid). A solid mark to the right of the orange one means that"
        " IDF and length added something on top. Lines are references: retrieval on the words of"
        " the text, or with the dense vectors of the encoder; on the page of a collection one that"
        " lies far off stands above the panel as a number.",
        f"Dot plot of nDCG@10 for {len(lines)} rows under three configurations.",
    )


@mpl.rc_context(SETTINGS)
def effects(rows: pd.DataFrame, by: str) -> Drawing:
    """The Shapley values of the three switches, a line per row."""
    lines, labels = _ordered(rows, by)
    figure = Figure(figsize=(WIDTH, 0.28 * len(lines) + 1.2), layout="constrained")
    axes = figure.subplots()
    heights = np.arange(len(lines))
    for switch, offset in zip(SWITCHES, (-0.2, 0.0, 0.2), strict=True):
        axes.plot(
            lines[f"shapley_{switch}"],
            heights + offset,
            "o",
            color=SWITCH_COLOURS[switch],
            ms=5.5,
            zorder=3,
        )
    axes.axvline(0, color=INK, lw=0.8)
    _name(axes, labels)
    axes.set_xlabel("Shapley value, nDCG@10")
    legend(figure, [dot(SWITCH_COLOURS[s], SWITCH_COLOURS[s], SWITCH_NAMES[s]) for s in SWITCHES])
    return Drawing(
        "effects",
        figure,
        "What each switch brings",
        "The Shapley value of each switch: its part of the gain of full BM25 over the inner"
        " product, averaged over the orders of switching on. Right of 0 it helps, left of 0 it"
        " harms; the three of a line add up to the gain.",
        f"Dot plot of three Shapley values for {len(lines)} rows.",
    )


def _ordered(rows: pd.DataFrame, by: str) -> tuple[pd.DataFrame, list[str]]:
    values = [str(value) for value in rows[by]]
    order = in_order(values) if by == "representation" else sorted(set(values))
    places = {name: place for place, name in enumerate(order)}
    lines = rows.assign(_place=[places[value] for value in values])
    lines = lines.sort_values("_place", kind="stable")
    labels = [str(value) for value in lines[by]]
    if by == "representation":
        labels = [representation_name(label) for label in labels]
    return lines, labels


def _references(
    axes: Axes, lines: pd.DataFrame, references: pd.DataFrame, by: str, span: pd.DataFrame
) -> list[str]:
    """Lines across the panel for one collection, a short one per line for several."""
    present = []
    if by == "representation":
        ordered = references.sort_values("reference")
        reference_lines(axes, ordered, float(span.to_numpy().min()), float(span.to_numpy().max()))
        return list(ordered["reference"].unique())
    for name, part in references.groupby("reference", sort=True):
        style = REFERENCE_LINES.get(str(name), "-")
        present.append(str(name))
        values = dict(zip(part["collection"], part["ndcg_10"], strict=True))
        for height, collection in enumerate(lines["collection"]):
            if collection in values:
                axes.vlines(
                    values[collection], height - 0.38, height + 0.38, color=INK, lw=1.3, ls=style
                )
    return present


def _name(axes: Axes, labels: list[str]) -> None:
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
