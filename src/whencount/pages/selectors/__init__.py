"""Rules that choose pages: a short file each, one line here."""

from __future__ import annotations

from collections.abc import Sequence

from whencount.pages.selectors.base import LayerView, Selector
from whencount.pages.selectors.corrected import Corrected, order
from whencount.pages.selectors.h2o import HeavyHitters
from whencount.pages.selectors.mass import AttentionMass
from whencount.pages.selectors.quest import Quest
from whencount.pages.selectors.random import RandomPages
from whencount.pages.selectors.streaming import Streaming
from whencount.pages.settings import Rule

__all__ = ["LayerView", "Selector", "order", "selector_of"]


def selector_of(rules: Sequence[Rule]) -> Selector:
    """The selector of rows that share all but their configuration.

    Args:
        rules: at least one; configurations in the order of `order`. `full` has no selector.
    """
    rule = rules[0]
    if rule.configuration is not None:
        return Corrected(rules)
    if rule.selector == "quest":
        return Quest()
    if rule.selector == "mass":
        return AttentionMass()
    if rule.selector == "h2o":
        return HeavyHitters()
    if rule.selector == "streaming":
        return Streaming()
    if rule.selector == "random":
        return RandomPages(rule.seed)
    raise ValueError(f"{rule.selector} reads every page; it needs no selector")
