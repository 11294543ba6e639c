"""The figures on what can be told without labels: predictors, rankings, the decision rule."""

from __future__ import annotations

import math
from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from whencount.naming import Representation
from whencount.reports.canvas import WIDTH, dot, legend, name_rows, panels_of
from whencount.reports.drawing import Drawing
from whencount.reports.prediction_words import (
    AXIS_NAMES,
    TARGET_NAMES,
    TIER_NAMES,
    Best,
    best_predictors,
)
from whencount.reports.style import (
    GRANULARITY_MARKERS,
    INK,
    REFERENCE_NAMES,
    SETTINGS,
    SWITCH_COLOURS,
    SWITCH_NAMES,
    basis_colour,
    basis_name,
    in_order,
)
from whencount.scoring import SWITCHES

_AXIS_COLOURS = {"family": "#b5479d", "corpus": "#3b7dd8", "parameters": "#c79a1b"}
_LOWEST_R2 = -1.0
_KEYS = ("target", "predictors", "model", "axis")
_RULES = {"never": "never (010)", "rule": "rule", "oracle": "oracle"}


@mpl.rc_context(SETTINGS)
def tiers(predictors: pd.DataFrame | None, name: str = "tiers") -> Drawing | None:
    """Held-out R² of the ridge models per tier, a panel per target, a mark per axis."""
    if predictors is None:
        return None
    lines = predictors[(predictors["model"] == "ridge") & predictors["axis"].isin(_AXIS_COLOURS)]
    lines = lines[np.isfinite(lines["r2"].astype(float))]
    targets = [target for target in TARGET_NAMES if target in set(lines["target"])]
    if not targets:
        return None
    known = [tier for tier in TIER_NAMES if tier in set(lines["predictors"])]
    known += sorted(set(lines["predictors"]) - set(known))
    figure, panels = panels_of(len(targets), 0.27 * len(known) + 0.9, columns=3)
    for panel, target in zip(panels, targets, strict=True):
        part = lines[lines["target"] == target]
        for axis, colour in _AXIS_COLOURS.items():
            marks = part[part["axis"] == axis]
            for tier, value in zip(marks["predictors"], marks["r2"], strict=True):
                low = value < _LOWEST_R2
                panel.plot(
                    max(float(value), _LOWEST_R2),
                    known.index(tier) + 0.2 * (list(_AXIS_COLOURS).index(axis) - 1),
                    "<" if low else "o",
                    color=colour,
                    ms=6,
                    clip_on=False,
                )
        panel.axvline(0, color=INK, lw=0.8)
        panel.set_xlim(_LOWEST_R2, 1)
        panel.set_title(TARGET_NAMES[target])
        panel.set_xlabel("held-out R²")
        panel.tick_params(axis="y", length=0)
    panels[0].set_yticks(range(len(known)), [TIER_NAMES.get(tier, tier) for tier in known])
    panels[0].set_ylim(len(known) - 0.4, -0.6)
    legend(
        figure,
        [
            dot(colour, colour, AXIS_NAMES[axis])
            for axis, colour in _AXIS_COLOURS.items()
            if axis in set(lines["axis"])
        ],
    )
    return Drawing(
        name,
        figure,
        "What predicts the effects",
        "Ridge models fitted on some rows and asked for others: for bases of a family, or for"
        " corpora, that were held out, or for other <i>k</i>1 and <i>b</i>. A mark at 1 is perfect,"
        " at 0 no better than the mean of the rows asked for, left of 0 worse; a triangle at the"
        " border is worse than −1. Tiers are cumulative: each has the predictors of those above"
        " it, the last ones pseudo-labels (a reference's top ten taken as relevant). Look for tiers"
        " that lie right of 0 for all held-out parts.",
        f"Dot plots of held-out R squared of {len(known)} tiers of predictors for"
        f" {len(targets)} targets.",
    )


@mpl.rc_context(SETTINGS)
def predicted(
    predictions: pd.DataFrame | None,
    predictors: pd.DataFrame | None,
    axis: str = "corpus",
    name: str = "predicted",
) -> Drawing | None:
    """Predicted against observed, a panel per target, for the best predictors of each."""
    if predictions is None or predictors is None:
        return None
    best = [one for one in best_predictors(predictors, axis) if one.target in TARGET_NAMES]
    if not best:
        return None
    across = min(3, len(best))
    down = math.ceil(len(best) / across)
    figure = Figure(figsize=(WIDTH, 3.2 * down + 0.4), layout="constrained")
    # Targets differ in scale, so no panel shares an axis with another.
    panels = list(figure.subplots(down, across, squeeze=False).reshape(-1))
    for spare in panels[len(best) :]:
        spare.remove()
    bases: dict[str, None] = {}
    for panel, one in zip(panels, best, strict=False):
        lines = _of(predictions, one)
        ends = []
        for basis, granularity, part in _by_representation(lines):
            bases[basis] = None
            panel.scatter(
                part["observed"],
                part["predicted"],
                s=26,
                color=basis_colour(basis),
                marker=GRANULARITY_MARKERS.get(granularity, "s"),
                alpha=0.8,
                linewidth=0,
            )
            ends += [*part["observed"], *part["predicted"]]
        low, high = min(ends, default=0.0), max(ends, default=1.0)
        room = 0.06 * (high - low or 1.0)
        panel.axline((0, 0), slope=1, color=INK, lw=0.8, ls=(0, (4, 2)))
        panel.axhline(0, color=INK, lw=0.6)
        panel.axvline(0, color=INK, lw=0.6)
        panel.set_xlim(low - room, high + room)
        panel.set_ylim(low - room, high + room)
        panel.set_title(f"{TARGET_NAMES[one.target]}\n{_short(one)}", fontsize=9)
        panel.set_xlabel("observed")
    panels[0].set_ylabel("predicted")
    legend(
        figure,
        [dot(basis_colour(basis), "none", basis_name(basis)) for basis in _ordered(bases)]
        + [
            Line2D([], [], ls="", marker=marker, color=INK, ms=6, label=granularity)
            for granularity, marker in GRANULARITY_MARKERS.items()
        ],
    )
    return Drawing(
        name,
        figure,
        "Predicted against observed",
        f"One mark per row, predicted by a model that was fitted without {AXIS_NAMES[axis]}: the"
        " predictors with the largest held-out R² for each target, named above the panel. On the"
        " dashed line the prediction is exact; in the upper left and lower right quarter its sign"
        " is wrong.",
        f"Scatter plots of predicted against observed values for {len(best)} targets.",
    )


@mpl.rc_context(SETTINGS)
def decisions(table: pd.DataFrame | None, name: str = "decisions") -> Drawing | None:
    """What never, the rule and the oracle are worth against always, per collection."""
    if table is None:
        return None
    references = [one for one in REFERENCE_NAMES if one in set(table["reference"])]
    references += sorted(set(table["reference"]) - set(references))
    if not references:
        return None
    places: dict[tuple[str, str], int] = {}
    for scope, value in zip(table["scope"], table["value"], strict=True):
        places.setdefault((scope, value), len(places))
    figure, panels = panels_of(len(references), 0.33 * len(places) + 0.9)
    faces = {"never": "none", "rule": SWITCH_COLOURS["idf"], "oracle": INK}
    edges = {"never": INK, "rule": SWITCH_COLOURS["idf"], "oracle": INK}
    for panel, reference in zip(panels, references, strict=True):
        lines = table[table["reference"] == reference]
        heights = [places[key] for key in zip(lines["scope"], lines["value"], strict=True)]
        for rule in _RULES:
            panel.scatter(
                lines[rule] - lines["always"],
                heights,
                s=32,
                facecolor=faces[rule],
                edgecolor=edges[rule],
                zorder=3,
            )
        panel.hlines(heights, lines["low"], lines["high"], color=SWITCH_COLOURS["idf"], lw=1.6)
        panel.axvline(0, color=INK, lw=0.8)
        panel.set_title(REFERENCE_NAMES.get(reference, reference))
        panel.set_xlabel("nDCG@10 less that of always")
        panel.tick_params(axis="y", length=0)
        panel.locator_params(axis="x", nbins=5)
    labels = ["all rows" if scope == "all" else value for scope, value in places]
    panels[0].set_yticks(range(len(labels)), labels)
    panels[0].set_ylim(len(labels) - 0.4, -0.6)
    legend(figure, [dot(faces[rule], edges[rule], label) for rule, label in _RULES.items()])
    return Drawing(
        name,
        figure,
        "Whether to use collection statistics, decided without labels",
        "Mean nDCG@10 of three ways to choose between saturation alone (010) and full BM25 (111),"
        " less that of always choosing 111 (the line at 0). The rule chooses 111 where the"
        " pseudo-labels of a reference say that it helps; the oracle knows the labels. The further"
        " the rule lies on the way from 0 to the oracle, the better; left of 0 it does harm. Lines"
        " are 95 % intervals that resample whole collections.",
        f"Dot plots of never, rule and oracle against always for {len(references)} references.",
    )


@mpl.rc_context(SETTINGS)
def disruption(rows: pd.DataFrame, name: str = "disruption") -> Drawing | None:
    """How much of the top ten each switch exchanges, mean over collections."""
    columns = [f"disruption_{switch}" for switch in SWITCHES]
    if not set(columns) <= set(rows.columns) or rows[columns].isna().all(axis=None):
        return None
    names = in_order(rows["representation"])
    means = rows.groupby("representation")[columns].mean().loc[names]
    figure = Figure(figsize=(WIDTH * 0.75, 0.24 * len(names) + 1.2), layout="constrained")
    axes = figure.subplots()
    for switch, column, offset in zip(SWITCHES, columns, (-0.18, 0.0, 0.18), strict=True):
        axes.plot(
            means[column],
            np.arange(len(names)) + offset,
            "o",
            color=SWITCH_COLOURS[switch],
            ms=5.5,
        )
    name_rows(axes, names)
    axes.set_xlim(-0.02, 1.02)
    axes.set_xlabel("share of the top ten that is exchanged")
    axes.tick_params(axis="y", length=0)
    legend(figure, [dot(SWITCH_COLOURS[s], SWITCH_COLOURS[s], SWITCH_NAMES[s]) for s in SWITCHES])
    return Drawing(
        name,
        figure,
        "How much each switch changes the ranking",
        "Disruption: 1 − |top 10 ∩ top 10′| / 10, the share of the ten best documents that"
        " switching something on exchanges; mean over queries, over the four pairs of"
        " configurations that differ in that switch alone, and over collections. It needs no"
        " labels. At 0 a switch changes nothing and can bring nothing; a switch that exchanges much"
        " may help or harm.",
        f"Dot plot of the disruption by each switch for {len(names)} representations.",
    )


def _of(predictions: pd.DataFrame, best: Best) -> pd.DataFrame:
    chosen = pd.Series(True, index=predictions.index)
    for key in _KEYS:
        chosen &= predictions[key] == getattr(best, key)
    return predictions[chosen].dropna(subset=["observed", "predicted"])


def _by_representation(lines: pd.DataFrame) -> list[tuple[str, str, pd.DataFrame]]:
    return [
        (_basis(str(name)), Representation.parse(str(name)).granularity, part)
        for name, part in lines.groupby("representation", sort=True)
    ]


def _basis(name: str) -> str:
    parsed = Representation.parse(name)
    return f"{parsed.basis}_shared" if parsed.shared else parsed.basis


def _ordered(bases: Sequence[str] | dict[str, None]) -> list[str]:
    names = in_order(f"{basis}_token" for basis in bases)
    return list(dict.fromkeys(_basis(name) for name in names))


def _short(best: Best) -> str:
    tier = TIER_NAMES.get(best.predictors, best.predictors)
    r2 = "" if math.isnan(best.r2) else f", R² {best.r2:.2f}".replace("-", "−")
    return f"{tier}{r2}"
