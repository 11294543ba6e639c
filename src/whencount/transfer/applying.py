"""Applying frozen predictors to the rows of another setting: nothing is fitted here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from whencount.attribution import QUALITY_COLUMNS
from whencount.errors import InputError
from whencount.prediction.targets import targets_of
from whencount.transfer.freezing import Frozen
from whencount.transfer.predictors import Predictor, seen_of

if TYPE_CHECKING:
    import pandas as pd

ROW_KEYS: Mapping[str, Mapping[str, str]] = {
    "pages": {
        "model": "model",
        "task": "task",
        "context": "context",
        "budget": "budget",
        "variant": "variant",
        "k1": "k1",
        "b": "b",
    },
    "experts": {
        "model": "model",
        "task": "evaluation",
        "budget": "active",
        "variant": "variant",
        "k1": "k1",
        "b": "b",
    },
}
"""The columns that name a row here, and what each setting calls them; one that a setting lacks is
null. For experts the task is the evaluation and the budget the number of active experts."""

KEYS = ("setting", "model", "task", "context", "budget", "variant", "k1", "b")
PREDICTED_COLUMNS = (
    *KEYS,
    "target",
    "predictors",
    "observed",
    "predicted",
    "outside",
    "left_out",
)
_TYPES: Mapping[str, Any] = {"context": "Int64", "budget": "Int64", "k1": "float64", "b": "float64"}


def apply(frozen: Frozen, setting: str, rows: pd.DataFrame) -> pd.DataFrame:
    """What every frozen predictor says of every row of a setting.

    Args:
        frozen: predictors; none of them is fitted anew.
        setting: of the settings that were frozen for.
        rows: its rows.parquet. Outcomes are read for `observed` alone.

    Returns:
        The columns PREDICTED_COLUMNS, a line per predictor and row, in the order of the frozen
        predictors and of the keys. `left_out` says why a line takes no part in a score, "" where it
        does; `outside` whether a column lies beyond its range in retrieval.

    Raises:
        InputError: the setting was not frozen for, a key column is missing, a row stands twice, the
            rows hold no outcome, or a quality is not finite.
    """
    import pandas as pd

    if setting not in frozen.settings:
        raise InputError(
            f"predictors were frozen for {', '.join(frozen.settings) or 'no setting'}, not for"
            f" {setting}; freeze anew, before its outcomes exist, with {setting} in"
            " transfer.settings"
        )
    keys = _keys(setting, rows)
    order = keys.sort_values(list(KEYS), kind="stable").index
    rows, keys = rows.reset_index(drop=True).loc[order], keys.loc[order]
    _require_finite(setting, rows)
    targets, _ = targets_of(rows)
    seen = seen_of(rows, frozen.settings[setting])
    parts = []
    for predictor in frozen.predictors:
        if predictor.target not in targets:
            raise InputError(
                f"the rows of {setting} have no outcome for the target {predictor.target}; make"
                " them again"
            )
        outcome = targets[predictor.target]
        reasons = outcome.reason.copy()
        reasons[outcome.usable] = _missing(predictor, seen)[outcome.usable]
        parts.append(
            keys.assign(
                target=predictor.target,
                predictors=predictor.kind,
                observed=outcome.outcome,
                predicted=predictor.predict(seen),
                outside=predictor.outside(seen),
                left_out=reasons,
            )
        )
    if not parts:
        return pd.DataFrame(columns=list(PREDICTED_COLUMNS))
    return pd.concat(parts, ignore_index=True)[list(PREDICTED_COLUMNS)]


def _require_finite(setting: str, rows: pd.DataFrame) -> None:
    present = [name for name in QUALITY_COLUMNS if name in rows.columns]
    wrong = ~np.isfinite(rows[present].to_numpy(dtype=np.float64)).all(axis=1)
    if wrong.any():
        raise InputError(
            f"{int(wrong.sum())} of {len(rows)} rows of {setting} have a quality that is not a"
            " finite number; make the rows again"
        )


def _keys(setting: str, rows: pd.DataFrame) -> pd.DataFrame:
    import pandas as pd

    names = ROW_KEYS[setting]
    missing = [name for name in names.values() if name not in rows.columns]
    if missing:
        raise InputError(
            f"the rows of {setting} have no column {missing[0]}; a row is named by"
            f" {', '.join(names.values())}"
        )
    twice = rows.duplicated(list(names.values()))
    if twice.any():
        first = rows.loc[twice, list(names.values())].iloc[0].to_dict()
        raise InputError(
            f"{int(twice.sum())} rows of {setting} stand twice, the first {first}; keep one each"
        )
    frame = pd.DataFrame({"setting": setting}, index=range(len(rows)))
    for key in KEYS[1:]:
        frame[key] = rows[names[key]].to_numpy() if key in names else pd.NA
    return frame.astype({key: _TYPES.get(key, "str") for key in KEYS})


def _missing(predictor: Predictor, seen: pd.DataFrame) -> NDArray[np.object_]:
    """Why each row cannot be asked: the columns without a value there; "" where there are none."""
    absent = seen[list(predictor.columns)].isna().to_numpy()
    reasons = np.full(len(seen), "", dtype=object)
    names = np.array(predictor.columns, dtype=object)
    # Few patterns of missing columns occur, so each is put into words once.
    patterns, which = np.unique(absent, axis=0, return_inverse=True)
    for number, pattern in enumerate(patterns):
        if pattern.any():
            listed = list(names[pattern])
            shown = ", ".join(listed[:3]) + (
                f" and {len(listed) - 3} more" if len(listed) > 3 else ""
            )
            reasons[which.reshape(-1) == number] = f"no value of {shown}"
    return reasons
