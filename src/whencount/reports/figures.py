"""The figures on the rows that the statistics report: quality, shares, prediction, tests.

Each function takes tables (docs/tables.md) and returns a `Drawing`; nothing is computed here that a
test should hold.
"""

from __future__ import annotations

import math
from typing import Any

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from whencount import summaries
from whencount.reports.canvas import (
    STAGE_EDGES,
    STAGE_FACES,
    STAGES,
    WIDTH,
    dot,
    legend,
    name_rows,
    panels_of,
)
from whencount.reports.drawing import Drawing
from whencount.reports.gain_figure import collection_gain
from whencount.reports.share_figure import shares
from whencount.reports.style import (
    FAINT,
    GRANULARITY_MARKERS,
    INK,
    REFERENCE_LINES,
    REFERENCE_NAMES,
    SETTINGS,
    SWITCH_COLOURS,
    SWITCH_NAMES,
    basis_colour,
    basis_name,
    in_order,
    references_in_order,
)
from whencount.significance import EFFECTS
from whencount.wording import joined, signed

__all__ = ["collection_gain", "quality", "saturation", "shares", "significance", "ties"]


@mpl.rc_context(SETTINGS)
def quality(
    rows: pd.DataFrame, references: pd.DataFrame, name: str = "quality", title: str = ""
) -> Drawing:
    """nDCG@10 of the inner product, with saturation, and of full BM25: a panel per collection."""
    collections = sorted(rows["collection"].unique())
    names = in_order(rows["representation"])
    figure, panels = panels_of(len(collections), 0.24 * len(names) + 0.75, share_x=False)
    places = {representation: place for place, representation in enumerate(names)}
    for panel, collection in zip(panels, collections, strict=True):
        lines = rows[rows["collection"] == collection]
        heights = lines["representation"].map(places)
        for stage in STAGES:
            panel.scatter(
                lines[f"q{stage}"],
                heights,
                s=30,
                facecolor=STAGE_FACES[stage],
                edgecolor=STAGE_EDGES[stage],
                linewidth=1.1,
                zorder=3,
            )
        span = lines[[f"q{stage}" for stage in STAGES]]
        panel.hlines(heights, span.min(axis=1), span.max(axis=1), color=FAINT, zorder=2)
        beside = references[references["collection"] == collection]
        reference_lines(panel, beside, float(span.to_numpy().min()), float(span.to_numpy().max()))
        panel.set_title(collection)
        panel.set_xlabel("nDCG@10")
        panel.tick_params(axis="y", length=0)
    name_rows(panels[0], names)
    present = references_in_order(references["reference"])
    lines_are = (
        f" Vertical lines are references ({joined(list(present.values()))}); one that lies far off"
        " stands above the panel as a number."
        if present
        else ""
    )
    legend(
        figure,
        [
            *(
                dot(STAGE_FACES[stage], STAGE_EDGES[stage], f"{stage}: {label}")
                for stage, label in STAGES.items()
            ),
            *(
                Line2D([], [], color=INK, ls=REFERENCE_LINES.get(name, "-"), label=label)
                for name, label in present.items()
            ),
        ],
    )
    return Drawing(
        name,
        figure,
        title or "Quality per collection",
        "For each representation, the quality of the plain inner product (open), of the inner"
        " product with saturation alone (orange) and of full BM25 (solid). A solid mark to the"
        f" right of the orange one means that IDF and length added something on top.{lines_are}"
        " Each panel has its own scale. Computed as the mean nDCG@10 over all queries with a"
        " relevant document.",
        f"Dot plot of nDCG@10 for {len(names)} representations on {len(collections)} collections,"
        " under the inner product, with saturation, and under full BM25.",
    )


def reference_lines(panel: Axes, table: pd.DataFrame, low: float, high: float) -> None:
    """Lines at the references; those far outside the rows (low, high) as text above the panel."""
    room = max(high - low, 0.02)
    far = []
    for name, value in zip(table["reference"], table["ndcg_10"], strict=True):
        if low - room <= value <= high + room:
            panel.axvline(value, color=INK, lw=1.1, ls=REFERENCE_LINES.get(name, "-"))
            low, high = min(low, value), max(high, value)
        else:
            far.append(
                f"{REFERENCE_NAMES.get(name, name)} {value:.2f} {'◂' if value < low else '▸'}"
            )
    panel.set_xlim(low - 0.08 * (high - low + 0.02), high + 0.08 * (high - low + 0.02))
    panel.locator_params(axis="x", nbins=5)
    panel.text(
        1, 1.015, ", ".join(far), transform=panel.transAxes, ha="right", va="bottom", fontsize=8.5
    )


@mpl.rc_context(SETTINGS)
def saturation(rows: pd.DataFrame, name: str = "saturation") -> Drawing:
    """phi_sat against the evenness of stored values, as it is and within collections."""
    figure = Figure(figsize=(WIDTH, 4.1), layout="constrained")
    raw, within = figure.subplots(1, 2)
    columns = ["value_cv", "shapley_saturation"]
    inside = summaries.centred(rows, columns)
    for axes, lines, title in (
        (raw, rows, "as it is"),
        (within, inside, "less each collection's mean"),
    ):
        for (basis, granularity), part in lines.groupby(["basis", "granularity"], sort=True):
            axes.scatter(
                part["value_cv"],
                part["shapley_saturation"],
                s=34,
                color=basis_colour(str(basis)),
                marker=GRANULARITY_MARKERS.get(str(granularity), "s"),
                alpha=0.85,
                linewidth=0,
            )
        found = summaries.spearman(lines, *columns)
        rho = "not defined" if math.isnan(found.rho) else f"{signed(found.rho, 2)}"
        axes.set_title(f"{title}: Spearman {rho}")
        axes.axhline(0, color=INK, lw=0.8)
        axes.set_xlabel("variation of stored values, cv")
    raw.set_ylabel("Shapley value of saturation, nDCG@10")
    bases = in_order(rows["representation"])
    known = dict.fromkeys(rows.set_index("representation")["basis"].loc[bases])
    legend(
        figure,
        [dot(basis_colour(basis), "none", basis_name(basis)) for basis in known]
        + [
            Line2D([], [], ls="", marker=marker, color=INK, ms=6, label=granularity)
            for granularity, marker in GRANULARITY_MARKERS.items()
            if granularity in set(rows["granularity"])
        ],
    )
    return Drawing(
        name,
        figure,
        "What saturation brings, against what an index shows without labels",
        "One mark per row. Left to right: the coefficient of variation of the values that the"
        " index stores (population standard deviation over mean, after the document budget). Bottom"
        " to top: the Shapley value of saturation. If the marks rise, an index with uneven values"
        " needs saturation. On the right each collection's mean is taken off both, so that what is"
        " left differs between representations and not between collections.",
        "Two scatter plots of the Shapley value of saturation against the coefficient of variation"
        f" of stored values, {len(rows)} rows.",
    )


@mpl.rc_context(SETTINGS)
def significance(
    table: pd.DataFrame, alpha: float, attainable: dict[str, float] | None, name: str = "tests"
) -> Drawing:
    """Standardised effect against Holm p, a panel per tested effect."""
    figure, panels = panels_of(len(EFFECTS), 2.5, columns=4, share_x=False)
    lowest = min(float(table[f"holm_{effect}"].min()) for effect in EFFECTS)
    for panel, effect in zip(panels, EFFECTS, strict=True):
        p, statistic = table[f"holm_{effect}"], table[f"statistic_{effect}"]
        colour = SWITCH_COLOURS.get(effect, INK)
        passed = p <= alpha
        panel.scatter(statistic[passed], p[passed], s=24, color=colour, alpha=0.8, linewidth=0)
        panel.scatter(
            statistic[~passed], p[~passed], s=22, facecolor="none", edgecolor=colour, alpha=0.8
        )
        panel.axhline(alpha, color=INK, lw=0.9, ls=(0, (4, 2)))
        if attainable:
            family = "full" if effect == "full" else "main_effects"
            panel.axhline(attainable[family], color=INK, lw=0.9, ls=(0, (1, 1.5)))
            lowest = min(lowest, attainable[family])
        panel.axvline(0, color=INK, lw=0.8)
        panel.set_title("full BM25" if effect == "full" else SWITCH_NAMES[effect])
        panel.set_xlabel("effect / sd")
        panel.set_yscale("log")
    panels[0].set_ylim(1.5, min(lowest, alpha) / 2)
    panels[0].yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    panels[0].set_ylabel("Holm p (smaller is higher)")
    lines = [Line2D([], [], color=INK, ls=(0, (4, 2)), label=f"alpha {alpha:g}")]
    if attainable:
        lines.append(Line2D([], [], color=INK, ls=(0, (1, 1.5)), label="smallest attainable"))
    legend(
        figure,
        [dot(INK, INK, "significant"), dot("none", INK, "not significant"), *lines],
    )
    return Drawing(
        name,
        figure,
        "Effect and significance",
        "One mark per row; filled marks above the dashed line are significant. To the right a"
        " switch helps, to the left it harms. The first panel tests full BM25 against the inner"
        " product, the others the main effect of each switch. Effects are divided by the standard"
        " deviation across the eight configurations; p is from a paired bootstrap over queries that"
        " recomputes both, corrected by Holm's method within two families: the first panel, and"
        " the three others together. The dotted line is the smallest corrected p that the number"
        " of draws allows.",
        f"Four scatter plots of effect size against Holm-corrected p for {len(table)} rows.",
    )


@mpl.rc_context(SETTINGS)
def ties(rows: pd.DataFrame, name: str = "ties") -> Drawing:
    """How often a tie crosses rank 10, and what breaking it by document order does to nDCG."""
    names = in_order(rows["representation"])
    figure = Figure(figsize=(WIDTH, 0.23 * len(names) + 1.2), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    means = rows.groupby("representation")
    for stage in STAGES:
        style: dict[str, Any] = {
            "s": 30,
            "facecolor": STAGE_FACES[stage],
            "edgecolor": STAGE_EDGES[stage],
            "zorder": 3,
        }
        tied = means[f"tie_share_{stage}"].mean().loc[names]
        left.scatter(tied, range(len(names)), **style)
        shift = (rows[f"expected_{stage}"] - rows[f"q{stage}"]).groupby(rows["representation"])
        right.scatter(shift.mean().loc[names], range(len(names)), **style)
    left.set_title("queries with a tie across rank 10")
    left.set_xlabel("share of queries")
    left.set_xlim(-0.03, 1.03)
    right.set_title("tie-expected less ranked nDCG@10")
    right.set_xlabel("difference")
    right.axvline(0, color=INK, lw=0.8)
    right.locator_params(axis="x", nbins=5)
    left.tick_params(axis="y", length=0)
    right.tick_params(axis="y", length=0)
    name_rows(left, names)
    legend(figure, [dot(STAGE_FACES[s], STAGE_EDGES[s], f"{s}: {STAGES[s]}") for s in STAGES])
    return Drawing(
        name,
        figure,
        "Ties",
        "Pooled PQ and RQ codes hold a few equal values, so many documents score alike. Left: the"
        " share of queries in which documents inside and outside the top ten have the same score."
        " Right: what the mean nDCG@10 would change if ties were broken at random (its expectation)"
        " and not by the order of the collection. Means over collections.",
        f"Two dot plots of tie shares and of the effect of ties, for {len(names)} representations.",
    )
