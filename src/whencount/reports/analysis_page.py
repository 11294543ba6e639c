"""The page of `whencount analyse`: what anyone's rows say, in one file that loads nothing."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

import pandas as pd

from whencount.analysis import PARTS
from whencount.reports import hypothesis_pieces
from whencount.reports.markup import folded, markup
from whencount.reports.rendering import page
from whencount.reports.style import SWITCH_NAMES
from whencount.wording import capital, number, percent, plural, signed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from whencount.analysis import Analysis

_SCOPES = ("all", "budget", "collection", "granularity", "basis", "representation")


def analysis_page(analysis: Analysis, name: str) -> str:
    """The page of an analysis.

    Args:
        analysis: what was found.
        name: of the table of rows, plain text.
    """
    primary = analysis.shares[analysis.shares["scope"] == "all"]["rows"].iloc[0]
    over = f"the family {analysis.family}" if analysis.family else "all rows"
    body = [
        "<h1>Analysis of rows</h1>",
        f"<p>{plural(analysis.rows, 'row')}; shares are over {html.escape(over)}:"
        f" {plural(int(primary), 'row')} on {plural(len(analysis.collections), 'collection')}.</p>",
        "<h2>Shares of the gain</h2>",
        "<p>The summed Shapley values of a switch over the summed gain of full BM25 over the inner"
        " product; the interval resamples whole collections (95 %).</p>",
        _shares(analysis.shares),
        "<h2>Hypotheses</h2>",
        hypothesis_pieces.summary(analysis.hypotheses).markup,
    ]
    overview = hypothesis_pieces.overview(analysis.hypotheses)
    body += [overview.markup] if overview is not None else []
    body.append(_listed(hypothesis_pieces.reasons(analysis.hypotheses)))
    if len(analysis.predictors):
        body += ["<h2>Predictors</h2>", _predictors(analysis.predictors)]
    if len(analysis.decisions):
        body += ["<h2>Decision rule</h2>", _decisions(analysis.decisions)]
    if analysis.notes:
        body += ["<h2>Notes</h2>", _listed([capital(note) for note in analysis.notes])]
    return page("Analysis of rows", name, "\n".join(body))


def _listed(sentences: Sequence[str]) -> str:
    items = "".join(f"<li>{html.escape(one)}</li>" for one in sentences)
    return f"<ul>{items}</ul>" if items else ""


def _shares(shares: pd.DataFrame) -> str:
    names = ["+".join(SWITCH_NAMES[switch] for switch in part.split("+")) for part in PARTS]
    tables = []
    for scope in _SCOPES:
        body = []
        for value, lines in shares[shares["scope"] == scope].groupby("value", sort=False):
            cells = [_share(line) for _, line in lines.iterrows()]
            first = lines.iloc[0]
            counts = [f"{int(first['rows']):,}", signed(float(first["gain"]))]
            body.append([html.escape(str(value)) or "all", *cells, *counts])
        table = markup(["rows of", *names, "rows", "summed gain"], body)
        tables.append(table if scope == "all" else folded(f"By {scope}", table))
    return "\n".join(tables)


def _share(line: pd.Series) -> str:
    share, low, high = (float(line[key]) for key in ("share", "low", "high"))
    if pd.isna(share):
        return "–"
    interval = f" <small>{percent(low)} to {percent(high)}</small>" if low < high else ""
    return f"{percent(share)}{interval}"


def _predictors(predictors: pd.DataFrame) -> str:
    columns = ["r2", "spearman", "sign_accuracy", "majority_accuracy"]
    parts = []
    for target, lines in predictors.groupby("target", sort=False):
        body = [
            [
                html.escape(f"{line['predictors']}, {line['model']}"),
                html.escape(str(line["axis"])),
                *(number(float(line[column]), 2) for column in columns),
                f"{int(line['rows']):,}",
            ]
            for _, line in lines.iterrows()
        ]
        head = ["predictors", "axis", "R²", "Spearman", "sign", "majority sign", "rows"]
        name = html.escape(capital(str(target).replace("_", " ")))
        parts.append(folded(name, markup(head, body, texts=2)))
    return "\n".join(parts)


def _decisions(decisions: pd.DataFrame) -> str:
    columns = ["never", "always", "rule", "oracle"]
    body = [
        [
            html.escape(str(line["reference"])),
            html.escape(str(line["value"])) or "all",
            *(number(float(line[column]), 4) for column in columns),
            "–" if pd.isna(line["recovered"]) else percent(float(line["recovered"])),
            f"{int(line['rows']):,}",
        ]
        for _, line in decisions.iterrows()
    ]
    head = ["reference", "collection", *columns, "recovered", "rows"]
    return markup(head, body, texts=2)
