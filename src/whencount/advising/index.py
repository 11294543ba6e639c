"""What the index alone can say: its statistics, and the effect of saturation to expect of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from whencount.diagnostics import TIER_2, statistics_of, tally
from whencount.prediction.models import fit_ridge
from whencount.prediction.scores import spearman
from whencount.vectors import SparseVectors

MEANINGS = {
    "nnz_mean": "stored weights per document, in the mean",
    "length_mean": "length of a document, the sum of its weights, in the mean",
    "live_features": "features that some document has",
    "df_median": "share of documents that have a feature: the median of live features",
    "df_90": "the same, the feature at 90 % of live features by rising share",
    "df_99": "the same, at 99 %",
    "df_largest": "the same, the most frequent feature",
    "value_cv": "how much weights vary: sd over mean of stored weights; saturation flattens this",
    "peak_ratio": "a document's largest weight over its mean weight, in the mean of documents",
    "top_share": "share of a document's mass that its largest weight has, in the mean",
    "length_cv": "how much lengths vary: sd over mean of the summed weights; length acts on this",
    "length_log_sd": "sd of the logarithm of lengths",
    "nnz_cv": "how much the number of stored weights varies: sd over mean, over documents",
    "active_fraction": "share of all pairs of a document and a feature that have a weight",
    "zipf_slope": "how steeply document frequency falls with rank; 0 is flat",
    "gini": "how unequally mass is shared out among features; 0 is equal, 1 is one feature alone",
    "frequency_top_share": "share of all stored weights that the 1 % most frequent features have",
    "mass_top_share": "share of all mass that the 1 % most frequent features have",
    "idf_variance": "how much IDF varies over live features; IDF acts on this",
}
"""What describes an index, and the statistics of the study (section 7, tiers 1 and 2), in words."""

_KEYS = ["collection", "basis", "granularity", "seed", "budget"]


def described(documents: SparseVectors) -> dict[str, float]:
    """The numbers of MEANINGS, by name, of capped documents, read once; NaN where undefined."""
    sums = tally(documents)
    live = sums.document_frequency[sums.document_frequency > 0] / max(1, sums.documents)
    points = np.quantile(live, [0.5, 0.9, 0.99, 1.0]) if len(live) else np.full(4, np.nan)
    plain = {
        "nnz_mean": float(sums.sizes.mean()) if sums.documents else float("nan"),
        "length_mean": float(sums.lengths.mean()) if sums.documents else float("nan"),
        "live_features": float(len(live)),
    }
    names = ("df_median", "df_90", "df_99", "df_largest")
    quantiles = dict(zip(names, points.tolist(), strict=True))
    return plain | quantiles | statistics_of(sums)


@dataclass(frozen=True)
class Expectation:
    """An effect that a model of the published study expects of an index.

    Attributes:
        value: phi of saturation, nDCG@10.
        rmse: root mean squared error where a corpus was held out.
        sign_accuracy: share of held-out rows whose sign was right.
        majority: share that the more frequent sign has.
        rank_correlation: Spearman's, held out.
        rows, corpora: what it was fitted on.
        outside: statistics that lie outside the range of the published indexes.
    """

    value: float
    rmse: float
    sign_accuracy: float
    majority: float
    rank_correlation: float
    rows: int
    corpora: int
    outside: tuple[str, ...]


def saturation_expected(statistics: Mapping[str, float]) -> Expectation | None:
    """The effect of saturation on an index of these statistics, by ridge over published rows.

    Features are the six statistics of tier 2, which the published tables give; rows are the
    published primary ones (32/128, k1 1.2, b .75). None where a statistic is undefined.
    """
    mine = np.array([[statistics[name] for name in TIER_2]])
    if not np.isfinite(mine).all():
        return None
    rows = _published()
    value = float(fit_ridge(rows.features, rows.target, rows.corpora).predict(mine)[0])
    low, high = rows.features.min(axis=0), rows.features.max(axis=0)
    outside = tuple(
        name
        for name, number, least, most in zip(TIER_2, mine[0], low, high, strict=True)
        if not least <= number <= most
    )
    return Expectation(
        value,
        rows.rmse,
        rows.sign_accuracy,
        rows.majority,
        rows.rank_correlation,
        len(rows.target),
        len(np.unique(rows.corpora)),
        outside,
    )


@dataclass(frozen=True)
class _Published:
    """Features, target and corpora of the published rows, and how well a held-out corpus does."""

    features: NDArray[np.float64]
    target: NDArray[np.float64]
    corpora: NDArray[np.object_]
    rmse: float
    sign_accuracy: float
    majority: float
    rank_correlation: float


@cache
def _published() -> _Published:
    import io
    from importlib.resources import files

    import pandas as pd

    folder = files("whencount.published")
    tables = [
        pd.read_csv(io.StringIO((folder / name).read_text(encoding="utf-8")))
        for name in ("index_statistics.csv", "shapley_rows.csv")
    ]
    effects = tables[1][
        (tables[1]["k1"] == 1.2) & (tables[1]["b"] == 0.75) & tables[1]["control"].isna()
    ]
    rows = tables[0].merge(effects[[*_KEYS, "shapley_saturation"]], on=_KEYS)
    rows = rows.dropna(subset=[*TIER_2, "shapley_saturation"])
    features = rows[list(TIER_2)].to_numpy(dtype=np.float64)
    target = rows["shapley_saturation"].to_numpy(dtype=np.float64)
    corpora = rows["collection"].to_numpy()
    held = np.empty(len(target))
    for corpus in np.unique(corpora):
        away = corpora == corpus
        held[away] = fit_ridge(features[~away], target[~away], corpora[~away]).predict(
            features[away]
        )
    moved = target != 0
    positive = float((target[moved] > 0).mean())
    return _Published(
        features,
        target,
        corpora,
        float(np.sqrt(np.mean((held - target) ** 2))),
        float((np.sign(held[moved]) == np.sign(target[moved])).mean()),
        max(positive, 1 - positive),
        float(spearman(target, held)),
    )
