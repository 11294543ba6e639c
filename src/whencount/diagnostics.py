"""What a predictor may see of an index without labels: tiers 1 and 2 of the study, section 7.

They describe the stored document vectors, after the cap. Tier 3 describes rankings:
`whencount.ranking_diagnostics`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whencount.scoring import inverse_document_frequency
from whencount.vectors import SparseVectors

TIER_1 = (
    "active_fraction",
    "zipf_slope",
    "gini",
    "frequency_top_share",
    "mass_top_share",
    "idf_variance",
)
PRIMARY = ("zipf_slope", "mass_top_share", "idf_variance")
"""The three of tier 1 that were fixed beforehand."""
TIER_2 = ("value_cv", "peak_ratio", "top_share", "length_cv", "length_log_sd", "nnz_cv")

_ROWS_PER_BLOCK = 1 << 16


@dataclass(frozen=True)
class Tally:
    """Sums over a collection from which every index statistic follows.

    Attributes:
        documents: N, empty ones included.
        vocabulary_size: V.
        document_frequency: int64, shape (V,).
        mass: float64, shape (V,), the sum of each feature's stored values.
        sizes: int64, shape (N,), stored values per document.
        lengths: float64, shape (N,), L_d.
        peaks: float64, shape (N,), the largest value of each document, 0 where empty.
        value_mean: mean of all stored values; NaN without any.
        value_sd: their population standard deviation; exactly 0 where all are equal.
    """

    documents: int
    vocabulary_size: int
    document_frequency: NDArray[np.int64]
    mass: NDArray[np.float64]
    sizes: NDArray[np.int64]
    lengths: NDArray[np.float64]
    peaks: NDArray[np.float64]
    value_mean: float
    value_sd: float


def tally(documents: SparseVectors) -> Tally:
    """Collect the sums in one pass over blocks of rows; 24 bytes per document are kept."""
    count, vocabulary = len(documents), documents.vocabulary_size
    frequency = np.zeros(vocabulary, dtype=np.int64)
    mass = np.zeros(vocabulary)
    lengths, peaks = np.zeros(count), np.zeros(count)
    # Sums of deviations from one stored value: exact zeros where all values are equal.
    shift = float(documents.values[0]) if documents.nonzeros else 0.0
    first = second = 0.0
    for start in range(0, count, _ROWS_PER_BLOCK):
        stop = min(start + _ROWS_PER_BLOCK, count)
        block = documents.slice(start, stop)
        features = np.asarray(block.features)
        values = np.asarray(block.values, dtype=np.float64)
        frequency += np.bincount(features, minlength=vocabulary)
        mass += np.bincount(features, weights=values, minlength=vocabulary)
        filled = np.flatnonzero(block.row_sizes())
        if len(filled) == 0:
            continue
        begins = np.asarray(block.indptr)[filled]
        lengths[start + filled] = np.add.reduceat(values, begins)
        peaks[start + filled] = values[begins]
        deviation = values - shift
        first += float(deviation.sum())
        second += float(deviation @ deviation)
    nonzeros = documents.nonzeros
    mean = first / nonzeros if nonzeros else math.nan
    variance = second / nonzeros - mean * mean if nonzeros else math.nan
    return Tally(
        count,
        vocabulary,
        frequency,
        mass,
        documents.row_sizes(),
        lengths,
        peaks,
        mean + shift,
        math.sqrt(max(variance, 0.0)) if nonzeros else math.nan,
    )


def _variation(values: NDArray[np.float64] | NDArray[np.int64]) -> float:
    """Population sd / mean; NaN where there are no values or their mean is 0."""
    if len(values) == 0:
        return math.nan
    shifted = values - values[0]
    mean = float(shifted.mean()) + float(values[0])
    return float(shifted.std()) / mean if mean else math.nan


def active_fraction(tally: Tally) -> float:
    """`nnz / (N V)`."""
    cells = tally.documents * tally.vocabulary_size
    return int(tally.sizes.sum()) / cells if cells else math.nan


def zipf_slope(document_frequency: NDArray[np.int64], documents: int) -> float:
    """Minus the least-squares slope of `ln(df_j / N)` on `ln(rank_j)` over live features.

    Live features are those with df > 0, ranked from 1 by falling df. NaN with fewer than two.
    """
    live = np.sort(document_frequency[document_frequency > 0])[::-1]
    if len(live) < 2:
        return math.nan
    rank = np.log(np.arange(1, len(live) + 1, dtype=np.float64))
    rate = np.log(live / documents)
    rank -= rank.mean()
    # The deviation from the first rate, so that equal rates have exactly slope 0.
    slope = float(rank @ (rate - rate[0])) / float(rank @ rank)
    return 0.0 if slope == 0 else -slope


def gini(mass: ArrayLike) -> float:
    """Gini coefficient of activation mass over all V features, dead ones included.

    `sum_i (2 i - V - 1) m_(i) / (V sum_i m_i)` over masses in rising order: 0 where all are equal,
    1 - 1/V where one has everything. NaN without mass.
    """
    rising = np.sort(np.asarray(mass, dtype=np.float64))
    total = float(rising.sum())
    if total == 0:
        return math.nan
    size = len(rising)
    weights = 2 * np.arange(1, size + 1, dtype=np.float64) - size - 1
    return float(weights @ rising) / (size * total)


def _most_frequent(document_frequency: NDArray[np.int64]) -> NDArray[np.int64]:
    """The ceil(V / 100) features with the largest df; equal df: the smaller feature."""
    count = -(-len(document_frequency) // 100)
    return np.argsort(-document_frequency, kind="stable")[:count]


def frequency_top_share(document_frequency: NDArray[np.int64]) -> float:
    """Share of all df that the most frequent ceil(1 % of V) features have. NaN without any."""
    total = int(document_frequency.sum())
    top = document_frequency[_most_frequent(document_frequency)].sum()
    return float(top) / total if total else math.nan


def mass_top_share(document_frequency: NDArray[np.int64], mass: NDArray[np.float64]) -> float:
    """Share of the activation mass in the most frequent ceil(1 % of V) features.

    The features are chosen by df, as in `frequency_top_share`. NaN without mass.
    """
    total = float(mass.sum())
    top = mass[_most_frequent(document_frequency)].sum()
    return float(top) / total if total else math.nan


def idf_variance(document_frequency: NDArray[np.int64], documents: int) -> float:
    """Population variance of the IDF of live features. NaN without any."""
    live = document_frequency[document_frequency > 0]
    if len(live) == 0:
        return math.nan
    idf = inverse_document_frequency(live, documents)
    return float((idf - idf[0]).var())


def value_cv(tally: Tally) -> float:
    """`cv_x`: population sd / mean of all stored document values. NaN without any."""
    return tally.value_sd / tally.value_mean


def peak_ratio(tally: Tally) -> float:
    """Mean over non-empty documents of largest value / mean value."""
    filled = tally.sizes > 0
    if not filled.any():
        return math.nan
    return float((tally.peaks[filled] * tally.sizes[filled] / tally.lengths[filled]).mean())


def top_share(tally: Tally) -> float:
    """Mean over non-empty documents of largest value / sum of values."""
    filled = tally.sizes > 0
    return float((tally.peaks[filled] / tally.lengths[filled]).mean()) if filled.any() else math.nan


def length_cv(tally: Tally) -> float:
    """Population sd / mean of L_d over all documents, empty ones included."""
    return _variation(tally.lengths)


def length_log_sd(tally: Tally) -> float:
    """Population sd of `ln L_d` over non-empty documents."""
    filled = tally.lengths > 0
    logs = np.log(tally.lengths[filled])
    return float((logs - logs[0]).std()) if len(logs) else math.nan


def nnz_cv(tally: Tally) -> float:
    """Population sd / mean of the number of stored values per document, empty ones included."""
    return _variation(tally.sizes)


def index_statistics(documents: SparseVectors) -> dict[str, float]:
    """Every statistic of tiers 1 and 2, by name, of already capped document vectors.

    NaN where a statistic is undefined: in a collection whose documents are all empty.
    """
    return statistics_of(tally(documents))


def statistics_of(sums: Tally) -> dict[str, float]:
    """`index_statistics` of what was collected."""
    frequency = sums.document_frequency
    return {
        "value_cv": value_cv(sums),
        "peak_ratio": peak_ratio(sums),
        "top_share": top_share(sums),
        "length_cv": length_cv(sums),
        "length_log_sd": length_log_sd(sums),
        "nnz_cv": nnz_cv(sums),
        "active_fraction": active_fraction(sums),
        "zipf_slope": zipf_slope(frequency, sums.documents),
        "gini": gini(sums.mass),
        "frequency_top_share": frequency_top_share(frequency),
        "mass_top_share": mass_top_share(frequency, sums.mass),
        "idf_variance": idf_variance(frequency, sums.documents),
    }
