"""The parts of a page that are not figures: tables, key numbers, the paragraph of the answer.

Everything that comes from data is escaped here.
"""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from whencount import summaries
from whencount.comparison import Claim
from whencount.reports.agreement_pieces import in_short
from whencount.reports.drawing import Table
from whencount.reports.markup import folded, markup
from whencount.reports.share_figure import group_name, in_order_of_study
from whencount.reports.style import (
    REFERENCE_NAMES,
    SWITCH_COLOURS,
    SWITCH_NAMES,
    in_order,
    representation_name,
)
from whencount.reports.words import sentences
from whencount.scoring import CONFIGURATIONS, SWITCHES
from whencount.significance import EFFECTS
from whencount.summaries import Answer
from whencount.wording import FEW_COLLECTIONS, percent, plural, signed

QUALITY_DIGITS = 3


def answer(found: Answer, claims: Sequence[Claim] = ()) -> Table:
    """The answer: key numbers, then the paragraph; last, how it compares with the publication."""
    tiles = []
    for share in sorted(found.shares, key=lambda item: SWITCHES.index(item.switch)):
        value = "–" if math.isnan(share.share) else percent(share.share)
        detail = ""
        if share.has_interval:
            detail = f"{percent(share.low)} to {percent(share.high)}"
            if found.collections < FEW_COLLECTIONS:
                detail += f", from {plural(found.collections, 'collection')} only"
        tiles.append(
            _tile(value, f"of the gain: {SWITCH_NAMES[share.switch]}", detail, colour=share.switch)
        )
    gain, statistics = found.gain, found.statistics
    tiles.append(_tile(signed(gain.mean), "mean gain in nDCG@10", f"{gain.up:,} rows up"))
    tiles.append(
        _tile(
            f"{statistics.up:,} / {statistics.total:,}",
            "rows where IDF and length help on top of saturation",
            f"mean G {signed(statistics.mean)}",
        )
    )
    *effects, tests = [html.escape(sentence) for sentence in sentences(found)]
    compared = ""
    if claims:
        where = '<a href="#where-this-study-agrees-with-the-published-one">below</a>'
        said = html.escape(in_short(claims).rstrip("."))
        compared = f'\n<p class="answer">{said}: {where}.</p>'
    return Table(
        f'<div class="tiles">{"".join(tiles)}</div>\n'
        f'<p class="answer">{" ".join(effects)}</p>\n<p class="answer">{tests}</p>{compared}'
    )


def quality(rows: pd.DataFrame, references: pd.DataFrame) -> Table:
    """All eight qualities of every row, a folded table per collection; the best is bold."""
    head = ["representation", *CONFIGURATIONS, "gain", "G"]
    parts = []
    named = _named(rows)
    for collection in sorted(rows["collection"].unique()):
        lines = named[named["collection"] == collection]
        body = []
        for _, line in lines.iterrows():
            values = [float(line[f"q{configuration}"]) for configuration in CONFIGURATIONS]
            shown = [f"{value:.{QUALITY_DIGITS}f}" for value in values]
            best = max(values)
            body.append(
                [
                    html.escape(str(line["_name"])),
                    *(
                        f"<b>{text}</b>" if value == best else text
                        for text, value in zip(shown, values, strict=True)
                    ),
                    signed(float(line["gain"])),
                    signed(float(line["collection_gain"])),
                ]
            )
        queries = int(lines["queries"].iloc[0])
        beside = references[references["collection"] == collection]
        scores = [
            f"{html.escape(REFERENCE_NAMES.get(name, name))} {value:.{QUALITY_DIGITS}f}"
            for name, value in zip(beside["reference"], beside["ndcg_10"], strict=True)
        ]
        summary = ", ".join(
            [
                f"<b>{html.escape(collection)}</b>",
                plural(queries, "judged query"),
                *scores,
            ]
        )
        parts.append(folded(summary, markup(head, body)))
    return Table("\n".join(parts))


def shares(table: pd.DataFrame) -> Table:
    """The numbers behind the figure of shares, folded."""
    body = []
    for group in in_order_of_study(summaries.share_groups(table)):
        prefix = "" if group.scope == "all" else f"{group.scope}: "
        cells = [html.escape(f"{prefix}{group_name(group)}")]
        for share in group.shares:
            spread = (
                f" <small>{percent(share.low)} to {percent(share.high)}</small>"
                if share.has_interval
                else ""
            )
            cells.append("–" if math.isnan(share.share) else f"{percent(share.share)}{spread}")
        body.append([*cells, f"{group.rows:,}", signed(group.gain)])
    head = ["rows of", *(SWITCH_NAMES[switch] for switch in SWITCHES), "rows", "summed gain"]
    return Table(folded("The numbers", markup(head, body)))


def significance(found: Answer) -> Table:
    """How many rows differ significantly, per tested effect."""
    body = []
    for tested in found.tested:
        name = "full BM25 − inner product"
        if tested.effect in SWITCH_NAMES:
            name = f"main effect of {SWITCH_NAMES[tested.effect]}"
        passed = tested.up + tested.down
        body.append(
            [
                name,
                f"{tested.up:,}",
                f"{tested.down:,}",
                f"{tested.rows - passed:,}",
                f"{tested.smallest:.2g}",
            ]
        )
    head = [
        "effect",
        "significantly up",
        "significantly down",
        "not significant",
        "smallest Holm p",
    ]
    return Table(markup(head, body))


def tests(table: pd.DataFrame, alpha: float) -> Table:
    """Effect and Holm p of every tested row, folded; significant ones are bold."""
    body = []
    for _, line in _named(table).sort_values("collection", kind="stable").iterrows():
        cells = [html.escape(str(line["collection"])), html.escape(str(line["_name"]))]
        for effect in EFFECTS:
            p = float(line[f"holm_{effect}"])
            text = f"{signed(float(line[f'statistic_{effect}']), 2)} <small>p {p:.2g}</small>"
            cells.append(f"<b>{text}</b>" if p <= alpha else text)
        body.append(cells)
    head = ["collection", "representation", "full", *(SWITCH_NAMES[s] for s in SWITCHES)]
    return Table(folded("Every row: effect / sd, Holm p", markup(head, body, texts=2)))


def headed(title: str, table: Table | None) -> Table | None:
    """A table under a small heading; nothing, if there is no table."""
    if table is None:
        return None
    return Table(f"<h3>{html.escape(title)}</h3>\n{table.markup}")


def ties(rows: pd.DataFrame) -> Table:
    """Rows in which ties at rank 10 are frequent, ranked and tie-expected quality beside."""
    stages = ("000", "010", "111")
    tied = rows[rows[[f"tie_share_{stage}" for stage in stages]].max(axis=1) > 0.01]
    if len(tied) == 0:
        return Table("<p>No row has a tie across rank 10 in more than 1 % of its queries.</p>")
    body = []
    for _, line in _named(tied).iterrows():
        cells = [html.escape(str(line["_name"])), html.escape(str(line["collection"]))]
        for stage in stages:
            cells.append(percent(float(line[f"tie_share_{stage}"])))
            cells.append(f"{line[f'q{stage}']:.3f}")
            cells.append(f"{line[f'expected_{stage}']:.3f}")
        body.append(cells)
    head = ["representation", "collection"]
    for stage in stages:
        head += [f"{stage} tied", "ranked", "expected"]
    return Table(folded(f"{plural(len(tied), 'row')} with ties", markup(head, body, texts=2)))


def making(
    rows: pd.DataFrame,
    *,
    study: str,
    family: str,
    alpha: float,
    settings: Mapping[str, Any],
) -> Table:
    """What was computed and how: rows per family, settings, version."""
    from importlib.metadata import version

    names = dict.fromkeys([family, *(name for cell in rows["families"] for name in cell.split())])
    body = []
    for name in names:
        lines = summaries.in_family(rows, name)
        body.append(
            [
                html.escape(name) + (" <small>(reported)</small>" if name == family else ""),
                f"{len(lines):,}",
                f"{lines['representation'].nunique():,}",
                f"{lines['collection'].nunique():,}",
                _values(lines["budget"]),
                _values(lines["k1"]),
                _values(lines["b"]),
                _values(lines["seed"]),
                _values(lines["control"].replace("", "none")),
            ]
        )
    head = [
        "family",
        "rows",
        "representations",
        "collections",
        "budgets",
        "k1",
        "b",
        "seeds",
        "controls",
    ]
    facts = {
        "study": study,
        "distinct rows": f"{len(rows):,} (families share rows)",
        "reported family": f"{family}, alpha {alpha:g}",
        "whencount": version("whencount"),
    }
    facts |= {key: _setting(value) for key, value in settings.items() if value not in (None, {})}
    pairs = "".join(
        f"<dt>{html.escape(key)}</dt><dd>{html.escape(value)}</dd>" for key, value in facts.items()
    )
    return Table(f'{markup(head, body)}\n<dl class="facts">{pairs}</dl>')


def _named(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows in the study's order, with a column `_name`: their representation for a reader.

    Settings are added to the name where a representation has several rows per collection.
    """
    places = {name: place for place, name in enumerate(in_order(rows["representation"]))}
    names = rows["representation"].map(representation_name)
    if rows.duplicated(["representation", "collection"]).any():
        for key in summaries.CELL_KEYS:
            if rows[key].nunique() > 1:
                values = rows[key].map(
                    lambda value: value if isinstance(value, str) else f"{value:g}"
                )
                names += f", {key} " + values.replace("", "none")
    ordered = rows.assign(_name=names, _place=rows["representation"].map(places))
    return ordered.sort_values(["_place", "collection"], kind="stable")


def _tile(value: str, label: str, detail: str, colour: str = "") -> str:
    style = f' style="--tile:{SWITCH_COLOURS[colour]}"' if colour else ""
    more = f"<small>{html.escape(detail)}</small>" if detail else ""
    return f"<div{style}><b>{html.escape(value)}</b><span>{html.escape(label)}</span>{more}</div>"


def _values(column: pd.Series) -> str:
    known = list(dict.fromkeys(column))
    texts = [value if isinstance(value, str) else f"{value:g}" for value in known]
    return html.escape(", ".join(texts))


def _setting(value: Any) -> str:
    """`sae (features 2,048, active 16), identity`: a setting of the configuration on one line."""
    if isinstance(value, Mapping):
        return ", ".join(
            f"{key} ({_setting(inner)})"
            if isinstance(inner, Mapping | list) and inner
            else f"{key} {'' if isinstance(inner, Mapping) else _setting(inner)}".rstrip()
            for key, inner in value.items()
            if inner not in ("", None)
        )
    if isinstance(value, list):
        return ", ".join(_setting(inner) for inner in value)
    return f"{value:,}" if isinstance(value, int) else str(value)
