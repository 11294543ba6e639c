"""Tables that the reports on KV pages and on experts share; everything from data is escaped."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from whencount.attribution import QUALITY_COLUMNS
from whencount.reports.drawing import Table
from whencount.reports.markup import folded, markup
from whencount.reports.setting_style import clipped, variant_name
from whencount.reports.setting_words import FEW_GROUPS
from whencount.reports.setting_words import identities as identities_in_words
from whencount.reports.style import SWITCH_COLOURS, SWITCH_NAMES
from whencount.scoring import SWITCHES
from whencount.setting_summaries.effects import Effects
from whencount.setting_summaries.identities import Identity
from whencount.wording import number, percent, plural, signed

LINES_SHOWN = 400
"""Longer tables are cut there, and say so."""

_VERDICTS = {True: ("passed", "holds"), False: ("failed", "BROKEN")}
_STATISTICS = (
    "value_cv",
    "peak_ratio",
    "top_share",
    "length_cv",
    "length_log_sd",
    "active_fraction",
    "zipf_slope",
    "gini",
    "frequency_top_share",
    "mass_top_share",
    "idf_variance",
    "disruption_idf",
    "disruption_saturation",
    "disruption_length",
)


def paragraphs(sentences: Sequence[str]) -> str:
    """The first as a paragraph, the others as a list."""
    first, *others = [html.escape(one) for one in sentences]
    listed = "\n".join(f"<li>{one}</li>" for one in others)
    text = f'<p class="answer">{first}</p>'
    return f'{text}\n<ul class="answer">\n{listed}\n</ul>' if others else text


def tile(value: str, label: str, detail: str = "", colour: str = "") -> str:
    """A key number; all three are plain text."""
    style = f' style="--tile:{colour}"' if colour else ""
    more = f"<small>{html.escape(detail)}</small>" if detail else ""
    return f"<div{style}><b>{html.escape(value)}</b><span>{html.escape(label)}</span>{more}</div>"


def tiles(parts: Sequence[str]) -> str:
    """Key numbers side by side."""
    return f'<div class="tiles">{"".join(parts)}</div>' if parts else ""


def bounded(head: Sequence[str], body: Sequence[Sequence[str]], texts: int, file: str) -> str:
    """A table of at most LINES_SHOWN lines; where it is cut it says how many there are, and where.

    Args:
        head: column names, plain text.
        body: cells, HTML already.
        texts: how many columns at the left hold text.
        file: the table that holds all of it, plain text.
    """
    shown = markup(head, body[:LINES_SHOWN], texts)
    if len(body) <= LINES_SHOWN:
        return shown
    return (
        f"{shown}\n<p><small>{LINES_SHOWN:,} of {len(body):,} lines; all are in"
        f" {html.escape(file)}.</small></p>"
    )


def notes(sentences: Sequence[str]) -> Table | None:
    """What a run lacks, a sentence each; nothing where it lacks nothing."""
    if not sentences:
        return None
    items = "\n".join(f"<li>{html.escape(one)}</li>" for one in sentences)
    return Table(f"<ul>\n{items}\n</ul>")


def identities(found: Sequence[Identity], why: Mapping[str, str]) -> Table:
    """Which identities were checked, whether they hold, and why they must.

    Args:
        found: the checks.
        why: for a variant, why its identities must hold or that none must; plain text.
    """
    text = f'<p class="answer">{html.escape(identities_in_words(found))}</p>'
    variants = dict.fromkeys(one.variant for one in found)
    reasons = "".join(
        f"<li><b>{html.escape(f'{one}, {variant_name(one)}')}.</b> {html.escape(why[one])}</li>"
        for one in variants
        if one in why
    )
    body = []
    for one in found:
        style, verdict = _VERDICTS[one.holds]
        if not one.expected:
            style, verdict = "untold", "the same" if one.holds else "differs"
        elif one.checked == 0:
            style, verdict = "untold", "not checked"
        apart = "–" if math.isnan(one.largest) else f"{one.largest:.3g}"
        if one.what == "output" and not math.isnan(one.largest):
            apart = f"{percent(one.largest)} differ"
        body.append(
            [
                html.escape(one.variant),
                html.escape(one.statement),
                "outputs" if one.what == "output" else "rows",
                f'<span class="verdict {style}">{verdict}</span>',
                f"{one.checked:,}",
                f"{one.broken:,}",
                apart,
            ]
        )
    head = ["variant", "identity", "on", "verdict", "checked", "apart", "largest"]
    table = markup(head, body, texts=3) if body else ""
    return Table(f"{text}\n<ul>{reasons}</ul>\n{table}")


def shares(
    found: Sequence[Effects], groups: str, of: Sequence[str] = (), digits: int = 3
) -> Table | None:
    """Shares of the summed change per variant and switch, with intervals.

    Args:
        found: one per variant.
        groups: what the intervals resample, plural and plain: `tasks` say.
        of: what each is of, plain: an evaluation say; one name where left out.
        digits: of changes.
    """
    if not found:
        return None
    body = []
    for place, one in enumerate(found):
        cells = [html.escape(clipped(of[place], 60))] if of else []
        cells += [html.escape(variant_name(one.variant)), f"{one.rows:,}"]
        cells.append(signed(one.gain.mean, digits))
        for share in one.shares:
            mean = signed(one.switches[share.switch].mean, digits)
            if math.isnan(share.share):
                cells.append(f"{mean} <small>no share</small>")
                continue
            spread = (
                f", {percent(share.low)} to {percent(share.high)}" if share.has_interval else ""
            )
            cells.append(f"{mean} <small>{percent(share.share)}{spread}</small>")
        body.append(cells)
    head = [*(["of"] if of else []), "variant", "rows", "mean Q111 − Q000"]
    head += [f"φ {SWITCH_NAMES[switch]}" for switch in SWITCHES]
    fewest = min(one.groups for one in found)
    few = ", too few here to lean on them" if fewest < FEW_GROUPS else ""
    interval = "" if fewest == 1 else f" Intervals (95 %) resample whole {groups}{few}."
    said = (
        "<p>The mean Shapley value of each switch, and its share of the summed change; a negative"
        f" change is a loss, and shares are of it.{interval}</p>"
    )
    return Table(f"{said}\n{bounded(head, body, 2 if of else 1, 'rows.parquet')}")


def qualities(rows: pd.DataFrame, keys: Sequence[str], file: str, digits: int = 3) -> Table | None:
    """All eight qualities of every row, folded; the best is bold."""
    if len(rows) == 0:
        return None
    body = []
    for _, line in rows.sort_values(list(keys), kind="stable").iterrows():
        values = [float(line[column]) for column in QUALITY_COLUMNS]
        best = max(values)
        shown = [number(value, digits) for value in values]
        body.append(
            [
                *(_cell(line[key]) for key in keys),
                *(
                    f"<b>{text}</b>" if value == best else text
                    for text, value in zip(shown, values, strict=True)
                ),
                signed(float(line["gain"]), digits),
                signed(float(line["collection_gain"]), digits),
            ]
        )
    head = [*keys, *(column[1:] for column in QUALITY_COLUMNS), "Q111 − Q000", "G"]
    return Table(folded("The eight qualities of every row", bounded(head, body, len(keys), file)))


def label_free(rows: pd.DataFrame, keys: Sequence[str], reference: str, file: str) -> Table | None:
    """What shows without labels in every row: statistics, and agreement with the reference.

    Args:
        rows: rows.parquet of a setting.
        keys: the columns that name a row.
        reference: the stem of its columns of agreement, `pseudo_mass` say.
        file: where the whole table is, plain text.
    """
    statistics = [name for name in _STATISTICS if name in rows.columns and rows[name].notna().any()]
    agreed = [name for name in (f"{reference}_{c[1:]}" for c in QUALITY_COLUMNS) if name in rows]
    if len(rows) == 0 or not (statistics or agreed):
        return None
    ordered = rows.sort_values(list(keys), kind="stable")
    parts = []
    for summary, columns in (
        ("Agreement of each configuration with the label-free reference", agreed),
        ("Statistics of every row", statistics),
    ):
        if columns:
            body = [
                [
                    *(_cell(line[key]) for key in keys),
                    *("–" if pd.isna(line[one]) else f"{line[one]:.3g}" for one in columns),
                ]
                for _, line in ordered.iterrows()
            ]
            names = [one.removeprefix(f"{reference}_").replace("_", " ") for one in columns]
            table = bounded([*keys, *names], body, len(keys), file)
            parts.append(folded(f"{summary} ({plural(len(rows), 'row')})", table))
    return Table("\n".join(parts))


def making(settings: Mapping[str, Any], tables: Mapping[str, pd.DataFrame | None]) -> Table:
    """The tables that were read and the settings that they were made with."""
    from importlib.metadata import version

    facts = {"whencount": version("whencount")}
    facts |= {
        key: clipped(_setting(value), 600)
        for key, value in settings.items()
        if value not in (None, {}, [], "")
    }
    facts["tables"] = ", ".join(
        f"{name} ({plural(len(table), 'line')})"
        for name, table in tables.items()
        if table is not None
    )
    pairs = "".join(
        f"<dt>{html.escape(key)}</dt><dd>{html.escape(value)}</dd>" for key, value in facts.items()
    )
    return Table(f'<dl class="facts">{pairs}</dl>')


def switch_tiles(found: Effects, digits: int = 3) -> list[str]:
    """A tile per switch: its mean Shapley value, and its share."""
    parts = []
    for share in found.shares:
        detail = "" if math.isnan(share.share) else f"{percent(share.share)} of the summed change"
        parts.append(
            tile(
                signed(found.switches[share.switch].mean, digits),
                f"φ {SWITCH_NAMES[share.switch]}, {variant_name(found.variant)}",
                detail,
                SWITCH_COLOURS[share.switch],
            )
        )
    return parts


def _cell(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return html.escape(f"{value:,}" if isinstance(value, int) else clipped(str(value), 60))


def _setting(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(
            f"{key} ({_setting(inner)})" if isinstance(inner, Mapping | list) else f"{key} {inner}"
            for key, inner in value.items()
            if inner not in (None, "", {}, [])
        )
    if isinstance(value, list):
        return ", ".join(_setting(inner) for inner in value)
    return str(value)
