"""The file of frozen predictors: JSON with a digest over all of it, no pickle."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whencount.errors import InputError
from whencount.files import atomic_file
from whencount.prediction.models import Ridge
from whencount.provenance.manifest import hash_of_json
from whencount.transfer.freezing import Criteria, Frozen
from whencount.transfer.predictors import Predictor

FORMAT = "whencount frozen predictors 1"
_CONTENT = ("retrieval", "settings", "criteria", "predictors")
_FIELDS = ("format", "frozen", "code", "rows", *_CONTENT, "digest")
_MOST_NAMED = 6


def content_hash(frozen: Frozen) -> str:
    """Hash of what decides a prediction or a verdict; equal for two equal freezes."""
    body = _body(frozen)
    return hash_of_json({key: body[key] for key in _CONTENT})


def digest_of(frozen: Frozen) -> str:
    """Hash of everything, as the file holds it."""
    return hash_of_json(_body(frozen))


def settle(new: Frozen, path: str | Path, outcomes: Sequence[Path]) -> Frozen:
    """Write what was frozen, unless what it speaks of was computed already.

    A file that stands there and would be the same stays as it is, whatever was computed since: its
    time is the time of the freeze.

    Args:
        new: what is to be written.
        path: of the file.
        outcomes: those that exist (`whencount.transfer.outcomes`), partial ones too.

    Returns:
        What the file holds.

    Raises:
        InputError: outcomes exist and nothing equal was frozen before; or the place cannot be
            written.
    """
    path = Path(path)
    state = "nothing was frozen before them"
    if path.exists():
        try:
            old = read_frozen(path)
        except InputError as error:
            state = f"{str(error).split(';')[0]}"
        else:
            if content_hash(old) == content_hash(new):
                os.utime(path)
                return old
            state = f"{path} froze other predictors ({_difference(old, new)})"
    if outcomes:
        shown = ", ".join(map(str, outcomes[:3]))
        more = f" and {len(outcomes) - 3} more" if len(outcomes) > 3 else ""
        noun = "outcome exists" if len(outcomes) == 1 else "outcomes exist"
        raise InputError(
            f"predictors are frozen before what they are asked for is computed, and {len(outcomes)}"
            f" {noun} already ({shown}{more}); {state}: remove what was computed"
            f" (rm -r {_folders(outcomes)}), then run again, and it is computed anew after the"
            " freeze"
        )
    write_frozen(new, path)
    return new


def _folders(outcomes: Sequence[Path]) -> str:
    """What to remove: the outcomes themselves, or patterns where they are many."""
    if len(outcomes) <= _MOST_NAMED:
        return " ".join(map(str, outcomes))
    return " ".join(sorted({f"{path.parent}/*.parquet" for path in outcomes}))


def _difference(old: Frozen, new: Frozen) -> str:
    before, now = _body(old), _body(new)
    changed = [key for key in _CONTENT if before[key] != now[key]]
    return f"{', '.join(changed)} changed"


def write_frozen(frozen: Frozen, path: str | Path) -> None:
    """Write a freeze as JSON, whole or not at all.

    Raises:
        InputError: the place cannot be written.
    """
    body = _body(frozen)
    text = json.dumps(body | {"digest": hash_of_json(body)}, indent=1, allow_nan=False)
    with atomic_file(path) as temporary:
        temporary.write_text(text + "\n", encoding="utf-8")


def read_frozen(path: str | Path) -> Frozen:
    """Read a freeze, and refuse one that is not as it was written.

    Raises:
        InputError: the file is missing, not JSON, of another format, or does not fit its digest.
    """
    path = Path(path)
    remedy = "restore it from where you keep it, or freeze anew before the outcomes exist"
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(
            f"{path} cannot be read ({error.strerror}); freeze the predictors first: whencount"
            " freeze"
        ) from error
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{path} holds no frozen predictors: not valid JSON ({error}); {remedy}"
        ) from None
    missing = [field for field in _FIELDS if not isinstance(body, dict) or field not in body]
    if missing or body["format"] != FORMAT:
        found = f"lacks {', '.join(missing)}" if missing else f"has the format {body['format']!r}"
        raise InputError(f"{path} holds no frozen predictors of this version ({found}); {remedy}")
    recorded = body.pop("digest")
    found = hash_of_json(body)
    if recorded != found:
        raise InputError(
            f"{path} was changed after the freeze: its digest is {str(recorded)[:16]} and its"
            f" content has {found[:16]}; {remedy}"
        )
    try:
        return _parsed(body)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{path} is damaged ({error!r}); {remedy}") from None


def _parsed(body: Mapping[str, Any]) -> Frozen:
    when = datetime.fromisoformat(body["frozen"])
    if when.tzinfo is None:
        raise ValueError(f"the time {body['frozen']!r} has no zone")
    return Frozen(
        frozen=when,
        code=dict(body["code"]),
        rows=dict(body["rows"]),
        retrieval=dict(body["retrieval"]),
        settings={str(key): str(value) for key, value in body["settings"].items()},
        criteria=Criteria(**body["criteria"]),
        predictors=tuple(_predictor(one) for one in body["predictors"]),
    )


def _body(frozen: Frozen) -> dict[str, Any]:
    """Everything but the digest, as JSON values."""
    criteria = frozen.criteria
    return {
        "format": FORMAT,
        "frozen": frozen.frozen.isoformat(timespec="seconds"),
        "code": dict(frozen.code),
        "rows": dict(frozen.rows),
        "retrieval": dict(frozen.retrieval),
        "settings": dict(frozen.settings),
        "criteria": {
            "sign_accuracy": float(criteria.sign_accuracy),
            "mae_ratio": float(criteria.mae_ratio),
            "draws": criteria.draws,
            "seed": criteria.seed,
        },
        "predictors": [_record(one) for one in frozen.predictors],
    }


def _record(predictor: Predictor) -> dict[str, Any]:
    ridge = predictor.ridge
    return {
        "target": predictor.target,
        "kind": predictor.kind,
        "columns": list(predictor.columns),
        "ridge": None
        if ridge is None
        else {
            "alpha": ridge.alpha,
            "centre": ridge.centre.tolist(),
            "scale": ridge.scale.tolist(),
            "coefficients": ridge.coefficients.tolist(),
            "intercept": ridge.intercept,
        },
        "lowest": _numbers(predictor.lowest),
        "highest": _numbers(predictor.highest),
        "rows": predictor.rows,
        "rmse": predictor.rmse,
        "majority_sign": predictor.majority_sign,
    }


def _predictor(record: Mapping[str, Any]) -> Predictor:
    columns = tuple(map(str, record["columns"]))
    ridge = record["ridge"]
    arrays = [_array(record[key], columns) for key in ("lowest", "highest")]
    return Predictor(
        target=str(record["target"]),
        kind=str(record["kind"]),
        columns=columns,
        ridge=None
        if ridge is None
        else Ridge(
            alpha=float(ridge["alpha"]),
            centre=_array(ridge["centre"], columns),
            scale=_array(ridge["scale"], columns),
            coefficients=_array(ridge["coefficients"], columns),
            intercept=float(ridge["intercept"]),
        ),
        lowest=arrays[0],
        highest=arrays[1],
        rows=int(record["rows"]),
        rmse=float(record["rmse"]),
        majority_sign=float(record["majority_sign"]),
    )


def _numbers(array: NDArray[np.float64]) -> list[float | None]:
    return [None if math.isnan(value) else value for value in array.tolist()]


def _array(values: Sequence[float | None], columns: Sequence[str]) -> NDArray[np.float64]:
    array = np.array([math.nan if value is None else float(value) for value in values])
    if array.shape != (len(columns),):
        raise ValueError(f"{len(columns)} columns and {array.size} numbers")
    return array
