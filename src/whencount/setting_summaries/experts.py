"""The answer of the study of expert routing: what corrections of the choice of experts cost."""

from __future__ import annotations

import math
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

COMPARISONS = ("native", "balanced", "preserved", "random", "dense")
"""The rules that are no configuration, in the order in which they are shown."""

ACCURACY, LIKELIHOOD = "accuracy", "nll"


@dataclass(frozen=True)
class RuleDifference:
    """A rule beside native routing on one evaluation.

    Attributes:
        model, evaluation, active: where.
        metric: `nll` or `accuracy`.
        rule, variant: which; the variant is empty for a comparison.
        quality: mean quality, minus the NLL in nats per token or the accuracy.
        difference: quality less that of native routing, paired over documents: above 0 is better.
    """

    model: str
    evaluation: str
    active: int
    metric: str
    rule: str
    variant: str
    quality: float
    difference: Difference


@dataclass(frozen=True)
class ExpertsAnswer:
    """The answer of a study of expert routing in numbers.

    Attributes:
        models, evaluations, actives, variants: what was run.
        rows: rows of the table.
        metrics: by evaluation, `nll` or `accuracy`.
        differences: of every rule from native routing, configurations first.
        effects: per evaluation, per variant.
        identities: on rows, then on documents.
    """

    models: tuple[str, ...]
    evaluations: tuple[str, ...]
    actives: tuple[int, ...]
    variants: tuple[str, ...]
    rows: int
    metrics: dict[str, str]
    differences: tuple[RuleDifference, ...]
    effects: dict[str, tuple[Effects, ...]]
    identities: tuple[Identity, ...]

    def of(self, evaluation: str, rule: str, variant: str = "") -> list[RuleDifference]:
        """The differences of one rule on one evaluation, one per model and number of experts."""
        wanted = (evaluation, rule, variant)
        return [
            one for one in self.differences if (one.evaluation, one.rule, one.variant) == wanted
        ]


def experts_answer(
    rows: pd.DataFrame, per_document: pd.DataFrame, baselines: pd.DataFrame
) -> ExpertsAnswer:
    """Compute the answer of a study of expert routing.

    Args:
        rows, baselines: the tables of these names (docs/tables.md).
        per_document: the table of that name with a column `quality`
            (`reports.setting_tables.load_experts` adds it). A document weighs as many tokens as it
            has; a question has one.
    """
    metrics = metrics_of(baselines)
    units = _with_rule(per_document)
    found: list[RuleDifference] = []
    keys = ["model", "evaluation", "active"]
    for (model, evaluation, active), lines in baselines.groupby(keys, sort=False):
        here = units[(units["model"] == model) & (units["evaluation"] == evaluation)]
        # A rule that chooses no number of experts, the dense mixture say, may have none.
        here = here[here["active"].isna() | (here["active"] == active)]
        native = "native" if (here["named"] == "native").any() else "000"
        for _, line in in_order_of_rules(lines).iterrows():
            name = named(str(line["rule"]), str(line["variant"]))
            reference = native if native == "native" else named("000", str(line["variant"]))
            apart = paired_difference(
                here,
                "named",
                name,
                reference,
                value="quality",
                group=(),
                unit="document",
                weight="tokens",
            )
            found.append(
                RuleDifference(
                    str(model),
                    str(evaluation),
                    int(str(active)),
                    metrics[str(evaluation)],
                    str(line["rule"]),
                    str(line["variant"]),
                    float(line["quality"]),
                    apart,
                )
            )
    return ExpertsAnswer(
        models=tuple(sorted({str(one) for one in baselines["model"]})),
        evaluations=tuple(metrics),
        actives=tuple(sorted({int(one) for one in rows["active"]})),
        variants=tuple(variants_in_order(rows["variant"])),
        rows=len(rows),
        metrics=metrics,
        differences=tuple(found),
        effects={
            str(name): tuple(effects(lines, "model"))
            for name, lines in rows.groupby("evaluation", sort=False)
        },
        identities=(
            *identities(rows),
            *output_identities(
                per_document,
                ["model", "evaluation", "active", "document"],
                "rule",
                ("quality",),
                {"token": "native", "expert": "native"},
            ),
        ),
    )


def metrics_of(baselines: pd.DataFrame) -> dict[str, str]:
    """What each evaluation measures, in the order of the table, by the sign of its qualities.

    Minus an NLL is below 0, an accuracy is not.
    """
    lowest = baselines.groupby("evaluation", sort=False)["quality"].min()
    return {
        str(name): LIKELIHOOD if float(value) < 0 or math.isnan(float(value)) else ACCURACY
        for name, value in lowest.items()
    }


def in_order_of_rules(lines: pd.DataFrame) -> pd.DataFrame:
    """Lines by variant, then 000..111; after them the comparisons in the order of COMPARISONS."""
    variants = variants_in_order(lines["variant"].fillna(""))
    rules = [*CONFIGURATION_NAMES, *COMPARISONS]

    def place(line: pd.Series) -> tuple[int, int, str]:
        rule = str(line["rule"])
        variant = str(line["variant"])
        comparison = rule not in CONFIGURATION_NAMES
        first = len(variants) if comparison or variant not in variants else variants.index(variant)
        return first, rules.index(rule) if rule in rules else len(rules), rule

    places = [place(line) for _, line in lines.iterrows()]
    order = sorted(range(len(lines)), key=lambda number: places[number])
    return lines.iloc[order]


def named(rule: str, variant: str) -> str:
    """`100 token` for a configuration, `random` for a comparison."""
    return f"{rule} {variant}" if rule in CONFIGURATION_NAMES and variant else rule


def _with_rule(per_document: pd.DataFrame) -> pd.DataFrame:
    names = [
        named(str(rule), str(variant))
        for rule, variant in zip(
            per_document["rule"], per_document["variant"].fillna(""), strict=True
        )
    ]
    return per_document.assign(named=names)
