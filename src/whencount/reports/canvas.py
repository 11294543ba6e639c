"""The canvas of a figure: sizes, panels, the names of rows, legends, the marks of three stages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from whencount.reports.style import INK, SWITCH_COLOURS, representation_name

WIDTH = 9.6
"""Inches; what a page shows without scrolling."""

_LETTER, _MARK = 0.075, 0.5
"""Inches of a legend that a letter takes, and a mark with the space around it."""

STAGES = {"000": "inner product", "010": "+ saturation", "111": "+ IDF and length"}
STAGE_FACES = {"000": "none", "010": SWITCH_COLOURS["saturation"], "111": INK}
STAGE_EDGES = {"000": INK, "010": SWITCH_COLOURS["saturation"], "111": INK}


def panels_of(
    count: int,
    height: float,
    *,
    columns: int = 3,
    share_x: bool = True,
    share_y: bool = True,
) -> tuple[Figure, list[Axes]]:
    """A figure of `count` panels of one height in inches, filled row by row."""
    across = min(columns, count)
    down = math.ceil(count / across)
    width = WIDTH if across > 1 else 0.62 * WIDTH
    figure = Figure(figsize=(width, height * down + 0.35), layout="constrained")
    grid = figure.subplots(
        down,
        across,
        squeeze=False,
        sharey="all" if share_y else "none",
        sharex="all" if share_x else "none",
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


def dot(face: str, edge: str, label: str, marker: str = "o") -> Line2D:
    return Line2D(
        [], [], ls="", marker=marker, ms=6, markerfacecolor=face, markeredgecolor=edge, label=label
    )


def legend(figure: Figure, handles: Sequence[Line2D]) -> None:
    """A legend above the panels, in as many columns as the figure has room for."""
    width = float(figure.get_size_inches()[0])
    figure.legend(
        handles=list(handles),
        loc="outside upper left",
        ncols=_legend_columns([str(handle.get_label()) for handle in handles], width),
        handletextpad=0.5,
        columnspacing=1.6,
    )


def _legend_columns(labels: Sequence[str], width: float) -> int:
    """At most five columns, or six of a single line; fewer where they are wider than the figure."""
    count = len(labels)
    for columns in range(5 if count > 6 else count, 1, -1):
        # Matplotlib fills column by column, the first ones with one more where it does not divide.
        most, longer = divmod(count, columns)
        starts = [place * most + min(place, longer) for place in range(columns + 1)]
        longest = [
            max(len(label) for label in labels[start:end]) for start, end in pairwise(starts)
        ]
        if sum(longest) * _LETTER + columns * _MARK <= width:
            return columns
    return 1
