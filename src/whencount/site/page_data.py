"""The tables of a study as the JSON that the explorer reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from whencount.errors import InputError
from whencount.naming import CELL_KEYS
from whencount.scoring import CONFIGURATIONS
from whencount.site.columns import BEST, filters_of, label_of, numeric_columns
from whencount.site.comparisons import COMPARISONS, RANKED
from whencount.site.details import MAXIMUM_BYTES, Details, gather_details
from whencount.site.embedding import embedded, shortened
from whencount.wording import plural

if TYPE_CHECKING:
    import pandas as pd

MAXIMUM_ROWS = 5_000
_SHOWN = (
    *("representation", "collection", "budget", "k1", "b", "seed", "control"),
    *("q000", "q010", "q111", "gain", "collection_gain"),
)
_NEEDED = (*CELL_KEYS, "families", *(f"q{configuration}" for configuration in CONFIGURATIONS))


@dataclass(frozen=True)
class PageData:
    """What the explorer is made of.

    Attributes:
        rows: JSON of the rows and of what the page calls things.
        blocks: JSON of details, {place of a row: ...}, one per job.
        left_out: what the page does not hold, a sentence each.
        texts: {collection: {"queries": ids, "documents": ids}} that the page names.
    """

    rows: str
    blocks: tuple[str, ...]
    left_out: tuple[str, ...]
    texts: Mapping[str, Mapping[str, list[str]]]


def page_data(
    rows: pd.DataFrame,
    per_query: Mapping[str, Path],
    moved: Mapping[str, pd.DataFrame],
    family: str,
    *,
    maximum_rows: int = MAXIMUM_ROWS,
    maximum_bytes: int = MAXIMUM_BYTES,
) -> PageData:
    """Put the rows of a study, and what can be told of each, in the page's form.

    Args:
        rows: rows.parquet.
        per_query: {name of a job: its table of per_query/}; some or all may be missing.
        moved: {collection: its table of moved/}; some or all may be missing.
        family: the reported family; its rows come first where not all find room.
        maximum_rows: how many rows the page holds at most.
        maximum_bytes: of the details of rows.

    Raises:
        InputError: the rows lack a column that names or measures them, or a table cannot be read.
    """
    missing = [name for name in _NEEDED if name not in rows.columns]
    if missing:
        raise InputError(
            f"the table of rows has no column {missing[0]!r}; give the rows.parquet of a study"
            " (docs/tables.md)"
        )
    reported = rows["families"].str.split().map(lambda names: family in names).to_numpy(dtype=bool)
    kept = np.sort(np.argsort(~reported, kind="stable")[:maximum_rows])
    dropped = len(rows) - len(kept)
    shown = rows.iloc[kept].reset_index(drop=True)
    qualities = shown[[f"q{configuration}" for configuration in CONFIGURATIONS]].to_numpy()
    names = np.array([str(configuration) for configuration in CONFIGURATIONS])
    shown[BEST] = names[qualities.argmax(axis=1)] if len(shown) else []
    found = gather_details(shown, per_query, moved, reported[kept], maximum_bytes)
    jobs = list(found.blocks)
    block_of: list[int | None] = [None] * len(shown)
    for number, job in enumerate(jobs):
        for place in found.blocks[job]:
            block_of[place] = number
    columns = numeric_columns(shown)
    texts = _texts_of(found)
    content = {
        "family": family,
        "columns": [[one.name, one.label, one.group] for one in columns],
        "numbers": {one.name: _numbers(shown[one.name]) for one in columns},
        "texts": {
            str(name): _coded(shown[name])
            for name in shown.columns
            if str(name) not in {one.name for one in columns}
        },
        "filters": [[name, label_of(name)] for name in filters_of(shown)],
        "shown": [[name, label_of(name)] for name in _SHOWN if name in shown.columns],
        "configurations": names.tolist(),
        "comparisons": [[pair.before, pair.after, pair.meaning] for pair in COMPARISONS],
        "ranked": list(RANKED),
        "blocks": block_of,
        "names": texts,
    }  # fmt: skip
    blocks = tuple(
        "{" + ",".join(f'"{place}":{text}' for place, text in found.blocks[job].items()) + "}"
        for job in jobs
    )
    return PageData(embedded(content), blocks, _left_out(found, dropped), texts)


def _numbers(column: pd.Series[Any]) -> list[float | int | None]:
    return [shortened(value) for value in column.to_numpy(np.float64, na_value=np.nan)]


def _coded(column: pd.Series[Any]) -> dict[str, Any]:
    """A column of text: each text once, and its number for every row."""
    codes, levels = column.fillna("").astype(str).factorize(sort=True)
    return {"levels": [str(level) for level in levels], "codes": codes.tolist()}


def _texts_of(found: Details) -> dict[str, dict[str, list[str]]]:
    return {
        name: {
            "queries": list(found.queries[name].numbers),
            "documents": list(found.documents[name].numbers),
        }
        for name in sorted(found.queries)
    }


def _left_out(found: Details, dropped: int) -> tuple[str, ...]:
    told = []
    if dropped:
        told.append(f"{plural(dropped, 'row')} of rows.parquet, beyond the first {MAXIMUM_ROWS:,}.")
    if found.without_queries:
        told.append(
            f"Queries of {plural(found.without_queries, 'row')}, whose tables per query are not"
            " there."
        )
    if found.without_documents:
        told.append(
            f"Documents of {plural(found.without_documents, 'row')}: their collection was not"
            " searched again, being too large for that or its table not there."
        )
    if found.too_many:
        told.append(
            f"Queries and documents of {plural(found.too_many, 'row')}, which would make the page"
            f" larger than it should be ({MAXIMUM_BYTES / 1e6:g} MB of them are here)."
        )
    told.append(
        "Of each row all queries are counted, and those that change most are listed, at most"
        " twelve; of these the documents of the first ten, with ranks to 100. All qualities per"
        " query are in per_query/, all such documents in moved/."
    )
    return tuple(told)
