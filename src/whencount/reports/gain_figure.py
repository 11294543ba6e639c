"""The figure of G: what length and IDF add on top of saturation, as coloured tables."""

from __future__ import annotations

import math

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, TwoSlopeNorm
from matplotlib.figure import Figure

from whencount.reports.canvas import WIDTH
from whencount.reports.drawing import Drawing
from whencount.reports.style import SETTINGS, in_order, representation_name
from whencount.wording import signed

_DIVERGING = LinearSegmentedColormap.from_list(
    "harm_help", ["#b2502a", "#eba887", "#f4f2ef", "#93b9e6", "#2f66b0"]
)

_PARTS = {
    "length: Q011 − Q010": ("q011", "q010"),
    "then IDF: Q111 − Q011": ("q111", "q011"),
    "both, G: Q111 − Q010": ("q111", "q010"),
}

_BESIDE = 4
"""With more collections the three tables stand below each other."""


@mpl.rc_context(SETTINGS)
def collection_gain(rows: pd.DataFrame, name: str = "collection_gain") -> Drawing:
    """What length adds to saturation, what IDF adds to both, and their sum G, per row."""
    names = in_order(rows["representation"])
    tables = {
        title: rows.assign(_added=rows[on] - rows[off])
        .pivot_table(index="representation", columns="collection", values="_added")
        .loc[names]
        for title, (on, off) in _PARTS.items()
    }
    collections = list(next(iter(tables.values())).columns)
    beside = len(collections) <= _BESIDE
    height = 0.29 * len(names) + 1.2
    if beside:
        figure = Figure(
            figsize=(min(WIDTH, 2.2 + 2.25 * len(collections)), height), layout="constrained"
        )
        panels = list(figure.subplots(1, len(tables), sharey=True))
    else:
        figure = Figure(
            figsize=(min(WIDTH, 2.4 + 0.75 * len(collections)), len(tables) * height),
            layout="constrained",
        )
        panels = list(figure.subplots(len(tables), 1))
    # One scale, so that the parts can be compared with their sum.
    every = np.concatenate([table.to_numpy(dtype=np.float64) for table in tables.values()])
    bound = float(np.nanmax(np.abs(every), initial=0.0)) or 1.0
    for panel, (title, table) in zip(panels, tables.items(), strict=True):
        _coloured(panel, table, bound, names)
        panel.set_title(title)
        if len(collections) > 2:
            _turned(panel)
    panels[0].invert_yaxis()
    if not beside:
        for panel in panels[1:]:
            panel.invert_yaxis()
    total = tables["both, G: Q111 − Q010"].to_numpy(dtype=np.float64)
    return Drawing(
        name,
        figure,
        "What collection statistics add on top of saturation",
        "In nDCG@10: blue where something helps, orange where it harms; one scale for all. First"
        " what length adds to saturation, then what IDF adds to the two, then their sum"
        " <i>G</i> = <i>Q</i><sub>111</sub> − <i>Q</i><sub>010</sub>. Where a row or column of the"
        " last is orange, saturation alone is the better scorer there; the first two say which"
        " of the statistics is to blame.",
        f"Tables of G and its two parts for {len(names)} representations on {len(collections)}"
        f" collections; G goes from {signed(float(np.nanmin(total)), 3)} to"
        f" {signed(float(np.nanmax(total)), 3)}.",
    )


def _coloured(axes: Axes, table: pd.DataFrame, bound: float, names: list[str]) -> None:
    values = table.to_numpy(dtype=np.float64)
    axes.pcolormesh(
        values, cmap=_DIVERGING, norm=TwoSlopeNorm(0, -bound, bound), edgecolor="white", lw=1.5
    )
    for (row, column), value in np.ndenumerate(values):
        if math.isfinite(value):
            axes.text(
                column + 0.5,
                row + 0.5,
                signed(float(value), 3),
                ha="center",
                va="center",
                fontsize=8,
                color="white" if abs(value) > 0.72 * bound else "#20242c",
            )
    axes.set_xticks(np.arange(len(table.columns)) + 0.5, list(table.columns))
    axes.set_yticks(np.arange(len(names)) + 0.5, [representation_name(one) for one in names])
    axes.grid(visible=False)
    axes.tick_params(length=0)
    for side in axes.spines.values():
        side.set_visible(False)


def _turned(axes: Axes) -> None:
    axes.tick_params(axis="x", rotation=40)
    for label in axes.get_xticklabels():
        label.set_horizontalalignment("right")
        label.set_rotation_mode("anchor")
