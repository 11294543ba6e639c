"""The figures of the page on costs: quality against cost, profiles, work against time."""

from __future__ import annotations

from collections.abc import Iterator

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from whencount.index_costs.answer import KEYS, SCORERS, pareto_front, points
from whencount.reports.canvas import dot, legend, panels_of
from whencount.reports.drawing import Drawing
from whencount.reports.economics_style import in_order, logarithmic, mark_of, name_of
from whencount.reports.setting_style import clipped
from whencount.reports.style import INK, SETTINGS
from whencount.wording import plural

COLLECTIONS_SHOWN = 6
"""Collections that get panels of their own; of more the tables tell."""

_AXES = {
    "posting_work": "posting work (multiplications per query)",
    "index_bytes": "bytes of the index",
}


def shown(costs: pd.DataFrame) -> list[str]:
    """The collections that figures show."""
    return list(dict.fromkeys(costs["collection"].astype(str)))[:COLLECTIONS_SHOWN]


@mpl.rc_context(SETTINGS)
def quality_against_cost(costs: pd.DataFrame, cost: str) -> Drawing:
    """nDCG@10 against posting work or bytes, a panel per collection, with the Pareto front."""
    names = shown(costs)
    figure, panels = panels_of(len(names), 3.1, share_x=False, share_y=False)
    for panel, name in zip(panels, names, strict=True):
        mine = points(costs[costs["collection"] == name], cost)
        front = pareto_front(mine)
        edges = [one.cost for one in front], [one.quality for one in front]
        panel.step(*edges, where="post", color=INK, lw=1.1, zorder=2)
        for one in mine:
            colour, marker = mark_of(one.representation, one.kind)
            face = "none" if one.scorer == "q000" else colour
            size = 6 if one.budget == "native" else 4
            panel.plot(
                one.cost, one.quality, marker, mfc=face, mec=colour, ms=size, mew=1, zorder=3
            )
        logarithmic(panel)
        panel.set_title(clipped(name, 40))
        panel.set_xlabel(_AXES[cost])
    panels[0].set_ylabel("nDCG@10")
    legend(figure, _handles(costs))
    what = "posting work" if cost == "posting_work" else "the size of the index"
    return Drawing(
        f"quality_against_{cost}",
        figure,
        f"Quality against {what}",
        f"Each mark is a representation at a budget: large marks keep every weight. Full marks are"
        f" scored by {SCORERS['q111']}, open ones by the {SCORERS['q000']}, dense vectors by the"
        " cosine. The line is the Pareto front: no mark below and to the right of it is worth its"
        f" cost. {_LONG[cost]}",
        f"Scatter plots of nDCG@10 against {what} on {plural(len(names), 'collection')}.",
    )


_LONG = {
    "posting_work": "Posting work is N times the sum of q_j p_j, the multiplications of an average"
    " query by an engine without pruning; of dense vectors it is every number of every document.",
    "index_bytes": "The size is that of our index, which serves all configurations and parameters;"
    " of dense vectors that of the states as they are stored.",
}


def _handles(costs: pd.DataFrame) -> list[Line2D]:
    kinds = dict(zip(costs["representation"].astype(str), costs["kind"].astype(str), strict=True))
    marks = {one: mark_of(one, kinds[one]) for one in in_order(kinds)}
    return [dot(mark[0], mark[0], name_of(one), mark[1]) for one, mark in marks.items()]


def profiles(table: pd.DataFrame, costs: pd.DataFrame) -> Iterator[Drawing]:
    """Sorted profiles of documents and queries at one budget, a figure per collection."""
    for number, name in enumerate(shown(costs), 1):
        yield _profiles(table[table["collection"] == name], costs, f"profiles_{number}", name)


@mpl.rc_context(SETTINGS)
def _profiles(own: pd.DataFrame, costs: pd.DataFrame, stem: str, name: str) -> Drawing:
    kinds = dict(zip(costs["representation"], costs["kind"], strict=True))
    # Small budgets make all profiles alike, so what is stored in full is shown.
    budgets = list(dict.fromkeys(own["budget"]))
    budget = "native" if "native" in budgets else budgets[-1]
    # Token vectors have no postings, and so no profile that could be steep.
    late = [one for one, kind in kinds.items() if kind == "late_interaction"]
    own = own[~own["representation"].isin(late)]
    mine = own[(own["budget"] == budget) | (own["representation"].isin(["words", "dense"]))]
    figure, panels = panels_of(2, 3.2, columns=2)
    for panel, side, letter in zip(panels, ("documents", "queries"), "pq", strict=True):
        _curves(panel, mine[mine["side"] == side], kinds)
        panel.set_title(f"{side}: {letter}_j")
        panel.set_xlabel("rank of the feature")
    panels[0].set_ylabel("share that has it")
    legend(figure, _handles(costs[costs["representation"].isin(mine["representation"])]))
    return Drawing(
        stem,
        figure,
        f"Profiles: {clipped(name, 60)}",
        "The share of documents, and of queries, that have the feature of each rank; both axes"
        " are logarithmic. A flat line spreads work evenly; a steep one puts it on a few long"
        f" postings lists. Vectors at budget {budget}.",
        f"Line plots of sorted activation profiles of documents and queries of {name}.",
    )


def _curves(panel: Axes, table: pd.DataFrame, kinds: dict[str, str]) -> None:
    for representation in in_order(table["representation"].astype(str)):
        mine = table[table["representation"] == representation].sort_values("rank")
        mine = mine.drop_duplicates("rank")
        colour, marker = mark_of(representation, kinds[representation])
        line = "--" if marker == "^" else "-"
        panel.plot(mine["rank"], mine["share"], line, color=colour, lw=1.1, alpha=0.9)
        last = mine.iloc[-1:]
        panel.plot(last["rank"], last["share"], marker, color=colour, ms=5)
    logarithmic(panel)
    logarithmic(panel, vertical=True)


@mpl.rc_context(SETTINGS)
def work_against_time(costs: pd.DataFrame, times: pd.DataFrame) -> Drawing | None:
    """Median and 95th percentile of query time against posting work."""
    joined = costs.merge(times, on=KEYS)
    if len(joined) == 0:
        return None
    names = [name for name in shown(costs) if name in set(joined["collection"])]
    figure, panels = panels_of(len(names), 3.0, share_x=False, share_y=False)
    for panel, name in zip(panels, names, strict=True):
        for row in joined[joined["collection"] == name].to_dict("records"):
            colour, marker = mark_of(row["representation"], row["kind"])
            work = row["posting_work"]
            panel.vlines(
                work, row["full_median_ms"], row["full_p95_ms"], color=colour, lw=1.2, alpha=0.6
            )
            panel.plot(work, row["full_median_ms"], marker, color=colour, ms=5)
        logarithmic(panel)
        logarithmic(panel, vertical=True)
        panel.set_title(clipped(name, 40))
        panel.set_xlabel(_AXES["posting_work"])
    panels[0].set_ylabel("milliseconds per query")
    legend(figure, _handles(joined))
    threads = max(int(one) for one in joined["threads"])
    return Drawing(
        "work_against_time",
        figure,
        "Posting work and measured time",
        "The median time of a query, asked alone, with a line up to the 95th percentile, of exact"
        f" search by {SCORERS['q111']} in our engine ({plural(threads, 'thread')}; dense vectors:"
        " a matrix product). Time is of the machine that ran the study; what does not grow with"
        " work is the fixed cost of a call.",
        f"Scatter plots of query time against posting work on {plural(len(names), 'collection')}.",
    )
