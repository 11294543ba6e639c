"""What a reference says of the eight configurations: its first ten documents taken as relevant.

The estimates are those of the study, section 7: `Q~_c`, and phi~ and G~ of them. A reference that
is BM25 itself leans towards what BM25 does; so two that agree say more than one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from whencount import attribution
from whencount.engine.index import Index, block_size
from whencount.engine.storage import open_index, write_index
from whencount.errors import InputError
from whencount.judgements import discounts
from whencount.progress import progress
from whencount.scoring import CONFIGURATIONS, SWITCHES, Parameters
from whencount.search import collection_statistics, search
from whencount.significance import resamples
from whencount.vectors import SparseVectors

CUTOFF = 10
ESTIMATES = (*SWITCHES, "gain", "collection_gain")
_QUERIES_AT_ONCE = 512
_IN_MEMORY = 1 << 25
"""Weights of documents whose index is held in memory, some 200 MB; larger ones lie on disk."""


@dataclass(frozen=True)
class Grid:
    """The cells of k1 and b that are looked at; the first of each is where switches are judged."""

    k1: Sequence[float] = (1.2, 0.6, 2.4)
    b: Sequence[float] = (0.75, 0.5, 0.25)

    def cells(self) -> list[Parameters]:
        """All pairs; the first is the default one."""
        return [Parameters(k1, b) for k1 in self.k1 for b in self.b]


@dataclass(frozen=True)
class Interval:
    """An estimate with the 95 % interval of a bootstrap over queries."""

    value: float
    low: float
    high: float

    @property
    def sign(self) -> int:
        """1 or -1 where the interval lies on that side of 0, else 0."""
        return int(self.low > 0) - int(self.high < 0)


@dataclass(frozen=True)
class Evidence:
    """What one reference says.

    Attributes:
        name: of the reference.
        queries: those for which it found something.
        quality: float64, shape (cells, 8): Q~ of every configuration at every cell.
        estimates: of ESTIMATES at the first cell.
        per_query: float64, shape (cells, 8, queries), NaN where the reference found nothing.
    """

    name: str
    queries: int
    quality: NDArray[np.float64]
    estimates: Mapping[str, Interval]
    per_query: NDArray[np.float64] = field(repr=False)


def gather(
    documents: SparseVectors,
    queries: SparseVectors,
    references: Mapping[str, NDArray[np.int32]],
    grid: Grid,
    *,
    draws: int = 2000,
    seed: int = 0,
    threads: int | None = None,
    scratch: Path | None = None,
) -> list[Evidence]:
    """Search every configuration at every cell once, and let each reference judge.

    Args:
        documents, queries: already capped.
        references: name to document positions, int32, shape (queries, 10), -1 past the end.
        grid: of k1 and b.
        draws: of the bootstrap over queries.
        seed: of the bootstrap.
        threads: of the search.
        scratch: an empty folder for the index of a large collection, which is held in memory
            without it.

    Raises:
        InputError: no query shares a feature with a document.
    """
    cells = grid.cells()
    names = list(references)
    shape = (len(cells), len(CONFIGURATIONS), len(queries))
    quality = {name: np.zeros(shape) for name in names}
    index = _index(documents, scratch)
    statistics = collection_statistics(index)
    starts = range(0, len(queries), _QUERIES_AT_ONCE)
    sizes = [min(_QUERIES_AT_ONCE, len(queries) - start) for start in starts]
    weights = discounts(CUTOFF)
    answered = 0
    for start in progress(starts, len(queries), "searching", "query", sizes):
        stop = min(start + _QUERIES_AT_ONCE, len(queries))
        found = search(
            index,
            queries.slice(start, stop),
            cells,
            depth=CUTOFF,
            statistics=statistics,
            threads=threads,
        )
        answered += int(found.counts.max(axis=(0, 1)).astype(bool).sum())
        for name in names:
            relevant = references[name][start:stop]
            for rank in range(min(CUTOFF, found.positions.shape[-1])):
                hit = (found.positions[..., rank, None] == relevant).any(axis=-1)
                quality[name][..., start:stop] += (hit & (rank < found.counts)) * weights[rank]
    if not answered:
        raise InputError(
            "no query shares a feature with any document; check that both come from one encoder and"
            " name features alike, and that they are not empty"
        )
    return [
        _judged(name, quality[name] / weights.sum(), references[name], draws, seed)
        for name in names
    ]


def _index(documents: SparseVectors, scratch: Path | None) -> Index:
    if scratch is None or documents.nonzeros <= _IN_MEMORY:
        return Index.build(documents)
    from whencount.reading import shards_of

    sizes = map(len, shards_of(documents))
    shards = progress(shards_of(documents), len(documents), "indexing", "document", sizes)
    # The first shard sets the size of a block, so it must be as the whole.
    size = block_size(len(documents), documents.nonzeros, documents.vocabulary_size)
    write_index(scratch / "index", shards, size)
    return open_index(scratch / "index")


def _judged(
    name: str,
    per_query: NDArray[np.float64],
    reference: NDArray[np.int32],
    draws: int,
    seed: int,
) -> Evidence:
    answered = (reference >= 0).any(axis=1)
    per_query[..., ~answered] = np.nan
    kept = per_query[0][:, answered].T
    estimates = {
        key: Interval(float(value), float(low), float(high))
        for key, value, low, high in zip(
            ESTIMATES, *_intervals(kept, name, draws, seed), strict=True
        )
    }
    quality = per_query[..., answered].mean(axis=-1)
    return Evidence(name, int(answered.sum()), quality, estimates, per_query)


def _intervals(
    kept: NDArray[np.float64], name: str, draws: int, seed: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Values, lower and upper ends of ESTIMATES, each float64, shape (5,)."""
    count = len(kept)
    drawn = [
        _targets(block @ kept / count)
        for block in resamples(count, draws, collection=name, seed=seed)
    ]
    low, high = np.percentile(np.concatenate(drawn), [2.5, 97.5], axis=0)
    return _targets(kept.mean(axis=0)[None])[0], low, high


def _targets(quality: NDArray[np.float64]) -> NDArray[np.float64]:
    """Shape (n, 8) to (n, 5), in the order of ESTIMATES."""
    parts = [attribution.shapley(quality), attribution.gain(quality)[:, None]]
    return np.concatenate([*parts, attribution.collection_gain(quality)[:, None]], axis=1)


def paired(
    evidence: Evidence, first: tuple[int, int], second: tuple[int, int], draws: int, seed: int
) -> Interval:
    """The difference of two (cell, configuration) pairs, the first less the second."""
    difference = evidence.per_query[first] - evidence.per_query[second]
    difference = difference[~np.isnan(difference)]
    count = len(difference)
    means = np.concatenate(
        [
            block @ difference / count
            for block in resamples(count, draws, collection=evidence.name, seed=seed)
        ]
    )
    low, high = np.percentile(means, [2.5, 97.5])
    return Interval(float(difference.mean()), float(low), float(high))
