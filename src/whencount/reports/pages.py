"""A page per representation and per collection, written in one process without a notebook.

They show the same figures and tables as the page of the study, of one part of its rows. Every name
from data is escaped, and the file of a page is named by `markup.page_name`.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from whencount import attribution, summaries
from whencount.comparison.cells import MEASURED, with_published
from whencount.files import atomic_directory
from whencount.progress import progress
from whencount.reports import part_figures, prediction_figures
from whencount.reports.agreement_pieces import decision_table
from whencount.reports.beside import is_published
from whencount.reports.drawing import Drawing, Table
from whencount.reports.markup import folded, link, markup, page_name
from whencount.reports.rendering import page
from whencount.reports.style import SWITCH_NAMES, in_order, representation_name
from whencount.reports.tables import StudyTables
from whencount.scoring import CONFIGURATIONS, SWITCHES
from whencount.wording import joined, number, percent, plural, signed

_STATISTICS = {
    "value_cv": "cv",
    "peak_ratio": "peak ratio",
    "top_share": "top share",
    "length_cv": "length cv",
    "nnz_cv": "nnz cv",
    "active_fraction": "active",
    "zipf_slope": "Zipf slope",
    "gini": "Gini",
    "mass_top_share": "mass in top 1 %",
    "idf_variance": "IDF variance",
}


@dataclass(frozen=True)
class _Part:
    """The rows of one representation or collection."""

    kind: str
    name: str
    title: str
    other: str


def write_pages(
    tables: StudyTables,
    settings: Mapping[str, Any],
    representations: str | Path,
    collections: str | Path,
    *,
    study: str = "",
    family: str,
) -> None:
    """Write a page per representation and per collection of the rows; each folder whole or not.

    Links lead to `../retrieval.html` and between the two folders, which therefore are best called
    `representations` and `collections` and stand beside that page. The same tables give the same
    bytes.

    Args:
        tables: of the run.
        settings: `encoder`, `fit` and `bases` of the configuration, as the retrieval report has
            them.
        representations: folder for `NAME.html` of every representation.
        collections: folder for `NAME.html` of every collection.
        study: its name.
        family: the reported family.

    Raises:
        InputError: a place cannot be written.
    """
    names = in_order(tables.rows["representation"])
    parts = [_Part("representation", one, representation_name(one), "collection") for one in names]
    parts += [
        _Part("collection", str(one), str(one), "representation")
        for one in sorted(tables.rows["collection"].unique())
    ]
    with (
        atomic_directory(representations) as one,
        atomic_directory(collections) as other,
    ):
        for part in progress(parts, len(parts), "pages", "page"):
            folder = Path(one if part.kind == "representation" else other)
            body = "\n".join(_body(tables, settings, part, family))
            text = page(part.title, study, body)
            (folder / f"{page_name(part.name)}.html").write_text(text, encoding="utf-8")


def links(tables: StudyTables) -> Table:
    """The list of all pages, for the page of the study."""
    names = in_order(tables.rows["representation"])
    listed = {
        "Representations": [
            link(f"representations/{page_name(name)}.html", representation_name(name))
            for name in names
        ],
        "Collections": [
            link(f"collections/{page_name(str(name))}.html", str(name))
            for name in sorted(tables.rows["collection"].unique())
        ],
    }
    parts = []
    if tables.hypotheses is not None:
        page_of = link("hypotheses.html", "The hypotheses")
        parts.append(f"<p>{page_of}, each with its test, its verdict and a figure.</p>")
    for heading, items in listed.items():
        content = "".join(f"<li>{item}</li>" for item in items)
        parts.append(f'<h3>{heading}</h3>\n<ul class="pages">{content}</ul>')
    return Table("\n".join(parts))


def _body(
    tables: StudyTables, settings: Mapping[str, Any], part: _Part, family: str
) -> Iterator[str]:
    rows = tables.rows[tables.rows[part.kind] == part.name]
    lines = summaries.in_family(rows, family)
    back = link("../retrieval.html", "Back to the whole study")
    yield f'<p class="back">{back}</p>'
    yield f'<p class="answer">{html.escape(_in_words(lines, part, family))}</p>'
    if len(lines):
        yield "<h2>Quality</h2>"
        yield _shown(part_figures.quality(lines, tables.references, part.other))
        yield _quality(lines, part)
        yield "<h2>What each switch brings</h2>"
        yield _shown(part_figures.effects(lines, part.other))
        yield _effects(lines, part, settings)
        yield "<h2>What shows without labels</h2>"
        yield (
            "<p>Statistics of the stored values and of how often features occur; they need neither"
            " queries nor judgements. docs/tables.md defines each.</p>"
        )
        yield _statistics(lines, part)
        yield _shown(_disruption(lines, part))
        yield from _decisions(tables, part, settings)
    rest = rows.drop(lines.index)
    if len(rest):
        yield "<h2>Rows under other settings</h2>"
        yield _others(rest, part)


def _in_words(lines: pd.DataFrame, part: _Part, family: str) -> str:
    if len(lines) == 0:
        return f"No row of it belongs to the reported family {family!r}."
    gain = summaries.signs(lines["gain"])
    statistics = summaries.signs(lines["collection_gain"])
    text = (
        f"Over {plural(len(lines), 'row')} of the family {family!r}, full BM25 changes the mean"
        f" nDCG@10 from {number(float(lines['q000'].mean()))} to"
        f" {number(float(lines['q111'].mean()))}; it is better than the inner product in {gain.up}"
        f" and worse in {gain.down}."
    )
    if gain.mean > 0:
        shares = attribution.shares(lines)["share"]
        listed = [
            f"{SWITCH_NAMES[switch]} {percent(float(shares[switch]))}"
            for switch in sorted(SWITCHES, key=lambda one: -float(shares[one]))
        ]
        text += f" Of the summed gain the switches carry: {joined(listed)}."
    best = lines.iloc[int(lines["q111"].to_numpy().argmax())]
    where = str(best[part.other])
    where = representation_name(where) if part.other == "representation" else where
    text += (
        f" IDF and length help on top of saturation in {statistics.up} and harm in"
        f" {statistics.down} of them (mean G {signed(statistics.mean)}). Full BM25 is best"
        f" {'with' if part.other == 'representation' else 'on'} {where}, at"
        f" {number(float(best['q111']))}."
    )
    return text


def _ordered(lines: pd.DataFrame, part: _Part) -> pd.DataFrame:
    if part.other == "collection":
        return lines.sort_values("collection", kind="stable")
    places = {name: place for place, name in enumerate(in_order(lines["representation"]))}
    order = lines["representation"].map(places)
    return lines.assign(_place=order).sort_values("_place", kind="stable")


def _linked(value: Any, part: _Part) -> str:
    name = str(value)
    text = representation_name(name) if part.other == "representation" else name
    return link(f"../{part.other}s/{page_name(name)}.html", text)


def _quality(lines: pd.DataFrame, part: _Part) -> str:
    body = []
    for _, line in _ordered(lines, part).iterrows():
        values = [float(line[f"q{configuration}"]) for configuration in CONFIGURATIONS]
        best = max(values)
        shown = [f"<b>{value:.3f}</b>" if value == best else f"{value:.3f}" for value in values]
        body.append(
            [
                _linked(line[part.other], part),
                f"{int(line['queries']):,}",
                *shown,
                signed(float(line["gain"])),
                signed(float(line["collection_gain"])),
            ]
        )
    head = [part.other, "queries", *CONFIGURATIONS, "gain", "G"]
    return markup(head, body)


def _effects(lines: pd.DataFrame, part: _Part, settings: Mapping[str, Any]) -> str:
    compare = is_published(settings)
    known = with_published(lines) if compare else lines.iloc[:0]
    theirs = {
        str(line[part.other]): {column: float(line[f"published_{column}"]) for column in MEASURED}
        for _, line in known.iterrows()
    }
    head = [part.other]
    for switch in SWITCHES:
        head += [f"φ {SWITCH_NAMES[switch]}"] + (["published", "difference"] if theirs else [])
    body = []
    for _, line in _ordered(lines, part).iterrows():
        content = [_linked(line[part.other], part)]
        for switch in SWITCHES:
            column = f"shapley_{switch}"
            value = float(line[column])
            content.append(signed(value))
            if theirs:
                their = theirs.get(str(line[part.other]), {}).get(column, math.nan)
                missing = math.isnan(their)
                content.append("–" if missing else f"<small>{signed(their)}</small>")
                content.append("–" if missing else f"<small>{signed(value - their, 4)}</small>")
        margin = line["margin"]
        body.append([*content, "–" if pd.isna(margin) else signed(float(margin), 2)])
    return folded("The numbers", markup([*head, "margin"], body))


def _statistics(lines: pd.DataFrame, part: _Part) -> str:
    columns = [column for column in _STATISTICS if column in lines.columns]
    body = [
        [
            _linked(line[part.other], part),
            *("–" if pd.isna(line[column]) else f"{line[column]:.3g}" for column in columns),
        ]
        for _, line in _ordered(lines, part).iterrows()
    ]
    return markup([part.other, *(_STATISTICS[column] for column in columns)], body)


def _disruption(lines: pd.DataFrame, part: _Part) -> Drawing | None:
    if part.kind == "representation":
        return None
    return prediction_figures.disruption(lines)


def _decisions(tables: StudyTables, part: _Part, settings: Mapping[str, Any]) -> Iterator[str]:
    table = tables.decisions
    if table is None or part.kind != "collection":
        return
    here = table[(table["scope"] == "collection") & (table["value"] == part.name)]
    if len(here):
        yield "<h2>Whether to use IDF and length, decided without labels</h2>"
        shown = decision_table(here, settings, with_published=False)
        yield "" if shown is None else shown.markup


def _others(rows: pd.DataFrame, part: _Part) -> str:
    body = []
    order = [part.other, "budget", "k1", "b", "seed", "control"]
    for _, line in _ordered(rows.sort_values(order, kind="stable"), part).iterrows():
        body.append(
            [
                _linked(line[part.other], part),
                html.escape(str(line["budget"])),
                f"{line['k1']:g}",
                f"{line['b']:g}",
                str(line["seed"]),
                html.escape(str(line["control"]) or "none"),
                *(f"{line[f'q{one}']:.3f}" for one in ("000", "010", "111")),
                *(signed(float(line[f"shapley_{switch}"])) for switch in SWITCHES),
            ]
        )
    head = [part.other, "budget", "k1", "b", "seed", "control", "000", "010", "111"]
    head += [f"φ {SWITCH_NAMES[switch]}" for switch in SWITCHES]
    return folded(plural(len(rows), "row"), markup(head, body))


def _shown(drawing: Drawing | None) -> str:
    return "" if drawing is None else drawing._repr_html_()
