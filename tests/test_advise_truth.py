"""Advice that has seen no label, judged by the labels of a real collection."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.advise_truth import summed, verdicts, world
from whencount.advising.evidence import CUTOFF

CRANFIELD = Path(__file__).parents[2] / "shared" / "data" / "cranfield"


def test_advice_is_rarely_below_the_inner_product_on_cranfield() -> None:
    if not CRANFIELD.is_dir():
        pytest.skip(f"{CRANFIELD} is not here")
    known = world(CRANFIELD)
    assert all(one.shape == (225, CUTOFF) for one in known.references.values())
    rows = verdicts(known, (("bm25",), ("bm25", "dense")))
    found = summed(rows)
    # Eight representations by two sets of references: words and LSA.
    assert found["advices"] == 16
    assert found["at_least_000"] >= 15
    assert found["advised"] > found["always_000"] + 0.1
    # Near the best of the eight, which only the labels know.
    assert found["advised"] > found["oracle"] - 0.02
    # The advice is not one and the same for all.
    assert len({row["advice"] for row in rows}) > 2


def test_sums_count_losses_by_the_labels() -> None:
    plain = dict.fromkeys(("001", "010", "011", "100", "101", "110", "111"), 0.4)
    rows = [{"advised": 0.4, "000": 0.5, **plain}, {"advised": 0.6, "000": 0.3, **plain}]
    found = summed(rows)
    assert (found["advices"], found["at_least_000"]) == (2, 1)
    assert found["worst_loss"] == pytest.approx(-0.1)
    assert found["oracle"] == pytest.approx(np.mean([0.5, 0.4]))
