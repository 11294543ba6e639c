"""The switchable scorer: BM25 with three parts that can each be off (study, section 1).

`S(q, d) = sum_j x_qj * w_j * T(x_dj, l_d)` over the features present in both vectors, with

* IDF `w_j`: 1, or `ln(1 + (N - df_j + 0.5) / (df_j + 0.5))`;
* saturation `T(f, l)`: `f / l`, or `(k1 + 1) f / (f + k1 l)`;
* length `l_d`: 1, or `1 - b + b L_d / avgL` with `L_d = sum_j x_dj`.

With all three on this is BM25 (Robertson and Zaragoza, 2009, doi:10.1561/1500000019) in the
always-positive IDF form that Lucene uses; with all three off it is the inner product.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whencount.errors import InputError

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


def inverse_document_frequency(
    document_frequency: ArrayLike, documents: int
) -> NDArray[np.float64]:
    """`ln(1 + (N - df + 0.5) / (df + 0.5))`, float64, the shape of `document_frequency`.

    `documents` is N and counts empty documents too. `document_frequency` may be fractional
    (the uniform control).
    """
    frequency = np.asarray(document_frequency, dtype=np.float64)
    weights: NDArray[np.float64] = np.log1p((documents - frequency + 0.5) / (frequency + 0.5))
    return weights


def length_factor(lengths: ArrayLike, average_length: float, b: float) -> NDArray[np.float64]:
    """`l_d = 1 - b + b L_d / avgL`, float64, the shape of `lengths`.

    In a collection whose documents are all empty (avgL = 0) every factor is 1.
    """
    masses = np.asarray(lengths, dtype=np.float64)
    if average_length == 0:
        return np.ones_like(masses)
    factors: NDArray[np.float64] = 1.0 - b + b * masses / average_length
    return factors


def term_weight(
    values: ArrayLike, factor: ArrayLike, saturation: bool, k1: float
) -> NDArray[np.float64]:
    """`T(f, l)`: `f / l`, or `(k1 + 1) f / (f + k1 l)` where `saturation` is on; float64.

    `values` are the positive stored weights f, `factor` the length factors l of their documents
    (all 1 where length is off); the two broadcast.
    """
    weights = np.asarray(values, dtype=np.float64)
    lengths = np.asarray(factor, dtype=np.float64)
    if saturation:
        return (k1 + 1.0) * weights / (weights + k1 * lengths)
    return weights / lengths
