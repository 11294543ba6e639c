"""What the transfer test came to, in sentences computed from its table."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pandas as pd

from whencount.reports.prediction_words import TARGET_NAMES
from whencount.transfer.predictors import KINDS, STAND_INS
from whencount.transfer.testing import EXPLORATORY, HOLDS, NOT_APPLICABLE
from whencount.wording import capital, joined, percent, plural

SETTING_NAMES = {"pages": "KV pages", "experts": "expert routing"}
KIND_NAMES = {
    "registered": "registered three",
    "pseudo": "all tiers, pseudo-labels too",
    "pseudo_alone": "pseudo-labels alone",
    "unfitted": "pseudo-label estimate, unfitted",
}
_KINDS_IN_WORDS = {
    "registered": "The three registered predictors",
    "pseudo": "The predictors of all tiers, pseudo-labels among them,",
    "pseudo_alone": "pseudo-labels alone",
    "unfitted": "the pseudo-label estimate itself, unfitted,",
}


@dataclass(frozen=True)
class Answering:
    """Who answers for a declared predictor in a setting.

    Attributes:
        declared: of KINDS.
        kind: itself, or the one that stands in where it is applicable to no target.
        lines: the lines of the table about `kind`, over all rows, in the order of TARGET_NAMES.
        why: why the declared one is not applicable; "" where it is.
    """

    declared: str
    kind: str
    lines: pd.DataFrame
    why: str


def answering(table: pd.DataFrame, setting: str) -> list[Answering]:
    """Of each declared predictor, who answers for it in a setting."""
    here = table[(table["setting"] == setting) & (table["scope"] == "all")]
    found = []
    for declared in [kind for kind in KINDS if KINDS[kind].declared]:
        lines = _in_order(here[here["predictors"] == declared])
        if len(lines) == 0:
            continue
        absent = bool((lines["verdict"] == NOT_APPLICABLE).all())
        why = str(lines["reason"].iloc[0]) if absent else ""
        kind = STAND_INS.get(declared, declared) if absent else declared
        found.append(Answering(declared, kind, _in_order(here[here["predictors"] == kind]), why))
    return found


def counted(table: pd.DataFrame) -> str:
    """In how many of the tests of declared predictors transfer holds."""
    lines = [
        one.lines
        for setting in dict.fromkeys(table["setting"])
        for one in answering(table, setting)
        if len(one.lines)
    ]
    asked = pd.concat(lines) if lines else table.iloc[:0]
    asked = asked[asked["verdict"] != NOT_APPLICABLE]
    if len(asked) == 0:
        return "No frozen predictor can be asked for the rows of this run."
    holds = int((asked["verdict"] == HOLDS).sum())
    return (
        f"Transfer holds in {holds:,} of {plural(len(asked), 'test')}: a test is one declared"
        " predictor of one target in one setting."
    )


def in_words(table: pd.DataFrame) -> dict[str, list[str]]:
    """Paragraphs per setting: what holds, what does not and why; how far that can be trusted."""
    found = {}
    for setting in dict.fromkeys(table["setting"]):
        paragraphs = [" ".join(_of_predictor(one)) for one in answering(table, setting)]
        here = table[(table["setting"] == setting) & (table["scope"] == "all")]
        paragraphs.append(" ".join([*_beside(table, setting), *_trust(here)]))
        found[str(setting)] = [text for text in paragraphs if text]
    return found


def _of_predictor(one: Answering) -> list[str]:
    said = []
    subject = _KINDS_IN_WORDS[one.declared]
    if one.why:
        said.append(f"{subject} cannot be asked here: {one.why}.")
        if one.kind == one.declared or len(one.lines) == 0:
            return said
        subject = f"In their place {_KINDS_IN_WORDS[one.kind]}"
    asked = one.lines[one.lines["verdict"] != NOT_APPLICABLE]
    if len(asked) == 0:
        said.append(f"{subject} cannot be asked either: {one.lines['reason'].iloc[0]}.")
        return said
    holds = asked[asked["verdict"] == HOLDS]
    text = f"{subject} transfer for "
    text += joined([_target(line) for _, line in holds.iterrows()]) if len(holds) else "no target"
    fails = asked[asked["verdict"] != HOLDS]
    if len(holds) and len(fails):
        text += f", not for {joined([_target(line) for _, line in fails.iterrows()])}"
    said.append(text + ".")
    said += [
        f"For {joined([_target(line) for _, line in part.iterrows()])} {reason}."
        for reason, part in fails.groupby("reason", sort=False)
    ]
    silent = one.lines[one.lines["verdict"] == NOT_APPLICABLE]
    for _, line in silent.iterrows():
        said.append(f"{capital(_target(line))} cannot be asked for: {line['reason']}.")
    easy = holds[holds["commonest_accuracy"] >= holds["sign_accuracy"]]
    if len(easy):
        said.append(
            f"For {joined([_target(line) for _, line in easy.iterrows()])} a constant would have"
            " done as well: the commonest sign of these very rows, which nobody knew beforehand."
        )
    return said


def _beside(table: pd.DataFrame, setting: str) -> list[str]:
    here = table[
        (table["setting"] == setting)
        & (table["scope"] == "all")
        & (table["predictors"] == "unfitted")
        & (table["verdict"] != NOT_APPLICABLE)
    ]
    if len(here) == 0:
        return []
    lines = _in_order(here)
    holds = [_target(line) for _, line in lines.iterrows() if line["verdict"] == HOLDS]
    signs = [
        f"{percent(float(line['sign_accuracy']))} for {_target(line)}"
        for _, line in lines.iterrows()
    ]
    return [
        f"Beside them, {_KINDS_IN_WORDS['unfitted']} has the right sign in {joined(signs)} and"
        f" would pass for {joined(holds) if holds else 'no target'}."
    ]


def _trust(lines: pd.DataFrame) -> list[str]:
    said = []
    asked = lines[lines["verdict"] != NOT_APPLICABLE]
    if len(asked):
        rows, groups = int(asked["rows"].max()), int(asked["groups"].max())
        resampled = str(asked["resampled"].iloc[0])
        of = f" of {plural(groups, 'pair')} of model and task" if resampled != "rows" else ""
        if bool(asked["thin"].any()):
            said.append(
                f"All this rests on {plural(rows, 'row')} at most{of}: thin evidence. A few rows"
                " more could turn any of these verdicts."
            )
        else:
            said.append(f"This rests on up to {plural(rows, 'row')}{of}.")
        zeros = asked[asked["zeros"] > 0]
        if len(zeros):
            most = zeros.drop_duplicates("target")
            listed = [
                f"{int(line['zeros'])} of {int(line['rows'])} for {_target(line)}"
                for _, line in _in_order(most).iterrows()
            ]
            said.append(
                f"Outcomes of exactly 0, whose sign only a prediction of exactly 0 gets right:"
                f" {joined(listed)}."
            )
        beyond = asked[asked["predictors"] == "registered"]["outside"]
        if len(beyond) and float(beyond.iloc[0]) > 0:
            said.append(
                f"{percent(float(beyond.iloc[0]))} of the rows lie outside the range of the"
                " registered predictors in retrieval, so there the frozen ridges extrapolate."
            )
    if len(lines) and (lines["status"] == EXPLORATORY).all():
        said.append(f"This is exploratory, no test: {lines['status_reason'].iloc[0]}.")
    return said


def _target(line: pd.Series) -> str:
    return TARGET_NAMES[str(line["target"])]


def _in_order(lines: pd.DataFrame) -> pd.DataFrame:
    order = {name: place for place, name in enumerate(TARGET_NAMES)}
    return lines.sort_values("target", key=lambda names: names.map(order), kind="stable")


def interval(line: pd.Series, name: str, digits: int = 0) -> str:
    """`67 % to 92 %` of a line's interval; empty where there is none."""
    low, high = float(line[f"{name}_low"]), float(line[f"{name}_high"])
    if math.isnan(low) or math.isnan(high):
        return ""
    return f"{percent(low, digits)} to {percent(high, digits)}"
