"""A figure with its words, shown in a notebook and kept as files."""

from __future__ import annotations

import html
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from whencount.errors import InputError
from whencount.reports.style import FAINT, INK, SETTINGS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = {
    "svg": {"Date": None},
    "pdf": {"CreationDate": None},
    "png": {"Software": None},
}
"""The files of a figure, and what to leave out of each so that equal figures are equal bytes."""

_SCREEN_DOTS = 160
_LEAST_PIXELS = 608
_NAME = re.compile(r"[a-z0-9]+(_[a-z0-9]+)*")


@dataclass(frozen=True)
class Drawing:
    """A figure, what it shows, and how it came about.

    Attributes:
        name: of its files and of its place on the page: lower case words joined by `_`.
        figure: drawn, with a transparent background.
        alternative: what a person who cannot see it should know, one or two sentences.
        caption: what to look for and how it was computed; HTML, so anything that comes from data
            must be escaped by `html.escape`.
        title: a few words that head the caption; plain text.
    """

    name: str
    figure: Figure
    title: str
    caption: str
    alternative: str

    def _repr_html_(self) -> str:
        """The figure as notebooks and the page show it: inline SVG with a caption."""
        return (
            f'<figure id="figure-{self.name}">\n'
            f'<div class="scroll">{inline_svg(self.figure, self.name, self.alternative)}</div>\n'
            f"<figcaption><b>{html.escape(self.title)}.</b> {self.caption}</figcaption>\n</figure>"
        )


@dataclass(frozen=True)
class Table:
    """A table, ready to show; `reports.pieces` makes them."""

    markup: str

    def _repr_html_(self) -> str:
        return self.markup


@dataclass(frozen=True)
class Gallery:
    """Keeps every drawing it shows as files.

    Attributes:
        folder: where the files go, `quality.svg` say.
        formats: which files, of FORMATS.

    Raises:
        InputError: an unknown format.
    """

    folder: str | Path
    formats: Sequence[str] = tuple(FORMATS)

    def __post_init__(self) -> None:
        for suffix in self.formats:
            if suffix not in FORMATS:
                raise InputError(
                    f"figures cannot be written as {suffix!r}; choose of {', '.join(FORMATS)}"
                )

    def show(self, drawing: Drawing | None) -> Drawing | None:
        """Write the files of a drawing and hand it back, for the notebook to display.

        None, for a figure that this study has no rows for, is handed back as it is.

        Raises:
            InputError: the name of the drawing is not made of lower-case words.
        """
        if drawing is None:
            return None
        if not _NAME.fullmatch(drawing.name):
            raise InputError(
                f"a figure is called {drawing.name!r}; use lower-case words joined by '_'"
            )
        folder = Path(self.folder)
        folder.mkdir(parents=True, exist_ok=True)
        for suffix in self.formats:
            content = _saved(drawing.figure, suffix, "white")
            (folder / f"{drawing.name}.{suffix}").write_bytes(content)
        return drawing


def inline_svg(figure: Figure, name: str, alternative: str) -> str:
    """A figure as an SVG element that takes the colours of the page around it.

    Ids carry the figure's name, so that several figures can stand on one page. The colours INK and
    FAINT become the page's variables `--ink` and `--faint`. It loads nothing and has no date.
    """
    text = _saved(figure, "svg", "none").decode()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r'\s*xmlns(:xlink)?="[^"]*"', "", text).replace("xlink:href=", "href=")
    text = re.sub(r'\b(id="|href="#|url\(#)', rf"\g<1>{name}-", text)
    text = text.replace(INK, "var(--ink)").replace(FAINT, "var(--faint)")
    width = re.search(r'<svg[^>]*?\bwidth="([0-9.]+)pt"', text)
    assert width, "matplotlib writes the width of an SVG in points"
    # At 4/3 pixel per point text is as large as the page's; narrower screens scroll sideways.
    pixels = round(float(width.group(1)) * 4 / 3)
    least = min(pixels, _LEAST_PIXELS)
    text = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", text, count=1)
    text = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", text, count=1)
    label = html.escape(alternative, quote=True)
    return text.replace(
        "<svg",
        f'<svg role="img" aria-label="{label}" style="width:{pixels}px;min-width:{least}px"',
        1,
    ).strip()


def _saved(figure: Figure, suffix: str, background: str) -> bytes:
    import matplotlib as mpl
    from matplotlib.layout_engine import PlaceHolderLayoutEngine

    stream = io.BytesIO()
    with mpl.rc_context(SETTINGS):
        if not isinstance(figure.get_layout_engine(), PlaceHolderLayoutEngine):
            # Laid out once, and kept so for every format.
            figure.draw_without_rendering()
            figure.set_layout_engine("none")
        figure.savefig(
            stream,
            format=suffix,
            metadata=FORMATS[suffix],
            dpi=_SCREEN_DOTS,
            facecolor=background,
        )
    return stream.getvalue()
