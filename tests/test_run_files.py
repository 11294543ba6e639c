"""Printed scores: strictly falling in single precision, as near to the scores as that allows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whencount.errors import InputError
from whencount.run_files import TrecWriter, printed_scores

SCORES = st.lists(
    st.one_of(
        st.floats(1e-320, 1e300),
        st.sampled_from([1.0, 1.0 + 2**-30, 1e-45, 1e-60, 3.5e38, 1e39, 0.1]),
    ),
    min_size=1,
    max_size=30,
)


@given(SCORES, st.integers(0, 3))
@settings(max_examples=300, deadline=None)
def test_printed_scores_fall_strictly_and_survive_printing(scores: list[float], spare: int) -> None:
    falling = np.array([[*sorted(scores, reverse=True), *[0.0] * spare]])
    count = np.array([len(scores)], np.int32)
    printed = printed_scores(falling, count)
    assert printed.dtype == np.float32
    assert np.isfinite(printed).all()
    assert (printed[0, len(scores) :] == 0).all()
    text = pa.array(printed[0, : len(scores)]).cast(pa.string()).to_pylist()
    read = np.array([float(score) for score in text]).astype(np.float32)
    assert (np.diff(read) < 0).all()


def test_scores_apart_are_printed_rounded() -> None:
    scores = np.array([[52.25578971, 3.3, 1e-7]])
    printed = printed_scores(scores, np.array([3], np.int32))
    np.testing.assert_array_equal(printed, scores.astype(np.float32))


def test_tie_spreads_around_its_score() -> None:
    scores = np.array([[9.0, 1.5, 1.5, 1.5, 0.25]])
    printed = printed_scores(scores, np.array([5], np.int32))[0]
    step = np.spacing(np.float32(1.5))
    np.testing.assert_array_equal(
        printed, np.array([9.0, 1.5 + step, 1.5, 1.5 - step, 0.25], np.float32)
    )


def test_ids_with_white_space_cannot_stand_in_a_trec_run() -> None:
    with pytest.raises(InputError, match="document id 'a b' holds white space"):
        TrecWriter(Path("unused"), pa.array(["a", "a b"]), "tag")
