"""Sentences that both settings share: identities, gains and shares in words."""

from __future__ import annotations

import math
from collections.abc import Sequence

from whencount.reports.setting_style import variant_name
from whencount.reports.style import SWITCH_NAMES
from whencount.setting_summaries.effects import Effects
from whencount.setting_summaries.identities import Identity
from whencount.setting_summaries.intervals import Difference
from whencount.wording import capital, joined, percent, plural, signed

FEW_GROUPS = 6
"""With fewer groups to resample, an interval of a share is coarse."""


def difference(found: Difference, digits: int = 3) -> str:
    """`+0.120 (95 % interval +0.040 to +0.200)`, or why there is no interval."""
    if math.isnan(found.mean):
        return "not measured"
    if found.few:
        return f"{signed(found.mean, digits)} (too few examples for an interval)"
    if found.mean == found.low == found.high == 0:
        return "0 on every example"
    return (
        f"{signed(found.mean, digits)} (95\N{NO-BREAK SPACE}% interval"
        f" {signed(found.low, digits)} to {signed(found.high, digits)})"
    )


def switches(found: Effects, what: str, digits: int = 3) -> str:
    """What the full correction changes in a variant, and which switch carries it.

    Args:
        found: of one variant.
        what: what is measured, `mean score` say.
        digits: of its changes.
    """
    gain = found.gain
    verb = "raises" if gain.mean > 0 else "lowers" if gain.mean < 0 else "does not change"
    text = (
        f"{capital(variant_name(found.variant))}: the full correction (111) {verb} the {what} of"
        f" all-off (000) ({signed(gain.mean, digits)}"
    )
    if found.rows > 1:
        text += (
            f" on average; up in {gain.up:,}, down in {gain.down:,}, the same in {gain.same:,} of"
            f" {plural(found.rows, 'row')}"
        )
    text += ")."
    parts = [
        f"{SWITCH_NAMES[switch]} {signed(signs.mean, digits)}"
        for switch, signs in sorted(found.switches.items(), key=lambda one: -abs(one[1].mean))
    ]
    text += f" Mean Shapley values: {joined(parts)}."
    known = [share for share in found.shares if not math.isnan(share.share)]
    if not known:
        return f"{text} Nothing is gained or lost in sum, so there are no shares."
    largest = max(known, key=lambda share: share.share)
    equal = [share for share in known if percent(share.share) == percent(largest.share)]
    kind = "gain" if gain.mean > 0 else "loss"
    interval = ""
    if largest.has_interval:
        interval = f", 95\N{NO-BREAK SPACE}% interval {percent(largest.low)} to"
        interval += f" {percent(largest.high)}"
        interval += ", from few groups" if found.groups < FEW_GROUPS else ""
    if len(equal) > 1:
        names = capital(joined([SWITCH_NAMES[share.switch] for share in equal]))
        each = f"{percent(largest.share)} each"
        return f"{text} {names} carry equal shares of the {kind} ({each}), the largest ones."
    return (
        f"{text} {capital(SWITCH_NAMES[largest.switch])} carries the largest share of the {kind}"
        f" ({percent(largest.share)}{interval})."
    )


def identities(found: Sequence[Identity]) -> str:
    """Whether the identities hold in this run, in one or two sentences."""
    expected = [one for one in found if one.expected and one.checked]
    if not expected:
        return "No identity could be checked: the tables hold no row of a variant that has one."
    broken = [one for one in expected if not one.holds]
    rows = sum(one.what == "row" for one in expected)
    outputs = len(expected) - rows
    text = f"Checked were {plural(rows, 'identity')} of rows"
    text += f" and {outputs:,} of single outputs" if outputs else ""
    if not broken:
        return f"{text}: all hold."
    listed = joined(
        [
            f"{one.statement} ({one.variant}, in {one.broken:,} of {one.checked:,} {one.what}s)"
            for one in broken[:4]
        ]
    )
    more = f", and {len(broken) - 4:,} more" if len(broken) > 4 else ""
    return (
        f"{text}: {len(broken):,} BROKEN: {listed}{more}. Do not trust the"
        " rows before this is explained."
    )
