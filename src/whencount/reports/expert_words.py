"""The answer of the study of expert routing in sentences: every word is chosen by the numbers."""

from __future__ import annotations

from whencount.reports.setting_style import RULE_NAMES, rule_name
from whencount.reports.setting_words import difference, switches
from whencount.setting_summaries.experts import LIKELIHOOD, ExpertsAnswer, RuleDifference
from whencount.wording import joined, number, plural

DIGITS = 4
"""Of changes: those of a likelihood are small."""

_LITTLE = 0.1
"""Nats per token; a model that loses less by random experts does not depend on its router."""

EMPTY = "This study of expert routing has no rows, so there is nothing to tell."


def sentences(found: ExpertsAnswer) -> list[str]:
    """The answer as plain text: the run, then per evaluation the rules and the switches."""
    if found.rows == 0:
        return [EMPTY]
    told = [_run(found)]
    for evaluation in found.evaluations:
        told += _evaluation(found, evaluation)
    return told


def _run(found: ExpertsAnswer) -> str:
    active = joined([str(one) for one in found.actives])
    return (
        f"The router of {joined(found.models)} chooses {active} experts per token and layer. The"
        " correction changes only which ones run: the chosen are mixed with their original weights."
        f" Measured on {joined(found.evaluations)}."
    )


def _evaluation(found: ExpertsAnswer, evaluation: str) -> list[str]:
    nll = found.metrics[evaluation] == LIKELIHOOD
    what = "quality (minus the NLL)" if nll else "accuracy"
    told = []
    for native in found.of(evaluation, "native") or found.of(evaluation, "000", "token"):
        level = number(-native.quality if nll else native.quality)
        measure = f"an NLL of {level} nats per token" if nll else f"an accuracy of {level}"
        here = [
            one
            for one in found.differences
            if (one.model, one.evaluation, one.active)
            == (native.model, native.evaluation, native.active)
        ]
        where = f"{evaluation} ({native.model}, {native.active} active)"
        told.append(
            f"On {where}, native routing has {measure}. Change of quality against it (above 0 is"
            f" better): {_comparisons(here)}.{_floor(here)} {_corrected(here)}"
        )
    told += [
        f"On {evaluation}: {_lower(switches(one, what, DIGITS))}"
        for one in found.effects[evaluation]
    ]
    return told


def _comparisons(here: list[RuleDifference]) -> str:
    known = [one for one in here if one.rule in RULE_NAMES and one.rule != "native"]
    return joined(
        [f"{rule_name(one.rule)} {difference(one.difference, DIGITS)}" for one in known]
    ) or ("none was run")


def _floor(here: list[RuleDifference]) -> str:
    """A word where random experts cost so little that routing cannot matter."""
    random = [one for one in here if one.rule == "random" and one.metric == LIKELIHOOD]
    if not random or random[0].difference.mean < -_LITTLE:
        return ""
    return (
        f" Random experts cost less than {_LITTLE:g} nats per token: which ones run hardly matters"
        " to this model, and so little can be told from a correction of the choice."
    )


def _corrected(here: list[RuleDifference]) -> str:
    corrected = [one for one in here if one.variant and one.rule != "000"]
    better = [one for one in corrected if one.difference.apart and one.difference.mean > 0]
    worse = [one for one in corrected if one.difference.apart and one.difference.mean < 0]
    same = len(corrected) - len(better) - len(worse)
    if not corrected:
        return "No corrected configuration was run."
    text = (
        f"Of {plural(len(corrected), 'corrected configuration')} {len(better):,} are better beyond"
        f" what chance explains, {len(worse):,} worse, {same:,} not told apart or the same."
    )
    best = max(corrected, key=lambda one: one.difference.mean)
    if best.difference.mean > 0:
        told = difference(best.difference, DIGITS)
        text += f" The best is {rule_name(best.rule, best.variant)}: {told}."
    return text


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]
