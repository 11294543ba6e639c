"""What is fitted on which rows, of which features."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from prediction_rows import labels, permuted, prediction_rows
from study_tables import ROOT, SCHEMA

from whencount import attribution
from whencount.config import load
from whencount.diagnostics import PRIMARY
from whencount.grid import expand
from whencount.prediction import feature_tiers
from whencount.prediction.axes import candidates, design
from whencount.rows import row_keys


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    return prediction_rows(bases=("pca", "kmeans", "pq", "sae"), references=("bm25", "dense"))


def test_no_feature_is_made_of_a_label(rows: pd.DataFrame) -> None:
    before = feature_tiers(rows).features
    after = feature_tiers(permuted(rows, pd.Series(True, index=rows.index))).features
    without = feature_tiers(rows.drop(columns=labels(rows))).features
    plain = ["registered", "frequency", "index", "rankings"]
    assert list(before) == [*plain, "pseudo_bm25", "pseudo_dense"]
    for tier, frame in before.items():
        pd.testing.assert_frame_equal(frame, after[tier])
        pd.testing.assert_frame_equal(frame, without[tier])


def test_tiers_are_cumulative(rows: pd.DataFrame) -> None:
    tiers = {name: set(frame.columns) for name, frame in feature_tiers(rows).features.items()}
    assert tiers["registered"] == set(PRIMARY)
    names = ["registered", "frequency", "index", "rankings", "pseudo_bm25"]
    for smaller, larger in pairwise(names):
        assert tiers[smaller] < tiers[larger]
    assert [len(tiers[name]) for name in names] == [3, 6, 12, 31, 37]
    assert not any("dense" in name for name in tiers["pseudo_bm25"])


def test_pseudo_features_are_the_targets_of_the_pseudo_labels(rows: pd.DataFrame) -> None:
    renamed = pd.DataFrame(
        {name: rows[name.replace("q", "pseudo_dense_")] for name in attribution.QUALITY_COLUMNS}
    )
    expected = attribution.targets(renamed)
    features = feature_tiers(rows).features["pseudo_dense"]
    for name in ("shapley_idf", "shapley_saturation", "shapley_length", "collection_gain"):
        np.testing.assert_array_equal(features[f"pseudo_dense_{name}"], expected[name])
    for bits in ("000", "111"):
        np.testing.assert_array_equal(
            features[f"pseudo_dense_q{bits}"], rows[f"pseudo_dense_{bits}"]
        )


def test_a_tier_without_its_columns_is_left_out_and_named(rows: pd.DataFrame) -> None:
    tiers = feature_tiers(rows.drop(columns=["peak_ratio", "pseudo_dense_011"]))
    assert list(tiers.features) == ["registered", "frequency"]
    assert tiers.notes == (
        "Predictors index are left out: the rows have no column peak_ratio.",
        "Predictors rankings are left out: the rows have no column peak_ratio.",
        "Predictors pseudo_bm25 are left out: they include rankings.",
    )


def test_no_group_stands_on_both_sides_of_a_fit(rows: pd.DataFrame) -> None:
    table = candidates(rows).reset_index(drop=True)
    plan = design(table, "primary")
    fits = plan.fits(np.ones(len(table), dtype=bool))
    folds = [(held.axis, held.fold) for fit in fits for held in fit.held]
    assert folds == [
        *(("family", name) for name in ("clustered", "learned", "linear", "quantised")),
        *(("corpus", name) for name in ("fiqa", "limit", "msmarco", "scifact")),
        *((axis, "primary") for axis in ("parameters", "budgets", "seeds")),
    ]
    for fit in fits:
        for held in fit.held:
            assert not set(fit.train) & set(held.positions)
            if held.axis in ("family", "corpus"):
                names = plan.family if held.axis == "family" else plan.corpus
                assert set(names[held.positions]) == {held.fold}
                assert held.fold not in set(names[fit.train])
                assert list(fit.groups) == list(names[fit.train])
                assert set(fit.train) | set(held.positions) == set(plan.primary)
            else:
                assert list(fit.groups) == list(plan.corpus[plan.primary])


def test_other_settings_are_those_of_primary_rows(rows: pd.DataFrame) -> None:
    # Native vectors of an external encoder, which has no primary row, are no row of "budgets".
    external = rows[rows["representation"] == "sae_token"].assign(
        representation="splade_external", basis="splade", granularity="external", families="more"
    )
    plans = [
        design(candidates(table).reset_index(drop=True), "primary")
        for table in (rows, pd.concat([rows, external.assign(budget="native")]))
    ]
    assert [{axis: len(others) for axis, others in plan.others.items()} for plan in plans] == [
        {axis: len(others) for axis, others in plans[0].others.items()}
    ] * 2


def test_the_full_configuration_has_the_published_axes() -> None:
    """Study, section 4: 140 primary rows on the ten, 560, 322 and 100 others."""
    config = load(ROOT / "configs" / "full.yaml", SCHEMA)
    table = pd.DataFrame(
        [
            row_keys(job, cell) | {"families": " ".join(families)}
            for job, cells in expand(config).items()
            for cell, families in cells.items()
        ]
    )
    ten = config["statistics"]["collections"]
    plan = design(candidates(table, ten).reset_index(drop=True), "primary")
    assert len(plan.primary) == 140
    assert {axis: len(positions) for axis, positions in plan.others.items()} == {
        "parameters": 560,
        "budgets": 322,
        "seeds": 100,
    }
    assert plan.notes == ()
    assert len(design(candidates(table).reset_index(drop=True), "primary").primary) == 182
