"""What the explorer tells of one row: how queries change, which most, and which documents move."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from whencount.naming import Cell, Job
from whencount.progress import progress
from whencount.scoring import CONFIGURATIONS
from whencount.site.choosing import cells_of, most_changed
from whencount.site.comparisons import COMPARISONS
from whencount.site.embedding import embedded, shortened
from whencount.site.moving import RANK_COLUMNS
from whencount.tables import read_table

if TYPE_CHECKING:
    import pandas as pd

BINS = 21
"""Of the differences between -1 and 1; the middle one is around 0."""
MAXIMUM_BYTES = 8_000_000
"""Of the details of all rows together, so that the page stays quick to open."""


@dataclass
class Names:
    """Ids of one kind, each kept once and called by its number."""

    numbers: dict[str, int] = field(default_factory=dict)

    def number(self, name: str) -> int:
        """The number of an id; a new one gets the next."""
        return self.numbers.setdefault(name, len(self.numbers))


@dataclass
class Details:
    """What could be told of rows.

    Attributes:
        blocks: per job, {place of a row: its JSON}.
        queries, documents: per collection, the ids that the JSON has as numbers.
        without_queries: how many rows lack their table of qualities per query.
        without_documents: how many rows that have changed queries lack their documents.
        too_many: how many rows were left out for MAXIMUM_BYTES.
        bytes: of the JSON of all rows.
    """

    blocks: dict[str, dict[int, str]] = field(default_factory=dict)
    queries: dict[str, Names] = field(default_factory=dict)
    documents: dict[str, Names] = field(default_factory=dict)
    without_queries: int = 0
    without_documents: int = 0
    too_many: int = 0
    bytes: int = 0


def gather_details(
    rows: pd.DataFrame,
    per_query: Mapping[str, Path],
    moved: Mapping[str, pd.DataFrame],
    first: NDArray[np.bool_],
    maximum_bytes: int = MAXIMUM_BYTES,
) -> Details:
    """Tell of each row, as long as there is room.

    Args:
        rows: rows.parquet; a row is called by its place in it.
        per_query: {name of a job: its table}; jobs may be missing.
        moved: {collection: its table of moved/}; collections may be missing.
        first: which rows are told of before others.
        maximum_bytes: of all JSON.

    Raises:
        InputError: a table cannot be read.
    """
    found = Details()
    jobs = [(Job(*key), lines) for key, lines in _by_job(rows)]
    documents = {name: dict(list(_by_job(table))) for name, table in moved.items()}
    turns = [(job, lines, turn) for turn in (True, False) for job, lines in jobs]
    for job, lines, turn in progress(turns, len(turns), "reading queries", "table"):
        wanted = lines[first[lines.index] == turn]
        if len(wanted) == 0:
            continue
        if job.name not in per_query:
            found.without_queries += len(wanted)
            continue
        of_job = documents.get(job.collection, {})
        listed = of_job.get((job.representation, job.collection, job.seed))
        _job_details(found, job, wanted, read_table(per_query[job.name]), listed, maximum_bytes)
    return found


def _by_job(table: pd.DataFrame) -> Iterator[tuple[tuple[str, str, int], pd.DataFrame]]:
    for (one, two, seed), lines in table.groupby(
        ["representation", "collection", "seed"], sort=False
    ):
        yield (str(one), str(two), int(str(seed))), lines


def _job_details(
    found: Details,
    job: Job,
    rows: pd.DataFrame,
    per_query: pd.DataFrame,
    moved: pd.DataFrame | None,
    maximum_bytes: int,
) -> None:
    qualities = dict(cells_of(per_query))
    documents = dict(cells_of(moved)) if moved is not None else {}
    queries = found.queries.setdefault(job.collection, Names())
    names = found.documents.setdefault(job.collection, Names())
    for place, row in zip(rows.index, rows.to_dict("records"), strict=True):
        cell = Cell(row["budget"], float(row["k1"]), float(row["b"]), row["control"])
        lines = qualities.get(cell)
        if lines is None:
            found.without_queries += 1
            continue
        if found.bytes > maximum_bytes:
            found.too_many += 1
            continue
        of_query = _documents_of(documents.get(cell), names)
        changed = _changed(lines, of_query, queries)
        found.without_documents += bool(changed) and not of_query
        text = embedded({"c": [_comparison(lines, pair) for pair in COMPARISONS], "q": changed})
        found.bytes += len(text)
        found.blocks.setdefault(job.name, {})[int(place)] = text


def _comparison(lines: pd.DataFrame, pair: Any) -> list[Any]:
    """Queries better, equal and worse; the mean difference; counts of those that change."""
    change = (lines[f"q{pair.after}"] - lines[f"q{pair.before}"]).to_numpy(dtype=np.float64)
    moves = change[change != 0]
    place = np.clip(((moves + 1) / 2 * BINS).astype(np.int64), 0, BINS - 1)
    better = int((change > 0).sum())
    return [
        *(better, len(change) - len(moves), len(moves) - better),
        shortened(float(change.mean())) if len(change) else 0,
        np.bincount(place, minlength=BINS).tolist(),
    ]


def _changed(
    lines: pd.DataFrame, documents: Mapping[str, list[list[Any]]], names: Names
) -> list[list[Any]]:
    columns = [f"q{configuration}" for configuration in CONFIGURATIONS]
    chosen = lines.iloc[most_changed(lines)]
    values = chosen[columns].to_numpy(dtype=np.float64)
    return [
        [names.number(str(name)), [shortened(one, 3) for one in line], documents.get(str(name), [])]
        for name, line in zip(chosen["query_id"], values, strict=True)
    ]


def _documents_of(moved: pd.DataFrame | None, names: Names) -> dict[str, list[list[Any]]]:
    """{query: [[document, relevance, rank under each configuration (0: none)], ...]}."""
    found: dict[str, list[list[Any]]] = {}
    if moved is None:
        return found
    ranks = moved[list(RANK_COLUMNS)].fillna(0).to_numpy(dtype=np.int64).tolist()
    lines = zip(moved["query_id"], moved["document_id"], moved["relevance"], ranks, strict=True)
    for query, document, relevance, places in lines:
        line = [names.number(str(document)), shortened(relevance), *places]
        found.setdefault(str(query), []).append(line)
    return found
