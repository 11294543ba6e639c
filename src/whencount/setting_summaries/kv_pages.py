"""The answer of the study of KV pages: what accuracy each selector keeps, what corrections do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from whencount.setting_summaries.effects import (
    CONFIGURATION_NAMES,
    Effects,
    effects,
    variants_in_order,
)
from whencount.setting_summaries.identities import Identity, identities, output_identities
from whencount.setting_summaries.intervals import Difference, paired_difference

if TYPE_CHECKING:
    import pandas as pd

BASELINES = ("full", "mass", "quest", "h2o", "streaming", "random")
"""The selectors that are no configuration, in the order in which they are shown."""

CELL = ("model", "task", "context")
"""What a selector is measured on."""


@dataclass(frozen=True)
class Level:
    """Mean score of a selector at a budget, over the cells (model, task, context) that have it."""

    selector: str
    variant: str
    budget: int
    score: float
    cells: int


@dataclass(frozen=True)
class Best:
    """The configuration with the highest mean score, chosen after the fact, beside all-off.

    Attributes:
        variant, budget: where.
        configuration: which; the first in the order 000..111 where several are equal.
        score: its mean.
        difference: its score less that of 000, paired over examples.
        above: how many of the seven corrected configurations have a higher mean than 000.
        better, worse: how many of them are above, below it with their whole interval.
    """

    variant: str
    budget: int
    configuration: str
    score: float
    difference: Difference
    above: int
    better: int
    worse: int


@dataclass(frozen=True)
class PagesAnswer:
    """The answer of a study of KV pages in numbers.

    Attributes:
        models, tasks, contexts, budgets, variants: what was run.
        rows: rows of the table.
        examples: fewest and most examples of a row; (0, 0) without one.
        levels: means of every selector at every budget; of full attention at every budget, too.
        random: full attention less random pages, paired over examples, per budget.
        oracle: the mass oracle less Quest, paired over examples, per budget.
        best: per variant and budget.
        effects: per variant.
        identities: on rows, then on outputs.
    """

    models: tuple[str, ...]
    tasks: tuple[str, ...]
    contexts: tuple[int, ...]
    budgets: tuple[int, ...]
    variants: tuple[str, ...]
    rows: int
    examples: tuple[int, int]
    levels: tuple[Level, ...]
    random: dict[int, Difference]
    oracle: dict[int, Difference]
    best: tuple[Best, ...]
    effects: tuple[Effects, ...]
    identities: tuple[Identity, ...]

    def baselines(self, budget: int) -> list[str]:
        """The selectors at a budget that are no configuration, in the order of the table."""
        return [one.selector for one in self.levels if one.budget == budget and not one.variant]

    def level(self, selector: str, budget: int, variant: str = "") -> Level | None:
        """The mean of a selector at a budget, if it was run there."""
        wanted = (selector, variant, budget)
        found = [one for one in self.levels if (one.selector, one.variant, one.budget) == wanted]
        return found[0] if found else None


def pages_answer(
    rows: pd.DataFrame, per_example: pd.DataFrame, baselines: pd.DataFrame
) -> PagesAnswer:
    """Compute the answer of a study of KV pages.

    Args:
        rows, per_example, baselines: the tables of these names (docs/tables.md). Tables without a
            line give an answer without numbers.
    """
    budgets = sorted({int(one) for one in rows["budget"]})
    full = baselines[baselines["selector"] == "full"]
    levels = [_level(full, "full", "", budget) for budget in budgets if len(full)]
    others = baselines[(baselines["selector"] != "full") & baselines["budget"].isin(budgets)]
    for (selector, variant, budget), lines in others.groupby(
        ["selector", "variant", "budget"], sort=True
    ):
        levels.append(_level(lines, str(selector), str(variant), int(str(budget))))
    named = with_rule(per_example)
    return PagesAnswer(
        models=tuple(sorted({str(one) for one in rows["model"]})),
        tasks=tuple(dict.fromkeys(rows["task"].astype(str))),
        contexts=tuple(sorted({int(one) for one in rows["context"]})),
        budgets=tuple(budgets),
        variants=tuple(variants_in_order(rows["variant"])),
        rows=len(rows),
        examples=(int(rows["examples"].min()), int(rows["examples"].max()))
        if len(rows)
        else (0, 0),
        levels=tuple(levels),
        random={one: _difference(named, "full", "random", one) for one in budgets},
        oracle={one: _difference(named, "mass", "quest", one) for one in budgets},
        best=tuple(
            found
            for variant in variants_in_order(rows["variant"])
            for budget in budgets
            if (found := _best(levels, named, variant, budget)) is not None
        ),
        effects=tuple(effects(rows, "task")),
        identities=(
            *identities(rows),
            *output_identities(
                per_example, [*CELL, "example", "budget"], "selector", _OUTPUT, {"head": "quest"}
            ),
        ),
    )


_OUTPUT = ("score", "prediction")


def with_rule(per_example: pd.DataFrame) -> pd.DataFrame:
    """The table with a column `rule`: the selector, and for a configuration its variant."""
    variant = per_example["variant"].fillna("").astype(str)
    rule = per_example["selector"].astype(str)
    return per_example.assign(rule=rule.where(variant == "", rule + " " + variant))


def _level(lines: pd.DataFrame, selector: str, variant: str, budget: int) -> Level:
    # Full attention may stand at every budget or at none; its score is the same.
    cells = lines.groupby(list(CELL))["score"].mean()
    return Level(selector, variant, budget, float(cells.mean()), len(cells))


def _difference(named: pd.DataFrame, first: str, second: str, budget: int) -> Difference:
    """A selector less another at a budget; full attention is taken wherever it stands."""
    full = named[named["rule"] == "full"].drop_duplicates([*CELL, "example"])
    lines = named[(named["budget"] == budget) & (named["rule"] != "full")]
    import pandas as pd

    both = pd.concat([full, lines]) if len(full) else lines
    return paired_difference(both, "rule", first, second, value="score", group=CELL, unit="example")


def _best(levels: list[Level], named: pd.DataFrame, variant: str, budget: int) -> Best | None:
    scores = {
        one.selector: one.score
        for one in levels
        if one.variant == variant and one.budget == budget and one.selector in CONFIGURATION_NAMES
    }
    if "000" not in scores:
        return None
    top = max(scores.values())
    name = next(one for one in CONFIGURATION_NAMES if scores.get(one) == top)
    apart = {
        one: _difference(named, f"{one} {variant}", f"000 {variant}", budget) for one in scores
    }
    told = [one.mean for one in apart.values() if one.apart]
    return Best(
        variant,
        budget,
        name,
        top,
        apart[name],
        sum(score > scores["000"] for score in scores.values()),
        sum(mean > 0 for mean in told),
        sum(mean < 0 for mean in told),
    )
