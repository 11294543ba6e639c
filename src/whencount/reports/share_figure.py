"""The figure of shares: which switch carries the gain, over all rows and over parts of them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from whencount import summaries
from whencount.reports.canvas import WIDTH, dot, legend
from whencount.reports.drawing import Drawing
from whencount.reports.style import (
    BASIS_NAMES,
    INK,
    SETTINGS,
    SWITCH_COLOURS,
    SWITCH_NAMES,
    basis_name,
)
from whencount.scoring import SWITCHES
from whencount.summaries import Share, ShareGroup


@mpl.rc_context(SETTINGS)
def shares(table: pd.DataFrame, name: str = "shares") -> Drawing:
    """Share of the gain per switch with its interval, over all rows and over parts of them."""
    groups = in_order_of_study(summaries.share_groups(table))
    figure = Figure(figsize=(WIDTH * 0.82, 0.36 * len(groups) + 1.2), layout="constrained")
    axes = figure.subplots()
    limits = _limits(groups)
    height, ticks, labels, before = 0.0, [], [], groups[0].scope
    for group in groups:
        height += 1.0 + 0.5 * (group.scope != before)
        before = group.scope
        ticks.append(height)
        loss = ", loss" if group.gain < 0 else ""
        labels.append(f"{group_name(group)} ({group.rows}{loss})")
        for share, offset in zip(group.shares, (-0.24, 0.0, 0.24), strict=True):
            _mark(axes, share, height + offset, limits)
    axes.axvline(0, color=INK, lw=0.8)
    axes.set_xlim(*limits)
    axes.set_yticks(ticks, labels)
    axes.set_ylim(height + 0.7, 0.3)
    axes.grid(axis="y", visible=False)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("share of the gain of full BM25 over the inner product")
    axes.xaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
    legend(figure, [dot(SWITCH_COLOURS[s], SWITCH_COLOURS[s], SWITCH_NAMES[s]) for s in SWITCHES])
    return Drawing(
        name,
        figure,
        "Share of the gain per switch",
        "How much of the summed gain <i>Q</i><sub>111</sub> − <i>Q</i><sub>000</sub> each switch"
        " carries: its Shapley values summed over the rows of a group, divided by their summed"
        " gain; the three shares of a group add up to 100 %. Lines are 95 % intervals that"
        " resample whole collections; a group within one collection has none. The number of rows"
        " stands in brackets; <i>loss</i> says that full BM25 makes the group worse: its shares are"
        " of that loss. A triangle at the border marks a share beyond it, which happens where the"
        " summed gain is near 0; a group whose gain is 0 has no share.",
        "Dot plot with intervals: the share of the gain carried by IDF, saturation and length, over"
        f" all rows and over {len(groups) - 1} groups of them.",
    )


def in_order_of_study(groups: Sequence[ShareGroup]) -> list[ShareGroup]:
    """The groups as they come, bases in the order of the study."""
    scopes = list(dict.fromkeys(group.scope for group in groups))
    known = list(BASIS_NAMES)

    def place(group: ShareGroup) -> tuple[int, int]:
        return (
            scopes.index(group.scope),
            known.index(group.value) if group.value in known else len(known),
        )

    return sorted(groups, key=place)


def group_name(group: ShareGroup) -> str:
    """What a reader calls the group."""
    if group.scope == "all":
        return "all rows"
    return basis_name(group.value) if group.scope == "basis" else group.value


def _mark(axes: Axes, share: Share, height: float, limits: tuple[float, float]) -> None:
    if math.isnan(share.share):
        return
    colour = SWITCH_COLOURS[share.switch]
    for limit, marker, outside in (
        (limits[0], "<", share.share < limits[0]),
        (limits[1], ">", share.share > limits[1]),
    ):
        if outside:
            axes.plot(limit, height, marker, color=colour, ms=6, clip_on=False, zorder=4)
            return
    if share.has_interval:
        axes.hlines(height, share.low, share.high, color=colour, lw=1.8, alpha=0.75)
    axes.plot(share.share, height, "o", color=colour, ms=5.5, zorder=3)


def _limits(groups: Sequence[ShareGroup]) -> tuple[float, float]:
    """Wide enough for all shares and intervals, but no wider than -50 to 150 %."""
    ends = [
        end
        for group in groups
        for share in group.shares
        for end in (share.share, share.low, share.high)
        if math.isfinite(end)
    ]
    return max(min([0.0, *ends]), -0.5) - 0.03, min(max([1.0, *ends]), 1.5) + 0.03
