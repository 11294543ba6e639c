"""Scores of predictions on numbers small enough to follow by hand."""

from __future__ import annotations

import numpy as np
import pytest

from whencount.prediction.scores import majority_sign, r_squared, scores, spearman


def test_an_outcome_of_zero_is_right_only_where_zero_was_predicted() -> None:
    observed = np.array([0.0, 0.0, 0.1, -0.1])
    predicted = np.array([1e-9, 0.0, 0.3, 0.2])
    result = scores(observed, predicted, np.array([1.0, 0.0, 1.0, 1.0]))
    assert result["sign_accuracy"] == 0.5
    assert result["majority_accuracy"] == 0.5
    assert result["always_accuracy"] == 0.25
    assert result["never_accuracy"] == 0.25


def test_r_squared_compares_with_the_mean_of_the_held_out_outcomes() -> None:
    observed = np.array([1.0, 2.0, 3.0])
    assert r_squared(observed, observed) == 1.0
    assert r_squared(observed, np.full(3, 2.0)) == 0.0
    # Errors 1, 1, 1 against deviations 1, 0, 1.
    assert r_squared(observed, observed + 1) == pytest.approx(-0.5)
    assert np.isnan(r_squared(np.ones(3), observed))


def test_mean_errors() -> None:
    result = scores(np.array([0.0, 0.0]), np.array([3.0, -1.0]), None)
    assert result["mae"] == 2.0
    assert result["rmse"] == pytest.approx(np.sqrt(5))
    assert np.isnan(result["majority_accuracy"])


def test_rank_correlation_gives_ties_their_mean_rank() -> None:
    # Ranks 1, 2.5, 2.5, 4 against 1, 2, 3, 4: covariance 4.5, variances 4.5 and 5.
    expected = 4.5 / np.sqrt(4.5 * 5)
    assert spearman([1, 2, 2, 3], [1, 2, 3, 4]) == pytest.approx(expected)
    assert np.isnan(spearman([1, 2, 3], [5, 5, 5]))


@pytest.mark.parametrize(
    ("outcomes", "sign"),
    [([0.1, 0.2, -5], 1), ([0, 0, -1], 0), ([-1, 1], 1), ([-1, 0], -1), ([-2, -1, 3], -1)],
)
def test_majority_sign(outcomes: list[float], sign: int) -> None:
    assert majority_sign(np.array(outcomes, dtype=float)) == sign
