"""The figures of the study of expert routing: what rules cost, which experts they choose."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from whencount.reports.canvas import dot, legend, panels_of
from whencount.reports.drawing import Drawing
from whencount.reports.setting_style import BLUE, GREY, RED, clipped, rule_name, spread_out
from whencount.reports.style import FAINT, INK, SETTINGS
from whencount.setting_summaries.experts import LIKELIHOOD, ExpertsAnswer, RuleDifference
from whencount.setting_summaries.routing import Shift
from whencount.wording import plural, signed

PANELS_SHOWN = 15
_CURVES_SHOWN = 4
_FAR = 3.0
"""A change this many times the largest of a corrected configuration stands as a number."""


@mpl.rc_context(SETTINGS)
def changes(found: ExpertsAnswer, name: str = "changes") -> Drawing | None:
    """How far each rule is from native routing, a panel per evaluation (and model)."""
    groups: dict[tuple[str, str, int], list[RuleDifference]] = {}
    for one in found.differences:
        if one.rule != "native":
            groups.setdefault((one.evaluation, one.model, one.active), []).append(one)
    panels_wanted = list(groups.items())[:PANELS_SHOWN]
    if not panels_wanted:
        return None
    names = list(dict.fromkeys((one.rule, one.variant) for _, g in panels_wanted for one in g))
    figure, panels = panels_of(
        len(panels_wanted), 0.25 * len(names) + 0.9, columns=2, share_x=False
    )
    for panel, (key, lines) in zip(panels, panels_wanted, strict=True):
        _changes(panel, lines, names)
        panel.set_title(_title(key, found))
    panels[0].set_yticks(range(len(names)), [rule_name(*one) for one in names])
    panels[0].set_ylim(len(names) - 0.4, -0.6)
    legend(
        figure,
        [
            dot(BLUE, BLUE, "better than native routing", "o"),
            dot(RED, RED, "worse", "s"),
            dot("none", INK, "not told apart", "D"),
        ],
    )
    left = len(groups) - len(panels_wanted)
    more = f" {plural(left, 'further evaluation')} in the table alone." if left else ""
    return Drawing(
        name,
        figure,
        "What each rule changes",
        "Quality less that of native routing on the same documents; right of 0 is better. For a"
        " text that is the fall of the negative log-likelihood in nats per token, for questions the"
        " rise of accuracy. Lines are 95 % intervals of a paired bootstrap over documents or"
        " questions; an open mark has 0 in its interval. A rule that lies far off stands as a"
        " number at the border."
        f" Each panel has its own scale.{more}",
        f"Dot plots of the change of quality for {plural(len(names), 'rule')} on"
        f" {plural(len(panels_wanted), 'evaluation')}.",
    )


def _title(key: tuple[str, str, int], found: ExpertsAnswer) -> str:
    evaluation, model, active = key
    parts = [clipped(evaluation, 40)]
    parts += [clipped(model, 30)] if len(found.models) > 1 else []
    parts += [f"{active} active"] if len(found.actives) > 1 else []
    return ", ".join(parts)


def _changes(panel: Axes, lines: list[RuleDifference], names: list[tuple[str, str]]) -> None:
    near = [
        abs(end)
        for one in lines
        if one.variant
        for end in (one.difference.low, one.difference.high)
        if np.isfinite(end)
    ]
    bound = _FAR * max(near, default=0.0) or 1.0
    ends = [
        end
        for one in lines
        if abs(one.difference.mean) <= bound
        for end in (one.difference.low, one.difference.mean, one.difference.high)
    ]
    low, high = min(ends, default=-1.0), max(ends, default=1.0)
    room = 0.06 * (high - low) or 0.5
    panel.set_xlim(min(low, 0) - room, max(high, 0) + room)
    for one in lines:
        height = names.index((one.rule, one.variant))
        apart = one.difference
        if not np.isfinite(apart.mean):
            continue
        if abs(apart.mean) > bound:
            _at_the_border(panel, apart.mean, height)
            continue
        colour = INK if not apart.apart else BLUE if apart.mean > 0 else RED
        marker = "D" if not apart.apart else "o" if apart.mean > 0 else "s"
        face = "none" if not apart.apart else colour
        panel.hlines(height, apart.low, apart.high, color=colour, lw=1.5, alpha=0.75)
        panel.plot(apart.mean, height, marker, color=colour, markerfacecolor=face, ms=5, zorder=3)
    for border in _borders(names):
        panel.axhline(border, color=FAINT, lw=0.8)
    panel.axvline(0, color=INK, lw=0.8)
    unit = "nats per token" if lines[0].metric == LIKELIHOOD else "accuracy"
    panel.set_xlabel(f"change, {unit} (right is better)")
    panel.locator_params(axis="x", nbins=5)
    panel.grid(axis="y", visible=False)
    panel.tick_params(axis="y", length=0)


def _at_the_border(panel: Axes, mean: float, height: float) -> None:
    low, high = panel.get_xlim()
    left = mean < 0
    panel.annotate(
        f"◂ {signed(mean, 2)}" if left else f"{signed(mean, 2)} ▸",
        (low if left else high, height),
        xytext=(3 if left else -3, 0),
        textcoords="offset points",
        ha="left" if left else "right",
        va="center",
        fontsize=8.5,
    )


def _borders(names: Sequence[tuple[str, str]]) -> list[float]:
    return [
        place + 0.5 for place in range(len(names) - 1) if names[place][1] != names[place + 1][1]
    ]


@mpl.rc_context(SETTINGS)
def frequencies(routing: pd.DataFrame | None, name: str = "frequencies") -> Drawing | None:
    """The share of tokens that native routing sends to each expert, by rank, a curve per layer."""
    if routing is None or len(routing) == 0:
        return None
    keys = [one for one in ("model", "active", "layer", "expert") if one in routing.columns]
    known = routing.drop_duplicates(keys)
    if "active" in keys and known["active"].nunique() > 1:
        counts = known["active"].map(lambda count: f", {count} active")
        known = known.assign(model=known["model"] + counts)
    models = sorted({str(one) for one in known["model"]})[:_CURVES_SHOWN]
    figure, panels = panels_of(len(models), 3.2, columns=2)
    handles: dict[str, Line2D] = {}
    for panel, model in zip(panels, models, strict=True):
        mine = known[known["model"] == model]
        layers = sorted({int(one) for one in mine["layer"]})
        for place, layer in enumerate(layers):
            curve = np.sort(mine.loc[mine["layer"] == layer, "frequency"].to_numpy())[::-1]
            colour, style = _layer_style(place, len(layers))
            (line,) = panel.plot(
                np.arange(1, len(curve) + 1), curve, color=colour, ls=style, lw=1.5
            )
            if layer in spread_out(layers, 6):
                handles.setdefault(f"layer {layer}", Line2D([], [], color=colour, ls=style, lw=1.5))
        mean = float(mine["frequency"].mean())
        panel.axhline(mean, color=INK, lw=0.9, ls=(0, (1, 1.5)))
        if len(models) > 1:
            panel.set_title(clipped(model, 40))
        panel.set_xlabel("rank of the expert in its layer")
        panel.set_ylim(bottom=0)
    panels[0].set_ylabel("share of calibration tokens")
    for label, line in handles.items():
        line.set_label(label)
    even = Line2D([], [], color=INK, lw=0.9, ls=(0, (1, 1.5)), label="if all were equal")
    legend(figure, [*handles.values(), even])
    return Drawing(
        name,
        figure,
        "How often experts are chosen",
        "For each layer, the experts from the most to the least frequent, and the share of the"
        " calibration tokens that native routing sends to each. This frequency is what IDF sees: it"
        " lifts the experts at the right and lowers those at the left. The steeper the curve, the"
        " more there is to correct; on the dotted line all experts would be chosen equally often.",
        f"Curves of the share of tokens against the rank of the expert, for"
        f" {plural(known[['model', 'layer']].drop_duplicates().shape[0], 'layer')}.",
    )


def _layer_style(place: int, count: int) -> tuple[str, str]:
    # The lightest end of the map is too pale on white.
    shade = 0.05 + 0.75 * place / max(count - 1, 1)
    red, green, blue, _ = colormaps["cividis"](shade)
    colour = f"#{round(255 * red):02x}{round(255 * green):02x}{round(255 * blue):02x}"
    return colour, ("-", "--", "-.")[place % 3]


@mpl.rc_context(SETTINGS)
def shifts(found: Sequence[Shift], name: str = "shifts") -> Drawing | None:
    """Native frequency against the share routed under a rule, a panel per rule."""
    groups = _alike([one for one in found if not one.same])
    shown = [group[0] for group in groups[:PANELS_SHOWN]]
    if not shown:
        return None
    figure, panels = panels_of(len(shown), 2.5, columns=3)
    top = max(float(max(one.native.max(), one.share.max())) for one in shown)
    several = len({(one.model, one.active) for one in shown}) > 1
    for panel, group in zip(panels, groups, strict=False):
        one = group[0]
        up = one.share >= one.native
        panel.plot([0, top], [0, top], color=INK, lw=0.8)
        panel.plot(one.native[up], one.share[up], "^", color=BLUE, ms=4, alpha=0.75, mew=0)
        panel.plot(one.native[~up], one.share[~up], "v", color=RED, ms=4, alpha=0.75, mew=0)
        where = f", {clipped(one.model, 14)}, {one.active}" if several else ""
        names = ", ".join(rule_name(each.rule, each.variant) for each in group)
        panel.set_title(clipped(f"{names}{where}", 44))
        panel.set_xlabel("native share of tokens")
    panels[0].set_ylabel("share under the rule")
    legend(
        figure,
        [dot(BLUE, "none", "chosen more often", "^"), dot(RED, "none", "chosen less often", "v")],
    )
    same = [rule_name(one.rule, one.variant) for one in found if one.same]
    equal = f" No expert enters or leaves under {', '.join(same)}." if same else ""
    left = len(groups) - len(shown)
    more = f" {plural(left, 'further rule')} in the table alone." if left else ""
    return Drawing(
        name,
        figure,
        "Which experts enter and leave",
        "A mark per expert and layer: the share of tokens that native routing sends to it, and the"
        " share that it gets under a rule. On the line nothing changes; above it the expert enters"
        f" more often, below it leaves. Rules that route alike share a panel.{equal}{more}",
        f"Scatter plots of the share of tokens per expert under {plural(len(shown), 'rule')}"
        " against native routing.",
    )


@mpl.rc_context(SETTINGS)
def training(table: pd.DataFrame | None, name: str = "training") -> Drawing | None:
    """Loss against the step while the small model was trained."""
    if table is None or len(table) == 0:
        return None
    curves = list(curves_by_model(table))[:_CURVES_SHOWN]
    figure, panels = panels_of(len(curves), 2.8, columns=2)
    for panel, (model, ordered) in zip(panels, curves, strict=True):
        last = _curve(panel, ordered)
        if len(curves) > 1:
            panel.set_title(clipped(model, 40))
    panels[0].set_ylabel("loss, nats per token")
    legend(figure, [*panels[0].get_lines()])
    told = f"; the last on held-out text is {last}" if len(curves) == 1 else ""
    return Drawing(
        name,
        figure,
        "How the small model was trained",
        "The mean negative log-likelihood per token of the text that it was trained on and of text"
        f" held out from training{told}. A curve that still falls at"
        " the end belongs to a model that more time would make better.",
        "Line plot of training and validation loss against the step.",
    )


def _alike(found: Sequence[Shift]) -> list[list[Shift]]:
    """Rules of one model that route every token to the same experts, together."""
    groups: dict[tuple[object, ...], list[Shift]] = {}
    for one in found:
        parts = (one.share, one.entered, one.left)
        key = (one.model, one.active, *(part.tobytes() for part in parts))
        groups.setdefault(key, []).append(one)
    return list(groups.values())


def curves_by_model(table: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """The training of each model by step; one without a name where the table names none."""
    if "model" not in table.columns:
        table = table.assign(model="")
    for model, lines in table.groupby("model", sort=True):
        yield str(model), lines.sort_values("step")


def _curve(axes: Axes, ordered: pd.DataFrame) -> str:
    """Draw one; return the last loss on held-out text."""
    loss = ordered.dropna(subset="loss")
    held = ordered.dropna(subset="validation")
    axes.plot(loss["step"], loss["loss"], color=GREY, lw=1.1, label="training text")
    axes.plot(
        held["step"], held["validation"], color=BLUE, lw=1.3, marker="o", ms=4,
        label="validation text",
    )  # fmt: skip
    axes.set_xlabel("step")
    return f"{held['validation'].iloc[-1]:.2f}" if len(held) else "not known"
