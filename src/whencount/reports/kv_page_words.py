"""The answer of the study of KV pages in sentences: every word is chosen by the numbers."""

from __future__ import annotations

from whencount.reports.setting_style import SELECTOR_NAMES, selector_name, variant_name
from whencount.reports.setting_words import difference, switches
from whencount.setting_summaries.kv_pages import Best, PagesAnswer
from whencount.wording import joined, number, plural

EMPTY = (
    "This study of KV pages has no rows: none of its tasks could be run. The reasons stand below."
)
_EXPECTED = 0.9
"""A model that finds less than this without any selector cannot show what selectors lose."""


def sentences(found: PagesAnswer) -> list[str]:
    """The answer as plain text: the run, the selectors, each variant's best and its switches."""
    if found.rows == 0:
        return [EMPTY]
    return [
        _run(found),
        *_weak(found),
        *[_selectors(found, budget) for budget in found.budgets],
        *[_best(one) for one in found.best],
        *[switches(one, "mean score") for one in found.effects],
    ]


def _run(found: PagesAnswer) -> str:
    low, high = found.examples
    each = plural(low, "example") if low == high else f"{low:,} to {high:,} examples"
    contexts = joined([f"{one:,}" for one in found.contexts])
    return (
        f"{plural(len(found.tasks), 'task')} of RULER at contexts of {contexts} tokens, with"
        f" {each} each, answered by {joined(found.models)}. The context is read with full"
        " attention; the question and the answer may then read only the pages that a selector picks"
        f" (budget{'s' if len(found.budgets) > 1 else ''}:"
        f" {joined([f'{one:,}' for one in found.budgets])} tokens)."
    )


def _weak(found: PagesAnswer) -> list[str]:
    full = found.level("full", found.budgets[0])
    if full is None or full.score >= _EXPECTED:
        return []
    if full.score == 0:
        return [
            "With full attention the model finds no answer at all: nothing can be told of selectors"
            " with it."
        ]
    return [
        f"With full attention the model itself has a mean score of {number(full.score)}, so there"
        " is less for a selector to keep, and differences are smaller than with a stronger model."
    ]


def _selectors(found: PagesAnswer, budget: int) -> str:
    # Those with names of ours first, then any that a person added.
    names = dict.fromkeys([*SELECTOR_NAMES, *found.baselines(budget)])
    levels = {name: level for name in names if (level := found.level(name, budget)) is not None}
    full = levels.pop("full", None)
    listed = joined([f"{selector_name(name)} {number(one.score)}" for name, one in levels.items()])
    text = f"At a budget of {budget:,} tokens the mean score"
    if full is not None:
        text += f" of full attention is {number(full.score)}"
        text += f"; of the others: {listed}." if listed else "."
    else:
        text += f"s are: {listed}."
    if found.random[budget].units:
        text += f" Full attention less random pages: {difference(found.random[budget])}."
    if found.oracle[budget].units:
        text += f" The oracle less Quest: {difference(found.oracle[budget])}."
    return text


def _best(one: Best) -> str:
    where = _capital(f"{variant_name(one.variant)}, budget {one.budget:,}")
    if one.difference.few:
        told = "too few examples to tell any of them from it"
    else:
        told = (
            f"by more than chance explains {one.better} of seven are above it and {one.worse} below"
        )
    if one.above == 0:
        return f"{where}: no correction has a higher mean score than all-off; {told}."
    verdict = "."
    if not one.difference.few:
        verdict = (
            ", more than chance explains, though the best of eight was looked for."
            if one.difference.apart
            else ", within what chance explains."
        )
    return (
        f"{where}: {plural(one.above, 'corrected configuration')} of seven"
        f" {'has' if one.above == 1 else 'have'} a higher mean score than all-off; {told}. The best"
        f" is {one.configuration} with {number(one.score)},"
        f" {difference(one.difference)} against 000{verdict}"
    )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
