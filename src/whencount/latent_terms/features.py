"""What each feature stands for: the passages and queries in which it is strongest."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from whencount.collections.prepared import read_texts
from whencount.latent_terms.weights import weigh
from whencount.progress import progress
from whencount.scoring import inverse_document_frequency
from whencount.vectors import SparseVectors

if TYPE_CHECKING:
    import pandas as pd

Spans = list[tuple[int, int]]
Firing = Callable[[str, Sequence[str], NDArray[np.int64], NDArray[np.int64]], list[Spans]]
"""Kind of texts, the texts, and pairs of a text's number and a feature, to the stretches of
characters in which it fires, one list per pair."""

_ROWS_PER_BLOCK = 1 << 16


@dataclass(frozen=True)
class Strongest:
    """For every feature the rows in which it weighs most.

    Attributes:
        rows: int64, shape (V, n), strongest first, of equal weights the earlier row; -1 past the
            last.
        weights: float32, the same shape; 0 past the last.
        frequency: int64, shape (V,), rows that have the feature.
        mass: float64, shape (V,), the sum of its weights.
    """

    rows: NDArray[np.int64]
    weights: NDArray[np.float32]
    frequency: NDArray[np.int64]
    mass: NDArray[np.float64]


def strongest(shards: Sequence[SparseVectors], number: int, exponent: float = 1.0) -> Strongest:
    """The `number` strongest rows of every feature, in one pass over blocks of rows.

    Memory holds `number` entries per feature and one block, whatever the collection's size.

    Args:
        shards: vectors of one vocabulary, laid end to end.
        number: how many rows to keep per feature.
        exponent: of phi, which makes weights of summed codes.
    """
    size = shards[0].vocabulary_size
    rows = np.full((size, number), -1, dtype=np.int64)
    weights = np.zeros((size, number), dtype=np.float32)
    frequency = np.zeros(size, dtype=np.int64)
    mass = np.zeros(size)
    starts = np.cumsum([0, *map(len, shards)])
    blocks = [
        (shard, start)
        for shard in range(len(shards))
        for start in range(0, len(shards[shard]), _ROWS_PER_BLOCK)
    ]
    for shard, start in progress(blocks, len(blocks), "finding passages", "block"):
        stop = min(start + _ROWS_PER_BLOCK, len(shards[shard]))
        block = weigh(shards[shard].slice(start, stop), exponent)
        features, values = np.asarray(block.features), np.asarray(block.values)
        frequency += np.bincount(features, minlength=size)
        mass += np.bincount(features, weights=values.astype(np.float64), minlength=size)
        # A later row must be stronger than the weakest that is kept; few are.
        better = np.flatnonzero(values > weights[features, -1])
        first = int(starts[shard]) + start
        own = np.repeat(np.arange(first, first + len(block)), block.row_sizes())[better]
        _merge(rows, weights, features[better], own, values[better])
    return Strongest(rows, weights, frequency, mass)


def _merge(
    rows: NDArray[np.int64],
    weights: NDArray[np.float32],
    features: NDArray[np.int32],
    own: NDArray[np.int64],
    values: NDArray[np.float32],
) -> None:
    """Put candidates among the strongest of their features, in place."""
    touched = np.unique(features)
    number = rows.shape[1]
    kept = rows[touched] >= 0
    every_feature = np.concatenate([np.repeat(touched, kept.sum(axis=1)), features])
    every_row = np.concatenate([rows[touched][kept], own])
    every_value = np.concatenate([weights[touched][kept], values])
    order = np.lexsort((every_row, -every_value, every_feature))
    every_feature = every_feature[order]
    begins = np.searchsorted(every_feature, touched)
    place = np.arange(len(order)) - np.repeat(begins, np.diff([*begins, len(order)]))
    best = place < number
    rows[touched], weights[touched] = -1, 0
    chosen = order[best]
    rows[every_feature[best], place[best]] = every_row[chosen]
    weights[every_feature[best], place[best]] = every_value[chosen]


def shown_features(frequency: NDArray[np.int64], number: int) -> NDArray[np.int64]:
    """Which features a browser shows: all live ones, or `number` evenly spread by frequency.

    Args:
        frequency: int64, shape (V,).
        number: at most so many.

    Returns:
        Feature numbers, rising.
    """
    live = np.flatnonzero(frequency)
    if len(live) > number:
        falling = live[np.argsort(-frequency[live], kind="stable")]
        live = falling[np.linspace(0, len(falling) - 1, number).round().astype(np.int64)]
    return np.sort(live)


def feature_tables(
    documents: Sequence[SparseVectors],
    queries: SparseVectors,
    corpus: str | Path,
    collection: str | Path,
    options: Mapping[str, Any],
    *,
    exponent: float,
    firing: Firing | None = None,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """What a browser of features shows.

    Args:
        documents: the shards of summed codes of the corpus.
        queries: those of the queries.
        corpus, collection: prepared folders, with the texts of documents and of queries.
        options: features, passages, queries, characters, as in `latent_terms.browser`.
        exponent: of phi.
        firing: tells where in a text a feature fires; None tells nothing of it.

    Returns:
        Features: feature, df, idf, mean_weight (over documents that have it), documents (N), live
        (features with df > 0). Examples: kind (`passage` or `query`), feature, rank (from 1), id,
        weight, text (at most `characters` of it, around where the feature first fires), spans (a
        JSON list of [start, end), in characters of that text).

    Raises:
        InputError: a table of texts is missing.
    """
    import pandas as pd

    found = strongest(documents, int(options["passages"]), exponent)
    total = sum(map(len, documents))
    chosen = shown_features(found.frequency, int(options["features"]))
    frequency = found.frequency[chosen]
    features = pd.DataFrame(
        {
            "feature": chosen.astype(np.int64),
            "df": frequency,
            "idf": inverse_document_frequency(frequency, total),
            "mean_weight": found.mass[chosen] / np.maximum(frequency, 1),
            "documents": total,
            "live": int(np.count_nonzero(found.frequency)),
        }
    )
    asked = strongest([queries], int(options["queries"]), exponent)
    most = int(options["characters"])
    examples = [
        _examples("passage", found, chosen, read_texts(corpus).path, most, firing),
        _examples("query", asked, chosen, Path(collection) / "queries.parquet", most, firing),
    ]
    return features, pd.concat(examples, ignore_index=True)


def _examples(
    kind: str,
    found: Strongest,
    chosen: NDArray[np.int64],
    table: Path,
    most: int,
    firing: Firing | None,
) -> pd.DataFrame:
    import pandas as pd

    place, rank = np.nonzero(found.rows[chosen] >= 0)
    rows = found.rows[chosen][place, rank]
    wanted, number = np.unique(rows, return_inverse=True)
    ids, texts = texts_at(table, wanted)
    fired: list[Spans] = [[] for _ in rows]
    if firing is not None:
        fired = firing(kind, texts, number.astype(np.int64), chosen[place].astype(np.int64))
    shown = [excerpt(texts[one], spans, most) for one, spans in zip(number, fired, strict=True)]
    return pd.DataFrame(
        {
            "kind": pd.array([kind] * len(rows), dtype="str"),
            "feature": chosen[place].astype(np.int64),
            "rank": (rank + 1).astype(np.int64),
            "id": pd.array([ids[one] for one in number], dtype="str"),
            "weight": found.weights[chosen][place, rank].astype(np.float64),
            "text": pd.array([text for text, _ in shown], dtype="str"),
            "spans": pd.array([json.dumps(spans) for _, spans in shown], dtype="str"),
        }
    )


def excerpt(text: str, spans: Spans, most: int) -> tuple[str, Spans]:
    """At most `most` characters of a text, from its start or from a little before the first span.

    What is left out at an end is told by an ellipsis. The spans are those of the excerpt; one that
    its end cuts is cut with it.
    """
    if len(text) <= most:
        return text, spans
    start = 0
    if spans and spans[0][1] > most - 1:
        # A quarter of the excerpt comes before it.
        start = min(spans[0][0] - most // 4, len(text) - most + 1)
    before = "\N{HORIZONTAL ELLIPSIS}" if start else ""
    stop = min(start + most - len(before), len(text))
    after = "\N{HORIZONTAL ELLIPSIS}" if stop < len(text) else ""
    stop -= len(after)
    shift = len(before) - start
    kept = [
        (max(low, start) + shift, min(high, stop) + shift)
        for low, high in spans
        if min(high, stop) > max(low, start)
    ]
    return f"{before}{text[start:stop]}{after}", kept


def texts_at(table: Path, rows: NDArray[np.int64]) -> tuple[list[str], list[str]]:
    """Ids and texts at rising rows of a table of texts, read in one pass over the rows around them.

    Raises:
        InputError: there is no such table, or it is damaged.
    """
    read_texts(table)
    ids: list[str] = []
    texts: list[str] = []
    start = 0
    with pq.ParquetFile(table) as file:
        for number in range(file.metadata.num_row_groups):
            stop = start + file.metadata.row_group(number).num_rows
            low, high = np.searchsorted(rows, [start, stop])
            if low < high:
                group = file.read_row_group(number, columns=["id", "text"])
                kept = group.take(rows[low:high] - start)
                ids += kept.column("id").to_pylist()
                texts += kept.column("text").to_pylist()
            start = stop
    return ids, texts
