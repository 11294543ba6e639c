"""The two fitted models of the predictor study: ridge and gradient boosting (study, section 7)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whencount.errors import InputError

ALPHAS = (0.1, 1.0, 10.0, 100.0)
"""The penalties that ridge chooses among."""

DEFAULT_ALPHA = 10.0
"""The penalty where there are too few groups to choose one by."""

FEWEST_GROUPS = 3
"""With fewer groups in the training rows than this the penalty is not chosen but fixed."""


class Model(Protocol):
    """A fitted model."""

    @property
    def alpha(self) -> float | None:
        """The penalty of a ridge; None for a model without one."""

    def predict(self, features: ArrayLike) -> NDArray[np.float64]:
        """Predictions of rows, shape (n, p) to (n,)."""


@dataclass(frozen=True)
class Ridge:
    """A ridge regression on standardised features.

    `prediction = intercept + sum_j coefficients_j (x_j - centre_j) / scale_j`; a missing value
    counts as the centre, so it adds nothing.

    Attributes:
        alpha: the penalty on the squared coefficients; the intercept has none.
        centre: means of the training rows, shape (p,); 0 for a feature never present there.
        scale: their population standard deviations, shape (p,); 1 for a constant feature.
        coefficients: shape (p,).
        intercept: the mean of the training targets.
    """

    alpha: float
    centre: NDArray[np.float64]
    scale: NDArray[np.float64]
    coefficients: NDArray[np.float64]
    intercept: float

    def predict(self, features: ArrayLike) -> NDArray[np.float64]:
        """Predictions of rows, shape (n, p) to (n,)."""
        standardised = _standardise(_matrix(features), self.centre, self.scale)
        # Row by row: a product of matrices may round a row differently beside other rows.
        return np.asarray(self.intercept + (standardised * self.coefficients).sum(axis=1))


def fit_ridge(
    features: ArrayLike, target: ArrayLike, groups: ArrayLike, *, alpha: float | None = None
) -> Ridge:
    """Fit a ridge whose scaler and penalty see the given rows only.

    The penalty is the one of ALPHAS with the smallest squared error, summed over all rows, when
    each group is left out in turn (scaler and coefficients fitted anew on the others); equal
    errors: the larger. With fewer than FEWEST_GROUPS groups it is DEFAULT_ALPHA. Missing values
    (NaN) are replaced by the mean of the training rows; constant features have no influence.

    Args:
        features: shape (n, p), or a frame of numbers.
        target: shape (n,), finite.
        groups: shape (n,), what each row belongs to: its basis family or its corpus.
        alpha: a penalty to use instead of choosing one.

    Raises:
        InputError: no rows, sizes that differ, an infinite feature, or a target that is not finite.
    """
    matrix, outcome = _checked(features, target)
    names = np.asarray(groups)
    if names.shape != outcome.shape:
        raise InputError(f"{len(outcome)} rows have groups of shape {names.shape}; give one a row")
    if alpha is None:
        alpha = _chosen_alpha(matrix, outcome, names)
    centre, scale, coefficients, intercept = _solve(matrix, outcome, (alpha,))
    return Ridge(alpha, centre, scale, coefficients[:, 0], intercept)


def _chosen_alpha(
    matrix: NDArray[np.float64], outcome: NDArray[np.float64], groups: NDArray[Any]
) -> float:
    _, numbers = np.unique(groups, return_inverse=True)
    count = int(numbers.max()) + 1
    if count < FEWEST_GROUPS:
        return DEFAULT_ALPHA
    errors = np.zeros(len(ALPHAS))
    for number in range(count):
        held = numbers == number
        centre, scale, coefficients, intercept = _solve(matrix[~held], outcome[~held], ALPHAS)
        predicted = intercept + _standardise(matrix[held], centre, scale) @ coefficients
        errors += ((outcome[held, None] - predicted) ** 2).sum(axis=0)
    return max(alpha for alpha, error in zip(ALPHAS, errors, strict=True) if error == errors.min())


def _solve(
    matrix: NDArray[np.float64], outcome: NDArray[np.float64], alphas: tuple[float, ...]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], float]:
    """Centre, scale, coefficients of shape (p, alphas) and intercept.

    One singular value decomposition serves every penalty: with `Z = U diag(s) V'` the coefficients
    are `V diag(s / (s^2 + alpha)) U' (y - mean y)`.
    """
    centre, scale, varies = _scaler(matrix)
    standardised = _standardise(matrix, centre, scale)
    intercept = float(outcome.mean())
    left, singular, right = np.linalg.svd(standardised, full_matrices=False)
    shrunk = singular[:, None] / (singular[:, None] ** 2 + np.asarray(alphas))
    coefficients = right.T @ (shrunk * (left.T @ (outcome - intercept))[:, None])
    # What does not vary in training says nothing, however much it varies later.
    coefficients[~varies] = 0.0
    return centre, scale, coefficients, intercept


def _scaler(
    matrix: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    """Means and population standard deviations of the values present, and which features vary.

    As scikit-learn's StandardScaler, which takes several times as long: a deviation that rounding
    alone explains counts as 0, and a feature that does not vary has the scale 1.
    """
    present = ~np.isnan(matrix)
    count = np.maximum(present.sum(axis=0), 1)
    centre = np.where(present, matrix, 0.0).sum(axis=0) / count
    squares = np.where(present, matrix - centre, 0.0) ** 2
    deviation = np.sqrt(squares.sum(axis=0) / count)
    varies = deviation > count * np.finfo(np.float64).eps * np.abs(centre)
    return centre, np.where(varies, deviation, 1.0), varies


def _standardise(
    matrix: NDArray[np.float64], centre: NDArray[np.float64], scale: NDArray[np.float64]
) -> NDArray[np.float64]:
    standardised = (matrix - centre) / scale
    return np.where(np.isnan(standardised), 0.0, standardised)


def _matrix(features: ArrayLike) -> NDArray[np.float64]:
    matrix = np.asarray(features, dtype=np.float64)
    if matrix.ndim != 2:
        raise InputError(f"features of shape {matrix.shape}: give a table of rows and columns")
    if np.isinf(matrix).any():
        raise InputError(
            f"{int(np.isinf(matrix).any(axis=1).sum())} of {len(matrix)} rows have an infinite"
            " feature; leave the feature or the rows out"
        )
    return matrix


def _checked(
    features: ArrayLike, target: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    matrix, outcome = _matrix(features), np.asarray(target, dtype=np.float64)
    if len(matrix) == 0:
        raise InputError("no rows to fit a model on; check the selection")
    if outcome.shape != (len(matrix),):
        raise InputError(
            f"{len(matrix)} rows of features have targets of shape {outcome.shape}; give one a row"
        )
    if not np.isfinite(outcome).all():
        raise InputError(
            f"{int((~np.isfinite(outcome)).sum())} of {len(outcome)} rows have no target; leave"
            " them out before fitting"
        )
    return matrix, outcome


@dataclass(frozen=True)
class Boosted:
    """Gradient-boosted regression trees.

    Attributes:
        estimator: a fitted HistGradientBoostingRegressor.
        known: which features had a value in training, shape (p,); the others are ignored.
    """

    estimator: Any
    known: NDArray[np.bool_]

    @property
    def alpha(self) -> None:
        """Trees have no such penalty."""
        return None

    def predict(self, features: ArrayLike) -> NDArray[np.float64]:
        """Predictions of rows, shape (n, p) to (n,)."""
        matrix = np.where(self.known, _matrix(features), 0.0)
        return np.asarray(self.estimator.predict(matrix), dtype=np.float64)


def fit_boosted(features: ArrayLike, target: ArrayLike, *, seed: int = 0) -> Boosted:
    """Fit the boosted control: 300 trees, rate 0.05, 15 leaves, 10 rows a leaf, l2 1.

    Missing values (NaN) go to whichever side of a split fits the training rows better. One thread,
    so that sums, and with them the bytes of a table, do not depend on the machine.

    Args:
        features: shape (n, p), or a frame of numbers.
        target: shape (n,), finite.
        seed: of the estimator; these settings draw no random number on fewer than 200,000 rows.

    Raises:
        InputError: as `fit_ridge`.
    """
    from sklearn.ensemble import HistGradientBoostingRegressor
    from threadpoolctl import threadpool_limits

    matrix, outcome = _checked(features, target)
    known = np.asarray(~np.isnan(matrix).all(axis=0))
    estimator = HistGradientBoostingRegressor(
        max_iter=300,
        learning_rate=0.05,
        max_leaf_nodes=15,
        min_samples_leaf=10,
        l2_regularization=1.0,
        early_stopping=False,
        random_state=seed,
    )
    with threadpool_limits(limits=1):
        # The estimator cannot bin a feature without any value.
        estimator.fit(np.where(known, matrix, 0.0), outcome)
    return Boosted(estimator, known)
