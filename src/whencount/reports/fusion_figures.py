"""Figures of the study of two arms."""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from whencount.fusion.events import EVENTS
from whencount.reports.canvas import dot, legend, panels_of
from whencount.reports.drawing import Drawing
from whencount.reports.fusion_style import (
    POLICY_MARKS,
    POLICY_NAMES,
    RULE_MARKS,
    rule_name,
)
from whencount.reports.setting_style import BLUE, GREEN, RED, YELLOW, Mark, clipped
from whencount.reports.style import FAINT, INK, SETTINGS
from whencount.wording import plural

_EVENT_NAMES = {
    "intruder_lifted": "intruder: dense row that was lifted",
    "intruder_lexical_only": "intruder: from the lexical list alone",
    "pushed_out_despite_vote": "relevant row pushed out despite a lexical vote",
    "pushed_out_without_vote": "relevant row pushed out without one",
}
_EVENT_COLOURS = dict(zip(_EVENT_NAMES, (YELLOW, RED, BLUE, GREEN), strict=True))


@mpl.rc_context(SETTINGS)
def differences(rules: pd.DataFrame) -> Drawing | None:
    """Each rule's difference from the dense order, a panel per dense arm."""
    shown = rules[rules["rule"] != "dense_first"]
    if shown.empty:
        return None
    names = [one for one in dict.fromkeys(shown["rule"]) if one in RULE_MARKS]
    marks = {name: RULE_MARKS[name] for name in names}
    figure = _panels(shown, "rule", "difference", marks, "nDCG@10 less that of the dense order")
    legend(figure, [dot(m.colour, m.colour, rule_name(n), m.marker) for n, m in marks.items()])
    return Drawing(
        "differences",
        figure,
        "Every rule against the dense order",
        "Right of the line a rule is better than the dense order alone, left of it worse. Bars are"
        " 95 % intervals of a paired bootstrap over queries. The oracle takes the best constant"
        " rule for each query, which needs labels.",
        f"Differences of {plural(len(names), 'rule')} from the dense order on"
        f" {plural(shown['collection'].nunique(), 'collection')}.",
    )


@mpl.rc_context(SETTINGS)
def decisions(table: pd.DataFrame) -> Drawing | None:
    """Quality of each policy, a panel per dense arm."""
    if table.empty:
        return None
    figure = _panels(table, "policy", "ndcg_10", POLICY_MARKS, "nDCG@10")
    legend(
        figure,
        [dot(m.colour, m.colour, POLICY_NAMES[n], m.marker) for n, m in POLICY_MARKS.items()],
    )
    return Drawing(
        "decisions",
        figure,
        "To fuse or not to fuse, without labels",
        "Each arm's top ten judges for the other: where RRF gains more by the lexical arm's"
        " judgement than it loses by the dense arm's, fuse. The oracle of the two knows the"
        " labels.",
        "Mean nDCG@10 of five policies on every collection.",
    )


def _panels(
    table: pd.DataFrame, key: str, value: str, marks: Mapping[str, Mark], label: str
) -> Figure:
    arms = list(dict.fromkeys(table["dense_arm"]))
    collections = sorted(table["collection"].unique())
    figure, panels = panels_of(len(arms), 0.55 * len(collections) + 0.9, columns=2)
    offsets = np.linspace(-0.36, 0.36, len(marks))
    for panel, arm in zip(panels, arms, strict=True):
        here = table[table["dense_arm"] == arm]
        for (name, mark), offset in zip(marks.items(), offsets, strict=True):
            mine = here[here[key] == name].set_index("collection").reindex(collections)
            heights = np.arange(len(collections)) + offset
            if "low" in mine:
                panel.hlines(
                    heights, mine["low"], mine["high"], color=mark.colour, lw=1.4, alpha=0.7
                )
            panel.plot(mine[value], heights, mark.marker, color=mark.colour, ms=5, zorder=3)
        if value == "difference":
            panel.axvline(0, color=INK, lw=0.9, zorder=1)
        for border in np.arange(len(collections) - 1) + 0.5:
            panel.axhline(border, color=FAINT, lw=0.8)
        panel.set_yticks(range(len(collections)), [clipped(one, 30) for one in collections])
        panel.set_ylim(len(collections) - 0.4, -0.6)
        panel.set_title(f"dense arm: {clipped(str(arm), 40)}")
        panel.set_xlabel(label)
    return figure


@mpl.rc_context(SETTINGS)
def events(table: pd.DataFrame) -> Drawing | None:
    """What each rule does to the dense top ten, events per query."""
    if table.empty or not table["queries"].sum():
        return None
    arms = list(dict.fromkeys(table["dense_arm"]))
    names = list(dict.fromkeys(table["rule"]))
    figure, panels = panels_of(len(arms), 0.42 * len(names) + 0.9, columns=2)
    for panel, arm in zip(panels, arms, strict=True):
        mine = table[table["dense_arm"] == arm].groupby("rule")[[*EVENTS, "queries"]].sum()
        mine = mine.reindex(names)
        left = np.zeros(len(names))
        for event, colour in _EVENT_COLOURS.items():
            share = (mine[event] / mine["queries"]).to_numpy(dtype=np.float64)
            panel.barh(np.arange(len(names)), share, left=left, color=colour, height=0.6)
            left += np.nan_to_num(share)
        panel.set_yticks(range(len(names)), [rule_name(one) for one in names])
        panel.set_ylim(len(names) - 0.4, -0.6)
        panel.set_title(f"dense arm: {clipped(str(arm), 40)}")
        panel.set_xlabel("rows per query")
    legend(figure, [_square(_EVENT_COLOURS[one], _EVENT_NAMES[one]) for one in _EVENT_NAMES])
    return Drawing(
        "events",
        figure,
        "What a rule does to the dense top ten",
        "Irrelevant rows that a rule brings in, and relevant ones that it pushes out, over all"
        " queries of all collections.",
        f"Bars of four kinds of event for {plural(len(names), 'rule')}.",
    )


@mpl.rc_context(SETTINGS)
def nulls(table: pd.DataFrame) -> Drawing | None:
    """How often held-out irrelevant pairs have small tails, against the level."""
    known = table.dropna(subset=["rate"])
    if known.empty:
        return None
    kinds = list(dict.fromkeys(zip(known["null"], known["arm"], strict=True)))
    collections = sorted(known["collection"].unique())
    figure, panels = panels_of(len(kinds), 2.4, columns=2)
    ticks = sorted(known["level"].unique())
    for panel, (null, arm) in zip(panels, kinds, strict=True):
        mine = known[(known["null"] == null) & (known["arm"] == arm)]
        panel.plot(ticks, ticks, color=INK, lw=0.9, ls=(0, (5, 2)))
        for number, collection in enumerate(collections):
            here = mine[mine["collection"] == collection]
            for dense_arm, lines in here.groupby("dense_arm"):
                if arm == "lexical" and dense_arm != here["dense_arm"].iloc[0]:
                    continue
                panel.plot(
                    lines["level"],
                    np.maximum(lines["rate"], 1e-4),
                    marker="osD^vP*X"[number % 8],
                    ms=4.5,
                    lw=0.8,
                    color=INK if number % 2 else BLUE,
                    alpha=0.8,
                )
        panel.set_xscale("log")
        panel.set_yscale("log")
        panel.set_xticks(ticks, [f"{one:g}" for one in ticks], minor=False)
        panel.set_xticks([], minor=True)
        panel.set_title(f"{arm} arm, {null} null")
        panel.set_xlabel("tail that is claimed")
        panel.set_ylabel("share of irrelevant pairs")
    legend(
        figure,
        [
            dot(INK if n % 2 else BLUE, INK if n % 2 else BLUE, clipped(one, 30), "osD^vP*X"[n % 8])
            for n, one in enumerate(collections[:16])
        ],
    )
    return Drawing(
        "nulls",
        figure,
        "Are small tails as rare as they say?",
        "Held-out pairs of a query and a document without a relevant judgement: how many have a"
        " tail of at most a level. On the dashed line the null is calibrated; above it, irrelevant"
        " rows look significant too often. The judged null comes from other queries of the"
        " collection, the foreign one from queries of other collections, without any label.",
        "Observed against claimed small tails per collection.",
    )


def _square(colour: str, label: str) -> Line2D:
    return dot(colour, colour, label, "s")
