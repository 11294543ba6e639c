"""Tables and words of the page on expert routing; everything that comes from data is escaped."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from whencount.reports import setting_pieces
from whencount.reports.drawing import Table
from whencount.reports.expert_figures import curves_by_model
from whencount.reports.expert_words import DIGITS, sentences
from whencount.reports.markup import folded, markup
from whencount.reports.setting_pieces import bounded, paragraphs, switch_tiles, tile, tiles
from whencount.reports.setting_style import RULE_NAMES, clipped, rule_name
from whencount.reports.setting_tables import ExpertsTables
from whencount.setting_summaries.experts import (
    ACCURACY,
    LIKELIHOOD,
    ExpertsAnswer,
    RuleDifference,
    in_order_of_rules,
    named,
)
from whencount.setting_summaries.routing import Shift
from whencount.wording import number, percent, plural, signed

WHY = {
    "token": "Each token has one length for all experts, so dividing by it changes no ranking, and"
    " neither does saturation: 001 = 010 = 011 = 000 and 101 = 100. Only IDF, and saturation and"
    " length on top of it, can choose other experts.",
    "expert": "Each expert has a length of its own but one probability per token, and the score"
    " grows with probability over length: 010 = 000 and 011 = 001.",
}
KEYS = ("active", "model", "evaluation")
"""What names a line of the figure of Shapley values; the last two where there are many."""

ROW_KEYS = ("model", "evaluation", "active", "variant")
_EXPERTS_SHOWN = 10
_RULES_SHOWN = 40


def answer(found: ExpertsAnswer) -> Table:
    """The answer: key numbers, then sentences."""
    parts = []
    for evaluation in found.evaluations[:2]:
        nll = found.metrics[evaluation] == LIKELIHOOD
        for native in found.of(evaluation, "native")[:1]:
            level = number(-native.quality if nll else native.quality)
            unit = "NLL, nats per token" if nll else "accuracy"
            parts.append(tile(level, f"native routing on {clipped(evaluation, 40)}", unit))
        for rule in ("random", "dense"):
            for one in found.of(evaluation, rule)[:1]:
                label = f"change of quality: {RULE_NAMES[rule]}"
                parts.append(tile(signed(one.difference.mean, 3), label, clipped(evaluation, 40)))
        for effects in found.effects.get(evaluation, ())[:1]:
            parts += switch_tiles(effects, DIGITS) if evaluation == found.evaluations[0] else []
    return Table(f"{tiles(parts)}\n{paragraphs(sentences(found))}")


def qualities(found: ExpertsAnswer) -> Table | None:
    """Quality of every rule and its difference from native routing, folded per evaluation."""
    groups: dict[tuple[str, str, int], list[RuleDifference]] = {}
    for one in found.differences:
        groups.setdefault((one.evaluation, one.model, one.active), []).append(one)
    parts = []
    for (evaluation, model, active), lines in groups.items():
        nll = lines[0].metric == LIKELIHOOD
        body = []
        for one in lines:
            apart = one.difference
            spread = "–" if apart.few else f"{signed(apart.low, 4)} to {signed(apart.high, 4)}"
            body.append(
                [
                    html.escape(rule_name(one.rule, one.variant)),
                    number(-one.quality if nll else one.quality, 4),
                    signed(apart.mean, 4),
                    spread,
                    f"{apart.units:,}",
                ]
            )
        head = ["rule", "NLL" if nll else "accuracy", "change of quality", "95 % interval"]
        head.append("documents" if nll else "questions")
        summary = (
            f"<b>{html.escape(clipped(evaluation, 60))}</b>, {html.escape(clipped(model, 60))},"
            f" {active} experts active"
        )
        parts.append(folded(summary, markup(head, body)))
    return Table("\n".join(parts)) if parts else None


def shares(found: ExpertsAnswer) -> Table | None:
    """Shares of the summed change per evaluation, variant and switch."""
    every = [(name, one) for name, effects in found.effects.items() for one in effects]
    return setting_pieces.shares(
        [one for _, one in every], "models", [name for name, _ in every], DIGITS
    )


def subjects(per_document: pd.DataFrame, found: ExpertsAnswer) -> Table | None:
    """Accuracy per subject under every rule, folded; a question without one is its own."""
    parts = []
    for evaluation, metric in found.metrics.items():
        if metric != ACCURACY:
            continue
        lines = per_document[per_document["evaluation"] == evaluation]
        if "subject" not in lines.columns:
            lines = lines.assign(subject=lines["document"])
        for (model, active), here in lines.groupby(["model", "active"], sort=True, dropna=False):
            wide, names = _wide(here)
            body = [
                [
                    html.escape(clipped(str(subject), 60)),
                    *("–" if np.isnan(value) else number(float(value)) for value in values),
                ]
                for subject, values in zip(wide.index, wide.to_numpy(), strict=True)
            ]
            summary = (
                f"<b>{html.escape(clipped(evaluation, 60))}</b> per subject,"
                f" {html.escape(clipped(str(model), 60))}, {active} experts active"
                f" ({plural(len(body), 'subject')})"
            )
            table = bounded(["subject", *names], body, 1, "per_document.parquet")
            parts.append(folded(summary, table))
    return Table("\n".join(parts)) if parts else None


def _wide(lines: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Subjects by rules, and what the rules are called."""
    lines = lines.assign(variant=lines["variant"].fillna(""))
    distinct = in_order_of_rules(lines[["rule", "variant"]].drop_duplicates())
    columns = {}
    for rule, variant in distinct.itertuples(index=False, name=None):
        chosen = lines[(lines["rule"] == rule) & (lines["variant"] == variant)]
        columns[named(rule, variant)] = chosen.groupby("subject")["quality"].mean()
    names = [rule_name(*one) for one in distinct.itertuples(index=False, name=None)]
    return pd.DataFrame(columns).sort_index(), names


def shifts(found: Sequence[Shift]) -> Table | None:
    """How many choices each rule moves, and the experts that gain and lose most, folded."""
    if not found:
        return None
    body = [
        [
            html.escape(rule_name(one.rule, one.variant)),
            html.escape(_where(one, found)),
            percent(one.moved, 1),
            f"{one.gained:,}",
            f"{one.lost:,}",
            f"{len(one.share):,}",
        ]
        for one in found
    ]
    head = ["rule", "model", "choices moved", "experts up by a tenth", "down by a tenth"]
    parts = [markup([*head, "experts, all layers"], body, texts=2)]
    for one in found:
        if one.same:
            continue
        name = f"{rule_name(one.rule, one.variant)}, {_where(one, found)}"
        summary = f"{html.escape(name)}: the experts that move most"
        parts.append(folded(summary, _most(one)))
    return Table("\n".join(parts[: 1 + _RULES_SHOWN]))


def _where(one: Shift, found: Sequence[Shift]) -> str:
    """The model, and how many experts are active where that varies."""
    name = clipped(one.model, 60)
    return f"{name}, {one.active} active" if len({each.active for each in found}) > 1 else name


def _most(one: Shift) -> str:
    apart = one.entered + one.left
    order = np.argsort(-apart, kind="stable")[:_EXPERTS_SHOWN]
    body = [
        [
            f"{one.layers[place]}",
            f"{one.experts[place]}",
            percent(float(one.native[place]), 1),
            percent(float(one.share[place]), 1),
            percent(float(one.entered[place]), 1),
            percent(float(one.left[place]), 1),
        ]
        for place in order
        if apart[place] != 0
    ]
    head = ["layer", "expert", "native share", "share under the rule", "enters for", "leaves for"]
    return markup(head, body)


def model_words(settings: Mapping[str, Any], training: pd.DataFrame | None) -> Table:
    """What models the study has, in words; a small trained one is called what it is."""
    said = []
    for name, options in dict(settings.get("models", {})).items():
        source = options.get("source") if isinstance(options, Mapping) else None
        if source == "trained":
            said.append(
                f"{name} is a small mixture-of-experts model that this workflow trained from"
                " scratch, in minutes and on the text at hand. It is no language model to speak"
                " with: it is there so that the study can be run anywhere, and its figures say"
                " nothing about a large model."
            )
        else:
            said.append(f"{name} is a model that was trained by others ({source}).")
    curves = [] if training is None else list(curves_by_model(training))
    for name, curve in curves:
        held = curve.dropna(subset=["validation"])
        if len(held):
            first, last = float(held["validation"].iloc[0]), float(held["validation"].iloc[-1])
            whose = f"of {name} " if len(curves) > 1 else ""
            said.append(
                f"The loss {whose}on held-out text went from {number(first, 2)} to"
                f" {number(last, 2)} nats per token, from step {int(held['step'].iloc[0]):,} to"
                f" {int(held['step'].iloc[-1]):,}."
            )
    if not said:
        return Table("<p>The settings of this run name no model.</p>")
    return Table("\n".join(f"<p>{html.escape(one)}</p>" for one in said))


def making(tables: ExpertsTables, settings: Mapping[str, Any], study: str) -> Table:
    """What was computed and how."""
    return setting_pieces.making(
        {"study": study, **settings},
        {
            "rows": tables.rows,
            "per_document": tables.per_document,
            "baselines": tables.baselines,
            "routing": tables.routing,
            "training": tables.training,
        },
    )
