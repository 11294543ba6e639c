"""The eight configurations in every cell of one job: search, measure, describe."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whencount import diagnostics, measures, ranking_diagnostics
from whencount.checkpoints import load_arrays, save_arrays
from whencount.controls import controlled_frequency
from whencount.naming import Cell
from whencount.progress import progress
from whencount.scoring import CONFIGURATIONS, Parameters
from whencount.search import SHARD_NONZEROS, collection_statistics, search
from whencount.ties import complete_borders
from whencount.vectors import SparseVectors, VectorsWriter

CUTOFF = 10
_ROWS_PER_PIECE = 1 << 16


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
    checkpoints: Path | None = None,
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
        checkpoints: a folder that keeps finished budgets and controls (of these very cells), so
            that a killed job goes on, and the capped vectors of a large collection, so that memory
            does not grow with it; None keeps none.

    Raises:
        InputError: no query has a positive judgement, or sizes do not fit.
    """
    groups: dict[tuple[str, str], list[Cell]] = defaultdict(list)
    for cell in cells:
        groups[cell.budget, cell.control].append(cell)
    results: dict[Cell, CellResult] = {}
    capped: tuple[str, SparseVectors, SparseVectors] | None = None
    for (budget, control), members in groups.items():
        kept = checkpoints and checkpoints / members[0].checkpoint
        found = kept and _read_group(kept, members)
        if found:
            results |= found
            continue
        if capped is None or capped[0] != budget:
            query_budget, document_budget = members[0].budgets
            capped = (
                budget,
                _joined(documents, document_budget, checkpoints),
                queries.cap(query_budget),
            )
        _, capped_documents, capped_queries = capped
        group = _score_group(
            capped_documents,
            capped_queries,
            judgements,
            members,
            # The search counts the true frequencies itself.
            controlled_frequency(collection_statistics(capped_documents), control, seed)
            if control
            else None,
            references=references or {},
            depth=depth,
            threads=threads,
            device=device,
        )
        if kept:
            _keep_group(kept, group)
        results |= group
    return results


def _joined(
    documents: Sequence[SparseVectors], budget: int | None, place: Path | None
) -> SparseVectors:
    """The capped shards as one; where they are large, in a folder in `place`, memory-mapped.

    Search, ties and statistics read rows in blocks, so no more than a block of such is in memory.
    """
    if place is None or sum(shard.nonzeros for shard in documents) <= SHARD_NONZEROS:
        return SparseVectors.concatenate([shard.cap(budget) for shard in documents])
    if len(documents) == 1 and budget is None:
        return documents[0]
    vocabulary = {shard.vocabulary_size for shard in documents}
    if len(vocabulary) > 1:
        # Told as ever.
        return SparseVectors.concatenate(documents)
    pieces = [
        (shard, start) for shard in documents for start in range(0, len(shard), _ROWS_PER_PIECE)
    ]
    folder = place / "capped"
    with VectorsWriter(folder, vocabulary.pop()) as writer:
        for shard, start in progress(pieces, len(pieces), "capping documents", "piece"):
            stop = min(start + _ROWS_PER_PIECE, len(shard))
            writer.append(shard.slice(start, stop).cap(budget))
    return SparseVectors.load(folder)


def _score_group(
    documents: SparseVectors,
    queries: SparseVectors,
    judgements: measures.Judgements,
    cells: Sequence[Cell],
    frequency: NDArray[Any] | None,
    *,
    references: Mapping[str, NDArray[np.int32]],
    depth: int,
    threads: int | None,
    device: str,
) -> dict[Cell, CellResult]:
    """Score cells that share budget and control, of capped vectors."""
    parameters = [Parameters(cell.k1, cell.b) for cell in cells]
    rankings = search(
        documents,
        queries,
        parameters,
        depth=depth,
        document_frequency=frequency,
        threads=threads,
        device=device,
    )
    borders = complete_borders(
        documents,
        queries,
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
    index = diagnostics.index_statistics(documents)
    ranked = ranking_diagnostics.ranking_statistics(rankings, references)
    results: dict[Cell, CellResult] = {}
    for number, cell in enumerate(cells):
        row: dict[str, Any] = {"queries": int(judgements.evaluated.sum())}
        for place, configuration in enumerate(CONFIGURATIONS):
            row[f"q{configuration}"] = float(quality[number, place])
        for place, configuration in enumerate(CONFIGURATIONS):
            row[f"tie_share_{configuration}"] = float(ties[number, place])
            row[f"expected_{configuration}"] = float(expected[number, place])
        row |= index | ranked[number]
        results[cell] = CellResult(row, np.ascontiguousarray(per_query[number].T))
    return results


def _keep_group(path: Path, results: Mapping[Cell, CellResult]) -> None:
    # JSON writes a float so that reading it gives the same one.
    rows = json.dumps([result.row for result in results.values()]).encode()
    arrays: dict[str, NDArray[Any]] = {
        "rows": np.frombuffer(rows, dtype=np.uint8),
        "per_query": np.stack([result.per_query for result in results.values()]),
    }
    save_arrays(path, arrays)


def _read_group(path: Path, cells: Sequence[Cell]) -> dict[Cell, CellResult]:
    """What `_keep_group` wrote, in the order of `cells`; empty where there is nothing whole."""
    arrays = load_arrays(path)
    if arrays is None:
        return {}
    rows = json.loads(arrays["rows"].tobytes())
    return {
        cell: CellResult(row, per_query)
        for cell, row, per_query in zip(cells, rows, arrays["per_query"], strict=True)
    }
