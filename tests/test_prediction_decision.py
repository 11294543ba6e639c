"""The decision rule, its bounds and its intervals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from prediction_rows import prediction_rows

from whencount.errors import InputError
from whencount.prediction import DECISION_COLUMNS, decide, decisions
from whencount.scoring import CONFIGURATIONS


def table(lines: list[tuple[str, float, float, float]]) -> pd.DataFrame:
    """Rows out of (collection, Q010, Q111, G~)."""
    rows = []
    for collection, never, always, estimate in lines:
        row: dict[str, Any] = {"collection": collection}
        row |= {f"q{c}": 0.1 for c in CONFIGURATIONS} | {"q010": never, "q111": always}
        row |= {f"pseudo_bm25_{c}": 0.5 for c in CONFIGURATIONS}
        rows.append(row | {"pseudo_bm25_111": 0.5 + estimate})
    return pd.DataFrame(rows)


EXAMPLE = table(
    [
        ("a", 0.20, 0.30, 0.1),  # use them: right
        ("a", 0.40, 0.30, -0.1),  # leave them: right, saves 0.10
        ("b", 0.30, 0.50, 0.1),  # use them: right
        ("b", 0.50, 0.44, 0.1),  # use them: wrong, the oracle saves 0.06
        ("c", 0.20, 0.22, 0.0),  # not above 0: leave them, loses 0.02
    ]
)


def test_the_rule_uses_statistics_where_the_estimated_gain_is_positive() -> None:
    assert list(decide(EXAMPLE, "bm25")) == ["111", "010", "111", "111", "010"]


def test_a_row_without_pseudo_labels_has_no_choice() -> None:
    rows = EXAMPLE.copy()
    rows.loc[2, "pseudo_bm25_010"] = np.nan
    assert list(decide(rows, "bm25")) == ["111", "010", None, "111", "010"]
    assert decisions(rows, draws=10, seed=0).loc[0, "rows"] == 4


def test_means_and_recovered_share_by_hand() -> None:
    table = decisions(EXAMPLE, draws=50, seed=0)
    lines = {str(line["value"]): line for line in table.to_dict("records")}
    line = lines[""]
    assert (line["reference"], line["scope"]) == ("bm25", "all")
    assert line["rows"] == 5
    assert line["never"] == pytest.approx(1.60 / 5)
    assert line["always"] == pytest.approx(1.76 / 5)
    assert line["rule"] == pytest.approx((0.30 + 0.40 + 0.50 + 0.44 + 0.20) / 5)
    assert line["oracle"] == pytest.approx((0.30 + 0.40 + 0.50 + 0.50 + 0.22) / 5)
    assert line["recovered"] == pytest.approx((1.84 - 1.76) / (1.92 - 1.76))
    assert line["gain_over_always"] == pytest.approx(0.08 / 5)
    assert line["gain_over_never"] == pytest.approx(0.24 / 5)
    assert line["accuracy"] == 3 / 5
    assert line["always_accuracy"] == 3 / 5
    assert line["never_accuracy"] == 2 / 5
    # The others of a are 2 to 1 for always, of b 2 to 1, of c 2 to 2: always everywhere.
    assert line["majority"] == pytest.approx(line["always"])
    assert line["gain_over_majority"] == pytest.approx(0.08 / 5)
    assert lines["a"]["recovered"] == pytest.approx(1)
    assert lines["b"]["recovered"] == 0
    # Where always is best there is no headroom to recover.
    assert np.isnan(lines["c"]["recovered"])


def test_the_majority_looks_at_the_other_collections_only() -> None:
    rows = table(
        [("a", 0.1, 0.3, 0.1), ("a", 0.1, 0.3, 0.1), ("b", 0.4, 0.2, -0.1), ("b", 0.4, 0.3, -0.1)]
    )
    lines = decisions(rows, draws=10, seed=0).set_index("value")
    # Each collection gets what suits the other.
    assert lines.loc["a", "majority"] == pytest.approx(0.1)
    assert lines.loc["b", "majority"] == pytest.approx(0.25)
    assert lines.loc["", "majority_accuracy"] == 0
    assert lines.loc["", "accuracy"] == 1
    alone = decisions(rows[rows["collection"] == "a"], draws=10, seed=0)
    assert alone["majority"].isna().all()
    assert alone["rule"].notna().all()


def test_rows_in_which_nothing_changes_are_left_out() -> None:
    """The published means are over 139 of the 140 primary rows (always: .1429, not .1419)."""
    nothing = table([("a", 0.1, 0.1, 0.1)])
    with_it = pd.concat([EXAMPLE, nothing], ignore_index=True)
    pd.testing.assert_frame_equal(
        decisions(with_it, draws=50, seed=0), decisions(EXAMPLE, draws=50, seed=0)
    )


def test_intervals_resample_whole_collections() -> None:
    rows = prediction_rows(references=("bm25",))
    rows = rows[rows["families"].str.contains("primary") & rows["margin"].notna()]
    line = decisions(rows, draws=80, seed=5).iloc[0]
    names = sorted(set(rows["collection"]))
    parts = [rows[rows["collection"] == name] for name in names]
    counts = np.random.default_rng(5).multinomial(6, np.full(6, 1 / 6), size=80)
    recovered, gains = [], []
    for draw in counts:
        sample = pd.concat(
            [part for part, times in zip(parts, draw, strict=True) for _ in range(times)]
        )
        chosen = np.where(decide(sample, "bm25") == "111", sample["q111"], sample["q010"]).mean()
        always, best = sample["q111"].mean(), sample[["q010", "q111"]].max(axis=1).mean()
        gains.append(chosen - always)
        if best - always > 1e-15:
            recovered.append((chosen - always) / (best - always))
    low, high = np.percentile(gains, [2.5, 97.5])
    assert (line["low"], line["high"]) == pytest.approx((low, high), abs=1e-12)
    low, high = np.percentile(recovered, [2.5, 97.5])
    assert (line["recovered_low"], line["recovered_high"]) == pytest.approx((low, high))
    assert low < line["recovered"] < high


def test_within_one_collection_an_interval_is_the_value_itself() -> None:
    lines = decisions(EXAMPLE, draws=50, seed=0)
    inside = lines[lines["scope"] == "collection"]
    for name in ("low", "high"):
        np.testing.assert_allclose(inside[name], inside["gain_over_always"])
        np.testing.assert_allclose(inside[f"recovered_{name}"], inside["recovered"])


def test_every_reference_has_its_lines_and_a_seed_repeats_them() -> None:
    rows = prediction_rows(references=("rrf", "dense", "bm25"), bases=("pca", "sae"))
    lines = decisions(rows, draws=100, seed=1)
    assert list(dict.fromkeys(lines["reference"])) == ["bm25", "dense", "rrf"]
    assert list(lines.columns) == list(DECISION_COLUMNS)
    assert (lines["oracle"] >= lines[["never", "always", "rule", "majority"]].max(axis=1)).all()
    shuffled = decisions(rows.sample(frac=1, random_state=2), draws=100, seed=1)
    pd.testing.assert_frame_equal(lines, shuffled)
    assert not lines.equals(decisions(rows, draws=100, seed=2))


def test_without_references_there_are_no_lines() -> None:
    rows = EXAMPLE.drop(columns=[f"pseudo_bm25_{c}" for c in CONFIGURATIONS])
    assert len(decisions(rows, draws=10, seed=0)) == 0
    with pytest.raises(InputError, match="no column pseudo_bm25_000"):
        decide(rows, "bm25")
    with pytest.raises(InputError, match="no column q010"):
        decisions(EXAMPLE.drop(columns="q010"), draws=10, seed=0)
