"""Where a run agrees with the published study, in words; predictors and the rule beside it."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from whencount import published
from whencount.comparison import AGREES, CANNOT_TELL, DISAGREES, Claim
from whencount.comparison.prediction import AXES, majority_score, score
from whencount.reports.beside import cells, heads, is_published
from whencount.reports.drawing import Table
from whencount.reports.markup import folded, markup
from whencount.reports.prediction_words import (
    AXIS_NAMES,
    TARGET_NAMES,
    TIER_NAMES,
    decisions_in_words,
    predictors_in_words,
)
from whencount.reports.style import REFERENCE_NAMES
from whencount.wording import capital, joined, number, percent, plural, signed

_STYLES = {AGREES: "passed", DISAGREES: "failed", CANNOT_TELL: "untold"}
_NOT_PREDICTED = "<p>This run predicted nothing.</p>"
_NOT_DECIDED = "<p>This run has no pseudo-labels to decide by.</p>"


def in_short(claims: Sequence[Claim]) -> str:
    """One sentence: how many claims of the published study a run agrees with."""
    counts = {kind: sum(one.verdict == kind for one in claims) for kind in _STYLES}
    parts = []
    if counts[AGREES]:
        parts.append(f"agrees with {counts[AGREES]}")
    if counts[DISAGREES]:
        parts.append(f"disagrees with {counts[DISAGREES]}")
    if counts[CANNOT_TELL]:
        parts.append(f"cannot speak of {counts[CANNOT_TELL]}")
    return f"Of {plural(len(claims), 'claim')} of the published study, this run {joined(parts)}."


def figures_of(claim: Claim) -> str:
    """What was published and what was found here, or why it cannot be told, in sentences."""
    text = f"Published: {claim.published}."
    if claim.here:
        text += f" Here: {claim.here}."
    if claim.verdict == CANNOT_TELL:
        text += f" It cannot be told here: {claim.reason}."
    return text


def agreement(claims: Sequence[Claim]) -> Table:
    """All claims in words, by whether the run agrees."""
    parts = [f'<p class="answer">{html.escape(in_short(claims))}</p>']
    for kind, heading in (
        (AGREES, "Where this run agrees"),
        (DISAGREES, "Where it does not"),
        (CANNOT_TELL, "What cannot be told here"),
    ):
        chosen = [one for one in claims if one.verdict == kind]
        if not chosen:
            continue
        items = "\n".join(
            f"<li><b>{html.escape(capital(one.statement))}.</b> {html.escape(figures_of(one))}</li>"
            for one in chosen
        )
        listed = f"<ul>\n{items}\n</ul>"
        if kind == CANNOT_TELL:
            parts.append(folded(f"<b>{heading}</b> ({plural(len(chosen), 'claim')})", listed))
        else:
            parts.append(f"<h3>{heading}</h3>\n{listed}")
    return Table("\n".join(parts))


def claims_table(claims: Sequence[Claim]) -> Table:
    """The claims side by side, folded."""
    body = [
        [
            html.escape(capital(one.statement)),
            f'<span class="verdict {_STYLES[one.verdict]}">{html.escape(one.verdict)}</span>',
            html.escape(one.published),
            html.escape(one.here or one.reason),
        ]
        for one in claims
    ]
    table = markup(["claim", "verdict", "published", "here"], body)
    return Table(folded("Side by side", table.replace("<table ", '<table class="words" ', 1)))


def predictors(table: pd.DataFrame | None) -> Table:
    """What the predictors came to, a sentence per axis."""
    if table is None or len(table) == 0:
        return Table(_NOT_PREDICTED)
    return _listed(predictors_in_words(table))


def held_out(table: pd.DataFrame | None, settings: Mapping[str, Any]) -> Table | None:
    """Held-out R² of the ridge models, a line per target and tier, published ones beside."""
    if table is None or len(table) == 0:
        return None
    theirs = published.predictors()
    compare = is_published(settings)
    axes = [axis for axis in AXES if axis in set(table["axis"])]
    ridge = table[table["model"] == "ridge"]
    head = ["target", "predictors"]
    for axis in axes:
        head += heads(AXIS_NAMES[axis], True, compare)
    body = []
    for target in TARGET_NAMES:
        lines = ridge[ridge["target"] == target]
        for tier in [one for one in TIER_NAMES if one in set(lines["predictors"])]:
            line = [html.escape(TARGET_NAMES[target]), html.escape(TIER_NAMES[tier])]
            for axis in axes:
                ours, published_r2 = (
                    score(one, target, tier, "ridge", axis, "r2") for one in (table, theirs)
                )
                line += cells(ours, published_r2, True, compare, _two)
            body.append(line)
    return Table(markup(head, body, texts=2)) if body else None


def signs(table: pd.DataFrame | None, axis: str = "corpus") -> Table | None:
    """How often each tier tells the sign on an axis, beside the majority sign and always."""
    if table is None or len(table) == 0:
        return None
    lines = table[table["axis"].isin([axis, "primary"])]
    targets = [target for target in TARGET_NAMES if target in set(lines["target"])]
    head = ["predictors", "model", *(TARGET_NAMES[target] for target in targets)]
    keys = [
        (tier, model)
        for tier in TIER_NAMES
        for model in ("ridge", "boosted", "unfitted")
        if len(lines[(lines["predictors"] == tier) & (lines["model"] == model)])
    ]
    body = []
    for tier, model in keys:
        where = "primary" if model == "unfitted" else axis
        line = [html.escape(TIER_NAMES[tier]), model]
        for target in targets:
            right = score(lines, target, tier, model, where, "sign_accuracy")
            majority = majority_score(lines, target, tier, model, where)
            text = "–" if math.isnan(right) else percent(right)
            line.append(f"<b>{text}</b>" if right > majority else text)
        body.append(line)
    majorities = ["majority sign of the rows fitted on", ""]
    for target in targets:
        values = lines.loc[(lines["target"] == target) & (lines["axis"] == axis)]
        known = values["majority_accuracy"].dropna()
        majorities.append(percent(float(known.iloc[0])) if len(known) else "–")
    return Table(markup(head, [*body, majorities], texts=2))


def decisions(table: pd.DataFrame | None) -> Table:
    """What the decision rule came to, a sentence per reference."""
    if table is None or len(table) == 0:
        return Table(_NOT_DECIDED)
    return _listed(decisions_in_words(table))


def decision_table(
    table: pd.DataFrame | None, settings: Mapping[str, Any], *, with_published: bool = True
) -> Table | None:
    """Never, always, rule and oracle, overall and per collection, with intervals.

    `with_published` adds lines with the published figures over all rows.
    """
    if table is None or len(table) == 0:
        return None
    theirs = published.decision()
    compare = is_published(settings)
    body: list[list[str]] = []
    inside: list[list[str]] = []
    for _, line in table.iterrows():
        every = line["scope"] == "all" or not with_published
        reference = str(line["reference"])
        content = [
            html.escape(REFERENCE_NAMES.get(reference, reference)),
            html.escape(str(line["value"])) if line["scope"] != "all" else "<b>all rows</b>",
            f"{int(line['rows']):,}",
            *(number(float(line[key]), 4) for key in ("never", "always", "rule", "oracle")),
            signed(float(line["gain_over_always"]), 4)
            + _range(line["low"], line["high"], lambda value: signed(value, 4)),
        ]
        share = float(line["recovered"])
        text = "–" if math.isnan(share) else percent(share)
        if not math.isnan(share) and {"recovered_low", "recovered_high"} <= set(table.columns):
            text += _range(line["recovered_low"], line["recovered_high"], percent)
        (body if every else inside).append([*content, text])
    if with_published:
        printed = ["published", "all rows", "–", "–"]
        printed += [number(theirs[key], 4) for key in ("always", "rule", "oracle")]
        printed += [signed(theirs["rule"] - theirs["always"], 4), percent(theirs["recovered"])]
        body.append([f"<small>{cell}</small>" for cell in printed])
    if with_published and compare:
        for _, line in table[table["scope"] == "all"].iterrows():
            reference = str(line["reference"])
            name = html.escape(REFERENCE_NAMES.get(reference, reference))
            apart = [f"{name} less published", "all rows", "–", "–"]
            apart += [
                signed(float(line[key]) - theirs[key], 4) for key in ("always", "rule", "oracle")
            ]
            gain = float(line["gain_over_always"]) - (theirs["rule"] - theirs["always"])
            apart += [
                signed(gain, 4),
                percent(float(line["recovered"]) - theirs["recovered"])
                if not math.isnan(float(line["recovered"]))
                else "–",
            ]
            body.append([f"<small>{cell}</small>" for cell in apart])
    head = ["reference", "rows of", "rows", "never", "always", "rule", "oracle"]
    head += ["rule less always", "headroom recovered"]
    shown = markup(head, body, texts=2)
    if inside:
        shown += "\n" + folded("Per collection", markup(head, inside, texts=2))
    return Table(shown)


def _range(low: Any, high: Any, text: Any) -> str:
    low, high = float(low), float(high)
    if math.isnan(low) or not low < high:
        return ""
    return f" <small>{text(low)} to {text(high)}</small>"


def _listed(sentences: Sequence[str]) -> Table:
    items = "\n".join(f"<li>{html.escape(one)}</li>" for one in sentences)
    return Table(f'<ul class="answer">\n{items}\n</ul>')


def _two(value: float) -> str:
    return number(value, 2)
