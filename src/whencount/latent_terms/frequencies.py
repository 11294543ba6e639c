"""Document frequencies by rank (Zipf), of latent terms, words or any other vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from whencount.diagnostics import zipf_slope
from whencount.search import CollectionStatistics, collection_statistics
from whencount.vectors import SparseVectors

if TYPE_CHECKING:
    import pandas as pd

POINTS = 400
"""Ranks that are kept of a longer curve, evenly spaced in their logarithm."""


def rank_frequency(document_frequency: NDArray[np.int64], documents: int) -> pd.DataFrame:
    """Document frequency against rank, and the slope of the line through all of it.

    The slope is that of `whencount.diagnostics.zipf_slope`: minus the ordinary least-squares slope
    of `ln(df / N)` on `ln(rank)` over all features with df > 0, ranked from 1 by falling df. The
    many ranks of the tail weigh most in it, as in every such fit.

    Args:
        document_frequency: int64, shape (V,).
        documents: N.

    Returns:
        One line per kept rank: rank, df, frequency (df / N), live (features with df > 0),
        zipf_slope (NaN with fewer than two). All ranks where there are at most POINTS.
    """
    import pandas as pd

    falling = np.sort(document_frequency[document_frequency > 0])[::-1]
    live = len(falling)
    ranks = np.arange(1, live + 1)
    if live > POINTS:
        ranks = np.unique(np.geomspace(1, live, POINTS).round().astype(np.int64))
    frequency = falling[ranks - 1] if live else falling
    return pd.DataFrame(
        {
            "rank": ranks.astype(np.int64),
            "df": frequency.astype(np.int64),
            "frequency": frequency / max(1, documents),
            "live": np.full(len(ranks), live, dtype=np.int64),
            "zipf_slope": zipf_slope(document_frequency, documents),
        }
    )


def curve(kind: str, name: str, shards: Sequence[SparseVectors]) -> pd.DataFrame:
    """`rank_frequency` of the documents of a collection, with the columns kind and representation.

    Args:
        kind: `words` or `learned_sparse`.
        name: of the representation.
        shards: of the documents, laid end to end.
    """
    statistics = CollectionStatistics.merge([collection_statistics(shard) for shard in shards])
    table = rank_frequency(statistics.document_frequency, statistics.documents)
    table.insert(0, "representation", name)
    table.insert(0, "kind", kind)
    return table


def learned_frequencies(vectors: Mapping[str, Sequence[SparseVectors]]) -> pd.DataFrame:
    """The curves of SPLADE-like vectors: name to the shards of documents."""
    import pandas as pd

    curves = [curve("learned_sparse", name, shards) for name, shards in vectors.items()]
    return pd.concat(curves, ignore_index=True)
