"""Targets of the study: golden cases, published shares, identities."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from whencount.attribution import (
    QUALITY_COLUMNS,
    TARGET_COLUMNS,
    gain,
    main_effect,
    margin,
    shapley,
    shares,
    summary,
    targets,
)
from whencount.errors import InputError

SHARED = Path(__file__).parents[1] / ".." / "shared"
QUALITIES = arrays.arrays(np.float64, (8,), elements=st.floats(0, 1))


def shared(name: str) -> Path:
    path = SHARED / name
    if not path.exists():
        pytest.skip(f"{name} is not beside this checkout")
    return path


def test_golden_attribution_holds() -> None:
    golden = json.loads(shared("golden/attribution.json").read_text())
    for row in golden["rows"]:
        ours = summary(list(row["quality"].values()))
        assert ours.keys() == row.keys()
        for key, expected in row.items():
            assert ours[key] == pytest.approx(expected, abs=1e-12)


def test_margin_is_undefined_where_the_configurations_agree() -> None:
    agreeing = np.full(8, 0.2)
    assert math.isnan(margin(agreeing))
    assert summary(agreeing)["margin"] == 0.0
    assert math.isnan(margin(agreeing + np.linspace(0, 1e-12, 8)))


def test_margin_with_only_the_inner_product_at_zero_is_the_published_constant() -> None:
    assert margin([0, 1, 1, 1, 1, 1, 1, 1]) == pytest.approx(3.0237, abs=5e-5)
    # sd of one value apart from seven equal ones is sqrt(7) / 8.
    assert margin([0, 1, 1, 1, 1, 1, 1, 1]) == pytest.approx(8 / math.sqrt(7), abs=1e-14)


@given(QUALITIES)
@settings(max_examples=200, deadline=None)
def test_shapley_values_sum_to_the_gain(quality: np.ndarray) -> None:
    assert shapley(quality).sum() == pytest.approx(float(gain(quality)), abs=1e-14)


@given(QUALITIES)
@settings(max_examples=200, deadline=None)
def test_switch_that_changes_nothing_has_exactly_zero(quality: np.ndarray) -> None:
    cube = quality.reshape(2, 2, 2)
    for axis in range(3):
        same = np.repeat(np.take(cube, [0], axis=axis), 2, axis=axis).reshape(8)
        assert shapley(same)[axis] == 0.0
        assert main_effect(same)[axis] == 0.0


@given(QUALITIES)
@settings(max_examples=50, deadline=None)
def test_shapley_value_is_the_mean_over_all_orders_of_switching_on(quality: np.ndarray) -> None:
    from itertools import permutations

    expected = np.zeros(3)
    for order in permutations(range(3)):
        number = 0
        for switch in order:
            after = number | 4 >> switch
            expected[switch] += (quality[after] - quality[number]) / 6
            number = after
    np.testing.assert_allclose(shapley(quality), expected, atol=1e-14)


def test_targets_of_a_frame_keep_its_index_and_equal_the_functions() -> None:
    quality = np.random.default_rng(0).random((5, 8))
    frame = pd.DataFrame(quality, columns=list(QUALITY_COLUMNS), index=list("abcde"))
    result = targets(frame)
    assert tuple(result.columns) == TARGET_COLUMNS
    assert list(result.index) == list("abcde")
    np.testing.assert_array_equal(result["margin"], margin(quality))
    np.testing.assert_array_equal(result["shapley_length"], shapley(quality)[:, 2])
    np.testing.assert_array_equal(result["main_effect_idf"], main_effect(quality)[:, 0])


def primary_rows() -> pd.DataFrame:
    frame = pd.read_csv(shared("reference/shapley_rows.csv"), keep_default_na=False)
    return frame[
        (frame.budget == "q32_d128")
        & (frame.k1 == 1.2)
        & (frame.b == 0.75)
        & (frame.seed == 0)
        & (frame.control == "")
        & ~frame.basis.str.contains("shared")
    ]


def test_shares_of_the_primary_rows_are_the_published_ones() -> None:
    rows = primary_rows()
    assert len(rows) == 140
    result = shares(rows, parts=("idf", "saturation", "length", "idf+length"))
    np.testing.assert_allclose(result["share"], [0.1048, 0.6065, 0.2887, 0.3935], atol=6e-5)
    # The published interval of IDF + length on these rows, at the two decimals it is given with.
    assert result.loc["idf+length", "low"] == pytest.approx(0.36, abs=0.01)
    assert result.loc["idf+length", "high"] == pytest.approx(0.42, abs=0.01)


def test_shares_do_not_depend_on_the_order_of_rows() -> None:
    rows = pd.DataFrame(
        {
            "collection": list("aabbcc"),
            "gain": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
            "shapley_idf": [0.5, 0.5, 1.0, 1.0, 2.0, 2.0],
            "shapley_saturation": [0.25, 1.0, 1.0, 2.0, 2.0, 3.0],
            "shapley_length": [0.25, 0.5, 1.0, 1.0, 1.0, 1.0],
        }
    )
    pd.testing.assert_frame_equal(shares(rows), shares(rows.iloc[::-1]))


def test_share_of_rows_without_gain_is_undefined_and_missing_values_are_refused() -> None:
    rows = pd.DataFrame(
        {
            "collection": ["a", "b"],
            "gain": [0.0, 0.0],
            "shapley_idf": [0.0, 0.0],
            "shapley_saturation": [0.0, 0.0],
            "shapley_length": [0.0, 0.0],
        }
    )
    assert shares(rows).isna().all(axis=None)
    with pytest.raises(InputError, match="1 of 2 rows have no gain"):
        shares(rows.assign(gain=[0.0, np.nan]))
    with pytest.raises(InputError, match="no rows"):
        shares(rows.iloc[:0])
