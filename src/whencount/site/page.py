"""The site: one page that links every report and holds an explorer of rows, and a file of texts.

The page carries plotly.js and all its data. Whatever comes from data is JSON in blocks that no
browser runs, with `<`, `>` and `&` as escapes, and reaches the page as text nodes alone; the
content security policy lets nothing run but the scripts of the page, named by their hashes, and the
file of texts beside it. Nothing is loaded from a network.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from whencount.errors import InputError
from whencount.files import atomic_file
from whencount.site.catalogue import find_parts, find_reports
from whencount.site.embedding import policy_hash
from whencount.site.page_data import PageData, page_data
from whencount.site.texts import texts_script

if TYPE_CHECKING:
    import pandas as pd

_TEMPLATES = Path(__file__).parent / "templates"
_SCRIPTS = ("rows.js", "table.js", "plot.js", "detail.js")
_NO_ROWS = "a study of retrieval writes results/rows.parquet (make study)."


def write_site(
    reports: str | Path,
    out: str | Path,
    *,
    study: str = "",
    family: str = "primary",
    rows: pd.DataFrame | None = None,
    per_query: Mapping[str, Path] | None = None,
    moved: Mapping[str, pd.DataFrame] | None = None,
    collections: Sequence[Path] = (),
    texts_out: str | Path | None = None,
) -> None:
    """Write the page, and the texts that it names; each whole or not at all.

    Equal tables and reports give equal bytes.

    Args:
        reports: the folder whose pages are linked; `out` stands in it.
        out: the page.
        study: its name.
        family: the reported family; where not all rows find room, its come first.
        rows: rows.parquet; None for a page of links.
        per_query: {name of a job: its table of per_query/}; may be empty.
        moved: {collection: its table of moved/}; may be empty.
        collections: prepared collections that texts are read from.
        texts_out: where the texts go, beside the page; None for a page without.

    Raises:
        InputError: a page or a table cannot be read, plotly is missing, or a place cannot be
            written.
    """
    data = None
    if rows is not None and len(rows):
        data = page_data(rows, per_query or {}, moved or {}, family)
    if texts_out is not None:
        script = texts_script(data.texts if data else {}, collections)
        with atomic_file(texts_out) as temporary:
            temporary.write_text(script, encoding="utf-8")
    page = _page(Path(reports), study, data, Path(texts_out).name if texts_out else "")
    with atomic_file(out) as temporary:
        temporary.write_text(page, encoding="utf-8")


def _page(reports: Path, study: str, data: PageData | None, texts: str) -> str:
    from jinja2 import Environment

    scripts: list[str] = []
    plotly = ""
    if data is not None:
        library, plotly = _plotly()
        scripts = [library, *map(_asset, _SCRIPTS)]
    environment = Environment(autoescape=True, keep_trailing_newline=True)
    return environment.from_string(_asset("page.html.j2")).render(
        study=study,
        version=version("whencount"),
        style=_asset("page.css"),
        reports=find_reports(reports),
        parts=find_parts(reports),
        data=data.rows if data else "",
        blocks=data.blocks if data else (),
        left_out=data.left_out if data else (),
        texts=texts,
        no_rows=_NO_ROWS,
        scripts=scripts,
        hashes=[policy_hash(script) for script in scripts],
        plotly=plotly,
    )


def _plotly() -> tuple[str, str]:
    """plotly.js as its Python package carries it, and its version."""
    try:
        from plotly.offline import get_plotlyjs, get_plotlyjs_version
    except ImportError:
        raise InputError(
            "drawing the explorer needs the package plotly; install whencount[study]"
        ) from None
    # A browser hashes an inline script with the line ends of its parser.
    script = str(get_plotlyjs()).replace("\r\n", "\n").replace("\r", "\n")
    if "</script" in script.lower() or "<!--" in script:
        raise InputError(
            "the installed plotly.js cannot stand inside a page; install the version of"
            " requirements.lock"
        )
    return script, str(get_plotlyjs_version())


def _asset(name: str) -> str:
    return (_TEMPLATES / name).read_text(encoding="utf-8")
