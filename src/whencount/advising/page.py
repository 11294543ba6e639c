"""The advice as one page that loads nothing."""

from __future__ import annotations

import html

from whencount.advising.advice import Advice
from whencount.advising.evidence import ESTIMATES
from whencount.advising.index import MEANINGS
from whencount.reports.markup import folded, markup
from whencount.reports.rendering import page
from whencount.scoring import CONFIGURATIONS
from whencount.wording import capital, number, signed

SWITCH_WORDS = {"idf": "IDF", "saturation": "saturation", "length": "length normalisation"}
_TARGETS = {
    **SWITCH_WORDS,
    "gain": "all three (111 less 000)",
    "collection_gain": "collection statistics (111 less 010)",
}


def advice_page(advice: Advice, name: str) -> str:
    """The page of an advice.

    Args:
        advice: what was found.
        name: of the documents, plain text.
    """
    body = [
        "<h1>Should this index use collection statistics?</h1>",
        f"<p><b>{html.escape(headline(advice))}</b></p>",
        f"<p>{advice.documents:,} documents, {advice.queries:,} queries. No relevance label was"
        " used: the first ten documents of a reference stand in for relevant ones.</p>",
        "<h2>What it rests on</h2>",
        _listed(advice.reasons),
        "<h2>What speaks against it</h2>",
        _listed(advice.warnings) or "<p>Nothing that was looked for.</p>",
    ]
    if advice.evidence:
        body += ["<h2>Estimates</h2>", _estimates(advice), _qualities(advice)]
    body += ["<h2>The index</h2>", _statistics(advice)]
    return page("Advice", name, "\n".join(body))


def headline(advice: Advice) -> str:
    """The advice in a sentence."""
    on = [
        word
        for word, bit in zip(SWITCH_WORDS.values(), advice.configuration, strict=True)
        if bit == "1"
    ]
    if not on:
        told = f"keep the inner product, {advice.configuration}"
        return f"Advice: {told} (confidence: {advice.confidence})"
    cell = f"k1 {advice.parameters.k1:g}, b {advice.parameters.b:g}"
    return (
        f"Advice: {advice.configuration}, {' and '.join(on)}, {cell}"
        f" (confidence: {advice.confidence})"
    )


def _estimates(advice: Advice) -> str:
    body = [
        [
            html.escape(one.name),
            html.escape(_TARGETS[target]),
            signed(one.estimates[target].value),
            f"{signed(one.estimates[target].low)} to {signed(one.estimates[target].high)}",
            f"{one.queries:,}",
        ]
        for one in advice.evidence
        for target in ESTIMATES
    ]
    return markup(["reference", "effect of", "nDCG@10", "95 % interval", "queries"], body, 2)


def _qualities(advice: Advice) -> str:
    head = ["reference", "k1", "b", *map(str, CONFIGURATIONS)]
    body = [
        [
            html.escape(one.name),
            f"{cell.k1:g}",
            f"{cell.b:g}",
            *[number(float(value)) for value in line],
        ]
        for one in advice.evidence
        for cell, line in zip(advice.cells, one.quality, strict=True)
    ]
    return folded("Estimated nDCG@10 of every configuration at every k1 and b", markup(head, body))


def _statistics(advice: Advice) -> str:
    body = [
        [html.escape(name), _number_of(name, float(value)), html.escape(MEANINGS[name])]
        for name, value in advice.statistics.items()
    ]
    return markup(["statistic", "value", "meaning"], body)


def _listed(sentences: tuple[str, ...]) -> str:
    items = "".join(f"<li>{html.escape(capital(one))}.</li>" for one in sentences)
    return f"<ul>{items}</ul>" if items else ""


def _number_of(name: str, value: float) -> str:
    return number(value, 0 if name == "live_features" else 4)
