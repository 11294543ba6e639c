"""The page on the reversal: its verdict in words, its figure, its table."""

from __future__ import annotations

import html

import matplotlib as mpl
import pandas as pd
from matplotlib.lines import Line2D

from whencount.latent_terms.reversal import ALL, PUBLISHED
from whencount.reports.canvas import legend, panels_of
from whencount.reports.drawing import Drawing, Table
from whencount.reports.latent_figures import model_name
from whencount.reports.markup import markup
from whencount.reports.setting_pieces import paragraphs, tile, tiles
from whencount.reports.setting_style import BLUE, RED, clipped
from whencount.reports.style import FAINT, INK, SETTINGS
from whencount.wording import capital, number, plural, signed

SIDE_NAMES = {"latent": "latent terms", "learned_sparse": "SPLADE-like vectors"}
_SIDE_COLOURS = {"latent": RED, "learned_sparse": BLUE}
_OUTCOMES = {
    "as published": "as published",
    "opposite": "the opposite of what was published",
    "open": "not told from 0",
}


def answer(table: pd.DataFrame) -> Table:
    """The verdict: key numbers, then sentences."""
    total = _overall(table)
    parts = [tile(str(table["verdict"].iloc[0]), "the published reversal, here")]
    for side, line in total.items():
        interval = _interval(line)
        parts.append(
            tile(
                signed(float(line["difference"])),
                f"BM25 less inner, {SIDE_NAMES[side]}",
                interval,
            )
        )
    return Table(f"{tiles(parts)}\n{paragraphs(sentences(table))}")


def sentences(table: pd.DataFrame) -> list[str]:
    """The verdict and what it rests on, plain text."""
    total = _overall(table)
    told = [_verdict(table, total)]
    for side, name in SIDE_NAMES.items():
        inner, bm25 = PUBLISHED[side]
        published = f"published: {bm25:.3f} against {inner:.3f}"
        if side not in total:
            told.append(f"{capital(name)}: this study has none ({published}).")
            continue
        line = total[side]
        own = table[(table["side"] == side) & (table["collection"] != ALL)]
        counts = own["outcome"].value_counts()
        told.append(
            f"{capital(name)}: BM25 {number(float(line['bm25']))} against inner product"
            f" {number(float(line['inner']))}, {signed(float(line['difference']))}"
            f" ({_interval(line)}), {_OUTCOMES[str(line['outcome'])]} ({published}). Of"
            f" {plural(len(own), 'pair')} of model and collection"
            f" {int(counts.get('as published', 0)):,} agree, {int(counts.get('opposite', 0)):,} are"
            f" the opposite and {int(counts.get('open', 0)):,} cannot be told from 0."
        )
    return told


def _verdict(table: pd.DataFrame, total: dict[str, pd.Series]) -> str:
    verdict = str(table["verdict"].iloc[0])
    text = {
        "held": "The reversal held: BM25 is above the inner product on latent terms and below it on"
        " SPLADE-like vectors, both by more than their intervals.",
        "partly": "The reversal held in part: one of the two differences is as published by more"
        " than its interval, the other is not.",
        "refuted": "The reversal is refuted here: neither difference is as published, and at least"
        " one is the opposite by more than its interval.",
        "cannot be decided here": "Whether the reversal holds cannot be decided here",
    }[verdict]
    if verdict != "cannot be decided here":
        return text
    missing = [name for side, name in SIDE_NAMES.items() if side not in total]
    if missing:
        return f"{text}: this study has no {missing[0]}."
    return f"{text}: neither interval excludes 0."


def _overall(table: pd.DataFrame) -> dict[str, pd.Series]:
    """The line over all models and collections of each side."""
    lines = table[table["collection"] == ALL]
    return {str(line["side"]): line for _, line in lines.iterrows()}


def _interval(line: pd.Series) -> str:
    if pd.isna(line["low"]):
        return "too few queries for an interval"
    return f"95 % interval {signed(float(line['low']))} to {signed(float(line['high']))}"


@mpl.rc_context(SETTINGS)
def differences(table: pd.DataFrame) -> Drawing:
    """BM25 less inner product with intervals, a line per model and collection, published beside."""
    lines = [
        line
        for side in SIDE_NAMES
        for _, line in table[table["side"] == side].sort_values("collection").iterrows()
    ]
    figure, (panel,) = panels_of(1, 0.28 * len(lines) + 1.4)
    figure.set_size_inches(8.2, 0.28 * len(lines) + 1.75)
    names = []
    for height, line in enumerate(lines):
        colour = _SIDE_COLOURS[line["side"]]
        overall = line["collection"] == ALL
        panel.hlines(height, line["low"], line["high"], color=colour, lw=2.2 if overall else 1.4)
        panel.plot(line["difference"], height, "D" if overall else "o", color=colour, ms=6)
        if overall:
            published = line["published_bm25"] - line["published_inner"]
            panel.plot(published, height, "x", color=INK, ms=7, mew=1.8)
            panel.axhline(height + 0.5, color=FAINT, lw=0.8)
            names.append(f"{SIDE_NAMES[line['side']]}, mean")
        else:
            names.append(clipped(f"{model_name(line['representation'])}, {line['collection']}", 44))
    panel.axvline(0, color=INK, lw=0.8)
    panel.set_yticks(range(len(names)), names)
    panel.set_ylim(len(names) - 0.4, -0.6)
    panel.tick_params(axis="y", length=0)
    panel.set_xlabel("nDCG@10 of BM25 less that of the inner product")
    entries = [
        Line2D([], [], color=_SIDE_COLOURS[side], marker="o", ms=6, label=SIDE_NAMES[side])
        for side in SIDE_NAMES
        if side in set(table["side"])
    ]
    entries.append(Line2D([], [], ls="", color=INK, marker="x", ms=7, mew=1.8, label="published"))
    legend(figure, entries)
    return Drawing(
        "reversal",
        figure,
        "BM25 less inner product",
        "Right of 0 BM25 is better, left of 0 the inner product. Lines are 95 % intervals of a"
        " paired bootstrap over queries, seeds averaged query by query; diamonds are means over"
        " models and collections, crosses the published differences (latent terms .582 − .381,"
        " SPLADE-v3 .455 − .568).",
        f"Dot plot of differences with intervals for {plural(len(lines), 'line')}.",
    )


def numbers(table: pd.DataFrame) -> Table:
    """The table of the reversal."""
    body = []
    for _, line in table.iterrows():
        overall = line["collection"] == ALL
        cells = [SIDE_NAMES[str(line["side"])]]
        cells += (
            ["mean", ""]
            if overall
            else [model_name(str(line["representation"])), clipped(str(line["collection"]), 60)]
        )
        interval = "–"
        if not pd.isna(line["low"]):
            interval = f"{signed(float(line['low']))} to {signed(float(line['high']))}"
        body.append(
            [
                *map(html.escape, cells),
                number(float(line["inner"])),
                number(float(line["bm25"])),
                signed(float(line["difference"])),
                interval,
                "–" if pd.isna(line["p"]) else f"{float(line['p']):.4f}",
                f"{int(line['queries']):,}",
                html.escape(_OUTCOMES[str(line["outcome"])]),
            ]
        )
    head = ["vectors", "model", "collection", "inner product", "BM25", "difference"]
    head += ["95 % interval", "p", "queries", "against the publication"]
    return Table(markup(head, body, 3))
