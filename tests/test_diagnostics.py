"""Index statistics and ranking diagnostics against their formulas, written plainly."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from whencount import diagnostics
from whencount.diagnostics import (
    TIER_1,
    TIER_2,
    gini,
    index_statistics,
    zipf_slope,
)
from whencount.vectors import SparseVectors


def vectors(dense: NDArray[np.float32]) -> SparseVectors:
    return SparseVectors.from_dense([f"d{row}" for row in range(len(dense))], dense)


def plain(dense: NDArray[np.float64]) -> dict[str, float]:
    """The definitions of the study, one by one, from a dense matrix without empty rows."""
    documents, vocabulary = dense.shape
    stored = dense[dense > 0]
    frequency = (dense > 0).sum(axis=0)
    mass = dense.sum(axis=0)
    live = frequency[frequency > 0]
    ordered = np.sort(live)[::-1]
    slope = np.polyfit(np.log(np.arange(1, len(live) + 1)), np.log(ordered / documents), 1)[0]
    pairs = np.abs(mass[:, None] - mass[None, :]).sum()
    top = sorted(range(vocabulary), key=lambda feature: (-frequency[feature], feature))
    top = top[: math.ceil(vocabulary / 100)]
    idf = np.log(1 + (documents - live + 0.5) / (live + 0.5))
    rows = [row[row > 0] for row in dense]
    lengths = np.array([row.sum() for row in rows])
    sizes = np.array([len(row) for row in rows])
    return {
        "active_fraction": len(stored) / (documents * vocabulary),
        "zipf_slope": -slope,
        "gini": pairs / (2 * vocabulary * mass.sum()),
        "frequency_top_share": frequency[top].sum() / frequency.sum(),
        "mass_top_share": mass[top].sum() / mass.sum(),
        "idf_variance": idf.var(),
        "value_cv": stored.std() / stored.mean(),
        "peak_ratio": float(np.mean([row.max() / row.mean() for row in rows])),
        "top_share": float(np.mean([row.max() / row.sum() for row in rows])),
        "length_cv": lengths.std() / lengths.mean(),
        "length_log_sd": np.log(lengths).std(),
        "nnz_cv": sizes.std() / sizes.mean(),
    }


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_index_statistics_equal_their_formulas(seed: int) -> None:
    random = np.random.default_rng(seed)
    shape = (int(random.integers(2, 40)), int(random.choice([7, 150, 230])))
    dense = np.where(random.random(shape) < 0.3, random.lognormal(size=shape), 0)
    dense[:, 0] = random.lognormal(size=shape[0])
    dense[0, 1] = 1.0
    dense = dense.astype(np.float32).astype(np.float64)
    ours = index_statistics(vectors(dense.astype(np.float32)))
    expected = plain(dense)
    assert set(ours) == set(TIER_1) | set(TIER_2) == set(expected)
    for name, value in expected.items():
        assert ours[name] == pytest.approx(value, rel=1e-9, abs=1e-12), name


def test_blocks_of_rows_do_not_change_the_statistics(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    dense = np.where(random.random((50, 30)) < 0.2, random.random((50, 30)), 0)
    dense[10:20] = 0
    documents = vectors(dense.astype(np.float32))
    whole = index_statistics(documents)
    monkeypatch.setattr(diagnostics, "_ROWS_PER_BLOCK", 7)
    assert index_statistics(documents) == pytest.approx(whole, rel=1e-12)


def test_empty_documents_count_in_lengths_and_sizes_but_have_no_peak() -> None:
    dense = np.array([[1, 1, 0], [0, 0, 0]], dtype=np.float32)
    ours = index_statistics(vectors(dense))
    assert ours["length_cv"] == 1.0  # lengths 2 and 0
    assert ours["nnz_cv"] == 1.0
    assert ours["peak_ratio"] == 1.0
    assert ours["top_share"] == 0.5
    assert ours["length_log_sd"] == 0.0
    assert ours["active_fraction"] == pytest.approx(2 / 6)


def test_equal_values_have_exactly_no_variation() -> None:
    # As pooled PQ: eight values of 0.1 in every document, whose float32 sums are not exact.
    random = np.random.default_rng(1)
    dense = np.zeros((300, 64), dtype=np.float32)
    for row in dense:
        row[random.permutation(64)[:8]] = 0.1
    ours = index_statistics(vectors(dense))
    assert ours["value_cv"] == 0.0
    assert ours["length_cv"] == 0.0
    assert ours["length_log_sd"] == 0.0
    assert ours["nnz_cv"] == 0.0


def test_collection_of_empty_documents_has_undefined_statistics() -> None:
    ours = index_statistics(vectors(np.zeros((3, 4), dtype=np.float32)))
    assert ours.pop("active_fraction") == 0.0
    assert all(math.isnan(value) for value in ours.values())


def test_zipf_slope_of_a_power_law_is_its_exponent() -> None:
    frequency = (10**9 / np.arange(1, 200) ** 1.3).astype(np.int64)
    assert zipf_slope(frequency, 10**9) == pytest.approx(1.3, abs=1e-4)
    assert zipf_slope(np.full(5, 3), 10) == 0.0


def test_gini_of_equal_and_of_concentrated_mass() -> None:
    assert gini(np.full(10, 0.3)) == pytest.approx(0.0, abs=1e-15)
    assert gini([0, 0, 0, 5.0]) == 0.75
