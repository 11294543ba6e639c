"""The transfer test in tables: verdicts, what was frozen, how each predictor reads a row."""

from __future__ import annotations

import html
import math

import pandas as pd

from whencount.errors import InputError
from whencount.reports.drawing import Table
from whencount.reports.markup import folded, link, markup
from whencount.reports.prediction_words import TARGET_NAMES
from whencount.reports.transfer_words import (
    KIND_NAMES,
    SETTING_NAMES,
    counted,
    in_words,
    interval,
)
from whencount.tables import read_table
from whencount.transfer.applying import PREDICTED_COLUMNS
from whencount.transfer.freezing import Frozen
from whencount.transfer.frozen_file import digest_of
from whencount.transfer.testing import HOLDS, NOT_APPLICABLE, TRANSFER_COLUMNS
from whencount.wording import capital, joined, number, percent, signed

_MARKS = {HOLDS: "passed", NOT_APPLICABLE: "untold"}
_SIGNS = {1.0: "+", -1.0: "−", 0.0: "0"}


def load(transfer: str, predictions: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Read the tables of the test.

    Raises:
        InputError: one is missing or damaged, or lacks a column.
    """
    tables = []
    for path, needed in ((transfer, TRANSFER_COLUMNS), (predictions, PREDICTED_COLUMNS)):
        table = read_table(path)
        missing = [name for name in needed if name not in table.columns]
        if missing:
            raise InputError(
                f"{path} lacks the columns {', '.join(missing[:5])}; write it again with this"
                " version of whencount"
            )
        tables.append(table)
    return tables[0], tables[1]


def answer(table: pd.DataFrame) -> Table:
    """The verdict in words, some paragraphs per setting."""
    parts = [f'<p class="answer">{html.escape(counted(table))}</p>']
    for setting, paragraphs in in_words(table).items():
        name = html.escape(capital(SETTING_NAMES.get(setting, setting)))
        parts.append(f"<h3>{name}</h3>")
        parts += [f'<p class="answer">{html.escape(text)}</p>' for text in paragraphs]
    return Table("\n".join(parts))


def links(table: pd.DataFrame) -> Table:
    """Links to the pages of the settings that were tested."""
    found = [
        link(f"{setting}.html", f"The study of {SETTING_NAMES[setting]}")
        for setting in dict.fromkeys(table["setting"])
        if setting in SETTING_NAMES
    ]
    return Table(f"<p>{' · '.join(found)}</p>")


def verdicts(table: pd.DataFrame) -> Table:
    """Every test over all rows of a setting on a line; those of each variant folded below."""
    lines = table[table["scope"] == "all"]
    shown = _verdict_table(lines)
    variants = table[table["scope"] == "variant"]
    if len(variants):
        shown += "\n" + folded("the same within each variant", _verdict_table(variants))
    return Table(shown)


def _verdict_table(lines: pd.DataFrame) -> str:
    variants = bool((lines["scope"] == "variant").any())
    head = ["setting", *(["variant"] if variants else []), "target", "predictors", "verdict"]
    texts = len(head)
    head += ["signs right", "95 % interval", "majority sign", "mean abs. error", "at most"]
    head += ["Spearman", "rows", "left out"]
    body = []
    for _, line in lines.iterrows():
        cells = [html.escape(SETTING_NAMES.get(str(line["setting"]), str(line["setting"])))]
        cells += [html.escape(str(line["value"]))] if variants else []
        name = KIND_NAMES.get(str(line["predictors"]), str(line["predictors"]))
        cells += [
            html.escape(TARGET_NAMES[str(line["target"])]),
            html.escape(name) + ("" if line["declared"] else " (beside)"),
            _mark(line),
        ]
        cells += _figures(line)
        body.append(cells)
    return markup(head, body, texts=texts)


def _figures(line: pd.Series) -> list[str]:
    rows = [f"{int(line['rows']):,}", f"{int(line['left_out']):,}"]
    if line["verdict"] == NOT_APPLICABLE:
        return [*["–"] * 6, *rows]
    sign = _SIGNS[float(line["majority_sign"])]
    return [
        percent(float(line["sign_accuracy"])),
        interval(line, "sign_accuracy") or "–",
        f"{percent(float(line['majority_accuracy']))} ({sign})",
        number(float(line["mae"]), 4),
        number(float(line["largest_mae"]), 4),
        "–" if math.isnan(float(line["spearman"])) else signed(float(line["spearman"]), 2),
        *rows,
    ]


def _mark(line: pd.Series) -> str:
    verdict = str(line["verdict"])
    reason = html.escape(str(line["reason"]), quote=True)
    title = f' title="{reason}"' if reason else ""
    return f'<span class="verdict {_MARKS.get(verdict, "failed")}"{title}>{verdict}</span>'


def reasons(table: pd.DataFrame) -> Table | None:
    """Why tests were not applicable, each reason once; None where all were."""
    lines = table[(table["verdict"] == NOT_APPLICABLE) & (table["scope"] == "all")]
    if len(lines) == 0:
        return None
    items = []
    for (setting, kind, reason), part in lines.groupby(
        ["setting", "predictors", "reason"], sort=False
    ):
        targets = joined([TARGET_NAMES[str(target)] for target in part["target"]])
        name = SETTING_NAMES.get(str(setting), str(setting))
        items.append(
            f"<li>{html.escape(name)}, {html.escape(KIND_NAMES.get(str(kind), str(kind)))},"
            f" {html.escape(targets)}: {html.escape(str(reason))}</li>"
        )
    return Table(f"<p>Not applicable:</p>\n<ul>{''.join(items)}</ul>")


def frozen_facts(frozen: Frozen) -> Table:
    """What was frozen, when, from what, and the hashes that hold it."""
    criteria = frozen.criteria
    facts = {
        "frozen": frozen.frozen.strftime("%Y-%m-%d %H:%M:%S UTC"),
        "digest of the file": digest_of(frozen),
        "retrieval rows": (
            f"{frozen.rows['primary']:,} of the family {frozen.retrieval['family']}, on"
            f" {joined(frozen.retrieval['collections'])}; SHA-256 {frozen.rows['sha256']}"
        ),
        "pseudo-labels": (
            f"of {frozen.retrieval['reference']} in retrieval; "
            + joined(
                [
                    f"of {name} in {SETTING_NAMES.get(setting, setting)}"
                    for setting, name in frozen.settings.items()
                ]
            )
        ),
        "transfer holds if": (
            f"at least {percent(criteria.sign_accuracy)} of the signs are right, the mean absolute"
            f" error is at most {criteria.mae_ratio:g} times the retrieval error (root mean square,"
            " corpora held out), and the majority sign of the retrieval rows is right less often"
        ),
        "code": f"whencount {frozen.code['version']}, sources {frozen.code['sources']}",
    }
    items = "".join(
        f"<dt>{html.escape(name)}</dt><dd>{html.escape(text)}</dd>" for name, text in facts.items()
    )
    return Table(f'<dl class="facts">{items}</dl>')


def predictors(frozen: Frozen) -> Table:
    """Every frozen predictor on a line, and its coefficients folded below."""
    head = ["target", "predictors", "rows", "penalty", "intercept", "retrieval error"]
    head += ["largest error allowed", "majority sign"]
    body, coefficients = [], []
    for one in frozen.predictors:
        names = [TARGET_NAMES[one.target], KIND_NAMES.get(one.kind, one.kind)]
        names = [html.escape(name) for name in names]
        ridge = one.ridge
        body.append(
            [
                *names,
                f"{one.rows:,}",
                "–" if ridge is None else f"{ridge.alpha:g}",
                "–" if ridge is None else signed(ridge.intercept, 4),
                number(one.rmse, 4),
                number(frozen.criteria.mae_ratio * one.rmse, 4),
                _SIGNS[one.majority_sign],
            ]
        )
        if ridge is not None:
            for column, value, centre, scale, low, high in zip(
                one.columns,
                ridge.coefficients,
                ridge.centre,
                ridge.scale,
                one.lowest,
                one.highest,
                strict=True,
            ):
                coefficients.append(
                    [
                        *names,
                        f"<code>{html.escape(column)}</code>",
                        signed(float(value), 5),
                        number(float(centre), 4),
                        number(float(scale), 4),
                        f"{number(float(low), 4)} to {number(float(high), 4)}",
                    ]
                )
    inner = markup(
        ["target", "predictors", "column", "coefficient", "centre", "scale", "range in retrieval"],
        coefficients,
        texts=3,
    )
    return Table(markup(head, body, texts=2) + "\n" + folded("coefficients", inner))
