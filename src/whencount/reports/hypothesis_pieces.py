"""The registered hypotheses in tables and words: passed, failed or not testable, and why."""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from whencount.hypotheses.definitions import Hypothesis, load_file, shipped_files
from whencount.reports.drawing import Drawing, Table
from whencount.reports.hypothesis_figures import figure_of
from whencount.reports.markup import markup
from whencount.wording import capital, joined, number, percent, plural, signed

_TESTS = {
    "share_within": "the share lies in the interval; no p-value, outside Holm's correction",
    "paired_greater": "Wilcoxon's signed-rank test of pairs, one-sided",
    "rank_correlation": "Spearman's rank correlation is at least the threshold",
    "model_ranking": "Spearman of the model's ranking is at least the threshold",
    "exactly_zero": "every value is exactly 0; no p-value, outside Holm's correction",
    "decision_rule": "the rule's mean nDCG@10 is above that of always",
}
_ESTIMATES = {
    "share_within": "share",
    "paired_greater": "mean",
    "rank_correlation": "Spearman",
    "model_ranking": "Spearman",
    "exactly_zero": "largest |value|",
    "decision_rule": "mean nDCG@10 of the rule",
}
PASSED, FAILED, NOT_TESTABLE = "passed", "FAILED", "not testable"


def verdict(line: pd.Series) -> str:
    """`passed`, `FAILED` or `not testable`."""
    if line["status"] == NOT_TESTABLE or pd.isna(line["passes"]):
        return NOT_TESTABLE
    return PASSED if bool(line["passes"]) else FAILED


def reasons(table: pd.DataFrame) -> list[str]:
    """Why hypotheses are exploratory or not testable, those of one reason together."""
    given = table[table["reason"] != ""]
    return [
        f"{', '.join(dict.fromkeys(lines['hypothesis']))}: {status}, {reason}"
        for (status, reason), lines in given.groupby(["status", "reason"], sort=False)
    ]


def in_words(table: pd.DataFrame) -> list[str]:
    """How many hypotheses passed and failed, per registration, and whether that is confirmatory."""
    found = []
    for registration, lines in table.groupby("registration", sort=False):
        verdicts = [verdict(line) for _, line in lines.iterrows()]
        counts = [
            f"{verdicts.count(kind)} {word}"
            for kind, word in ((PASSED, "passed"), (FAILED, "FAILED"), (NOT_TESTABLE, NOT_TESTABLE))
            if kind in verdicts
        ]
        text = (
            f"Of the {plural(len(lines), 'test')} of the file {registration!r}, {joined(counts)}."
        )
        failed = list(dict.fromkeys(_label(line) for _, line in lines.iterrows() if _fails(line)))
        if failed:
            text += f" Failed: {joined(failed)}."
        tested = lines[[kind != NOT_TESTABLE for kind in verdicts]]
        confirmatory = int((tested["status"] == "confirmatory").sum())
        if len(tested) == 0:
            text += ""
        elif confirmatory == len(tested):
            text += " All of them are confirmatory: the file was registered before the rows."
        else:
            reasons = dict.fromkeys(tested.loc[tested["status"] != "confirmatory", "reason"])
            why = joined([str(reason).rstrip(".") for reason in reasons if reason])
            count = "None of them is" if confirmatory == 0 else f"{confirmatory} of them are"
            text += f" {count} confirmatory" + (f" ({why})." if why else ".")
            text += " What is exploratory shows what the rows say, but was not fixed before them."
        found.append(text)
    return found


def summary(table: pd.DataFrame | None) -> Table:
    """`in_words` as paragraphs."""
    if table is None or len(table) == 0:
        return Table("<p>This run tested no hypotheses.</p>")
    return Table("\n".join(f'<p class="answer">{html.escape(one)}</p>' for one in in_words(table)))


def overview(table: pd.DataFrame | None) -> Table | None:
    """Every hypothesis on a line: verdict, status, figures, the published value."""
    if table is None or len(table) == 0:
        return None
    head = ["hypothesis", "verdict", "status", "measured", "compared with", "published"]
    head += ["rows", "p", "Holm p"]
    body = []
    for _, line in table.iterrows():
        body.append(
            [
                html.escape(_label(line)),
                _mark(verdict(line)),
                html.escape(str(line["status"])),
                _value(line, "estimate"),
                _compared(line),
                _value(line, "published"),
                f"{int(line['rows']):,}",
                _p(line["p"]),
                _p(line["holm_p"]),
            ]
        )
    return Table(markup(head, body, texts=3))


def sections(
    table: pd.DataFrame | None, rows: pd.DataFrame, files: Sequence[str | Path] = ()
) -> Iterator[tuple[Table, Drawing | None]]:
    """A text and a figure per hypothesis, in the order of the table.

    Args:
        table: hypotheses.parquet.
        rows: rows.parquet.
        files: the files of hypotheses, which say which rows a figure shows; those that come with
            whencount where none is given.
    """
    if table is None or len(table) == 0:
        return
    known = _definitions(files)
    for number_, ((registration, hypothesis), lines) in enumerate(
        table.groupby(["registration", "hypothesis"], sort=False)
    ):
        defined = known.get((str(registration), str(hypothesis)))
        drawing = None
        if defined is not None:
            drawing = figure_of(defined, rows, f"hypothesis_{number_ + 1}")
        yield _section(str(hypothesis), lines), drawing


def _definitions(files: Sequence[str | Path]) -> dict[tuple[str, str], Hypothesis]:
    found: dict[tuple[str, str], Hypothesis] = {}
    for path in files or shipped_files():
        loaded = load_file(path)
        found |= {(loaded.name, one.name): one for one in loaded.hypotheses}
    return found


def _section(hypothesis: str, lines: pd.DataFrame) -> Table:
    first = lines.iloc[0]
    statement = html.escape(capital(str(first["statement"])).rstrip("."))
    parts = [f"<h3>{html.escape(hypothesis)}: {statement}</h3>"]
    how = _TESTS.get(str(first["test"]), str(first["test"]))
    parts.append(f"<p>Test: {html.escape(how)}.</p>")
    for _, line in lines.iterrows():
        found = verdict(line)
        setting = _setting(line)
        where = f"At {html.escape(setting)}: " if setting else ""
        text = f"<p>{where}{_mark(found)}. "
        if found == NOT_TESTABLE:
            text += f"{html.escape(capital(str(line['reason'])).rstrip('.'))}."
        else:
            name = _ESTIMATES.get(str(line["test"]), "estimate")
            text += f"Measured: {name} {_value(line, 'estimate')}"
            noun = "pair" if line["test"] == "paired_greater" else "row"
            text += _against(line) + f", over {plural(int(line['rows']), noun)}"
            p = _float(line["p"])
            if not math.isnan(p):
                text += f"; p {_p(p)}, after Holm's correction {_p(line['holm_p'])}"
            text += f". {_status(line)}"
        if not math.isnan(_float(line.get("published"))):
            text += f" Published: {_value(line, 'published')}"
            other = _float(line.get("published_comparison"))
            text += "" if math.isnan(other) else f" against {signed(other, 4)}"
            p = _float(line.get("published_p"))
            text += "." if math.isnan(p) else f", p {_p(p)}."
        parts.append(text + "</p>")
    return Table("\n".join(parts))


def _status(line: pd.Series) -> str:
    status, reason = str(line["status"]), str(line["reason"] or "").rstrip(".")
    if status == "confirmatory":
        return "Confirmatory: registered before the rows were computed."
    return html.escape(capital(status) + (f": {reason}." if reason else "."))


def _against(line: pd.Series) -> str:
    other, threshold = _float(line["comparison"]), _float(line["threshold"])
    if not math.isnan(other):
        return f" against {signed(other, 4)}"
    if not math.isnan(threshold) and line["test"] != "exactly_zero":
        return f" (at least {threshold:g} was claimed)"
    return ""


def _compared(line: pd.Series) -> str:
    other, threshold = _float(line["comparison"]), _float(line["threshold"])
    if not math.isnan(other):
        return signed(other, 4)
    return "–" if math.isnan(threshold) else f"{threshold:g}"


def _value(line: pd.Series, column: str) -> str:
    value = _float(line.get(column))
    if math.isnan(value):
        return "–"
    test = str(line["test"])
    if test == "share_within":
        # Two digits alone would put a share near an end of its interval on that end.
        return percent(value, 1)
    if test == "exactly_zero":
        return "0" if value == 0 else f"{value:.2g}"
    if test in ("rank_correlation", "model_ranking"):
        return signed(value, 2)
    return number(value, 4) if test == "decision_rule" else signed(value, 4)


def _mark(found: str) -> str:
    style = {PASSED: "passed", FAILED: "failed", NOT_TESTABLE: "untold"}[found]
    return f'<span class="verdict {style}">{found}</span>'


def _label(line: pd.Series) -> str:
    setting = _setting(line)
    return f"{line['hypothesis']}, {setting}" if setting else str(line["hypothesis"])


def _setting(line: pd.Series) -> str:
    value = line.get("setting", "")
    return value if isinstance(value, str) else ""


def _fails(line: pd.Series) -> bool:
    return verdict(line) == FAILED


def _p(value: Any) -> str:
    p = _float(value)
    return "–" if math.isnan(p) else f"{p:.3g}"


def _float(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan
