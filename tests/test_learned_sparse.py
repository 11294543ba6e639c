"""Learned sparse vectors compared at equally many stored weights."""

from __future__ import annotations

import numpy as np
import pytest

from whencount.errors import InputError
from whencount.learned_sparse.equal_nnz import compare_at_equal_nnz, truncate_to_total
from whencount.vectors import SparseVectors


def drawn(rows: int, width: int, skew: float, seed: int) -> SparseVectors:
    """Rows of `width` features each out of 50, the lower ones the likelier as `skew` grows."""
    random = np.random.default_rng(seed)
    rates = 1.0 / np.arange(1, 51) ** skew
    features = [random.choice(50, width, replace=False, p=rates / rates.sum()) for _ in range(rows)]
    return SparseVectors.from_coo(
        [f"t{row}" for row in range(rows)],
        np.repeat(np.arange(rows), width),
        np.concatenate(features),
        random.uniform(0.1, 2.0, rows * width).astype(np.float32),
        50,
    )


@pytest.mark.parametrize("total", [0, 1, 7, 14, 15])
def test_truncation_keeps_the_largest_weights_of_each_row_evenly(total: int) -> None:
    dense = np.zeros((4, 8), dtype=np.float32)
    dense[0, :6] = [6, 5, 4, 3, 2, 1]
    dense[1, :1] = [9]
    dense[3] = [1, 2, 3, 4, 5, 6, 7, 8]
    rows, features = np.nonzero(dense)
    vectors = SparseVectors.from_coo(list("abcd"), rows, features, dense[rows, features], 8)
    cut = truncate_to_total(vectors, total)
    assert cut.nonzeros == total
    # One weight at a time: the shortest row that has more, then the largest next weight.
    left = [sorted(row[row > 0], reverse=True) for row in dense]
    kept: list[list[float]] = [[] for _ in left]
    for _ in range(total):
        open_rows = [row for row in range(4) if left[row]]
        row = min(open_rows, key=lambda row: (len(kept[row]), -left[row][0], row))
        kept[row].append(left[row].pop(0))
    for row, expected in enumerate(kept):
        start, end = cut.indptr[row], cut.indptr[row + 1]
        assert cut.values[start:end].tolist() == expected


def test_truncation_refuses_more_than_is_there() -> None:
    with pytest.raises(InputError, match="cannot be kept of 20"):
        truncate_to_total(drawn(4, 5, 0.0, 0), 21)


def test_the_comparison_comes_out_either_way() -> None:
    skewed = drawn(300, 12, 1.5, 1), drawn(80, 6, 1.5, 2)
    spread = drawn(300, 9, 0.0, 3), drawn(80, 8, 0.0, 4)
    found = compare_at_equal_nnz(skewed, spread)
    assert found.first.document_nnz == found.second.document_nnz == 9
    assert found.first.query_nnz == found.second.query_nnz == 6
    assert found.spreads
    back = compare_at_equal_nnz(spread, skewed)
    assert not back.spreads
    assert back.posting_work_ratio == pytest.approx(1 / found.posting_work_ratio)
    same = compare_at_equal_nnz(spread, spread)
    assert same.posting_work_ratio == same.support_ratio == 1.0
    assert not same.spreads


def test_fewer_weights_alone_are_no_spread() -> None:
    long = drawn(200, 12, 1.0, 5), drawn(50, 6, 1.0, 6)
    short = truncate_to_total(long[0], 800), truncate_to_total(long[1], 100)
    found = compare_at_equal_nnz(long, short)
    assert found.posting_work_ratio == found.support_ratio == 1.0


def test_other_texts_are_refused() -> None:
    with pytest.raises(InputError, match="hold other queries"):
        compare_at_equal_nnz(
            (drawn(5, 3, 0.0, 0), drawn(4, 3, 0.0, 0)), (drawn(5, 3, 0.0, 0), drawn(3, 3, 0.0, 0))
        )
