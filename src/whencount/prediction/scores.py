"""How good predictions are, and what a constant would have scored (study, section 7)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

SCORE_COLUMNS = (
    "r2",
    "spearman",
    "sign_accuracy",
    "majority_accuracy",
    "always_accuracy",
    "never_accuracy",
    "mae",
    "rmse",
)


def scores(
    observed: NDArray[np.float64],
    predicted: NDArray[np.float64],
    majority: NDArray[np.float64] | None,
) -> dict[str, float]:
    """Every score of one set of predictions, pooled over folds.

    The sign of 0 is a class of its own: an outcome of exactly 0 is right only if exactly 0 was
    predicted. `always` says + everywhere, `never` says -.

    Args:
        observed: outcomes, shape (n,), n at least 1.
        predicted: shape (n,).
        majority: the majority sign of the rows each prediction was fitted on, shape (n,); None if
            it was fitted on none.

    Returns:
        The columns SCORE_COLUMNS; NaN where a score is undefined.
    """
    sign = np.sign(observed)
    error = predicted - observed
    return {
        "r2": r_squared(observed, predicted),
        "spearman": spearman(observed, predicted),
        "sign_accuracy": float((np.sign(predicted) == sign).mean()),
        "majority_accuracy": float("nan") if majority is None else float((majority == sign).mean()),
        "always_accuracy": float((sign > 0).mean()),
        "never_accuracy": float((sign < 0).mean()),
        "mae": float(np.abs(error).mean()),
        "rmse": float(np.sqrt((error**2).mean())),
    }


def r_squared(observed: ArrayLike, predicted: ArrayLike) -> float:
    """Held-out R²: 1 - squared error of the predictions / squared error of a constant.

    The constant is the mean of the held-out outcomes themselves, over all folds together, which no
    predictor knows: 0 is as good as knowing it, below 0 is worse. NaN where all outcomes are equal.
    """
    outcome, prediction = np.asarray(observed, float), np.asarray(predicted, float)
    if np.ptp(outcome) == 0:
        return float("nan")
    return float(1 - ((outcome - prediction) ** 2).sum() / ((outcome - outcome.mean()) ** 2).sum())


def spearman(observed: ArrayLike, predicted: ArrayLike) -> float:
    """Spearman's rank correlation, ties at their mean rank; NaN where either side is constant."""
    from scipy.stats import rankdata

    outcome, prediction = np.asarray(observed, float), np.asarray(predicted, float)
    if np.ptp(outcome) == 0 or np.ptp(prediction) == 0:
        return float("nan")
    return float(np.corrcoef(rankdata(outcome), rankdata(prediction))[0, 1])


def majority_sign(outcomes: NDArray[np.float64]) -> float:
    """The commonest of the signs +, -, 0; the first of these where several are."""
    signs = np.sign(outcomes)
    return max((1.0, -1.0, 0.0), key=lambda sign: int((signs == sign).sum()))
