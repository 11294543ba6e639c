"""Ridge and boosting: against closed forms, scikit-learn and the published rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from whencount.errors import InputError
from whencount.naming import BASIS_FAMILIES
from whencount.prediction import ALPHAS, DEFAULT_ALPHA, fit_ridge

REFERENCE = Path(__file__).parents[2] / "shared" / "reference"


def example(
    rows: int = 60, columns: int = 5, groups: int = 6
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(7)
    features = random.normal(3.0, 2.0, size=(rows, columns)) * np.logspace(-3, 3, columns)
    target = features[:, 0] * 200 + random.normal(size=rows)
    return features, target, np.arange(rows) % groups


@pytest.mark.parametrize("alpha", ALPHAS)
def test_ridge_equals_its_closed_form_on_standardised_features(alpha: float) -> None:
    features, target, groups = example()
    centre, scale = features.mean(axis=0), features.std(axis=0)
    standardised = (features - centre) / scale
    gram = standardised.T @ standardised + alpha * np.eye(features.shape[1])
    coefficients = np.linalg.solve(gram, standardised.T @ (target - target.mean()))
    other = example(rows=9)[0] + 1.0
    expected = target.mean() + (other - centre) / scale @ coefficients
    model = fit_ridge(features, target, groups, alpha=alpha)
    np.testing.assert_allclose(model.predict(other), expected, rtol=1e-10)


def test_ridge_equals_scikit_learn_choosing_its_penalty_by_leaving_groups_out() -> None:
    from sklearn.linear_model import Ridge
    from sklearn.model_selection import GridSearchCV, LeaveOneGroupOut
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    features, target, groups = example()
    target = target + 30 * np.random.default_rng(1).normal(size=len(target))
    search = GridSearchCV(
        make_pipeline(StandardScaler(), Ridge()),
        {"ridge__alpha": list(ALPHAS)},
        cv=LeaveOneGroupOut(),
        scoring="neg_mean_squared_error",
    ).fit(features, target, groups=groups)
    model = fit_ridge(features, target, groups)
    assert model.alpha == search.best_params_["ridge__alpha"]
    np.testing.assert_allclose(model.predict(features), search.predict(features), rtol=1e-9)


def test_noise_asks_for_a_larger_penalty_than_a_law() -> None:
    random = np.random.default_rng(3)
    features = random.normal(size=(40, 8))
    groups = np.arange(40) % 4
    law = features @ np.arange(8)
    noise = random.normal(size=40)
    assert fit_ridge(features, law, groups).alpha == min(ALPHAS)
    assert fit_ridge(features, noise, groups).alpha == max(ALPHAS)


def test_with_two_groups_the_penalty_is_ten() -> None:
    features, _, _ = example()
    law = features[:, 0] * 200
    assert fit_ridge(features, law, np.arange(len(law)) % 2).alpha == DEFAULT_ALPHA == 10.0
    assert fit_ridge(features, law, np.arange(len(law)) % 3).alpha == min(ALPHAS)


def test_a_missing_value_counts_as_the_mean_of_the_training_rows() -> None:
    features, target, groups = example()
    features[::7, 2] = np.nan
    filled = np.where(np.isnan(features), np.nanmean(features, axis=0), features)
    model = fit_ridge(features, target, groups, alpha=1.0)
    # Filling before scaling would make the deviation smaller; a missing value has no part in it.
    standardised = (filled - filled.mean(axis=0)) / np.nanstd(features, axis=0)
    gram = standardised.T @ standardised + np.eye(features.shape[1])
    expected = np.linalg.solve(gram, standardised.T @ (target - target.mean()))
    np.testing.assert_allclose(model.coefficients, expected, rtol=1e-9)
    np.testing.assert_array_equal(model.predict(features), model.predict(filled))


@pytest.mark.parametrize("value", [0.0, 0.1, 1e6, np.nan])
def test_a_feature_that_does_not_vary_in_training_changes_nothing(value: float) -> None:
    features, target, groups = example()
    extended = np.column_stack([features, np.full(len(features), value)])
    later = np.column_stack([features, np.linspace(-1e9, 1e9, len(features))])
    plain = fit_ridge(features, target, groups)
    model = fit_ridge(extended, target, groups)
    assert model.alpha == plain.alpha
    np.testing.assert_allclose(model.predict(later), plain.predict(features), rtol=1e-9)


def test_a_feature_present_in_one_fold_only_gives_numbers() -> None:
    features, target, groups = example()
    features[groups != 0, 1] = np.nan
    assert np.isfinite(fit_ridge(features, target, groups).predict(features)).all()


def test_faults_are_named() -> None:
    features, target, groups = example()
    with pytest.raises(InputError, match="no rows"):
        fit_ridge(features[:0], target[:0], groups[:0])
    with pytest.raises(InputError, match="60 rows of features have targets of shape"):
        fit_ridge(features, target[:3], groups)
    with pytest.raises(InputError, match="give one a row"):
        fit_ridge(features, target, groups[:3])
    with pytest.raises(InputError, match="1 of 60 rows have no target"):
        fit_ridge(features, np.where(np.arange(60) == 4, np.nan, target), groups)
    with pytest.raises(InputError, match="1 of 60 rows have an infinite"):
        fit_ridge(np.where(np.arange(60)[:, None] == 4, np.inf, features), target, groups)


@pytest.mark.skipif(not REFERENCE.is_dir(), reason="the published rows are not here")
@pytest.mark.parametrize(("k1", "spearman", "r2"), [(0.6, 0.8695, 0.4791), (2.4, 0.9033, 0.6029)])
@pytest.mark.parametrize("chosen", [True, False])
def test_ridge_on_value_cv_has_the_published_scores_at_other_k1(
    k1: float, spearman: float, r2: float, chosen: bool
) -> None:
    """H4: alpha 10, which leaving out basis families chooses (leaving out corpora chooses 1)."""
    rows, statistics = (
        pd.read_csv(REFERENCE / name, keep_default_na=False)
        for name in ("shapley_rows.csv", "index_statistics.csv")
    )
    rows = rows.merge(statistics, on=["collection", "basis", "granularity", "seed", "budget"])
    primary = rows[(rows["k1"] == 1.2) & (rows["b"] == 0.75)]
    other = rows[(rows["k1"] == k1) & (rows["b"] == 0.75)]
    model = fit_ridge(
        primary[["value_cv"]],
        primary["shapley_saturation"],
        primary["basis"].map(BASIS_FAMILIES),
        alpha=None if chosen else DEFAULT_ALPHA,
    )
    predicted = model.predict(other[["value_cv"]])
    observed = other["shapley_saturation"].to_numpy()
    assert (len(primary), len(other), model.alpha) == (140, 70, 10.0)
    assert spearmanr(predicted, observed).statistic == pytest.approx(spearman, abs=5e-5)
    errors, spread = (observed - predicted) ** 2, (observed - observed.mean()) ** 2
    assert 1 - errors.sum() / spread.sum() == pytest.approx(r2, abs=5e-5)
