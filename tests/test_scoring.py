from __future__ import annotations

import math

import numpy as np
import pytest

from whencount.errors import InputError
from whencount.scoring import (
    CONFIGURATIONS,
    Configuration,
    Parameters,
    inverse_document_frequency,
    length_factor,
    term_weight,
)


def test_the_eight_configurations_stand_in_binary_order() -> None:
    assert [str(c) for c in CONFIGURATIONS] == [f"{n:03b}" for n in range(8)]
    assert Configuration.parse("011") == Configuration(idf=False, saturation=True, length=True)


@pytest.mark.parametrize("bits", ["", "01", "0111", "012", "abc"])
def test_bits_that_are_no_configuration_are_refused(bits: str) -> None:
    with pytest.raises(InputError, match="three bits"):
        Configuration.parse(bits)


@pytest.mark.parametrize("value", [-0.1, math.nan, math.inf])
def test_k1_outside_its_range_is_refused(value: float) -> None:
    with pytest.raises(InputError, match="k1 is"):
        Parameters(k1=value)


@pytest.mark.parametrize("value", [-0.1, 1.1, math.nan])
def test_b_outside_its_range_is_refused(value: float) -> None:
    with pytest.raises(InputError, match="b is"):
        Parameters(b=value)


def test_idf_by_hand() -> None:
    """Three documents, df 0, 1, 3: ln(1 + 3.5/.5), ln(1 + 2.5/1.5), ln(1 + .5/3.5)."""
    expected = [math.log(8), math.log(8 / 3), math.log(8 / 7)]
    assert inverse_document_frequency([0, 1, 3], 3) == pytest.approx(expected, rel=1e-15)


def test_length_factor_by_hand() -> None:
    assert length_factor([1.0, 3.0], 2.0, 0.75).tolist() == [0.625, 1.375]
    assert length_factor([1.0, 3.0], 2.0, 0.0).tolist() == [1.0, 1.0]
    assert length_factor([0.0, 0.0], 0.0, 0.75).tolist() == [1.0, 1.0]


def test_term_weight_by_hand() -> None:
    assert term_weight([2.0], 0.5, saturation=False, k1=1.2).tolist() == [4.0]
    assert term_weight(2.0, 0.5, saturation=True, k1=1.2) == pytest.approx(4.4 / 2.6, rel=1e-15)


def test_without_k1_saturation_makes_every_weight_one() -> None:
    assert term_weight(np.array([1e-30, 3.0]), 0.7, saturation=True, k1=0.0).tolist() == [1, 1]


def test_tensors_get_what_arrays_get_to_the_last_bit() -> None:
    """The same operations in the same order; only the two log1p may differ, by 1 ulp."""
    torch = pytest.importorskip("torch")
    draws = np.random.default_rng(0).random((5, 40)) * 9
    lengths = draws.sum(axis=0)
    averages = np.array([[2.0], [0.0], [7.5]])
    factors = length_factor(lengths, averages, 0.75)
    assert factors[1].tolist() == [1.0] * 40
    same = length_factor(torch.from_numpy(lengths), torch.from_numpy(averages), 0.75)
    assert np.array_equal(same.numpy(), factors)
    for saturation in (False, True):
        expected = term_weight(draws[:3], factors, saturation, 1.2)
        found = term_weight(torch.from_numpy(draws[:3]), same, saturation, 1.2)
        assert np.array_equal(found.numpy(), expected)
    frequency, documents = np.floor(draws), np.full(40, 9)
    found = inverse_document_frequency(torch.from_numpy(frequency), torch.from_numpy(documents))
    expected = inverse_document_frequency(frequency, documents)
    np.testing.assert_array_max_ulp(found.numpy(), expected, 1)


def test_tensors_of_single_precision_are_scored_in_double() -> None:
    torch = pytest.importorskip("torch")
    ones = torch.ones(2)
    assert term_weight(ones, ones, saturation=True, k1=1.2).dtype == torch.float64
    assert inverse_document_frequency(ones, ones).dtype == torch.float64
