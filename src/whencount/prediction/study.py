"""The predictor study: every target from every tier by every model on every axis."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from whencount.errors import InputError
from whencount.naming import CELL_KEYS
from whencount.prediction.axes import AXES, Design, Fit, Held, candidates, design
from whencount.prediction.features import feature_tiers, pseudo_targets, references_of
from whencount.prediction.models import Model, fit_boosted, fit_ridge
from whencount.prediction.scores import SCORE_COLUMNS, majority_sign, scores
from whencount.prediction.targets import TARGETS, Target, targets_of
from whencount.progress import progress

if TYPE_CHECKING:
    import pandas as pd

MODELS = ("ridge", "boosted")
PREDICTOR_COLUMNS = (
    "target",
    "predictors",
    "model",
    "axis",
    "rows_fitted",
    "rows",
    *SCORE_COLUMNS,
    "alpha",
    "left_out",
)
PREDICTION_COLUMNS = (
    *CELL_KEYS,
    "target",
    "predictors",
    "model",
    "axis",
    "fold",
    "observed",
    "predicted",
)


@dataclass(frozen=True)
class PredictionResult:
    """What the predictor study gives; docs/tables.md has the columns.

    Attributes:
        predictors: a line per target, predictors, model and axis, with its scores.
        predictions: a line per predicted row of each of these.
        left_out: a line per target and row that was left out, with the reason.
        notes: a sentence per tier, target or axis that the rows cannot have, and per thing to know.
    """

    predictors: pd.DataFrame
    predictions: pd.DataFrame
    left_out: pd.DataFrame
    notes: tuple[str, ...]


def predict(
    rows: pd.DataFrame,
    *,
    primary_family: str = "primary",
    seed: int,
    collections: Sequence[str] | None = None,
    models: Sequence[str] = MODELS,
) -> PredictionResult:
    """Predict every target from label-free features, and score it on rows not fitted on.

    Controls and shared dictionaries take no part. A fit never sees a label of the rows that it
    predicts, and scaler and penalty are of its training rows alone. One thread: sums, and with them
    the bytes of the tables, do not depend on how many there are.

    Args:
        rows: as rows.parquet. Columns for which there is a tier may lack: the tier is left out.
        primary_family: the family of the primary rows.
        seed: of the boosted trees.
        collections: the ones that take part; None: all.
        models: of MODELS; the unfitted estimate is always there.

    Raises:
        InputError: a key column is missing, a row stands twice, or there are no primary rows.
    """
    from threadpoolctl import threadpool_limits

    rows = _sorted(candidates(_with_keys(rows), collections))
    plan = design(rows, primary_family)
    targets, target_notes = targets_of(rows)
    tiers = feature_tiers(rows)
    table = _Table(rows, plan)
    work = [(target, tier) for target in targets for tier in tiers.features]
    for name, tier in progress(work, len(work), "fitting predictors", "set") if work else ():
        matrix = tiers.features[tier].to_numpy(dtype=np.float64)
        fits = plan.fits(targets[name].usable)
        for model in models:
            with threadpool_limits(limits=1):
                blocks = _fitted(fits, model, matrix, targets[name].outcome, seed)
            table.add(name, targets[name], tier, model, blocks)
    for reference in references_of(rows):
        estimates = pseudo_targets(rows, reference)
        for name in targets:
            if TARGETS[name] in estimates.columns:
                values = estimates[TARGETS[name]].to_numpy(dtype=np.float64)
                blocks = _unfitted(plan, targets[name], values)
                table.add(name, targets[name], f"pseudo_{reference}", "unfitted", blocks)
    left_out = _left_out(rows, targets)
    notes = (*tiers.notes, *target_notes, *plan.notes, *_counted(left_out, len(rows)))
    return PredictionResult(*table.frames(), left_out, notes)


def nothing_predicted(reason: str) -> PredictionResult:
    """Tables without a line, and why: for a study that has no row to fit on."""
    import pandas as pd

    return PredictionResult(
        pd.DataFrame(columns=list(PREDICTOR_COLUMNS)),
        pd.DataFrame(columns=list(PREDICTION_COLUMNS)),
        _left_out(pd.DataFrame(columns=list(CELL_KEYS)), {}),
        (reason,),
    )


@dataclass(frozen=True)
class _Block:
    """What one model says of the rows that one fold holds out.

    Attributes:
        held: the rows.
        predicted: shape (rows held,).
        fitted: positions of all rows that it was fitted on.
        alpha: the penalty; None without one.
    """

    held: Held
    predicted: NDArray[np.float64]
    fitted: NDArray[np.intp]
    alpha: float | None = None


def _fitted(
    fits: Sequence[Fit],
    model: str,
    matrix: NDArray[np.float64],
    outcome: NDArray[np.float64],
    seed: int,
) -> list[_Block]:
    blocks = []
    for fit in fits:
        # Only what stands in these three arrays reaches a fit.
        features, target, groups = matrix[fit.train], outcome[fit.train], fit.groups
        fitted: Model = (
            fit_ridge(features, target, groups)
            if model == "ridge"
            else fit_boosted(features, target, seed=seed)
        )
        for held in fit.held:
            predicted = fitted.predict(matrix[held.positions])
            blocks.append(_Block(held, predicted, fit.train, fitted.alpha))
    return blocks


def _unfitted(plan: Design, target: Target, estimate: NDArray[np.float64]) -> list[_Block]:
    """The pseudo-label estimate itself; rows without one are left out."""
    usable = target.usable & np.isfinite(estimate)
    primary = plan.primary[target.usable[plan.primary]]
    blocks = []
    for axis in ("primary", *plan.others):
        positions = plan.rows_of(axis)
        positions = positions[usable[positions]]
        seen = primary if axis != "primary" else primary[:0]
        if len(positions):
            blocks.append(_Block(Held(axis, "primary", positions), estimate[positions], seen))
    return blocks


class _Table:
    """Collects the lines of both tables."""

    def __init__(self, rows: pd.DataFrame, plan: Design) -> None:
        self._rows = rows
        self._plan = plan
        self._predictors: list[dict[str, object]] = []
        self._positions: list[NDArray[np.intp]] = []
        self._columns: dict[str, list[NDArray[Any]]] = defaultdict(list)

    def add(
        self, name: str, target: Target, predictors: str, model: str, blocks: Sequence[_Block]
    ) -> None:
        """Score the blocks of one target, predictors and model, axis by axis."""
        by_axis: dict[str, list[_Block]] = defaultdict(list)
        for block in blocks:
            by_axis[block.held.axis].append(block)
        for axis in AXES:
            if axis not in by_axis:
                continue
            parts = by_axis[axis]
            fitted = np.unique(np.concatenate([part.fitted for part in parts]))
            majority = np.concatenate(
                [
                    np.full(len(part.predicted), majority_sign(target.outcome[part.fitted]))
                    for part in parts
                ]
            )
            positions = np.concatenate([part.held.positions for part in parts])
            observed = target.outcome[positions]
            predicted = np.concatenate([part.predicted for part in parts])
            score = scores(observed, predicted, majority if len(fitted) else None)
            alphas = [f"{part.alpha:g}" for part in parts if part.alpha is not None]
            named = {"target": name, "predictors": predictors, "model": model, "axis": axis}
            counts = {
                "rows_fitted": len(fitted) * (model != "unfitted"),
                "rows": len(positions),
                "alpha": " ".join(alphas),
                "left_out": len(self._plan.rows_of(axis)) - len(positions),
            }
            self._predictors.append({**named, **counts, **score})
            self._positions.append(positions)
            for column, value in named.items():
                self._columns[column].append(np.full(len(positions), value, dtype=object))
            self._columns["fold"] += [
                np.full(len(part.predicted), part.held.fold, dtype=object) for part in parts
            ]
            self._columns["observed"].append(observed)
            self._columns["predicted"].append(predicted)

    def frames(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """predictors and predictions."""
        import pandas as pd

        predictors = pd.DataFrame(self._predictors, columns=list(PREDICTOR_COLUMNS))
        if not self._positions:
            return predictors, pd.DataFrame(columns=list(PREDICTION_COLUMNS))
        keys = self._rows[list(CELL_KEYS)].iloc[np.concatenate(self._positions)]
        columns = {name: np.concatenate(parts) for name, parts in self._columns.items()}
        predictions = keys.reset_index(drop=True).assign(**columns)
        return predictors, predictions[list(PREDICTION_COLUMNS)].infer_objects()


def _with_keys(rows: pd.DataFrame) -> pd.DataFrame:
    needed = [*CELL_KEYS, "basis"]
    missing = [name for name in needed if name not in rows.columns]
    if missing:
        raise InputError(f"the rows have no column {missing[0]}; predictors need {needed}")
    twice = rows.duplicated(list(CELL_KEYS))
    if twice.any():
        first = rows.loc[twice, list(CELL_KEYS)].iloc[0].to_dict()
        raise InputError(f"{int(twice.sum())} rows stand twice, the first {first}; keep one each")
    return rows


def _sorted(rows: pd.DataFrame) -> pd.DataFrame:
    """In the order of the keys, so that the order of the input changes no bit of a sum."""
    return rows.sort_values(list(CELL_KEYS), ignore_index=True)


def _left_out(rows: pd.DataFrame, targets: dict[str, Target]) -> pd.DataFrame:
    import pandas as pd

    parts = [
        rows.loc[~target.usable, list(CELL_KEYS)].assign(
            target=name, reason=target.reason[~target.usable]
        )
        for name, target in targets.items()
    ]
    columns = [*CELL_KEYS, "target", "reason"]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)


def _counted(left_out: pd.DataFrame, rows: int) -> list[str]:
    """How many rows each target leaves out, and why."""
    lines = []
    for (target, reason), part in left_out.groupby(["target", "reason"], sort=True):
        lines.append(f"Target {target}: {len(part)} of {rows} rows are left out, {reason}.")
    return lines
