"""Freezing: predictors, references and thresholds, before any outcome that they speak of.

What is fitted is what the predictor study fits (`whencount.prediction`): ridges on the primary
rows, the penalty chosen by leaving one corpus out. The thresholds come from the same ridges with
whole corpora held out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from whencount.errors import InputError
from whencount.transfer.predictors import (
    KINDS,
    SETTING_REFERENCES,
    Predictor,
    columns_of,
    seen_of,
)

if TYPE_CHECKING:
    import pandas as pd

    from whencount.prediction.axes import Design
    from whencount.prediction.targets import Target


@dataclass(frozen=True)
class Criteria:
    """When transfer holds, and how its intervals are drawn.

    Attributes:
        sign_accuracy: the least share of right signs.
        mae_ratio: the mean absolute error may be so many times the retrieval error.
        draws, seed: of the bootstrap.
    """

    sign_accuracy: float = 0.7
    mae_ratio: float = 1.5
    draws: int = 2_000
    seed: int = 0


@dataclass(frozen=True)
class Frozen:
    """What was frozen.

    Attributes:
        frozen: when, UTC.
        code: `version` of the package, `sources`, a hash of all of it.
        rows: of the retrieval rows: `sha256` of their table, `fitted` (how many are primary).
        retrieval: `family`, `collections` and `corpora` of those, and the `reference`.
        settings: the settings that may be asked about, and the reference of each.
        criteria: when transfer holds.
        predictors: one per target and kind.
    """

    frozen: datetime
    code: Mapping[str, Any]
    rows: Mapping[str, Any]
    retrieval: Mapping[str, Any]
    settings: Mapping[str, str]
    criteria: Criteria
    predictors: tuple[Predictor, ...]


def freeze(
    rows: pd.DataFrame,
    *,
    settings: Mapping[str, str] = SETTING_REFERENCES,
    family: str = "primary",
    collections: Sequence[str] | None = None,
    reference: str = "dense",
    criteria: Criteria | None = None,
    code: Mapping[str, Any] | None = None,
    rows_hash: str = "",
    now: datetime | None = None,
) -> Frozen:
    """Fit every predictor on retrieval rows, and find the errors that bound their own elsewhere.

    Args:
        rows: rows.parquet of a retrieval study.
        settings: setting to its own reference.
        family: the primary rows.
        collections: the ones that take part; None: all.
        reference: the one of retrieval whose pseudo-labels predictors are fitted on.
        criteria: the study's own where left out.
        code: what made it; this package where left out.
        rows_hash: SHA-256 of the table of rows.
        now: the time; the clock's where left out.

    Raises:
        InputError: the rows lack a column, are of a single corpus, or none is primary.
    """
    from threadpoolctl import threadpool_limits

    from whencount.naming import CELL_KEYS
    from whencount.prediction.axes import candidates, design
    from whencount.prediction.targets import TARGETS, targets_of

    needed = [*CELL_KEYS, "basis"]
    missing = [name for name in needed if name not in rows.columns]
    if missing:
        raise InputError(f"the rows have no column {missing[0]}; predictors need {needed}")
    rows = candidates(rows, collections).sort_values(list(CELL_KEYS), ignore_index=True)
    plan = design(rows, family)
    corpora = sorted(set(plan.corpus[plan.primary]))
    if len(corpora) < 2:
        raise InputError(
            f"the primary rows have one corpus, {corpora[0]}, and thresholds are errors on corpora"
            " held out; add a collection of another corpus, or write transfer: false"
        )
    targets, _ = targets_of(rows)
    seen = seen_of(rows, reference)
    absent = [name for name in seen.columns if seen.loc[plan.primary, name].isna().all()]
    if absent:
        raise InputError(
            f"the primary rows have no {absent[0]} (reference {reference!r}), so a predictor cannot"
            " be fitted; run the retrieval study anew, with that reference"
        )
    wanted = [target for target in TARGETS if target not in targets]
    if wanted:
        raise InputError(f"the rows have no target {wanted[0]}; run the retrieval study anew")
    predictors = []
    with threadpool_limits(limits=1):
        for target in TARGETS:
            for kind in KINDS:
                columns = columns_of(kind, target)
                if columns is not None:
                    predictors.append(_fit(target, kind, columns, seen, plan, targets[target]))
    primary = rows.iloc[plan.primary]
    return Frozen(
        frozen=(now or datetime.now(UTC)).astimezone(UTC).replace(microsecond=0),
        code=dict(code if code is not None else _code()),
        rows={"sha256": rows_hash, "primary": len(primary)},
        retrieval={
            "family": family,
            "collections": sorted(set(primary["collection"].astype(str))),
            "corpora": corpora,
            "reference": reference,
        },
        settings=dict(settings),
        criteria=criteria or Criteria(),
        predictors=tuple(predictors),
    )


def _code() -> dict[str, Any]:
    from whencount import __version__
    from whencount.provenance.sources import package_hash

    return {"version": __version__, "sources": package_hash()}


def _fit(
    target: str,
    kind: str,
    columns: tuple[str, ...],
    seen: pd.DataFrame,
    plan: Design,
    outcome: Target,
) -> Predictor:
    """Fit one predictor on all usable primary rows, and its error with whole corpora held out."""
    from whencount.prediction.models import fit_ridge
    from whencount.prediction.scores import majority_sign

    matrix = seen[list(columns)].to_numpy(dtype=np.float64)
    usable = outcome.usable
    fitted = bool(KINDS[kind].columns)
    if not fitted:
        usable = usable & np.isfinite(matrix[:, 0])
    primary = plan.primary[usable[plan.primary]]
    held = [fit for fit in plan.fits(usable) if fit.held[0].axis == "corpus"]
    if not held:
        raise InputError(
            f"the target {target} can be asked for on one corpus alone, and thresholds are errors"
            " on corpora held out; add a collection of another corpus, or write transfer: false"
        )
    ridge, errors = None, outcome.outcome[primary] - matrix[primary, 0]
    if fitted:
        ridge = fit_ridge(matrix[primary], outcome.outcome[primary], plan.corpus[primary])
        parts = []
        for fit in held:
            model = fit_ridge(matrix[fit.train], outcome.outcome[fit.train], fit.groups)
            there = fit.held[0].positions
            parts.append(model.predict(matrix[there]) - outcome.outcome[there])
        errors = np.concatenate(parts)
    lowest, highest = _range(matrix[primary])
    return Predictor(
        target,
        kind,
        columns,
        ridge,
        lowest,
        highest,
        len(primary),
        float(np.sqrt(np.mean(errors**2))),
        majority_sign(outcome.outcome[primary]),
    )


def _range(matrix: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Least and largest value of each column, NaN for one without any."""
    absent = np.isnan(matrix)
    lowest = np.where(absent, np.inf, matrix).min(axis=0)
    highest = np.where(absent, -np.inf, matrix).max(axis=0)
    empty = absent.all(axis=0)
    lowest[empty] = highest[empty] = np.nan
    return lowest, highest
