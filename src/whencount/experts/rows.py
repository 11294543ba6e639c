"""The rows of expert routing: one job evaluates one model on one evaluation under every rule."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from whencount import attribution
from whencount.attribution import QUALITY_COLUMNS
from whencount.errors import InputError
from whencount.experts.evaluation import Evaluation
from whencount.experts.label_free import NamedRule, Prepared, RoutingStudy, kept_table
from whencount.experts.routers import find_routers
from whencount.experts.routing import routed
from whencount.experts.rules import CONFIGURATION_RULES
from whencount.significance import FEWEST_QUERIES, resamples

if TYPE_CHECKING:
    import pandas as pd

    from whencount.language_models import LanguageModel

DRAWS = 2_000
_TAIL = 2.5
KINDS = ("rows", "per_document", "baselines")
"""The tables of a job."""
TRAINING_COLUMNS = ("model", "step", "tokens", "loss", "balance", "validation")


def evaluate(
    model: LanguageModel,
    name: str,
    evaluation: Evaluation,
    evaluation_name: str,
    prepared: Prepared,
    study: RoutingStudy,
    checkpoints: Path | None = None,
) -> dict[str, pd.DataFrame]:
    """Evaluate a model under every rule; docs/tables.md has the columns.

    Args:
        model: frozen.
        name: what the configuration calls it.
        evaluation: what is measured.
        evaluation_name: what the configuration calls that.
        prepared: of this model, at the same number of active experts.
        study: what is compared.
        checkpoints: a folder that keeps the results of finished rules; None keeps none.

    Returns:
        The tables rows, per_document and baselines.

    Raises:
        InputError: a likelihood is not finite, data is missing, or what was prepared is of another
            model or number of active experts.
    """
    import pandas as pd

    calibration = prepared.calibration
    routers = find_routers(model.model)
    found = (calibration.active, *calibration.routed.shape)
    wanted = (study.active, len(routers), routers[0].experts)
    if found != wanted:
        raise InputError(
            f"the calibration is of (active experts, layers, experts) {found}, and {name} is asked"
            f" for {wanted}; calibrate it anew"
        )
    rules = [
        *study.configurations(calibration),
        *study.others(calibration, prepared.preserved),
    ]
    keys: dict[str, Any] = {"model": name, "evaluation": evaluation_name, "active": study.active}
    parts, baselines = [], []
    for one in rules:
        file = f"{one.name}.{one.variant or 'comparison'}.parquet"
        measure = partial(_measured, model, evaluation, one, study)
        units = kept_table(checkpoints and checkpoints / file, measure)
        names = keys | {"variant": one.variant, "rule": one.name}
        part = units.copy()
        for place, (column, value) in enumerate(names.items()):
            part.insert(place, column, value)
        parts.append(part)
        baselines.append(names | summary(units, f"{name} {evaluation_name}", study.seed))
    table = pd.DataFrame(baselines)
    rows = [_row(keys, variant, table, prepared, study) for variant in study.variants]
    return {
        "rows": with_targets(pd.DataFrame(rows)),
        "per_document": pd.concat(parts, ignore_index=True),
        "baselines": table,
    }


def summary(units: pd.DataFrame, label: str, seed: int) -> dict[str, Any]:
    """The quality of a rule over documents or questions, with its interval.

    Quality is minus the NLL in nats per token over all tokens, or the accuracy over all questions.
    The interval resamples documents or questions (2,000 draws, percentiles, 95 %); with fewer than
    five it is the quality itself. nats_per_word and bits_per_byte count words and bytes of the
    stored text and are another measure than nats per token; NaN for questions.

    Args:
        units: columns tokens, nll, accuracy, words, bytes.
        label: what the resampling is of: the same label and seed give the same draws, so that
            rules are compared on equal draws.
        seed: of it.

    Raises:
        InputError: there is no token in any document.
    """
    weight = units["tokens"].to_numpy(dtype=np.float64)
    if not weight.sum():
        raise InputError(f"{label}: no document has a token to predict; give other texts")
    questions = bool(units["nll"].isna().all())
    value = units["accuracy" if questions else "nll"].to_numpy(dtype=np.float64)
    sums = value * weight if questions else -value * weight
    quality = float(sums.sum() / weight.sum())
    low, high = _interval(sums, weight, label, seed) or (quality, quality)
    words, size = float(units["words"].sum()), float(units["bytes"].sum())
    return {
        "quality": quality,
        "low": low,
        "high": high,
        "documents": len(units),
        "tokens": int(weight.sum()),
        "nats_per_word": math.nan if questions or not words else -float(sums.sum()) / words,
        "bits_per_byte": math.nan if questions else -float(sums.sum()) / size / math.log(2),
    }


def with_targets(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows with the targets behind q111: gain, Shapley values, margin and the others."""
    import pandas as pd

    place = int(list(rows.columns).index(QUALITY_COLUMNS[-1]))
    targets = attribution.targets(rows)
    return pd.concat([rows.iloc[:, : place + 1], targets, rows.iloc[:, place + 1 :]], axis=1)


def collect(
    jobs: Mapping[str, Sequence[pd.DataFrame]],
    routing: Iterable[tuple[str, int, pd.DataFrame]],
    training: Iterable[tuple[str, pd.DataFrame]],
) -> dict[str, pd.DataFrame]:
    """The tables of a whole study out of those of its jobs.

    Args:
        jobs: rows, per_document and baselines of every job, in the study's order.
        routing: model, active, and the routing of each calibration.
        training: model and training table of each trained model; there may be none.

    Returns:
        The tables rows, per_document, baselines, routing and training.
    """
    import pandas as pd

    tables = {kind: pd.concat(list(jobs[kind]), ignore_index=True) for kind in KINDS}
    parts = []
    for model, active, part in routing:
        shares = part.copy()
        shares.insert(0, "model", model)
        shares.insert(1, "active", active)
        parts.append(shares)
    tables["routing"] = pd.concat(parts, ignore_index=True)
    curves = [part.assign(model=model)[list(TRAINING_COLUMNS)] for model, part in training]
    empty = pd.DataFrame({column: pd.Series(dtype="float64") for column in TRAINING_COLUMNS})
    empty = empty.astype({"model": "str", "step": "int64", "tokens": "int64"})
    tables["training"] = pd.concat(curves, ignore_index=True) if curves else empty
    return tables


def _measured(
    model: LanguageModel, evaluation: Evaluation, one: NamedRule, study: RoutingStudy
) -> pd.DataFrame:
    with routed(model.model, one.rule, study.active):
        return evaluation.measure(model, f"measure {one.name} {one.variant}".strip())


def _row(
    keys: Mapping[str, Any],
    variant: str,
    baselines: pd.DataFrame,
    prepared: Prepared,
    study: RoutingStudy,
) -> dict[str, Any]:
    found = baselines[baselines["variant"] == variant].set_index("rule")
    seen = prepared.statistics[prepared.statistics["variant"] == variant].iloc[0]
    return {
        **keys,
        "variant": variant,
        "k1": study.parameters.k1,
        "b": study.parameters.b,
        "documents": int(found["documents"].iloc[0]),
        **{
            column: float(found["quality"][name])
            for name, column in zip(CONFIGURATION_RULES, QUALITY_COLUMNS, strict=True)
        },
        **{str(column): float(seen[column]) for column in seen.index if column != "variant"},
    }


def _interval(
    sums: NDArray[np.float64], weight: NDArray[np.float64], label: str, seed: int
) -> tuple[float, float] | None:
    if len(sums) < FEWEST_QUERIES:
        return None
    drawn = np.concatenate(
        [
            (counts @ sums) / (counts @ weight)
            for counts in resamples(len(sums), DRAWS, collection=label, seed=seed)
        ]
    )
    low, high = np.percentile(drawn, [_TAIL, 100 - _TAIL])
    return float(low), float(high)
