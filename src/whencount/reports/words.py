"""The answer in sentences: every word that depends on the run is chosen by its numbers."""

from __future__ import annotations

import math

from whencount.reports.style import SWITCH_NAMES
from whencount.summaries import Answer, Share, Signs
from whencount.wording import (
    FEW_COLLECTIONS,
    INTERVAL,
    capital,
    joined,
    percent,
    plural,
    signed,
)

_FEWEST_ROWS = 5
"""With fewer a rank correlation is not put into words."""
_NOTEWORTHY_RHO = 0.3
"""Below this a rank correlation is called weak: the bar that hypothesis H3 of the study sets."""


def sentences(answer: Answer) -> list[str]:
    """The answer as plain text, a sentence or two for each part of it."""
    return [
        _setting(answer),
        _shares(answer),
        _statistics(answer),
        _saturation(answer),
        _tests(answer),
    ]


def interval(share: Share, name: str = "") -> str:
    """` (51 to 63 %)`, or nothing where there is none; `name` stands before the numbers."""
    if not share.has_interval:
        return ""
    low = percent(share.low).split("\N{NO-BREAK SPACE}")[0]
    return f" ({name}{low} to {percent(share.high)})"


def _setting(answer: Answer) -> str:
    settings = joined(
        [f"budget {budget}, k1 {k1:g}, b {b:g}" for budget, k1, b in answer.settings[:3]]
    )
    gain = answer.gain
    verb = "raises" if gain.mean > 0 else "lowers" if gain.mean < 0 else "does not change"
    return (
        f"Over {plural(answer.rows, 'row')} ({plural(answer.representations, 'representation')} on"
        f" {plural(answer.collections, 'collection')}, {settings}), full BM25 {verb} the mean"
        f" nDCG@10 of the inner product ({signed(gain.mean)}): quality is {_counts(gain)}."
    )


def _counts(signs: Signs) -> str:
    parts = [
        f"{word} in {count:,}"
        for word, count in (("higher", signs.up), ("lower", signs.down), ("the same", signs.same))
        if count
    ]
    return joined(parts) if len(parts) > 1 else f"{parts[0].split(' in ')[0]} in all of them"


def _shares(answer: Answer) -> str:
    if math.isnan(answer.shares[0].share):
        return "The summed gain is 0, so it cannot be shared out among the switches."
    if answer.gain.mean < 0:
        listed = joined([f"{SWITCH_NAMES[s.switch]} {percent(s.share)}" for s in answer.shares])
        return f"The summed gain is negative; of this loss the switches carry: {listed}."
    first, *others = answer.shares
    rest = joined(
        [f"{SWITCH_NAMES[s.switch]} carries {percent(s.share)}{interval(s)}" for s in others]
    )
    text = (
        f"{capital(SWITCH_NAMES[first.switch])} carries the largest share of the summed gain,"
        f" {percent(first.share)}{interval(first, INTERVAL)}; {rest}."
    )
    if first.has_interval and others[0].has_interval:
        apart = first.low > others[0].high
        text += (
            f" The intervals of the first two {'do not overlap' if apart else 'overlap'}; they"
            f" resample {plural(answer.collections, 'collection')}"
        )
        few = answer.collections < FEW_COLLECTIONS
        text += ", too few to lean on them." if few else "."
    else:
        text += " One collection gives no interval." if answer.collections == 1 else ""
    return text


def _statistics(answer: Answer) -> str:
    found = answer.statistics
    text = (
        "On top of saturation, the two collection statistics (IDF and length) help in"
        f" {found.up:,} of {plural(found.total, 'row')}, harm in {found.down:,} and change nothing"
        f" in {found.same:,}; the mean of G = Q111 − Q010 is {signed(found.mean)}. Of that, length"
        f" adds {signed(answer.length_added.mean)} to saturation (Q011 − Q010, up in"
        f" {plural(answer.length_added.up, 'row')}) and IDF then {signed(answer.idf_added.mean)}"
        f" (Q111 − Q011, up in {answer.idf_added.up:,})."
    )
    helped = [item for item in answer.by_collection if item[1] > 0]
    harmed = [item for item in answer.by_collection if item[1] < 0][::-1]
    if len(answer.by_collection) == 1:
        return text
    if not harmed and helped:
        return f"{text} On average they help on every collection, most on {_named(helped[:1])}."
    if not helped and harmed:
        return f"{text} On average they harm on every collection, most on {_named(harmed[:1])}."
    parts = []
    if helped:
        parts.append(f"help on {_listed(helped)}")
    if harmed:
        parts.append(f"harm on {_listed(harmed)}")
    return f"{text} On average they {' and '.join(parts)}." if parts else text


def _listed(items: list[tuple[str, float]]) -> str:
    if len(items) <= 3:
        return _named(items)
    return f"{len(items)} collections, most on {_named(items[:1])}"


def _named(items: list[tuple[str, float]]) -> str:
    return joined([f"{name} ({signed(value)})" for name, value in items])


def _saturation(answer: Answer) -> str:
    found, within = answer.saturation, answer.saturation_within
    if math.isnan(found.rho):
        return (
            "Whether uneven stored values call for saturation cannot be told here: the rows do not"
            " differ enough."
        )
    if found.rows < _FEWEST_ROWS:
        return (
            "Whether uneven stored values call for saturation cannot be told here:"
            f" {plural(found.rows, 'row')} are too few."
        )
    if found.rho >= _NOTEWORTHY_RHO:
        text = "The more uneven the values that an index stores, the more saturation brings"
    elif found.rho <= -_NOTEWORTHY_RHO:
        text = "The more uneven the values that an index stores, the less saturation brings"
    else:
        text = "How uneven the stored values are says little about what saturation brings"
    text += f": Spearman of cv and φ of saturation is {signed(found.rho, 2)}"
    if not math.isnan(within.rho) and answer.collections > 1:
        text += f", and {signed(within.rho, 2)} with each collection's mean taken off"
    return f"{text}."


def _tests(answer: Answer) -> str:
    names = {"full": "full BM25 against the inner product"} | {
        switch: f"the main effect of {name}" for switch, name in SWITCH_NAMES.items()
    }
    parts = []
    for tested in answer.tested:
        passed = tested.up + tested.down
        directions = [
            f"{count:,} {word}" for count, word in ((tested.up, "up"), (tested.down, "down"))
        ]
        if tested.up and tested.down:
            directed = f" ({directions[0]}, {directions[1]})"
        elif passed:
            directed = " (all up)" if tested.up else " (all down)"
        else:
            directed = ""
        parts.append(f"{names[tested.effect]} in {passed:,}{directed}")
    anything = any(tested.up or tested.down for tested in answer.tested)
    text = (
        f"Of {plural(answer.tested[0].rows, 'row')}, after Holm's correction at {answer.alpha:g},"
    )
    text += f" significant are {joined(parts)}." if anything else " nothing is significant."
    blocked = [
        name
        for family, name in (("full", "the first test"), ("main_effects", "the main effects"))
        if answer.attainable and answer.attainable[family] > answer.alpha
    ]
    if blocked and answer.attainable:
        needed = max(answer.attainable.values())
        text += (
            f" But the number of draws lets nothing pass for {joined(blocked)}: the smallest"
            f" corrected p there is {needed:.3g}, above {answer.alpha:g}; raise statistics.draws."
        )
    return text
