"""What a study of pages fixes, which rule a decoded row follows, and what a budget buys."""

from __future__ import annotations

from dataclasses import dataclass, field

from whencount.errors import InputError
from whencount.scoring import CONFIGURATIONS, Configuration, Parameters

BASELINES = ("full", "quest", "mass", "h2o", "streaming", "random")
"""Selectors without switches; the others are the bit strings of the eight configurations."""

VARIANTS = ("head", "group")
"""A page is chosen by each query head, or by the sum over the query heads of a GQA group."""


@dataclass(frozen=True)
class PageSettings:
    """What is the same for every rule of a study.

    Attributes:
        page_tokens: tokens of a page; borders are counted from the first real token.
        dense_layers: the first layers, which read everything under every rule.
        sink_pages: first pages that are always kept and charged.
        calibration_positions: evenly spaced positions of the prefill that are looked at.

    Raises:
        InputError: a number below 1 (pages, positions) or below 0 (layers, sinks).
    """

    page_tokens: int = 16
    dense_layers: int = 2
    sink_pages: int = 0
    calibration_positions: int = 64

    def __post_init__(self) -> None:
        for name, least in (
            ("page_tokens", 1),
            ("dense_layers", 0),
            ("sink_pages", 0),
            ("calibration_positions", 1),
        ):
            if getattr(self, name) < least:
                raise InputError(f"{name} is {getattr(self, name)}; it must be at least {least}")

    def pages_of(self, budget: int) -> int:
        """Whole pages that a budget in tokens pays for, the kept ones included.

        Raises:
            InputError: not even the current page and the sink pages are paid for.
        """
        needed = (1 + self.sink_pages) * self.page_tokens
        if budget < needed:
            raise InputError(
                f"a budget of {budget} tokens does not pay for the current page and"
                f" {self.sink_pages} sink pages of {self.page_tokens} tokens;"
                f" give at least {needed}"
            )
        return budget // self.page_tokens

    def choices_of(self, budget: int) -> int:
        """Pages that a selector may choose freely: `pages_of` less current page and sinks."""
        return self.pages_of(budget) - 1 - self.sink_pages


@dataclass(frozen=True)
class Rule:
    """How one decoded row chooses pages.

    Attributes:
        selector: one of `BASELINES`, or a configuration, `000` to `111`.
        budget: tokens that a decode step may read in each head; ignored by `full`.
        variant: `head` or `group` for a configuration, empty for a baseline.
        parameters: k1 and b of a configuration.
        seed: of `random`.

    Raises:
        InputError: an unknown selector, or a variant that does not go with it.
    """

    selector: str
    budget: int = 0
    variant: str = ""
    parameters: Parameters = field(default_factory=Parameters)
    seed: int = 0

    def __post_init__(self) -> None:
        if self.selector not in BASELINES:
            Configuration.parse(self.selector)
            if self.variant not in VARIANTS:
                raise InputError(
                    f"configuration {self.selector} with the variant {self.variant!r}:"
                    f" give one of {', '.join(VARIANTS)}"
                )
        elif self.variant:
            raise InputError(
                f"selector {self.selector} has no variants; leave {self.variant!r} out"
            )

    @property
    def configuration(self) -> Configuration | None:
        """The switches, or None for a baseline."""
        return None if self.selector in BASELINES else Configuration.parse(self.selector)


def rules_of(
    selectors: tuple[str, ...],
    variants: tuple[str, ...],
    budgets: tuple[int, ...],
    parameters: Parameters,
    seed: int = 0,
) -> tuple[Rule, ...]:
    """Every rule of a study: `full` once, the other selectors per budget."""
    rules = [Rule("full")] if "full" in selectors else []
    for budget in budgets:
        rules += [Rule(name, budget, seed=seed) for name in selectors if name != "full"]
        rules += [
            Rule(str(configuration), budget, variant, parameters)
            for variant in variants
            for configuration in CONFIGURATIONS
        ]
    return tuple(rules)
