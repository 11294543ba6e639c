"""The documents that move: their ranks under each configuration, for the queries that change most.

A study keeps qualities and no rankings, which would be larger than all its tables. So the few
rankings that the explorer shows are searched again, exactly as the rows were.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from whencount.cells import CUTOFF, derived_seed
from whencount.controls import controlled_frequency
from whencount.errors import InputError
from whencount.judgements import Judgements
from whencount.naming import CELL_KEYS, Cell, Job
from whencount.scoring import Configuration, Parameters
from whencount.search import collection_statistics, search
from whencount.site.choosing import cells_of, most_changed
from whencount.site.comparisons import RANKED
from whencount.vectors import SparseVectors

if TYPE_CHECKING:
    import pandas as pd

DEPTH = 100
RANK_COLUMNS = tuple(f"rank_{one}" for one in RANKED)
COLUMNS = (
    *CELL_KEYS,
    *("query_id", "document_id", "relevance", *RANK_COLUMNS),
)
"""The columns of moved/*.parquet, which docs/tables.md explains."""


def moved_documents(
    job: Job,
    per_query: pd.DataFrame,
    documents: SparseVectors,
    queries: SparseVectors,
    judgements: Judgements,
    query_ids: NDArray[np.object_],
    document_ids: NDArray[np.object_],
    *,
    study_seed: int = 0,
    threads: int | None = None,
) -> pd.DataFrame:
    """Rank again the queries that change most in each cell, list the documents of their top tens.

    Args:
        job: whose rows these are.
        per_query: its table of qualities per query.
        documents: the vectors of the whole collection, not capped.
        queries: their vectors, not capped, in the order of `judgements`.
        judgements: by position of query and document.
        query_ids, document_ids: of all queries and documents, in order.
        study_seed: of the configuration; the controls' draws follow from it.
        threads: of the search; None leaves it to the engine.

    Returns:
        COLUMNS, a line per cell, query and document that is among the first ten under one of the
        configurations RANKED; ranks count from 1 to DEPTH, and are null beyond.

    Raises:
        InputError: a query of the table is not one of the collection.
    """
    groups: dict[tuple[str, str], list[tuple[Cell, NDArray[np.int64]]]] = defaultdict(list)
    for cell, lines in cells_of(per_query):
        chosen = lines["query_id"].to_numpy(dtype=object)[most_changed(lines)]
        places = _places(chosen, query_ids, job)
        groups[cell.budget, cell.control].append((cell, places))
    seed = derived_seed(study_seed, job.name, "control")
    capped: dict[str, SparseVectors] = {}
    found: dict[Cell, pd.DataFrame] = {}
    for (budget, control), members in groups.items():
        wanted = np.unique(np.concatenate([places for _, places in members]))
        if len(wanted) == 0:
            continue
        query_budget, document_budget = members[0][0].budgets
        if budget not in capped:
            capped = {budget: documents.cap(document_budget)}
        whole = collection_statistics(capped[budget])
        rankings = search(
            capped[budget],
            _rows(queries, wanted).cap(query_budget),
            [Parameters(cell.k1, cell.b) for cell, _ in members],
            depth=DEPTH,
            configurations=[Configuration.parse(one) for one in RANKED],
            document_frequency=controlled_frequency(whole, control, seed) if control else None,
            threads=threads,
        )
        for number, (cell, places) in enumerate(members):
            block = _ranks(rankings.positions[number], wanted, places, judgements)
            block["query_id"] = query_ids[block["query_id"]]
            block["document_id"] = document_ids[block["document_id"]]
            found[cell] = _named(block, job, cell)
    return _gathered([found[cell] for cell, _ in cells_of(per_query) if cell in found])


def _places(chosen: NDArray[np.object_], known: NDArray[np.object_], job: Job) -> NDArray[np.int64]:
    import pandas as pd

    places = np.asarray(pd.Index(known).get_indexer(pd.Index(chosen)), dtype=np.int64)
    if (places < 0).any():
        missing = chosen[places < 0][0]
        raise InputError(
            f"{job.name}: query {missing!r} of its table is not one of {job.collection}; score it"
            " again"
        )
    return places


def _rows(vectors: SparseVectors, rows: NDArray[np.int64]) -> SparseVectors:
    return SparseVectors.concatenate([vectors.slice(row, row + 1) for row in rows.tolist()])


def _ranks(
    positions: NDArray[np.int32],
    ranked: NDArray[np.int64],
    places: NDArray[np.int64],
    judgements: Judgements,
) -> dict[str, NDArray[Any]]:
    """Position of query and document, relevance, and the rank under each configuration (0: none).

    Args:
        positions: int32, shape (configurations, queries, depth), -1 past the end.
        ranked: the queries of the second axis.
        places: the queries that are wanted of them, rising.
    """
    of_cell = positions[:, np.searchsorted(ranked, places)]
    depth = of_cell.shape[-1]
    listed = np.arange(len(places))
    query = np.broadcast_to(listed[:, None], of_cell[0, :, :CUTOFF].shape)
    top = [(query.ravel(), layer[:, :CUTOFF].ravel()) for layer in of_cell]
    pairs = np.stack([np.concatenate([one[side] for one in top]) for side in (0, 1)], axis=1)
    pairs = np.unique(pairs[pairs[:, 1] >= 0], axis=0)
    ranks = np.zeros((len(of_cell), len(pairs)), dtype=np.int64)
    for number, layer in enumerate(of_cell):
        is_it = layer[pairs[:, 0]] == pairs[:, 1, None]
        ranks[number] = np.where(is_it.any(axis=1), is_it.argmax(axis=1) + 1, 0)
    # Documents as the last configuration ranks them, then those that it no longer finds.
    last = np.where(ranks[-1] > 0, ranks[-1], depth + 1)
    order = np.lexsort((pairs[:, 1], ranks[0], last, pairs[:, 0]))
    pairs, ranks = pairs[order], ranks[:, order]
    relevance = judgements.gains_of(
        pairs[:, 1:].astype(np.int32), places[pairs[:, 0]].astype(np.int64)
    )
    return {
        "query_id": places[pairs[:, 0]],
        "document_id": pairs[:, 1],
        "relevance": relevance[:, 0],
        **dict(zip(RANK_COLUMNS, ranks, strict=True)),
    }


def _named(block: dict[str, NDArray[Any]], job: Job, cell: Cell) -> pd.DataFrame:
    import pandas as pd

    keys: dict[str, Any] = {
        "representation": job.representation,
        "collection": job.collection,
        "seed": job.seed,
        "budget": cell.budget,
        "k1": cell.k1,
        "b": cell.b,
        "control": cell.control,
    }
    frame = pd.DataFrame(block)
    for column in RANK_COLUMNS:
        frame[column] = frame[column].where(frame[column] > 0).astype("Int32")
    return frame.assign(**keys)[list(COLUMNS)]


def _gathered(parts: Sequence[pd.DataFrame]) -> pd.DataFrame:
    import pandas as pd

    if parts:
        return pd.concat(parts, ignore_index=True)
    return no_documents()


def no_documents() -> pd.DataFrame:
    """The table of a collection none of whose documents is shown."""
    import pandas as pd

    kinds = {
        **dict.fromkeys(COLUMNS, "str"),
        **{"seed": "int64", "k1": "float64", "b": "float64", "relevance": "float64"},
        **dict.fromkeys(RANK_COLUMNS, "Int32"),
    }
    return pd.DataFrame({name: pd.Series([], dtype=kinds[name]) for name in COLUMNS})
