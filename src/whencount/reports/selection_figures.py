"""Which pages each selector reads in one example: a heat map, and how often it finds the answer."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure

from whencount.reports.canvas import WIDTH
from whencount.reports.drawing import Drawing
from whencount.reports.setting_style import RED, clipped, selector_name, spread_out
from whencount.reports.style import SETTINGS
from whencount.setting_summaries.selections import Selections, selections
from whencount.wording import plural

COLOURS = "cividis"
"""Dark to light in even steps for every common kind of colour vision."""

_TICKS = 24


def shown_selections(selected: pd.DataFrame | None) -> Selections | None:
    """The first recorded example at its smallest budget; None without one."""
    if selected is None or len(selected) == 0:
        return None
    return next(selections(selected), None)


@mpl.rc_context(SETTINGS)
def reads(found: Selections | None, name: str = "pages_read") -> Drawing | None:
    """The share of decode steps, layers and heads that read a page, a line per selector."""
    if found is None:
        return None
    names = [selector_name(*one) for one in found.selectors]
    figure = Figure(figsize=(WIDTH, 0.25 * len(names) + 1.5), layout="constrained")
    axes = figure.subplots()
    _heat(figure, axes, found.share, "share of reads")
    axes.set_yticks(range(len(names)), names)
    axes.set_xlabel("page, in the order of the text: context, question, answer")
    for page in found.answer:
        # Above the map, so that no mark hides what is below it.
        axes.plot(page, -1.1, "v", color=RED, ms=6, clip_on=False)
    if found.answer:
        axes.annotate(
            "the answer",
            (found.answer[-1], -1.1),
            xytext=(7, 0),
            textcoords="offset points",
            va="center",
            fontsize=8.5,
            annotation_clip=False,
        )
    marked = (
        " Red triangles are above the pages that hold the answer: a selector that leaves them dark"
        " cannot know it."
        if found.answer
        else " The table does not tell which pages hold the answer."
    )
    return Drawing(
        name,
        figure,
        "Pages read in one example",
        f"One example of {_escaped(found.task)} ({_escaped(found.model)}, {found.context:,} tokens)"
        f" at a budget of {found.budget:,} tokens. For each selector and page: of all decode steps,"
        " of the recorded layers and heads, the share that read the page (bright is often, and the"
        " scale is finer for small shares). Full attention reads all; every selector reads the page"
        f" that is being written.{marked}",
        f"Heat map of {plural(len(names), 'selector')} by {plural(found.share.shape[1], 'page')}:"
        " how often each page was read in one example.",
    )


@mpl.rc_context(SETTINGS)
def answer_found(found: Selections | None, name: str = "answer_read") -> Drawing | None:
    """How often each selector read a page that holds the answer, by layer."""
    if found is None or not found.answer:
        return None
    names = [selector_name(*one) for one in found.selectors]
    width = min(WIDTH, 4.2 + 0.32 * len(found.layers))
    figure = Figure(figsize=(width, 0.25 * len(names) + 1.3), layout="constrained")
    axes = figure.subplots()
    _heat(figure, axes, found.answer_by_layer, "share of steps and heads")
    axes.set_yticks(range(len(names)), names)
    places = spread_out(range(len(found.layers)), _TICKS)
    axes.set_xticks(places, [str(found.layers[place]) for place in places])
    axes.set_xlabel("layer")
    return Drawing(
        name,
        figure,
        "Who finds the answer",
        "The same example, by layer: of the decode steps and heads of a layer, the share that read"
        f" at least one page that holds the answer ({plural(len(found.answer), 'page')} in all). A"
        " few heads that find it can be enough: what matters is whether any of them does.",
        f"Heat map of {plural(len(names), 'selector')} by {plural(len(found.layers), 'layer')}:"
        " how often the pages of the answer were read.",
    )


def _heat(figure: Figure, axes: Axes, values: np.ndarray, label: str) -> None:  # type: ignore[type-arg]
    image = axes.imshow(
        values,
        cmap=COLOURS,
        norm=PowerNorm(0.5, 0, 1),
        aspect="auto",
        interpolation="nearest",
    )
    width = 0.13 / float(figure.get_size_inches()[0])
    bar = figure.colorbar(image, cax=axes.inset_axes((1.015, 0, width, 1)))
    bar.set_label(label)
    bar.outline.set_visible(False)  # type: ignore[operator]
    axes.grid(visible=False)
    axes.tick_params(axis="y", length=0)
    for side in axes.spines.values():
        side.set_visible(False)


def _escaped(text: str) -> str:
    import html

    return html.escape(clipped(text, 60))
