"""Predicting without labels when the three switches help (study, section 7)."""

from __future__ import annotations

from whencount.prediction.axes import candidates
from whencount.prediction.decision import DECISION_COLUMNS, decide, decisions
from whencount.prediction.features import feature_tiers, pseudo_targets, references_of
from whencount.prediction.models import (
    ALPHAS,
    DEFAULT_ALPHA,
    Boosted,
    Ridge,
    fit_boosted,
    fit_ridge,
)
from whencount.prediction.scores import r_squared, spearman
from whencount.prediction.study import (
    PREDICTION_COLUMNS,
    PREDICTOR_COLUMNS,
    PredictionResult,
    nothing_predicted,
    predict,
)
from whencount.prediction.targets import TARGETS

__all__ = [
    "ALPHAS",
    "DECISION_COLUMNS",
    "DEFAULT_ALPHA",
    "PREDICTION_COLUMNS",
    "PREDICTOR_COLUMNS",
    "TARGETS",
    "Boosted",
    "PredictionResult",
    "Ridge",
    "candidates",
    "decide",
    "decisions",
    "feature_tiers",
    "fit_boosted",
    "fit_ridge",
    "nothing_predicted",
    "predict",
    "pseudo_targets",
    "r_squared",
    "references_of",
    "spearman",
]
