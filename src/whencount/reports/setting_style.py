"""How the reports on KV pages and on experts name and mark selectors, rules, budgets and variants.

Colours are those of Okabe and Ito (2008), told apart by people with any common colour blindness;
every mark has a shape of its own too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any

from whencount.reports.style import INK


@dataclass(frozen=True)
class Mark:
    """Colour, marker and line of what a figure tells apart."""

    colour: str
    marker: str
    line: Any = "-"


BLUE, SKY, GREEN, YELLOW = "#0072b2", "#56b4e9", "#009e73", "#e69f00"
RED, PINK, GREY = "#d55e00", "#cc79a7", "#7a8194"

SELECTOR_NAMES = {
    "full": "full attention",
    "mass": "attention mass (oracle)",
    "quest": "Quest",
    "h2o": "H2O",
    "streaming": "StreamingLLM",
    "random": "random pages",
    "answer": "holds the answer",
}
SELECTOR_MARKS = {
    "full": Mark(INK, "", (0, (5, 2))),
    "mass": Mark(GREEN, "D"),
    "quest": Mark(BLUE, "o"),
    "111": Mark(RED, "^"),
    "h2o": Mark(YELLOW, "s", (0, (4, 1.5))),
    "streaming": Mark(PINK, "v", (0, (4, 1.5, 1, 1.5))),
    "random": Mark(GREY, "X", (0, (1, 1.5))),
}
_OTHER_MARKS = (Mark(SKY, "P"), Mark(BLUE, "<", (0, (3, 1))), Mark(GREEN, ">", (0, (3, 1))))
RULE_NAMES = {
    "native": "native routing",
    "balanced": "loss-free balancing",
    "preserved": "expert preservation",
    "random": "random experts",
    "dense": "dense mixture",
}
VARIANT_NAMES = {
    "head": "per query head",
    "group": "summed over a group",
    "token": "one length per token",
    "expert": "one length per expert",
}
BUDGET_MARKS = (
    Mark(SKY, "o"),
    Mark(BLUE, "s"),
    Mark(RED, "^"),
    Mark(GREEN, "D"),
    Mark(YELLOW, "v"),
    Mark(PINK, "P"),
)
BUDGETS_SHOWN = len(BUDGET_MARKS)


def selector_marks(selectors: Iterable[str]) -> dict[str, Mark]:
    """A mark for each selector: those of `SELECTOR_MARKS` in their order, then those of others."""
    there = set(selectors)
    marks = {name: mark for name, mark in SELECTOR_MARKS.items() if name in there}
    others = sorted(there - set(SELECTOR_MARKS))
    return marks | dict(zip(others, cycle(_OTHER_MARKS), strict=False))


def selector_name(selector: str, variant: str = "") -> str:
    """`Quest` for `quest`, `111 group` for a configuration."""
    if variant:
        return f"{selector} {variant}"
    return SELECTOR_NAMES.get(selector, selector)


def rule_name(rule: str, variant: str = "") -> str:
    """`random experts` for `random`, `100 token` for a configuration."""
    if variant and rule not in RULE_NAMES:
        return f"{rule} {variant}"
    return RULE_NAMES.get(rule, rule)


def variant_name(variant: str) -> str:
    """What a variant of a study is, for a reader."""
    return VARIANT_NAMES.get(variant, variant)


def clipped(text: str, length: int = 200) -> str:
    """Text on one line, cut where it is longer than a table can show.

    A character that cannot be printed, as a decoder may well write, becomes the replacement mark.
    """
    line = " ".join(str(text).split())
    line = "".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in line)
    return line if len(line) <= length else f"{line[: length - 1]}…"


def spread_out(values: Sequence[Any], count: int) -> list[Any]:
    """At most `count` of the values, evenly spaced, first and last among them."""
    if len(values) <= count:
        return list(values)
    if count == 1:
        return [values[0]]
    step = (len(values) - 1) / (count - 1)
    return [values[round(number * step)] for number in range(count)]
