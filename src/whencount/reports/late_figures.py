"""Figures of the study of late interaction."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pandas as pd

from whencount.reports.canvas import dot, legend, panels_of
from whencount.reports.drawing import Drawing
from whencount.reports.late_style import ARM_MARKS, STAGE_NAMES, arm_name
from whencount.reports.setting_style import BLUE, RED, clipped
from whencount.reports.style import FAINT, SETTINGS
from whencount.wording import plural


@mpl.rc_context(SETTINGS)
def qualities(rows: pd.DataFrame) -> Drawing | None:
    """nDCG@10 of every arm on every collection."""
    if rows.empty:
        return None
    collections = sorted(rows["collection"].unique())
    marks = {name: mark for name, mark in ARM_MARKS.items() if name in set(rows["arm"])}
    figure, panels = panels_of(1, 0.5 * len(collections) + 0.9, columns=1)
    panel = panels[0]
    offsets = np.linspace(-0.3, 0.3, len(marks))
    for (name, mark), offset in zip(marks.items(), offsets, strict=True):
        mine = rows[rows["arm"] == name].set_index("collection").reindex(collections)
        heights = np.arange(len(collections)) + offset
        panel.plot(mine["ndcg_10"], heights, mark.marker, color=mark.colour, ms=5)
    for border in np.arange(len(collections) - 1) + 0.5:
        panel.axhline(border, color=FAINT, lw=0.8)
    panel.set_yticks(range(len(collections)), [clipped(one, 30) for one in collections])
    panel.set_ylim(len(collections) - 0.4, -0.6)
    panel.set_xlabel("nDCG@10")
    legend(figure, [dot(m.colour, m.colour, arm_name(n), m.marker) for n, m in marks.items()])
    return Drawing(
        "qualities",
        figure,
        "The score, its ablations and its compressed forms",
        "Each ablation takes one thing away: several vectors per text, the maximum, or the [MASK]"
        " tokens that fill a query up (or adds these, where the encoder never learned to use them)."
        " The compressed forms keep a centroid and one or two bits per number of a token vector.",
        f"nDCG@10 of {plural(len(marks), 'score')} on {plural(len(collections), 'collection')}.",
    )


@mpl.rc_context(SETTINGS)
def survivors(funnel: pd.DataFrame) -> Drawing | None:
    """Share of the exhaustive first documents that each stage keeps."""
    if funnel.empty:
        return None
    collections = sorted(funnel["collection"].unique())
    stages = [one for one in STAGE_NAMES if one in set(funnel["stage"])]
    shown = funnel[funnel["bits"] == funnel["bits"].max()]
    figure, panels = panels_of(len(collections), 2.3, columns=3)
    colours = dict(zip(sorted(shown["cutoff"].unique()), (BLUE, RED), strict=False))
    for panel, collection in zip(panels, collections, strict=True):
        mine = shown[shown["collection"] == collection]
        for cutoff, colour in colours.items():
            line = mine[mine["cutoff"] == cutoff].set_index("stage").reindex(stages)
            panel.plot(range(len(stages)), line["share"], "o-", color=colour)
        panel.set_xticks(range(len(stages)), [STAGE_NAMES[one] for one in stages], rotation=30)
        panel.set_ylim(0, 1.04)
        panel.set_title(clipped(collection, 30))
    panels[0].set_ylabel("share that is left")
    legend(figure, [dot(c, c, f"of the first {n}", "o") for n, c in colours.items()])
    return Drawing(
        "survivors",
        figure,
        "What a funnel loses, stage by stage",
        "Of the documents that exhaustive exact search puts first, how many are still there after"
        " each stage. What an early stage drops, no later one brings back.",
        f"Shares by stage on {plural(len(collections), 'collection')}.",
    )
