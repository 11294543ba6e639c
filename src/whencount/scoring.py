"""The switchable scorer: BM25 with three parts that can each be off (study, section 1).

`S(q, d) = sum_j x_qj * w_j * T(x_dj, l_d)` over the features present in both vectors, with

* IDF `w_j`: 1, or `ln(1 + (N - df_j + 0.5) / (df_j + 0.5))`;
* saturation `T(f, l)`: `f / l`, or `(k1 + 1) f / (f + k1 l)`;
* length `l_d`: 1, or `1 - b + b L_d / avgL` with `L_d = sum_j x_dj`.

With all three on this is BM25 (Robertson and Zaragoza, 2009, doi:10.1561/1500000019) in the
always-positive IDF form that Lucene uses; with all three off it is the inner product.

The formulas take what numpy takes and give float64 arrays, or take torch tensors and give float64
tensors of the same device: one text of each formula serves every setting.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whencount.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor

SWITCHES = ("idf", "saturation", "length")


@dataclass(frozen=True, order=True)
class Configuration:
    """Which of the three parts are on; written as a bit string in this order, `011` say."""

    idf: bool
    saturation: bool
    length: bool

    def __str__(self) -> str:
        return f"{self.idf:d}{self.saturation:d}{self.length:d}"

    @classmethod
    def parse(cls, bits: str) -> Configuration:
        """Read a bit string such as `011`.

        Raises:
            InputError: `bits` is not three characters out of 0 and 1.
        """
        if len(bits) != 3 or set(bits) - {"0", "1"}:
            raise InputError(
                f"configuration {bits!r} is not three bits (IDF, saturation, length);"
                " write 000 ... 111"
            )
        return cls(*(bit == "1" for bit in bits))


CONFIGURATIONS = tuple(Configuration.parse(f"{number:03b}") for number in range(8))
"""All eight, in the order 000, 001, ..., 111."""


@dataclass(frozen=True, order=True)
class Parameters:
    """BM25's two parameters: `k1 >= 0` and `0 <= b <= 1`.

    Raises:
        InputError: a value outside those ranges, or not finite.
    """

    k1: float = 1.2
    b: float = 0.75

    def __post_init__(self) -> None:
        if not (math.isfinite(self.k1) and self.k1 >= 0):
            raise InputError(f"k1 is {self.k1}; it must be a finite number of at least 0")
        if not 0 <= self.b <= 1:
            raise InputError(f"b is {self.b}; it must lie between 0 and 1")


@overload
def inverse_document_frequency(document_frequency: Tensor, documents: Tensor) -> Tensor: ...


@overload
def inverse_document_frequency(
    document_frequency: ArrayLike, documents: ArrayLike
) -> NDArray[np.float64]: ...


def inverse_document_frequency(document_frequency: Any, documents: Any) -> Any:
    """`ln(1 + (N - df + 0.5) / (df + 0.5))`, float64, the shape of `document_frequency`.

    `documents` is N and counts empty documents too; it may differ by document and then has a
    shape that broadcasts. `document_frequency` may be fractional (the uniform control).
    """
    frequency = _numbers(document_frequency)
    odds = (_numbers(documents) - frequency + 0.5) / (frequency + 0.5)
    return odds.log1p() if hasattr(odds, "log1p") else np.log1p(odds)


@overload
def length_factor(lengths: Tensor, average_length: Tensor, b: float) -> Tensor: ...


@overload
def length_factor(
    lengths: ArrayLike, average_length: ArrayLike, b: float
) -> NDArray[np.float64]: ...


def length_factor(lengths: Any, average_length: Any, b: float) -> Any:
    """`l_d = 1 - b + b L_d / avgL`, float64, the shape of `lengths`.

    In a collection whose documents are all empty (avgL = 0) every factor is 1. `average_length`
    may be one number, or one for each of several collections in a shape that broadcasts.
    """
    masses, averages = _numbers(lengths), _numbers(average_length)
    empty = averages == 0
    factors = 1.0 - b + b * masses / (averages + empty)
    return empty + ~empty * factors if empty.any() else factors


@overload
def term_weight(values: Tensor, factor: Tensor, saturation: bool, k1: float) -> Tensor: ...


@overload
def term_weight(
    values: ArrayLike, factor: ArrayLike, saturation: bool, k1: float
) -> NDArray[np.float64]: ...


def term_weight(values: Any, factor: Any, saturation: bool, k1: float) -> Any:
    """`T(f, l)`: `f / l`, or `(k1 + 1) f / (f + k1 l)` where `saturation` is on; float64.

    `values` are the positive stored weights f, `factor` the length factors l of their documents
    (all 1 where length is off); the two broadcast.
    """
    weights, lengths = _numbers(values), _numbers(factor)
    if saturation:
        return (k1 + 1.0) * weights / (weights + k1 * lengths)
    return weights / lengths


def _numbers(values: Any) -> Any:
    """The values in float64: a torch tensor stays one, anything else becomes an array."""
    return values.double() if hasattr(values, "double") else np.asarray(values, dtype=np.float64)
