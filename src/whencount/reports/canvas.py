"""The canvas of a figure: sizes, panels, the names of rows, legends, the marks of three stages."""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from whencount.reports.style import INK, SWITCH_COLOURS, representation_name

WIDTH = 9.6
"""Inches; what a page shows without scrolling."""

STAGES = {"000": "inner product", "010": "+ saturation", "111": "+ IDF and length"}
STAGE_FACES = {"000": "none", "010": SWITCH_COLOURS["saturation"], "111": INK}
STAGE_EDGES = {"000": INK, "010": SWITCH_COLOURS["saturation"], "111": INK}


def panels_of(
    count: int, height: float, *, columns: int = 3, share_x: bool = True
) -> tuple[Figure, list[Axes]]:
    """A figure of `count` panels of one height in inches, filled row by row."""
    across = min(columns, count)
    down = math.ceil(count / across)
    width = WIDTH if across > 1 else 0.62 * WIDTH
    figure = Figure(figsize=(width, height * down + 0.35), layout="constrained")
    grid = figure.subplots(
        down, across, squeeze=False, sharey="all", sharex="all" if share_x else "none"
    )
    panels = list(grid.reshape(-1))
    for spare in panels[count:]:
        spare.remove()
    for panel in panels[:count]:
        panel.tick_params(labelbottom=True)
    return figure, panels[:count]


def name_rows(axes: Axes, names: Sequence[str]) -> None:
    axes.set_yticks(range(len(names)), [representation_name(name) for name in names])
    axes.set_ylim(len(names) - 0.4, -0.6)


def dot(face: str, edge: str, label: str) -> Line2D:
    return Line2D(
        [], [], ls="", marker="o", ms=6, markerfacecolor=face, markeredgecolor=edge, label=label
    )


def legend(figure: Figure, handles: Sequence[Line2D]) -> None:
    figure.legend(
        handles=list(handles),
        loc="outside upper left",
        ncols=5 if len(handles) > 6 else len(handles),
        handletextpad=0.5,
        columnspacing=1.6,
    )
