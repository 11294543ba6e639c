"""Rows of the study: the quality of eight configurations in every cell of one job."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from whencount import attribution, diagnostics, measures, ranking_diagnostics
from whencount.controls import controlled_frequency
from whencount.errors import InputError
from whencount.grid import Cell, Job, Representation, expand
from whencount.scoring import CONFIGURATIONS, Parameters
from whencount.search import collection_statistics, search
from whencount.ties import complete_borders
from whencount.vectors import SparseVectors

if TYPE_CHECKING:
    import pandas as pd

CUTOFF = 10
KEYS = (
    "representation",
    "basis",
    "granularity",
    "collection",
    "corpus",
    "budget",
    "query_budget",
    "document_budget",
    "k1",
    "b",
    "seed",
    "control",
)
"""The columns that name a row."""

CELL_KEYS = ("representation", "collection", "seed", "budget", "k1", "b", "control")
"""The fewest columns that tell a row from every other."""


@dataclass(frozen=True)
class CellResult:
    """What one cell gives.

    Attributes:
        row: one value per column of `rows.parquet`, families and keys apart.
        per_query: float64, shape (queries, 8), nDCG@10; NaN for queries without a positive
            judgement.
    """

    row: dict[str, Any]
    per_query: NDArray[np.float64]


def derived_seed(*parts: object) -> int:
    """A 63-bit seed out of anything that prints, the same on every machine."""
    text = "\x1f".join(str(part) for part in parts)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def score_cells(
    documents: Sequence[SparseVectors],
    queries: SparseVectors,
    judgements: measures.Judgements,
    cells: Sequence[Cell],
    *,
    references: Mapping[str, NDArray[np.int32]] | None = None,
    depth: int = 100,
    seed: int = 0,
    threads: int | None = None,
    device: str = "cpu",
) -> dict[Cell, CellResult]:
    """Score every cell of one representation of one collection.

    Cells that share budget and control are searched together, so that a (k1, b) sweep costs little
    more than one point.

    Args:
        documents: the shards of the collection, in its order, with one vocabulary.
        queries: their vectors, in the order of `judgements`.
        cells: what to compute.
        references: name to document positions, int32, shape (queries, 10), -1 past the end (the
            first of what `references.Run.matrices` gives): rankings whose first documents count as
            relevant for the pseudo-labels.
        depth: how deep the rankings go; above 10, so that a tie at rank 10 can be seen.
        seed: of the controls.
        threads: of the search; None leaves it to the engine.
        device: of the search.

    Raises:
        InputError: no query has a positive judgement, or sizes do not fit.
    """
    groups: dict[tuple[str, str], list[Cell]] = defaultdict(list)
    for cell in cells:
        groups[cell.budget, cell.control].append(cell)
    results: dict[Cell, CellResult] = {}
    capped: tuple[str, SparseVectors, SparseVectors] | None = None
    for (budget, control), members in groups.items():
        if capped is None or capped[0] != budget:
            query_budget, document_budget = members[0].budgets
            capped = (
                budget,
                SparseVectors.concatenate([shard.cap(document_budget) for shard in documents]),
                queries.cap(query_budget),
            )
        _, capped_documents, capped_queries = capped
        parameters = [Parameters(cell.k1, cell.b) for cell in members]
        # The search counts the true frequencies itself.
        frequency = (
            controlled_frequency(collection_statistics(capped_documents), control, seed)
            if control
            else None
        )
        rankings = search(
            capped_documents,
            capped_queries,
            parameters,
            depth=depth,
            document_frequency=frequency,
            threads=threads,
            device=device,
        )
        borders = complete_borders(
            capped_documents,
            capped_queries,
            rankings,
            judgements,
            parameters,
            document_frequency=frequency,
            cutoff=CUTOFF,
        )
        per_query = measures.ndcg(rankings.positions, rankings.counts, judgements, CUTOFF)
        quality = measures.mean_quality(per_query, judgements)
        ties = measures.tie_share(rankings.scores, rankings.counts, judgements, CUTOFF)
        expected = measures.mean_quality(
            measures.tie_expected_ndcg(rankings, judgements, CUTOFF, borders), judgements
        )
        index = diagnostics.index_statistics(capped_documents)
        ranked = ranking_diagnostics.ranking_statistics(rankings, references or {})
        for number, cell in enumerate(members):
            row: dict[str, Any] = {"queries": int(judgements.evaluated.sum())}
            for place, configuration in enumerate(CONFIGURATIONS):
                row[f"q{configuration}"] = float(quality[number, place])
            for place, configuration in enumerate(CONFIGURATIONS):
                row[f"tie_share_{configuration}"] = float(ties[number, place])
                row[f"expected_{configuration}"] = float(expected[number, place])
            row |= index | ranked[number]
            results[cell] = CellResult(row, np.ascontiguousarray(per_query[number].T))
    return results


def row_keys(job: Job, cell: Cell, corpus: str | None = None) -> dict[str, Any]:
    """What names the row of a cell: the columns KEYS.

    `corpus` is the collection whose documents this one shares; None: they are its own.
    """
    representation = Representation.parse(job.representation)
    query_budget, document_budget = cell.budgets
    return {
        "representation": job.representation,
        "basis": representation.basis + ("_shared" if representation.shared else ""),
        "granularity": representation.granularity,
        "collection": job.collection,
        "corpus": corpus or job.collection,
        "budget": cell.budget,
        "query_budget": query_budget,
        "document_budget": document_budget,
        "k1": cell.k1,
        "b": cell.b,
        "seed": job.seed,
        "control": cell.control,
    }


def tables(
    job: Job,
    results: Mapping[Cell, CellResult],
    query_ids: NDArray[np.object_],
    evaluated: NDArray[np.bool_],
    corpus: str | None = None,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The rows and the per-query qualities of a job as tables; docs/tables.md has the columns.

    Args:
        job: whose they are.
        results: what `score_cells` gave.
        query_ids: of all queries, in order.
        evaluated: shape (queries,), which queries have a positive judgement.
        corpus: the collection whose documents this one shares; None: they are its own.
    """
    import pandas as pd

    rows, per_query = [], []
    for cell in sorted(results):
        names = row_keys(job, cell, corpus)
        rows.append(names | results[cell].row)
        block = pd.DataFrame(
            results[cell].per_query[evaluated],
            columns=[f"q{configuration}" for configuration in CONFIGURATIONS],
        )
        block.insert(0, "query_id", query_ids[evaluated])
        for column in ("control", "b", "k1", "budget"):
            block.insert(0, column, names[column])
        per_query.append(block)
    frame = pd.DataFrame(rows).astype(
        {"query_budget": "Int64", "document_budget": "Int64", "seed": "int64", "queries": "int64"}
    )
    targets = attribution.targets(frame)
    place = frame.columns.get_loc("q111")
    assert isinstance(place, int)
    frame = pd.concat([frame.iloc[:, : place + 1], targets, frame.iloc[:, place + 1 :]], axis=1)
    return frame, pd.concat(per_query, ignore_index=True)


def collect(frames: Sequence[pd.DataFrame], config: Mapping[str, Any]) -> pd.DataFrame:
    """All rows of a study in one table, sorted by their keys, with the families of each.

    Args:
        frames: the row tables of the jobs.
        config: the parts of the configuration that say what the families are (`grid.expand`).

    Returns:
        The rows, with a column `families`: the names of the families the row belongs to, joined
        by spaces.

    Raises:
        InputError: a row that no family asks for, or one that is missing.
    """
    import pandas as pd

    families = {
        (
            job.representation,
            job.collection,
            job.seed,
            cell.budget,
            cell.k1,
            cell.b,
            cell.control,
        ): (" ".join(members))
        for job, cells in expand(config).items()
        for cell, members in cells.items()
    }
    table = pd.concat(frames, ignore_index=True)
    order = list(CELL_KEYS)
    keys = list(table[order].itertuples(index=False, name=None))
    missing = families.keys() - set(keys)
    strange = set(keys) - families.keys()
    if missing or strange or len(keys) != len(set(keys)):
        found = sorted(missing or strange)[:1]
        raise InputError(
            f"the tables of the jobs do not hold the rows of the configuration"
            f" ({len(missing)} missing, {len(strange)} unasked, {found}); run the study again"
        )
    place = sum(column in table.columns for column in KEYS)
    table.insert(place, "families", [families[key] for key in keys])
    return table.sort_values(order, ignore_index=True)


def reported(
    rows: pd.DataFrame, family: str, collections: Sequence[str] | None = None
) -> pd.DataFrame:
    """The rows of one family, on some collections (None: on all).

    Raises:
        InputError: there is none.
    """
    chosen = rows["families"].str.split().map(lambda names: family in names)
    if collections is not None:
        chosen &= rows["collection"].isin(collections)
    if not chosen.any():
        raise InputError(
            f"no row belongs to the family {family!r} that the statistics report; name another in"
            " statistics.family"
        )
    return rows[chosen]


def row_names(rows: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """The jobs that the rows are from: name of each, and the columns that its table lacks."""
    jobs = rows[["representation", "collection", "seed"]].drop_duplicates()
    return {
        Job(str(job["representation"]), str(job["collection"]), int(job["seed"])).name: {
            str(column): value for column, value in job.items()
        }
        for job in jobs.to_dict("records")
    }
