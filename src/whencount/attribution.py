"""What each switch contributes: targets out of the quality of the eight configurations.

Qualities stand on the last axis in the order 000, 001, ..., 111 (IDF, saturation, length); see
`whencount.scoring.CONFIGURATIONS`. Definitions: the study, section 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whencount.errors import InputError
from whencount.scoring import CONFIGURATIONS, SWITCHES

if TYPE_CHECKING:
    import pandas as pd

UNDEFINED_BELOW = 1e-12
"""Up to this standard deviation across the configurations the margin is undefined."""

QUALITY_COLUMNS = tuple(f"q{configuration}" for configuration in CONFIGURATIONS)
TARGET_COLUMNS = (
    "gain",
    *(f"shapley_{switch}" for switch in SWITCHES),
    "margin",
    "collection_gain",
    *(f"main_effect_{switch}" for switch in SWITCHES),
)

# For each switch the four pairs (off, on) that differ only in it: both others off, one on, the
# other on, both on. The number of a configuration is its bit string read as binary.
_BITS = {switch: 4 >> place for place, switch in enumerate(SWITCHES)}


def switch_pairs(switch: str) -> list[tuple[int, int]]:
    """The four pairs (off, on) of configuration numbers that differ only in `switch`.

    In the order: both other switches off, the one or the other on, both on.
    """
    bit = _BITS[switch]
    return [(number, number | bit) for number in range(8) if not number & bit]


def _eight(quality: ArrayLike) -> NDArray[np.float64]:
    array = np.asarray(quality, dtype=np.float64)
    if array.ndim == 0 or array.shape[-1] != len(CONFIGURATIONS):
        raise ValueError(f"shape {array.shape}: the last axis must hold eight qualities")
    return array


def gain(quality: ArrayLike) -> NDArray[np.float64]:
    """`Q111 - Q000`; shape (..., 8) to (...)."""
    array = _eight(quality)
    return np.asarray(array[..., 7] - array[..., 0])


def collection_gain(quality: ArrayLike) -> NDArray[np.float64]:
    """`G = Q111 - Q010`, what the two collection statistics add; shape (..., 8) to (...)."""
    array = _eight(quality)
    return np.asarray(array[..., 7] - array[..., 2])


def spread(quality: ArrayLike) -> NDArray[np.float64]:
    """Population standard deviation across the eight; shape (..., 8) to (...)."""
    return np.asarray(_eight(quality).std(axis=-1))


def margin(quality: ArrayLike) -> NDArray[np.float64]:
    """`(Q111 - Q000) / sd(Q000..Q111)`, population sd; shape (..., 8) to (...).

    NaN where undefined: the standard deviation is at most 1e-12, so nothing separates the
    configurations. Tables hold a null there; `summary` prints 0.0.
    """
    array = _eight(quality)
    deviation = spread(array)
    result = np.full(deviation.shape, np.nan)
    # Not `not <=`: a NaN quality must give a NaN margin.
    np.divide(gain(array), deviation, out=result, where=deviation > UNDEFINED_BELOW)
    return result


def shapley(quality: ArrayLike) -> NDArray[np.float64]:
    """Shapley values of the three switches; shape (..., 8) to (..., 3), in the order of SWITCHES.

    `phi_s` is the mean, weighted 1/3, 1/6, 1/6, 1/3, of what switching s on adds with none, one or
    the other, or both of the other switches on (Shapley, 1953). The three sum to the gain. A switch
    that changes no quality has exactly 0.0.
    """
    array = _eight(quality)
    values = []
    for switch in SWITCHES:
        none, one, other, both = (
            array[..., on] - array[..., off] for off, on in switch_pairs(switch)
        )
        values.append(none / 3 + one / 6 + other / 6 + both / 3)
    return np.stack(values, axis=-1)


def main_effect(quality: ArrayLike) -> NDArray[np.float64]:
    """Mean of the four qualities with a switch on minus mean of the four with it off.

    Shape (..., 8) to (..., 3), in the order of SWITCHES; a switch that changes no quality has
    exactly 0.0.
    """
    array = _eight(quality)
    values = []
    for switch in SWITCHES:
        none, one, other, both = (
            array[..., on] - array[..., off] for off, on in switch_pairs(switch)
        )
        values.append((none + one + other + both) / 4)
    return np.stack(values, axis=-1)


def targets(frame: pd.DataFrame) -> pd.DataFrame:
    """All targets of rows that have the columns q000..q111.

    Returns:
        A frame with the index of `frame` and the columns TARGET_COLUMNS, float64; `margin` is NaN
        where undefined.
    """
    import pandas as pd

    quality = frame[list(QUALITY_COLUMNS)].to_numpy(dtype=np.float64)
    columns = np.column_stack(
        [
            gain(quality),
            shapley(quality),
            margin(quality),
            collection_gain(quality),
            main_effect(quality),
        ]
    )
    return pd.DataFrame(columns, index=frame.index, columns=list(TARGET_COLUMNS))


def summary(quality: ArrayLike) -> dict[str, Any]:
    """One decomposition as a JSON object, the form that `whencount decompose --json` prints.

    A margin that is undefined is given as 0.0 here: nothing separates the configurations.

    Args:
        quality: shape (8,).
    """
    array = _eight(quality)
    value = float(margin(array))
    return {
        "quality": {
            str(configuration): float(one)
            for configuration, one in zip(CONFIGURATIONS, array, strict=True)
        },
        "gain": float(gain(array)),
        "shapley": dict(zip(SWITCHES, shapley(array).tolist(), strict=True)),
        "margin": 0.0 if np.isnan(value) else value,
        "collection_gain": float(collection_gain(array)),
        "main_effect": dict(zip(SWITCHES, main_effect(array).tolist(), strict=True)),
    }


def shares(
    rows: pd.DataFrame,
    *,
    draws: int = 2_000,
    seed: int = 0,
    level: float = 0.95,
    group: str = "collection",
    parts: Sequence[str] = SWITCHES,
) -> pd.DataFrame:
    """Share of the gain per switch over a set of rows, with an interval.

    The share of s is `sum phi_s / sum (Q111 - Q000)`. The interval resamples whole collections with
    replacement and takes percentiles of the share.

    Args:
        rows: with columns `group`, gain, shapley_idf, shapley_saturation, shapley_length.
        draws: resamples.
        seed: of the resampling.
        level: probability that the interval covers.
        group: the column that names what is resampled whole.
        parts: the switches wanted; several joined by "+" are summed, `idf+length` say.

    Returns:
        A frame with the index `parts` and the columns share, low, high; NaN where the gain of
        `rows` sums to 0. With one collection the interval is the share itself.

    Raises:
        InputError: there are no rows, or a gain or Shapley value is missing.
    """
    import pandas as pd

    columns = ["gain", *(f"shapley_{switch}" for switch in SWITCHES)]
    if len(rows) == 0:
        raise InputError("no rows to take shares of; check the selection")
    missing = rows[columns].isna().any(axis=1)
    if missing.any():
        raise InputError(
            f"{int(missing.sum())} of {len(rows)} rows have no gain or Shapley value;"
            " leave them out before taking shares"
        )
    sums = rows.groupby(group, sort=True)[columns].sum().to_numpy(dtype=np.float64)
    phi = np.column_stack(
        [sum(sums[:, 1 + SWITCHES.index(switch)] for switch in part.split("+")) for part in parts]
    )
    random = np.random.default_rng(seed)
    counts = random.multinomial(len(sums), np.full(len(sums), 1 / len(sums)), size=draws)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = phi.sum(axis=0) / sums[:, 0].sum()
        resampled = (counts @ phi) / (counts @ sums[:, :1])
    share[~np.isfinite(share)] = np.nan
    tail = 100 * (1 - level) / 2
    # A resample whose gain is exactly 0 has no share; it is left out of the percentiles.
    defined = resampled[np.isfinite(resampled).all(axis=1)]
    low, high = (
        np.percentile(defined, [tail, 100 - tail], axis=0)
        if len(defined)
        else np.full((2, len(parts)), np.nan)
    )
    return pd.DataFrame({"share": share, "low": low, "high": high}, index=list(parts))


def share_table(rows: pd.DataFrame, *, draws: int = 2_000, seed: int = 0) -> pd.DataFrame:
    """Shares of the gain over all rows and within every collection, granularity and basis.

    Returns:
        One line per group and switch: scope ("all", "collection", "granularity" or "basis"), value
        (the group's name, "" for all), part (the switch), share, low, high (`shares`; resampling
        collections, so within one collection the interval is the share itself), rows, gain (their
        sum).

    Raises:
        InputError: as `shares`.
    """
    import pandas as pd

    groups = [("all", "", rows)]
    for scope in ("collection", "granularity", "basis"):
        groups += [(scope, str(value), part) for value, part in rows.groupby(scope, sort=True)]
    lines = []
    for scope, value, part in groups:
        table = shares(part, draws=draws, seed=seed).rename_axis("part").reset_index()
        table.insert(0, "value", value)
        table.insert(0, "scope", scope)
        lines.append(table.assign(rows=len(part), gain=float(part["gain"].sum())))
    return pd.concat(lines, ignore_index=True)
