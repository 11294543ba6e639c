"""Published values beside those of a run, in tables."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd

from whencount import published, summaries
from whencount.comparison import row_differences
from whencount.comparison.effects import budget_shares
from whencount.comparison.prediction import TARGETS
from whencount.reports.drawing import Table
from whencount.reports.markup import folded, link, markup, page_name
from whencount.reports.style import (
    SWITCH_NAMES,
    in_order,
    references_in_order,
    representation_name,
)
from whencount.reports.tables import StudyTables
from whencount.scoring import SWITCHES
from whencount.wording import joined, number, percent, plural, signed


def is_published(settings: Mapping[str, Any]) -> bool:
    """Whether a run was made with the published configuration, so that its cells compare."""
    return not published.departures(settings)


def heads(name: str, shown: bool, compare: bool) -> list[str]:
    """The column names of a value, of the published one beside it, and of the difference."""
    return [name, *(["published"] if shown else []), *(["difference"] if shown and compare else [])]


def cells(
    value: float,
    theirs: float,
    shown: bool,
    compare: bool,
    text: Callable[[float], str] = number,
) -> list[str]:
    """The cells under `heads`: a dash for what is not known."""
    found = ["–" if math.isnan(value) else text(value)]
    if shown:
        found.append("–" if math.isnan(theirs) else f"<small>{text(theirs)}</small>")
        if compare:
            apart = value - theirs
            found.append("–" if math.isnan(apart) else f"<small>{signed(apart, 3)}</small>")
    return found


def note(settings: Mapping[str, Any]) -> Table:
    """Whether the published values on the page compare with those of this run, and why not."""
    apart = published.departures(settings)
    if not apart:
        return Table(
            "<p>This run has the published configuration: tables show the published value and the"
            " difference beside each of theirs.</p>"
        )
    return Table(
        "<p>This run is not of the published configuration, so published values stand beside its"
        f" own as context, without a difference. It has {html.escape(joined(apart))}.</p>"
    )


def quality(tables: StudyTables, family: str, settings: Mapping[str, Any]) -> Table:
    """Per collection: the references, mean quality of 000 and 111, and the best 111."""
    rows = summaries.in_family(tables.rows, family)
    theirs = published.quality()
    compare = is_published(settings)
    if not compare:
        # A collection of the same name may be another: one that has its queries is taken for it.
        asked = rows.groupby("collection")["queries"].first().to_dict()
        same = [name for name, count in published.queries().items() if asked.get(name) == count]
        theirs = theirs[theirs.index.isin(same)]
    shown = bool(set(rows["collection"]) & set(theirs.index))
    references = references_in_order(tables.references["reference"])
    measured = tables.references.drop_duplicates(["collection", "reference"])
    scores = measured.set_index(["collection", "reference"])["ndcg_10"].to_dict()
    head = ["collection", "queries"]
    for name in references:
        known = shown and name in theirs.columns
        head += heads(references[name], known, compare)
    for title in ("mean 000", "mean 111", "best 111"):
        head += heads(title, shown, compare)
    head.append("best representation")
    body = []
    for collection in sorted(rows["collection"].unique()):
        lines = rows[rows["collection"] == collection]
        line = [
            link(f"collections/{page_name(collection)}.html", str(collection)),
            f"{int(lines['queries'].iloc[0]):,}",
        ]

        def their(column: str, collection: str = str(collection)) -> float:
            return _cell(theirs, collection, column)

        for name in references:
            known = shown and name in theirs.columns
            value = float(scores.get((collection, name), math.nan))
            line += cells(value, their(name) if known else math.nan, known, compare)
        best = lines.iloc[int(lines["q111"].to_numpy().argmax())]
        for value, column in (
            (float(lines["q000"].mean()), "mean_000"),
            (float(lines["q111"].mean()), "mean_111"),
            (float(best["q111"]), "best_111"),
        ):
            line += cells(value, their(column), shown, compare)
        line.append(html.escape(representation_name(str(best["representation"]))))
        body.append(line)
    return Table(markup(head, body))


def representations(tables: StudyTables, family: str, settings: Mapping[str, Any]) -> Table:
    """Per representation, over all collections of the family: what the publication tabulates."""
    rows = summaries.in_family(tables.rows, family)
    theirs = published.representations()
    compare = is_published(settings)
    names = in_order(rows["representation"])
    counted = set(tables.reported["collection"])
    shown = bool(set(names) & set(theirs.index))
    head = ["representation"]
    columns: list[tuple[str, str, Callable[[float], str]]] = [
        ("Q111", "quality_111", number),
        ("cv", "cv_x", lambda value: number(value, 2)),
        ("φ sat.", "phi_saturation", number),
        ("IDF + length", "share_idf_plus_length", percent),
        ("G > 0", "fraction_G_positive", percent),
    ]
    for title, _, _ in columns:
        head += heads(title, shown, compare)
    body = []
    for name in names:
        lines = rows[rows["representation"] == name]
        gain = float(lines["gain"].sum())
        both = float(lines["shapley_idf"].sum() + lines["shapley_length"].sum())
        values = (
            float(lines["q111"].mean()),
            # The publication tabulates this one over the reported collections alone.
            float(lines.loc[lines["collection"].isin(counted), "value_cv"].mean()),
            float(lines["shapley_saturation"].mean()),
            both / gain if gain else math.nan,
            float((lines["collection_gain"] > 0).mean()),
        )
        line = [link(f"representations/{page_name(name)}.html", representation_name(name))]
        for value, (_, column, text) in zip(values, columns, strict=True):
            line += cells(value, _cell(theirs, name, column), shown, compare, text)
        body.append(line)
    return Table(markup(head, body))


def budgets(tables: StudyTables, settings: Mapping[str, Any]) -> Table | None:
    """Share of the gain per switch at every budget; None where the study has one budget."""
    found = budget_shares(tables)
    if len(found) < 2:
        return None
    theirs = published.shares().rename(index={"primary_140": "32/128", "native_3": "native"})
    compare = is_published(settings)
    shown = bool(set(found["budget"]) & set(theirs.index))
    head = ["budget"]
    for switch in SWITCHES:
        head += heads(SWITCH_NAMES[switch], shown, compare)
    body = []
    for _, line in found.iterrows():
        content = [html.escape(str(line["budget"]))]
        for switch in SWITCHES:
            value = float(line[switch])
            texts = cells(
                value, _cell(theirs, str(line["budget"]), switch), shown, compare, percent
            )
            low, high = float(line[f"{switch}_low"]), float(line[f"{switch}_high"])
            if low < high:
                texts[0] += f" <small>{percent(low)} to {percent(high)}</small>"
            content += texts
        body.append([*content, f"{line['collections']}", f"{line['rows']:,}"])
    return Table(markup([*head, "collections", "rows"], body))


def rows_apart(tables: StudyTables, settings: Mapping[str, Any]) -> Table | None:
    """Median and largest difference from the published rows; None for another configuration."""
    if not is_published(settings):
        return None
    found = row_differences(tables.rows)
    if not found:
        return Table("<p>None of the rows of this run is among the published ones.</p>")
    names = {"gain": "gain"} | {f"shapley_{s}": f"φ {SWITCH_NAMES[s]}" for s in SWITCHES}
    body = [
        [
            names[one.column],
            f"{one.rows:,}",
            f"{one.median:.6f}",
            f"{one.largest:.6f}",
            html.escape(one.where),
        ]
        for one in found
    ]
    head = ["per row", "rows compared", "median difference", "largest difference", "where"]
    return Table(markup(head, body))


def predictors(table: pd.DataFrame | None, settings: Mapping[str, Any]) -> Table | None:
    """Every score of every predictor, a folded table per target, published ones beside."""
    if table is None or len(table) == 0:
        return None
    theirs = published.predictors().set_index(["target", "predictors", "model", "axis"])
    compare = is_published(settings)
    parts = []
    for target, lines in table.groupby("target", sort=False):
        name = TARGETS.get(str(target), str(target))
        shown = str(target) in set(theirs.index.get_level_values(0))
        head = ["predictors", "model", "held out", "rows"]
        for title in ("R²", "Spearman", "sign right"):
            head += heads(title, shown, compare)
        head.append("majority sign right")
        body = []
        for _, line in lines.iterrows():
            key = tuple(line[part] for part in ("target", "predictors", "model", "axis"))
            content = [html.escape(str(part)) for part in key[1:]] + [f"{int(line['rows']):,}"]
            for column, text in (
                ("r2", _two),
                ("spearman", _two),
                ("sign_accuracy", percent),
            ):
                their = float(theirs.loc[key, column]) if key in theirs.index else math.nan
                content += cells(float(line[column]), their, shown, compare, text)
            content.append(_or_dash(float(line["majority_accuracy"]), percent))
            body.append(content)
        summary = f"<b>{html.escape(name)}</b>, {plural(len(lines), 'prediction')}"
        parts.append(folded(summary, markup(head, body, texts=3)))
    return Table("\n".join(parts))


def _two(value: float) -> str:
    return number(value, 2)


def _or_dash(value: float, text: Callable[[float], str]) -> str:
    return "–" if math.isnan(value) else text(value)


def _cell(table: pd.DataFrame, row: str, column: str) -> float:
    if row not in table.index or column not in table.columns:
        return math.nan
    return float(table[column].to_dict()[row])
