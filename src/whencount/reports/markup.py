"""HTML of tables, folds and links; the names of pages."""

from __future__ import annotations

import hashlib
import html
import re
from collections.abc import Iterable, Sequence
from typing import Any

_PLAIN = re.compile(r"[a-z0-9][a-z0-9_-]{0,79}")


def markup(head: Sequence[Any], body: Iterable[Sequence[str]], texts: int = 1) -> str:
    """An HTML table in a box that scrolls sideways.

    Args:
        head: column names, plain text.
        body: cells, HTML already.
        texts: how many columns at the left hold text and not numbers.
    """
    columns = "".join(f'<th scope="col">{html.escape(str(name))}</th>' for name in head)
    lines = []
    for cells in body:
        named = "".join(f'<th scope="row">{cell}</th>' for cell in cells[:texts])
        lines.append(f"<tr>{named}{''.join(f'<td>{cell}</td>' for cell in cells[texts:])}</tr>")
    return (
        f'<div class="scroll"><table data-texts="{texts}"><thead><tr>{columns}</tr></thead>\n'
        f"<tbody>\n{chr(10).join(lines)}\n</tbody></table></div>"
    )


def folded(summary: str, content: str) -> str:
    """Content that opens at a click; `summary` is HTML."""
    return f"<details><summary>{summary}</summary>\n{content}\n</details>"


def link(target: str, text: str) -> str:
    """A link to another page of the report; `text` is plain."""
    return f'<a href="{html.escape(target, quote=True)}">{html.escape(text)}</a>'


def page_name(name: str) -> str:
    """The stem of the file of a page about `name`, safe on any file system and in any address.

    Names as configurations allow them stay as they are; of others the plain part is kept and a
    hash added, so that two names never share a page.
    """
    if _PLAIN.fullmatch(name):
        return name
    plain = "-".join(re.findall(r"[a-z0-9]+", name.lower()))[:40]
    mark = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:10]
    return f"{plain or 'page'}.{mark}"
