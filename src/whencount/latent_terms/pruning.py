"""What saturated features cost and bring: drop those that too many documents have."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from whencount import measures
from whencount.economics import posting_work
from whencount.latent_terms.tuning import CUTOFF, SCORERS
from whencount.latent_terms.weights import changed, without
from whencount.progress import progress
from whencount.scoring import Parameters
from whencount.search import collection_statistics, search
from whencount.vectors import SparseVectors

if TYPE_CHECKING:
    import pandas as pd


def pruning_curve(
    documents: SparseVectors,
    queries: SparseVectors,
    judgements: measures.Judgements,
    thresholds: Sequence[float],
    parameters: Parameters,
    *,
    threads: int | None = None,
    device: str = "cpu",
    place: Path | None = None,
) -> pd.DataFrame:
    """Drop the features whose `df / N` is above a threshold, and measure what is left.

    Lengths and their mean are computed anew from what is left; df and IDF of a kept feature stay
    as they were.

    Args:
        documents, queries: weighed vectors.
        judgements: of the same queries.
        thresholds: of df / N; 1 drops nothing and is always added.
        parameters: k1 and b.
        threads, device: of the search.
        place: a folder for the pruned vectors of a large collection.

    Returns:
        One line per threshold, falling: threshold, features, dropped, postings, posting_work (of
        an average query), document_nnz, query_nnz, empty_queries (share of queries that have
        nothing left), inner, bm25 (mean nDCG@10).
    """
    import pandas as pd

    count = len(documents)
    frequency = collection_statistics(documents).document_frequency
    share = frequency / max(1, count)
    asked = np.bincount(np.asarray(queries.features), minlength=queries.vocabulary_size)
    lines: list[dict[str, Any]] = []
    wanted = sorted({1.0, *map(float, thresholds)}, reverse=True)
    for threshold in progress(wanted, len(wanted), "pruning", "threshold"):
        dropped = share > threshold
        left = changed([documents], lambda piece, gone=dropped: without(piece, gone), place)  # type: ignore[misc]
        asking = without(queries, dropped)
        rankings = search(
            left,
            asking,
            (parameters,),
            configurations=tuple(SCORERS.values()),
            depth=CUTOFF,
            threads=threads,
            device=device,
        )
        quality = measures.mean_quality(
            measures.ndcg(rankings.positions, rankings.counts, judgements, CUTOFF), judgements
        )
        kept = np.where(dropped, 0, 1)
        lines.append(
            {
                "threshold": threshold,
                "features": int(np.count_nonzero(frequency * kept)),
                "dropped": int(dropped.sum()),
                "postings": left.nonzeros,
                "posting_work": posting_work(
                    count, share * kept, asked * kept / max(1, len(queries))
                ),
                "document_nnz": left.nonzeros / max(1, count),
                "query_nnz": asking.nonzeros / max(1, len(asking)),
                "empty_queries": float((asking.row_sizes() == 0).mean()),
                **{name: float(quality[0, number]) for number, name in enumerate(SCORERS)},
            }
        )
    return pd.DataFrame(lines)
