"""The comparison as one page that loads nothing."""

from __future__ import annotations

import html

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from whencount.comparing_runs.comparison import Comparison
from whencount.reports.canvas import panels_of
from whencount.reports.drawing import inline_svg
from whencount.reports.markup import markup
from whencount.reports.rendering import page
from whencount.reports.setting_style import BLUE, RED, clipped
from whencount.reports.style import FAINT, SETTINGS
from whencount.wording import number, plural, signed

_MOST_PANELS = 12
_LEVEL = 0.05


def comparison_page(found: Comparison) -> str:
    """The page: means, pairs, and the differences of every query."""
    body = [
        "<h1>Runs compared</h1>",
        f"<p>{plural(len(found.means), 'run')} on {len(found.query_ids):,} queries with a relevant"
        f" document, by {html.escape(found.measure)}. A query for which a run ranks nothing has 0."
        "</p>",
        "<h2>Means</h2>",
        _means(found),
        "<h2>Pairs</h2>",
        "<p>Differences are the second run less the first. Intervals (95 %) and p are of a paired"
        " bootstrap over queries; Holm's p is over all pairs.</p>",
        _pairs(found),
        "<h2>Query by query</h2>",
        _figure(found),
    ]
    return page("Runs compared", found.measure, "\n".join(body))


def _means(found: Comparison) -> str:
    body = [
        [html.escape(str(one["run"])), number(float(one["mean"])), f"{one['answered']:,}"]
        for one in found.means.to_dict("records")
    ]
    return markup(["run", html.escape(found.measure), "queries answered"], body)


def _pairs(found: Comparison) -> str:
    body = [
        [
            html.escape(str(one["first"])),
            html.escape(str(one["second"])),
            signed(float(one["difference"]), 4),
            f"{signed(float(one['low']), 4)} to {signed(float(one['high']), 4)}",
            f"{one['p']:.3g}",
            f"{one['holm']:.3g}" + (" *" if one["holm"] <= _LEVEL else ""),
            f"{one['wins']:,} / {one['ties']:,} / {one['losses']:,}",
        ]
        for one in found.pairs.to_dict("records")
    ]
    head = ["first", "second", "difference", "95 % interval", "p", "Holm p", "win / tie / loss"]
    return markup(head, body, 2)


def _figure(found: Comparison) -> str:
    shown = found.pairs.head(_MOST_PANELS)
    left = len(found.pairs) - len(shown)
    note = f"<p>{plural(left, 'more pair')} in the table above.</p>" if left else ""
    alternative = f"Sorted differences per query of {plural(len(shown), 'pair')} of runs."
    svg = inline_svg(_drawn(found), "differences", alternative)
    return (
        f"<figure>{svg}<figcaption>Each panel has the difference of every query, the largest gain"
        f" first. Above the line the second run is better.</figcaption></figure>{note}"
    )


@mpl.rc_context(SETTINGS)
def _drawn(found: Comparison) -> Figure:
    shown = found.pairs.head(_MOST_PANELS)
    names = list(found.means["run"])
    figure, panels = panels_of(len(shown), 2.2, columns=2)
    for panel, one in zip(panels, shown.to_dict("records"), strict=True):
        first, second = names.index(one["first"]), names.index(one["second"])
        values = np.sort(found.per_query[second] - found.per_query[first])[::-1]
        places = np.arange(len(values))
        panel.fill_between(places, values, 0, where=list(values >= 0), step="mid", color=BLUE)
        panel.fill_between(places, values, 0, where=list(values <= 0), step="mid", color=RED)
        panel.axhline(0, color=FAINT, lw=0.8)
        panel.set_ylim(-1.05, 1.05)
        panel.set_title(f"{clipped(one['second'], 24)} less {clipped(one['first'], 24)}")
        panel.set_xlabel("queries, sorted")
    panels[0].set_ylabel(found.measure)
    return figure
