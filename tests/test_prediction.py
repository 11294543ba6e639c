"""Predictors see no label of the rows they predict; their tables follow from the definitions."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
from prediction_rows import permuted, prediction_rows
from study_tables import ROOT

from whencount.diagnostics import PRIMARY, TIER_1, TIER_2
from whencount.errors import InputError
from whencount.naming import BASIS_FAMILIES, CELL_KEYS
from whencount.prediction import (
    DECISION_COLUMNS,
    DEFAULT_ALPHA,
    PREDICTION_COLUMNS,
    PREDICTOR_COLUMNS,
    TARGETS,
    PredictionResult,
    Ridge,
    feature_tiers,
    fit_ridge,
    nothing_predicted,
    predict,
    study,
)
from whencount.prediction.axes import candidates
from whencount.prediction.targets import FEW_SWITCHES, UNDEFINED
from whencount.ranking_diagnostics import TIER_3

KEYS = list(CELL_KEYS)
SMALL = ("identity", "pca", "kmeans", "pq", "sae")
"""All four families, so that everything can be held out."""


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    return prediction_rows(bases=SMALL, references=("bm25", "dense"))


@pytest.fixture(scope="module")
def ridge(rows: pd.DataFrame) -> PredictionResult:
    return predict(rows, seed=0, models=("ridge",))


@pytest.fixture(scope="module")
def few() -> pd.DataFrame:
    """Less of everything and the registered features only, so that trees take little time."""
    rows = prediction_rows(
        collections=("msmarco", "dl19", "scifact", "limit"),
        small=("scifact",),
        bases=("pca", "kmeans", "pq", "sae"),
        references=("bm25", "dense"),
    )
    return rows.drop(columns=[*(set(TIER_1) - set(PRIMARY)), *TIER_2, *TIER_3])


@pytest.fixture(scope="module")
def both(few: pd.DataFrame) -> PredictionResult:
    """Both models on the few rows."""
    return predict(few, seed=0)


def primary(rows: pd.DataFrame) -> pd.Series:
    return rows["families"].str.contains("primary")


# Leakage


@pytest.mark.parametrize(
    ("axis", "fold"),
    [("family", fold) for fold in sorted(set(BASIS_FAMILIES.values()))]
    + [("corpus", fold) for fold in ("fiqa", "limit", "msmarco", "scifact")],
)
def test_labels_of_a_held_out_fold_change_none_of_its_ridge_predictions(
    rows: pd.DataFrame, ridge: PredictionResult, axis: str, fold: str
) -> None:
    belongs = rows["basis"].map(BASIS_FAMILIES) if axis == "family" else rows["corpus"]
    after = predict(permuted(rows, belongs == fold), seed=0, models=("ridge",))
    held, others = _compared(ridge, after, axis, fold)
    assert (held["predicted_x"] == held["predicted_y"]).all()
    assert (held["observed_x"] != held["observed_y"]).any()
    # The same permutation does reach the folds that train on these rows.
    assert (others["predicted_x"] != others["predicted_y"]).any()


@pytest.mark.parametrize(("axis", "fold"), [("family", "clustered"), ("corpus", "msmarco")])
def test_labels_of_a_held_out_fold_change_none_of_its_boosted_predictions(
    few: pd.DataFrame, both: PredictionResult, axis: str, fold: str
) -> None:
    belongs = few["basis"].map(BASIS_FAMILIES) if axis == "family" else few["corpus"]
    after = predict(permuted(few, belongs == fold), seed=0, models=("boosted",))
    held, others = _compared(both, after, axis, fold)
    assert (held["predicted_x"] == held["predicted_y"]).all()
    assert (others["predicted_x"] != others["predicted_y"]).any()


def test_labels_of_rows_that_are_not_primary_change_no_prediction(
    rows: pd.DataFrame, ridge: PredictionResult
) -> None:
    after = predict(permuted(rows, ~primary(rows)), seed=0, models=("ridge",))
    for axis in ("parameters", "budgets", "seeds"):
        held, _ = _compared(ridge, after, axis, "primary")
        assert len(held) > 0
        assert (held["predicted_x"] == held["predicted_y"]).all()
        assert (held["observed_x"] != held["observed_y"]).any()


def _compared(
    before: PredictionResult, after: PredictionResult, axis: str, fold: str
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Fitted predictions of the same row on both sides: of the fold, and of the axis's others.

    From the margin other rows of the fold may be left out now: those on both sides count.
    """
    names = ["target", "predictors", "model", "axis", "fold"]
    merged = before.predictions.merge(after.predictions, on=[*KEYS, *names])
    merged = merged[(merged["axis"] == axis) & (merged["model"] != "unfitted")]
    return merged[merged["fold"] == fold], merged[merged["fold"] != fold]


@pytest.mark.parametrize("held", ["scifact", "sae"])
def test_scaler_and_penalty_see_the_training_fold_only(
    rows: pd.DataFrame, monkeypatch: pytest.MonkeyPatch, held: str
) -> None:
    """Features of held-out rows, blown up, leave scaler, penalty and coefficients as they were."""
    wild = rows.copy()
    column = "corpus" if held == "scifact" else "basis"
    chosen = wild[column] == held
    features = [*TIER_1, *TIER_2, *TIER_3]
    wild.loc[chosen, features] = wild.loc[chosen, features] * 1e6 - 1e3
    group = held if held == "scifact" else BASIS_FAMILIES[held]
    before, after = _ridges(rows, monkeypatch), _ridges(wild, monkeypatch)
    assert [names for names, _ in before] == [names for names, _ in after]
    everything = {"scifact", "fiqa", "limit", "msmarco"}
    everything = everything if held == "scifact" else set(BASIS_FAMILIES.values())
    unseen = [n for n, (names, _) in enumerate(before) if names == everything - {group}]
    assert len(unseen) == len(TARGETS) * len(feature_tiers(rows).features)
    for number in unseen:
        one, other = before[number][1], after[number][1]
        assert one.alpha == other.alpha
        for part in ("centre", "scale", "coefficients", "intercept"):
            np.testing.assert_array_equal(getattr(one, part), getattr(other, part))
    seen = [n for n, (names, _) in enumerate(before) if names == everything]
    assert all((before[n][1].scale != after[n][1].scale).any() for n in seen)


def _ridges(rows: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> list[tuple[set[str], Ridge]]:
    """Every ridge of a study in the order of fitting, with the groups in its training rows."""
    fitted: list[tuple[set[str], Ridge]] = []

    def recording(features: Any, target: Any, groups: Any) -> Ridge:
        model = original(features, target, groups)
        fitted.append((set(groups), model))
        return model

    original = fit_ridge
    with monkeypatch.context() as patch:
        patch.setattr(study, "fit_ridge", recording)
        predict(rows, seed=0, models=("ridge",))
    return fitted


def test_collections_that_share_a_corpus_are_held_out_together(ridge: PredictionResult) -> None:
    table = ridge.predictions
    fold = table[(table["axis"] == "corpus") & (table["fold"] == "msmarco")]
    assert set(fold["collection"]) == {"msmarco", "dl19", "dl20"}


# Axes


def test_controls_and_shared_dictionaries_take_no_part(rows: pd.DataFrame) -> None:
    shared = rows[primary(rows)].assign(basis="sae_shared", representation="sae_shared_x")
    result = predict(
        pd.concat([rows, shared.drop_duplicates(KEYS)], ignore_index=True),
        seed=0,
        models=("ridge",),
    )
    assert set(rows["control"]) == {"", "shuffled_df"}
    assert set(result.predictions["control"]) == {""}
    assert not result.predictions["representation"].str.contains("shared").any()


def test_without_families_the_default_cell_is_primary(
    few: pd.DataFrame,
) -> None:
    plain = predict(few.drop(columns="families"), seed=0, models=("ridge",))
    named = predict(few, seed=0, models=("ridge",))
    pd.testing.assert_frame_equal(plain.predictions, named.predictions)
    with pytest.raises(InputError, match="is primary"):
        predict(few[few["k1"] != 1.2].drop(columns="families"), seed=0)


def test_without_corpora_collections_are_held_out(few: pd.DataFrame) -> None:
    table = predict(few.drop(columns="corpus"), seed=0, models=("ridge",)).predictions
    folds = set(table[table["axis"] == "corpus"]["fold"])
    assert folds == set(few["collection"])


def test_an_axis_that_a_study_cannot_have_is_named(few: pd.DataFrame) -> None:
    chosen = few[primary(few) & (few["basis"] == "sae") & (few["collection"] == "limit")]
    result = predict(chosen, seed=0, models=("ridge",))
    assert list(result.predictors.columns) == list(PREDICTOR_COLUMNS)
    assert set(result.predictors["axis"]) == {"primary"}
    for words in (
        "Axis parameters is left out: no rows",
        "Axis budgets is left out: no rows",
        "Axis seeds is left out: no rows",
        "Axis family is left out: the primary rows have one basis family, learned.",
        "Axis corpus is left out: the primary rows have one corpus, limit.",
    ):
        assert any(note.startswith(words) for note in result.notes), words


def test_two_corpora_leave_the_penalty_at_ten(few: pd.DataFrame) -> None:
    chosen = few[few["corpus"].isin(["scifact", "limit"])]
    table = predict(chosen, seed=0, models=("ridge",)).predictors
    alphas = table[(table["axis"] == "corpus") & (table["model"] == "ridge")]["alpha"]
    assert set(alphas) == {f"{DEFAULT_ALPHA:g} {DEFAULT_ALPHA:g}"}


# Targets


def test_rows_that_cannot_be_asked_are_listed(rows: pd.DataFrame, ridge: PredictionResult) -> None:
    left_out = ridge.left_out
    undefined = left_out[left_out["reason"] == UNDEFINED]
    assert set(undefined["target"]) == set(TARGETS)
    assert set(undefined["representation"] + " " + undefined["collection"]) == {
        "kmeans_pooled limit"
    }
    few_switches = left_out[left_out["reason"] == FEW_SWITCHES]
    assert set(few_switches["target"]) == {"margin"}
    # With b = 0 the switch for length does nothing, which still leaves two.
    assert set(few_switches["representation"]) == {"pq_pooled"}
    taking_part = candidates(rows)
    assert len(few_switches) == (taking_part["representation"] == "pq_pooled").sum()
    primaries = int(primary(rows).sum())
    for target, count in (("idf", 1), ("margin", 1 + 6)):
        table = _chosen(ridge.predictors, axis="corpus", target=target)
        assert set(table["left_out"]) == {count}
        assert set(table["rows"]) == {primaries - count}
    assert any(UNDEFINED in note for note in ridge.notes)


def test_targets_stand_for_themselves_where_the_qualities_are_missing(few: pd.DataFrame) -> None:
    columns = [name for name in few.columns if re.fullmatch(r"q[01]{3}", name)]
    plain = predict(few.drop(columns=columns), seed=0, models=("ridge",))
    full = predict(few, seed=0, models=("ridge",))
    pd.testing.assert_frame_equal(plain.predictions, full.predictions)
    columns += ["margin", "collection_gain"]
    less = predict(few.drop(columns=columns), seed=0, models=("ridge",))
    assert set(less.predictors["target"]) == {"idf", "saturation", "length"}
    assert "Target margin is left out: the rows have no column margin." in less.notes


# Numbers


def test_ridge_over_families_equals_scikit_learn(
    rows: pd.DataFrame, ridge: PredictionResult
) -> None:
    from sklearn.linear_model import Ridge
    from sklearn.metrics import r2_score
    from sklearn.model_selection import GridSearchCV, LeaveOneGroupOut
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    table = rows[primary(rows) & rows["margin"].notna()].sort_values(KEYS)
    family = table["basis"].map(BASIS_FAMILIES)
    features = table[[*TIER_1, *TIER_2]].to_numpy()
    outcome = table["shapley_saturation"].to_numpy()
    search = GridSearchCV(
        make_pipeline(StandardScaler(), Ridge()),
        {"ridge__alpha": [0.1, 1, 10, 100]},
        cv=LeaveOneGroupOut(),
        # Summed over rows, not averaged over folds of different sizes.
        scoring=lambda model, x, y: -((model.predict(x) - y) ** 2).sum(),
    )
    predicted = np.empty(len(table))
    for name in sorted(set(family)):
        train = (family != name).to_numpy()
        search.fit(features[train], outcome[train], groups=family[train])
        predicted[~train] = search.predict(features[~train])
    chosen = {"target": "saturation", "predictors": "index", "axis": "family", "model": "ridge"}
    ours = _chosen(ridge.predictions, **chosen).sort_values(KEYS)
    np.testing.assert_allclose(ours["predicted"], predicted, rtol=1e-8)
    np.testing.assert_array_equal(ours["observed"], outcome)
    line = _chosen(ridge.predictors, **chosen).iloc[0]
    assert line["r2"] == pytest.approx(r2_score(outcome, predicted), rel=1e-9)


def test_boosting_at_other_parameters_equals_scikit_learn(
    few: pd.DataFrame, both: PredictionResult
) -> None:
    from sklearn.ensemble import HistGradientBoostingRegressor

    table = few.sort_values(KEYS)
    train = table[primary(table) & table["margin"].notna()]
    other = table[
        (table["families"] == "parameters") & ~((table["k1"] == 1.2) & (table["b"] == 0.75))
    ]
    estimator = HistGradientBoostingRegressor(
        max_iter=300,
        learning_rate=0.05,
        max_leaf_nodes=15,
        min_samples_leaf=10,
        l2_regularization=1,
        early_stopping=False,
        random_state=0,
    ).fit(train[list(PRIMARY)].to_numpy(), train["collection_gain"].to_numpy())
    ours = _chosen(
        both.predictions,
        target="collection_gain",
        predictors="registered",
        model="boosted",
        axis="parameters",
    )
    np.testing.assert_allclose(
        ours.sort_values(KEYS)["predicted"],
        estimator.predict(other[list(PRIMARY)].to_numpy()),
        rtol=1e-9,
    )
    assert set(_chosen(both.predictors, model="boosted")["alpha"]) == {""}


def test_the_unfitted_estimate_is_the_pseudo_label_itself(
    rows: pd.DataFrame, ridge: PredictionResult
) -> None:
    table = _chosen(ridge.predictions, model="unfitted", predictors="pseudo_bm25")
    assert set(table["axis"]) == {"primary", "parameters", "budgets", "seeds"}
    assert set(table["target"]) == set(TARGETS) - {"margin"}
    part = table[table["target"] == "collection_gain"].merge(rows, on=KEYS)
    np.testing.assert_array_equal(
        part["predicted"], part["pseudo_bm25_111"] - part["pseudo_bm25_010"]
    )
    lines = _chosen(ridge.predictors, model="unfitted")
    assert (lines["rows_fitted"] == 0).all()
    # Without training rows there is no majority of theirs.
    assert (lines["majority_accuracy"].isna() == (lines["axis"] == "primary")).all()


def test_scores_follow_from_the_table_of_predictions(ridge: PredictionResult) -> None:
    from scipy.stats import spearmanr
    from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error

    names = ["target", "predictors", "model", "axis"]
    groups = dict(list(ridge.predictions.groupby(names)))
    assert len(groups) == len(ridge.predictors)
    for line in ridge.predictors.itertuples():
        part = groups[line.target, line.predictors, line.model, line.axis]
        observed, predicted = part["observed"], part["predicted"]
        assert line.rows == len(part)
        assert line.r2 == pytest.approx(r2_score(observed, predicted), rel=1e-9, abs=1e-12)
        assert line.mae == pytest.approx(mean_absolute_error(observed, predicted))
        assert line.rmse == pytest.approx(root_mean_squared_error(observed, predicted))
        assert line.sign_accuracy == (np.sign(observed) == np.sign(predicted)).mean()
        assert line.always_accuracy == (observed > 0).mean()
        assert line.never_accuracy == (observed < 0).mean()
        if np.ptp(predicted) > 0:
            assert line.spearman == pytest.approx(spearmanr(observed, predicted).statistic)


def test_the_majority_is_that_of_the_training_fold(
    rows: pd.DataFrame, ridge: PredictionResult
) -> None:
    table = rows[primary(rows) & rows["margin"].notna()]
    sign = np.sign(table["shapley_idf"])
    right = 0
    for name in sorted(set(table["corpus"])):
        held = table["corpus"] == name
        counts = sign[~held].value_counts()
        right += int((sign[held] == counts.idxmax()).sum())
    line = _chosen(
        ridge.predictors, target="idf", predictors="index", model="ridge", axis="corpus"
    ).iloc[0]
    assert line["majority_accuracy"] == pytest.approx(right / len(table))


# Tables


def test_the_order_of_the_rows_changes_nothing(few: pd.DataFrame, both: PredictionResult) -> None:
    first = both
    second = predict(few.sample(frac=1, random_state=3), seed=0)
    for name in ("predictors", "predictions", "left_out"):
        pd.testing.assert_frame_equal(getattr(first, name), getattr(second, name), check_exact=True)
    assert first.notes == second.notes
    assert list(first.predictors.columns) == list(PREDICTOR_COLUMNS)
    assert list(first.predictions.columns) == list(PREDICTION_COLUMNS)


def test_missing_and_constant_features_give_numbers_and_a_note(few: pd.DataFrame) -> None:
    table = few.copy()
    table["zipf_slope"] = 1.25
    table.loc[table["collection"] == "limit", "idf_variance"] = np.nan
    table["mass_top_share"] = np.nan
    result = predict(table, seed=0)
    assert np.isfinite(result.predictions["predicted"]).all()
    assert any("lack a feature" in note for note in result.notes)


def test_rows_without_pseudo_labels_are_left_out_of_the_unfitted_estimate(
    few: pd.DataFrame,
) -> None:
    table = few.copy()
    table.loc[table["collection"] == "scifact", "pseudo_bm25_010"] = np.nan
    result = predict(table, seed=0, models=())
    lines = _chosen(result.predictors, target="idf", axis="primary").set_index("predictors")
    missing = int(((table["collection"] == "scifact") & primary(table)).sum())
    assert lines.loc["pseudo_bm25", "left_out"] == missing + 1
    assert lines.loc["pseudo_dense", "left_out"] == 1
    assert np.isfinite(result.predictions["predicted"]).all()


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("predictors", PREDICTOR_COLUMNS),
        ("predictions", PREDICTION_COLUMNS),
        ("decisions", DECISION_COLUMNS),
    ],
)
def test_every_column_is_explained(name: str, columns: tuple[str, ...]) -> None:
    text = (ROOT / "docs" / "tables.md").read_text(encoding="utf-8")
    section = text.split(f"## {name}.parquet")[1].split("\n## ")[0]
    assert [column for column in columns if f"`{column}`" not in section] == []


def test_faults_are_named(few: pd.DataFrame) -> None:
    with pytest.raises(InputError, match="no column budget"):
        predict(few.drop(columns="budget"), seed=0)
    with pytest.raises(InputError, match="1 rows stand twice"):
        predict(pd.concat([few, few.tail(1)]), seed=0)
    with pytest.raises(InputError, match="no row belongs to the family 'nothing'"):
        predict(few, seed=0, primary_family="nothing")


def _chosen(table: pd.DataFrame, **values: str) -> pd.DataFrame:
    for name, value in values.items():
        table = table[table[name] == value]
    return table


def test_a_study_of_controls_and_shared_dictionaries_alone_predicts_nothing(
    rows: pd.DataFrame,
) -> None:
    shared = rows.assign(basis=rows["basis"] + "_shared")
    assert len(candidates(shared)) == 0
    assert len(candidates(rows.assign(control="uniform_df"))) == 0
    nothing = nothing_predicted("there is no row")
    assert (len(nothing.predictors), len(nothing.predictions), len(nothing.left_out)) == (0, 0, 0)
    assert list(nothing.predictors.columns) == list(PREDICTOR_COLUMNS)
    assert list(nothing.predictions.columns) == list(PREDICTION_COLUMNS)
    assert nothing.notes == ("there is no row",)
