"""What an index costs, in sentences: every word is chosen by the numbers."""

from __future__ import annotations

from whencount.index_costs.answer import SCORERS, CollectionCosts, CostsAnswer, Point
from whencount.reports.economics_style import name_of
from whencount.wording import joined, number, percent, plural

_CLOSE = 0.95
"""A cheaper point with this share of the best quality is worth a word."""


def sentences(found: CostsAnswer) -> list[str]:
    """The answer as plain text: the run, then a few sentences per collection, then the index."""
    names = joined([one.collection for one in found.collections])
    return [
        f"{plural(found.representations, 'representation')} of {names}: what an index of each"
        " costs, how fast it answers, how well it ranks.",
        *[_collection(one) for one in found.collections],
        *_index(found),
    ]


def _collection(one: CollectionCosts) -> str:
    best = one.best
    text = (
        f"{one.collection}: the highest nDCG@10 is {number(best.quality)}, of {_named(best)}, at"
        f" {amount(best.cost)} multiplications a query."
    )
    cheaper = [
        point
        for point in one.fronts["posting_work"]
        if point.cost < best.cost and point.quality >= _CLOSE * best.quality
    ]
    if cheaper:
        first = cheaper[0]
        text += (
            f" {_named(first)} keeps {percent(first.quality / best.quality)} of that at"
            f" {percent(first.cost / best.cost, 1)} of the work."
        )
    else:
        text += f" Nothing cheaper keeps {percent(_CLOSE)} of that."
    if one.work_against_time is not None:
        text += (
            " Over sparse representations posting work and median query time correlate at"
            f" {number(one.work_against_time, 2)} (Spearman)."
        )
    return text


def _named(point: Point) -> str:
    scorer = f" by the {SCORERS[point.scorer]}" if point.scorer == "q000" else ""
    scorer = f" by {SCORERS[point.scorer]}" if point.scorer == "q111" else scorer
    return name_of(point.representation, point.budget) + scorer


def _index(found: CostsAnswer) -> list[str]:
    if found.bytes_per_posting is None:
        return []
    low, middle, high = found.bytes_per_posting
    verdict = (
        "less than the eight of a plain posting"
        if middle < 8
        else "no less than the eight of a plain posting"
    )
    return [
        f"Our index takes {number(middle, 1)} bytes per posting in the middle ({number(low, 1)} to"
        f" {number(high, 1)}), {verdict}: where postings are few beside features and documents,"
        " what is kept of those weighs more."
    ]


def amount(value: float) -> str:
    """`1,234`, `12.3 thousand`, `4.5 million`, `1.2 billion`."""
    for size, name in ((1e9, "billion"), (1e6, "million"), (1e4, "thousand")):
        if value >= size:
            return f"{value / (1e3 if name == 'thousand' else size):,.1f} {name}"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
