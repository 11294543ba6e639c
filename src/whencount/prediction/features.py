"""What predictors may see, in cumulative tiers, never a label (study, section 7)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from whencount import attribution
from whencount.diagnostics import PRIMARY, TIER_1, TIER_2
from whencount.errors import InputError
from whencount.ranking_diagnostics import TIER_3, pseudo_columns
from whencount.scoring import SWITCHES

if TYPE_CHECKING:
    import pandas as pd

REFERENCES = ("bm25", "dense", "rrf")
"""The references of the study, in the order of tables; others follow by name."""


@dataclass(frozen=True)
class Tiers:
    """The features of each tier that a table of rows can give.

    Attributes:
        features: tier name to a frame of float64 with the index of the rows; NaN where missing.
        notes: a sentence per tier that is left out, and per tier with missing values.
    """

    features: dict[str, pd.DataFrame]
    notes: tuple[str, ...]


def references_of(rows: pd.DataFrame) -> list[str]:
    """The references whose eight pseudo-label columns stand in the rows."""
    pattern = re.compile(r"pseudo_(.+)_000")
    found = {match[1] for match in map(pattern.fullmatch, map(str, rows.columns)) if match}
    complete = {name for name in found if set(pseudo_columns(name)) <= set(rows.columns)}
    return [name for name in REFERENCES if name in complete] + sorted(complete - set(REFERENCES))


def pseudo_targets(rows: pd.DataFrame, reference: str) -> pd.DataFrame:
    """The targets as the top documents of a reference would have them: phi~, G~, Q~000, Q~111.

    Args:
        rows: with the eight columns `pseudo_REFERENCE_000` ... `pseudo_REFERENCE_111`.
        reference: `bm25` say.

    Returns:
        float64 columns shapley_idf, shapley_saturation, shapley_length, collection_gain, q000,
        q111, with the index of `rows`; NaN where a pseudo-label is missing.

    Raises:
        InputError: the rows lack the columns.
    """
    import pandas as pd

    columns = list(pseudo_columns(reference))
    missing = [name for name in columns if name not in rows.columns]
    if missing:
        raise InputError(
            f"the rows have no column {missing[0]}; run the study with the reference"
            f" {reference!r}, or choose another"
        )
    quality = rows[columns].to_numpy(dtype=np.float64)
    targets = {
        f"shapley_{switch}": value
        for switch, value in zip(SWITCHES, attribution.shapley(quality).T, strict=True)
    }
    targets["collection_gain"] = attribution.collection_gain(quality)
    return pd.DataFrame(targets | {"q000": quality[:, 0], "q111": quality[:, 7]}, index=rows.index)


def feature_tiers(rows: pd.DataFrame) -> Tiers:
    """The features of every tier whose columns the rows have.

    registered: the three frequency diagnostics fixed beforehand; frequency: all of tier 1; index:
    and tier 2; rankings: and disruption, score spread and score drop; pseudo_REFERENCE: and the
    pseudo-labels of one reference (`pseudo_targets`). A tier that lacks any of its columns is left
    out and named.
    """
    import pandas as pd

    plain: dict[str, Sequence[str]] = {
        "registered": PRIMARY,
        "frequency": TIER_1,
        "index": (*TIER_1, *TIER_2),
        "rankings": (*TIER_1, *TIER_2, *TIER_3),
    }
    features: dict[str, pd.DataFrame] = {}
    notes = []
    for tier, columns in plain.items():
        missing = [name for name in columns if name not in rows.columns]
        if missing:
            notes.append(f"Predictors {tier} are left out: {_columns(missing)}.")
        else:
            features[tier] = rows[list(columns)].astype(np.float64)
    references = references_of(rows)
    if not references:
        notes.append("Predictors from pseudo-labels are left out: the rows have no pseudo-labels.")
    for reference in references:
        if "rankings" not in features:
            notes.append(f"Predictors pseudo_{reference} are left out: they include rankings.")
            continue
        pseudo = pseudo_targets(rows, reference).add_prefix(f"pseudo_{reference}_")
        features[f"pseudo_{reference}"] = pd.concat([features["rankings"], pseudo], axis=1)
    for tier, frame in features.items():
        incomplete = int(frame.isna().any(axis=1).sum())
        if incomplete:
            notes.append(
                f"Predictors {tier}: {incomplete} of {len(frame)} rows lack a feature; ridge puts"
                " the mean of its training rows there, boosting treats it as missing."
            )
    return Tiers(features, tuple(notes))


def _columns(names: Sequence[str]) -> str:
    listed = ", ".join(names[:3]) + (" and others" if len(names) > 3 else "")
    return f"the rows have no column {listed}"
