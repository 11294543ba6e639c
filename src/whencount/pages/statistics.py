"""What pages show without an answer: frequencies, values and lengths, as an index shows its own.

The diagnostics of an index (`whencount.diagnostics`), carried over: a unit (a query head, or the
query heads that share a key-value head) is a collection, its documents are the pages that exist at
a calibration position. A feature is what one query head sees of one page, so its document frequency
is the count of positions at which the page enters the top k, and N the count at which it exists.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from whencount.pages.calibration import LayerCalibration
from whencount.pages.selectors.corrected import page_idf, page_values

STATISTICS = (
    "value_cv",
    "peak_ratio",
    "top_share",
    "length_cv",
    "length_log_sd",
    "nnz_cv",
    "active_fraction",
    "zipf_slope",
    "gini",
    "frequency_top_share",
    "mass_top_share",
    "idf_variance",
    "frequency_mean",
    "frequency_zero",
)
"""The order of `unit_statistics`; the first twelve are columns of rows.parquet."""


def unit_statistics(layer: LayerCalibration, budget: int, group: bool) -> NDArray[np.float64]:
    """Statistics of one layer by unit; float64, shape (statistics, units), NaN where undefined.

    Rates are df / N, each page with its own N; a page's mass is its mean value over the positions
    at which it exists, so that neither says how early a page was written. `peak_ratio` and
    `top_share` are undefined where a page has one feature, `nnz_cv` always: every page has a value
    under every head. `active_fraction` is the sum of df over the sum of N; `frequency_mean` the
    mean rate, `frequency_zero` the share of features that never enter.

    Args:
        layer: its calibration.
        budget: which top k.
        group: units are groups of query heads that share a key-value head; else query heads.
    """
    heads, groups = len(layer.head_scale), len(layer.group_scale)
    units = groups if group else heads
    seen = (layer.existed > 0).cpu().numpy()
    if not seen.any():
        return np.full((len(STATISTICS), units), np.nan)
    exists = layer.exists.cpu().numpy()[:, seen]
    existed = exists.sum(axis=0, dtype=np.float64)
    # [positions, units, heads of a unit, pages]
    shape = (len(exists), units, heads // units, len(existed))
    values = page_values(layer.bounds, layer, group).cpu().numpy()[..., seen].reshape(shape)
    values = np.where(exists[:, None, None], values, 0.0)
    entered = layer.entered[budget].cpu().numpy()[:, seen].astype(np.float64)
    rates = (entered / existed).reshape(units, -1)
    mass = (values.sum(axis=0) / existed).reshape(units, -1)
    idf = page_idf(layer, budget).cpu().numpy()[:, seen].reshape(units, -1)
    lengths = layer.lengths.cpu().numpy().repeat(units // groups, axis=0)
    peak_ratio, top_share = _peaks(values, exists)
    frequency_top_share, mass_top_share = _top_shares(rates, mass)
    found = {
        "value_cv": _value_cv(values, exists),
        "peak_ratio": peak_ratio,
        "top_share": top_share,
        "length_cv": lengths.std(axis=-1) / lengths.mean(axis=-1),
        "length_log_sd": np.log(lengths).std(axis=-1),
        "nnz_cv": np.full(units, np.nan),
        "active_fraction": entered.reshape(units, -1).sum(axis=-1)
        / (existed.sum() * (heads // units)),
        "zipf_slope": zipf_slope(rates),
        "gini": gini(mass),
        "frequency_top_share": frequency_top_share,
        "mass_top_share": mass_top_share,
        "idf_variance": _live_variance(idf, rates > 0),
        "frequency_mean": rates.mean(axis=-1),
        "frequency_zero": (rates == 0).mean(axis=-1),
    }
    return np.stack([found[name] for name in STATISTICS])


def _value_cv(values: NDArray[np.float64], exists: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Population sd / mean of all values of existing pages; [positions, units, ...] to [units]."""
    number = exists.sum() * values.shape[2]
    mean = values.sum(axis=(0, 2, 3)) / number
    apart = np.where(exists[:, None, None], values - mean[:, None, None], 0.0)
    variation: NDArray[np.float64] = np.sqrt(np.square(apart).sum(axis=(0, 2, 3)) / number) / mean
    return variation


def _peaks(
    values: NDArray[np.float64], exists: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean over existing pages of largest over mean value, and of largest over summed value."""
    units, features = values.shape[1:3]
    if features == 1:
        return np.full(units, np.nan), np.full(units, np.nan)
    sums = np.where(exists[:, None], values.sum(axis=2), 1.0)
    shares = (values.max(axis=2) / sums).sum(axis=(0, 2)) / exists.sum()
    return shares * features, shares


def zipf_slope(rates: NDArray[np.float64]) -> NDArray[np.float64]:
    """Minus the least-squares slope of ln(rate) on ln(rank) over positive rates, last axis.

    NaN with fewer than two (see `whencount.diagnostics.zipf_slope`).
    """
    falling = -np.sort(-rates, axis=-1)
    live = falling > 0
    number = live.sum(axis=-1)
    ranks = np.log(np.arange(1, rates.shape[-1] + 1, dtype=np.float64))
    logs = np.log(np.where(live, falling, 1.0))
    # From the first rate, so that equal rates have exactly slope 0.
    logs = np.where(live, logs - logs[..., :1], 0.0)
    centre = np.where(live, ranks, 0.0).sum(axis=-1) / np.maximum(number, 1)
    apart = np.where(live, ranks - centre[..., None], 0.0)
    slope = np.full(number.shape, np.nan)
    np.divide(
        -(apart * logs).sum(axis=-1), np.square(apart).sum(axis=-1), out=slope, where=number > 1
    )
    return slope + 0.0


def gini(mass: NDArray[np.float64]) -> NDArray[np.float64]:
    """Gini coefficient over the last axis (see `whencount.diagnostics.gini`)."""
    rising = np.sort(mass, axis=-1)
    size = mass.shape[-1]
    weights = 2 * np.arange(1, size + 1, dtype=np.float64) - size - 1
    found: NDArray[np.float64] = (rising @ weights) / (size * rising.sum(axis=-1))
    return found


def _top_shares(
    rates: NDArray[np.float64], mass: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Shares of summed rates and of mass that the most frequent 1 % of features have."""
    count = -(-rates.shape[-1] // 100)
    top = np.argsort(-rates, axis=-1, kind="stable")[..., :count]
    shares = []
    for amounts in (rates, mass):
        total = amounts.sum(axis=-1)
        share = np.full(total.shape, np.nan)
        most = np.take_along_axis(amounts, top, axis=-1).sum(axis=-1)
        np.divide(most, total, out=share, where=total > 0)
        shares.append(share)
    return shares[0], shares[1]


def _live_variance(idf: NDArray[np.float64], live: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Population variance of the IDF of features that enter at all; NaN without any."""
    number = live.sum(axis=-1)
    first = np.take_along_axis(idf, live.argmax(axis=-1)[..., None], axis=-1)
    apart = np.where(live, idf - first, 0.0)
    variance = np.full(number.shape, np.nan)
    mean = apart.sum(axis=-1) / np.maximum(number, 1)
    squares = np.where(live, np.square(apart - mean[..., None]), 0.0).sum(axis=-1)
    np.divide(squares, number, out=variance, where=number > 0)
    return variance
