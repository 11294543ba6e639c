"""Figures of the study of learned sparse vectors."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pandas as pd

from whencount.reports.canvas import dot, legend, panels_of
from whencount.reports.drawing import Drawing
from whencount.reports.learned_style import marks_of
from whencount.reports.style import FAINT, SETTINGS
from whencount.wording import plural


@mpl.rc_context(SETTINGS)
def equal_weights(costs: pd.DataFrame) -> Drawing | None:
    """Posting work and effective support of each model over the baseline, at equal weights."""
    shown = costs[costs["cut"] == "equal"]
    if shown.empty:
        return None
    collections = sorted(shown["collection"].unique())
    marks = marks_of(dict.fromkeys(shown["model"]))
    parts = {"posting_work_ratio": "posting work", "support_ratio": "effective support"}
    figure, panels = panels_of(2, 0.45 * len(collections) + 0.9, columns=2)
    offsets = np.linspace(-0.2, 0.2, len(marks)) if len(marks) > 1 else [0.0]
    for panel, (column, words) in zip(panels, parts.items(), strict=True):
        for (name, mark), offset in zip(marks.items(), offsets, strict=True):
            mine = shown[shown["model"] == name].set_index("collection").reindex(collections)
            heights = np.arange(len(collections)) + offset
            panel.plot(mine[column], heights, mark.marker, color=mark.colour, linestyle="none")
        panel.axvline(1.0, color=FAINT, zorder=0)
        panel.set_yticks(range(len(collections)), collections)
        panel.set_xscale("log")
        panel.set_xlabel(f"{words}, times that of the baseline")
    legend(figure, [dot(m.colour, m.colour, n, m.marker) for n, m in marks.items()])
    return Drawing(
        "equal_weights",
        figure,
        "At an equal number of stored weights",
        "Both models are cut to the same number of weights, so that only where the weights stand"
        " differs. Left of the line on the left panel: a query touches fewer postings. Right of it"
        " on the right panel: documents spread their weights over more features.",
        f"Ratios of {plural(len(marks), 'model')} to the baseline on"
        f" {plural(len(collections), 'collection')}.",
    )


@mpl.rc_context(SETTINGS)
def training(table: pd.DataFrame) -> Drawing | None:
    """Loss and the weight of FLOPS by step."""
    if table.empty:
        return None
    marks = marks_of(dict.fromkeys(table["model"]))
    figure, panels = panels_of(2, 2.4, columns=2)
    parts = {
        "base_loss": "ranking loss (nats)",
        "document_regularizer_weight": "weight of FLOPS",
    }
    for panel, (column, words) in zip(panels, parts.items(), strict=True):
        for name, mark in marks.items():
            mine = table[table["model"] == name]
            panel.plot(mine["step"], mine[column].fillna(0.0), color=mark.colour)
        panel.set_xlabel("step")
        panel.set_ylabel(words)
        panel.set_ylim(bottom=0)
    legend(figure, [dot(m.colour, m.colour, n, m.marker) for n, m in marks.items()])
    return Drawing(
        "training",
        figure,
        "Training",
        "The ranking loss of a step's pairs, and the weight of the FLOPS regulariser, which rises"
        " with the square of the step and then stays.",
        f"Loss and weight by step of {plural(len(marks), 'model')}.",
    )
