"""Predictors frozen in retrieval, applied to other settings, judged there (study, section 11)."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from prediction_rows import permuted, prediction_rows
from sklearn.linear_model import Ridge as SklearnRidge
from sklearn.preprocessing import StandardScaler
from transfer_tables import MEANINGLESS, expert_rows, page_rows

from whencount import prediction, transfer
from whencount.diagnostics import PRIMARY, TIER_1, TIER_2
from whencount.errors import InputError
from whencount.ranking_diagnostics import TIER_3
from whencount.reports.transfer_words import counted, in_words
from whencount.tables import write_table
from whencount.transfer.predictors import KINDS, Predictor
from whencount.transfer.testing import FAILS, HOLDS, NOT_APPLICABLE

NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def retrieval() -> pd.DataFrame:
    return prediction_rows()


@pytest.fixture(scope="module")
def frozen(retrieval: pd.DataFrame) -> transfer.Frozen:
    return transfer.freeze(retrieval, now=NOW)


@pytest.fixture(scope="module")
def predicted(frozen: transfer.Frozen) -> pd.DataFrame:
    parts = [
        transfer.apply(frozen, "pages", page_rows()),
        transfer.apply(frozen, "experts", expert_rows()),
    ]
    return pd.concat(parts, ignore_index=True)


@pytest.fixture(scope="module")
def table(frozen: transfer.Frozen, predicted: pd.DataFrame) -> pd.DataFrame:
    return transfer.assess(frozen, predicted)


def of(frozen: transfer.Frozen, target: str, kind: str) -> Predictor:
    return next(one for one in frozen.predictors if (one.target, one.kind) == (target, kind))


def primary(rows: pd.DataFrame) -> pd.DataFrame:
    """Primary rows whose margin is defined, by the columns of the table alone."""
    chosen = rows["families"].str.split().map(lambda names: "primary" in names)
    return rows[chosen & rows["margin"].notna()]


def sklearn_ridge(
    features: NDArray[Any], outcome: NDArray[Any], groups: NDArray[Any]
) -> tuple[StandardScaler, SklearnRidge]:
    """The ridge of the study by another library: penalty by leaving one group out."""

    def fit(matrix: NDArray[Any], values: NDArray[Any], alpha: float) -> Any:
        scaler = StandardScaler().fit(matrix)
        return scaler, SklearnRidge(alpha=alpha).fit(scaler.transform(matrix), values)

    best = 10.0
    if len(set(groups)) >= 3:
        errors = {}
        for alpha in (0.1, 1.0, 10.0, 100.0):
            total = 0.0
            for group in set(groups):
                held = groups == group
                scaler, model = fit(features[~held], outcome[~held], alpha)
                guess = model.predict(scaler.transform(features[held]))
                total += float(((guess - outcome[held]) ** 2).sum())
            errors[alpha] = total
        best = min(errors, key=lambda alpha: errors[alpha])
    scaler, model = fit(features, outcome, best)
    return scaler, model


def seen_in(rows: pd.DataFrame, reference: str, kind: str) -> NDArray[Any]:
    """The columns of a kind, computed from the table by the formulas of the study."""
    if kind == "registered":
        return rows[list(PRIMARY)].to_numpy(dtype=float)
    q = {c: rows[f"pseudo_{reference}_{c:03b}"].to_numpy(dtype=float) for c in range(8)}
    pseudo = []
    for bit, (one, other) in ((4, (2, 1)), (2, (4, 1)), (1, (4, 2))):
        pseudo.append(
            (q[bit] - q[0]) / 3
            + (q[bit | one] - q[one]) / 6
            + (q[bit | other] - q[other]) / 6
            + (q[7] - q[7 - bit]) / 3
        )
    pseudo += [q[7] - q[2], q[0], q[7]]
    matrix = np.column_stack(pseudo)
    if kind == "pseudo_alone":
        return matrix
    tiers = rows[[*TIER_1, *TIER_2, *TIER_3]].to_numpy(dtype=float)
    return np.column_stack([tiers, matrix])


TARGET_COLUMNS = {"idf": "shapley_idf", "saturation": "shapley_saturation", "margin": "margin"}


@pytest.mark.parametrize("kind", ["registered", "pseudo", "pseudo_alone"])
@pytest.mark.parametrize("target", ["idf", "saturation"])
def test_what_is_predicted_elsewhere_is_what_another_library_predicts(
    retrieval: pd.DataFrame, predicted: pd.DataFrame, kind: str, target: str
) -> None:
    fitted_on = primary(retrieval)
    scaler, model = sklearn_ridge(
        seen_in(fitted_on, "dense", kind),
        fitted_on[TARGET_COLUMNS[target]].to_numpy(),
        fitted_on["corpus"].to_numpy(),
    )
    rows = expert_rows().sort_values(["model", "evaluation", "active", "variant"])
    expected = model.predict(scaler.transform(seen_in(rows, "dense", kind)))
    lines = predicted[
        (predicted["setting"] == "experts")
        & (predicted["target"] == target)
        & (predicted["predictors"] == kind)
    ]
    assert list(lines["task"]) == list(rows["evaluation"])
    assert lines["predicted"].to_numpy() == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("target", ["idf", "saturation"])
def test_the_error_allowed_is_that_of_corpora_held_out(
    retrieval: pd.DataFrame, frozen: transfer.Frozen, target: str
) -> None:
    rows = primary(retrieval)
    features, outcome = seen_in(rows, "dense", "registered"), rows[TARGET_COLUMNS[target]]
    corpora = rows["corpus"].to_numpy()
    errors = []
    for corpus in sorted(set(corpora)):
        held = corpora == corpus
        scaler, model = sklearn_ridge(features[~held], outcome.to_numpy()[~held], corpora[~held])
        errors.append(model.predict(scaler.transform(features[held])) - outcome.to_numpy()[held])
    expected = math.sqrt(float((np.concatenate(errors) ** 2).mean()))
    assert of(frozen, target, "registered").rmse == pytest.approx(expected, rel=1e-9)


def test_the_errors_allowed_are_those_of_the_predictor_study(
    retrieval: pd.DataFrame, frozen: transfer.Frozen
) -> None:
    lines = prediction.predict(retrieval, seed=0, models=("ridge",)).predictors
    ridge = lines[(lines["model"] == "ridge") & (lines["axis"] == "corpus")]
    unfitted = lines[(lines["model"] == "unfitted") & (lines["axis"] == "primary")]
    for found, kind, name in (
        (ridge, "registered", "registered"),
        (ridge, "pseudo", "pseudo_dense"),
        (unfitted, "unfitted", "pseudo_dense"),
    ):
        part = found[found["predictors"] == name]
        assert len(part) == (5 if kind != "unfitted" else 4)
        for _, line in part.iterrows():
            assert of(frozen, line["target"], kind).rmse == pytest.approx(line["rmse"], rel=1e-12)


def test_the_unfitted_estimate_is_the_target_on_the_settings_own_pseudo_labels(
    predicted: pd.DataFrame,
) -> None:
    rows = page_rows().sort_values(["model", "task", "context", "budget", "variant"])
    lines = predicted[(predicted["setting"] == "pages") & (predicted["predictors"] == "unfitted")]
    gain = lines[lines["target"] == "collection_gain"]
    expected = rows["pseudo_mass_111"] - rows["pseudo_mass_010"]
    assert gain["predicted"].to_numpy() == pytest.approx(expected.to_numpy(), abs=1e-15)
    assert "margin" not in set(lines["target"])


def test_scores_are_those_of_the_lines(
    frozen: transfer.Frozen, predicted: pd.DataFrame, table: pd.DataFrame
) -> None:
    for _, line in table[table["scope"] == "all"].iterrows():
        part = predicted[
            (predicted["setting"] == line["setting"])
            & (predicted["target"] == line["target"])
            & (predicted["predictors"] == line["predictors"])
            & (predicted["left_out"] == "")
        ]
        assert len(part) == line["rows"]
        if len(part) == 0:
            continue
        error = part["predicted"] - part["observed"]
        assert line["mae"] == pytest.approx(error.abs().mean())
        assert line["rmse"] == pytest.approx(math.sqrt((error**2).mean()))
        right = np.sign(part["predicted"]) == np.sign(part["observed"])
        assert line["sign_accuracy"] == pytest.approx(right.mean())
        majority = of(frozen, line["target"], line["predictors"]).majority_sign
        assert line["majority_accuracy"] == (np.sign(part["observed"]) == majority).mean()
        assert line["sign_accuracy_low"] <= line["sign_accuracy"] <= line["sign_accuracy_high"]
        assert line["mae_low"] <= line["mae"] <= line["mae_high"]
        holds = (
            right.mean() >= 0.7
            and error.abs().mean() <= 1.5 * of(frozen, line["target"], line["predictors"]).rmse
            and right.mean() > line["majority_accuracy"]
        )
        assert line["verdict"] == (HOLDS if holds else FAILS)
        assert (line["reason"] == "") == holds
    assert {HOLDS, FAILS, NOT_APPLICABLE} == set(table["verdict"])


CASES = {
    # observed, predicted, what fails; the majority sign of retrieval is +, the largest error 0.15.
    "all three pass": ([0.1, 0.2, -0.1, -0.2], [0.1, 0.2, -0.1, 0.1], ""),
    "signs": ([-0.1, -0.1, -0.1, 0.1], [-0.1, -0.1, 0.1, -0.1], "too few signs are right"),
    "error": ([0.1, 0.2, -0.1, -0.2], [0.9, 0.9, -0.1, 0.1], "the error is too large"),
    "majority": ([0.1, 0.2, 0.1, -0.2], [0.1, 0.2, 0.1, 0.1], "the majority sign does no worse"),
    "an exact zero": ([0.0, 0.0, 0.1, -0.1], [1e-9, 1e-9, 0.1, -0.1], "too few signs are right"),
}


@pytest.mark.parametrize("name", CASES)
def test_each_criterion_alone_can_fail(name: str) -> None:
    observed, guesses, reason = CASES[name]
    nothing = np.zeros(1)
    predictor = Predictor("idf", "unfitted", ("pseudo_shapley_idf",), None, nothing, nothing, 9,
                          0.1, 1.0)  # fmt: skip
    frozen = transfer.Frozen(NOW, {}, {}, {}, {"pages": "mass"}, transfer.Criteria(), (predictor,))
    lines = pd.DataFrame(
        {
            "setting": "pages",
            "model": "m",
            "task": [f"t{place}" for place in range(4)],
            "variant": "head",
            "target": "idf",
            "predictors": "unfitted",
            "observed": observed,
            "predicted": guesses,
            "outside": False,
            "left_out": "",
        }
    )
    (line,) = transfer.assess(frozen, lines).to_dict("records")
    assert line["reason"] == reason
    assert line["verdict"] == (FAILS if reason else HOLDS)
    assert line["zeros"] == observed.count(0.0)
    assert line["thin"] is True


def test_a_predictor_whose_column_is_null_is_not_applicable_and_says_so(
    table: pd.DataFrame,
) -> None:
    lines = table[(table["setting"] == "pages") & (table["scope"] == "all")]
    tiers = lines[lines["predictors"] == "pseudo"]
    assert set(tiers["verdict"]) == {NOT_APPLICABLE}
    assert all(name in tiers["reason"].iloc[0] for name in MEANINGLESS)
    assert NOT_APPLICABLE not in set(lines[lines["predictors"] == "registered"]["verdict"])
    words = " ".join(in_words(table)["pages"])
    assert "peak_ratio" in words
    assert "In their place pseudo-labels alone transfer" in words


@pytest.mark.parametrize("setting", ["pages", "experts"])
def test_outcomes_of_a_setting_reach_no_prediction(frozen: transfer.Frozen, setting: str) -> None:
    rows = page_rows() if setting == "pages" else expert_rows()
    dealt = permuted(rows, pd.Series(True, index=rows.index), seed=2)
    before, after = (transfer.apply(frozen, setting, one) for one in (rows, dealt))
    pd.testing.assert_series_equal(before["predicted"], after["predicted"])
    assert not before["observed"].equals(after["observed"])


def test_rows_without_their_own_reference_leave_the_pseudo_labels_no_say(
    frozen: transfer.Frozen,
) -> None:
    rows = page_rows().rename(columns=lambda name: name.replace("pseudo_mass", "pseudo_dense"))
    lines = transfer.apply(frozen, "pages", rows)
    pseudo = lines[lines["predictors"].isin(["pseudo_alone", "unfitted"])]
    assert pseudo["predicted"].isna().all()
    assert (pseudo["left_out"].str.startswith("no value of pseudo_")).all()


def test_rows_beyond_the_range_of_retrieval_are_counted(frozen: transfer.Frozen) -> None:
    rows = expert_rows()
    rows["zipf_slope"] = 1e6
    lines = transfer.apply(frozen, "experts", rows)
    assert lines.loc[lines["predictors"] == "registered", "outside"].all()
    table = transfer.assess(frozen, lines)
    assert "extrapolate" in " ".join(in_words(table)["experts"])


def test_the_bootstrap_resamples_whole_pairs_of_model_and_task(frozen: transfer.Frozen) -> None:
    lines = transfer.apply(frozen, "pages", page_rows())
    line = transfer.assess(frozen, lines).iloc[0]
    assert (line["resampled"], line["groups"]) == ("model and task", 6)
    part = lines[(lines["target"] == "idf") & (lines["predictors"] == "registered")]
    right = (np.sign(part["predicted"]) == np.sign(part["observed"])).to_numpy(dtype=float)
    groups = part["model"] + part["task"]
    means = pd.Series(right).groupby(groups.to_numpy()).mean().to_numpy()
    random = np.random.default_rng(1)
    drawn = means[random.integers(0, 6, size=(20_000, 6))].mean(axis=1)
    low, high = np.percentile(drawn, [2.5, 97.5])
    assert line["sign_accuracy_low"] == pytest.approx(low, abs=0.03)
    assert line["sign_accuracy_high"] == pytest.approx(high, abs=0.03)
    one = transfer.apply(frozen, "pages", page_rows(tasks=["vt"]).query("model == 'small'"))
    single = transfer.assess(frozen, one).iloc[0]
    assert (single["resampled"], single["groups"]) == ("rows", single["rows"])


def test_few_rows_are_called_thin_evidence(table: pd.DataFrame) -> None:
    assert "thin evidence" in " ".join(in_words(table)["experts"])
    assert "thin evidence" not in " ".join(in_words(table)["pages"])
    assert counted(table).startswith("Transfer holds in")


def test_outcomes_begun_before_the_freeze_are_exploratory(
    frozen: transfer.Frozen, predicted: pd.DataFrame
) -> None:
    table = transfer.assess(frozen, predicted, {"experts": "they were there"})
    assert set(table.loc[table["setting"] == "experts", "status"]) == {"exploratory"}
    assert set(table.loc[table["setting"] == "pages", "status"]) == {"confirmatory"}
    assert "exploratory, no test: they were there" in " ".join(in_words(table)["experts"])


def test_a_freeze_survives_its_file_to_the_last_bit(
    frozen: transfer.Frozen, predicted: pd.DataFrame, tmp_path: Path
) -> None:
    path = tmp_path / "frozen.json"
    transfer.write_frozen(frozen, path)
    again = transfer.read_frozen(path)
    assert transfer.digest_of(again) == transfer.digest_of(frozen)
    made = {"pages": page_rows(), "experts": expert_rows()}
    parts = [transfer.apply(again, setting, rows) for setting, rows in made.items()]
    pd.testing.assert_frame_equal(pd.concat(parts, ignore_index=True), predicted)


def _changed(body: Any) -> list[tuple[Any, Any]]:
    """(container, key) of every leaf of a JSON value."""
    if not isinstance(body, dict | list):
        return []
    found: list[tuple[Any, Any]] = []
    for key in body if isinstance(body, dict) else range(len(body)):
        found += _changed(body[key]) or [(body, key)]
    return found


def test_every_change_of_a_freeze_is_refused(frozen: transfer.Frozen, tmp_path: Path) -> None:
    path = tmp_path / "frozen.json"
    transfer.write_frozen(frozen, path)
    whole = path.read_text(encoding="utf-8")
    leaves = len(_changed(json.loads(whole)))
    # Every tenth leaf, and the last: the digest itself.
    for place in [*range(0, leaves, 10), leaves - 1]:
        body = json.loads(whole)
        container, key = _changed(body)[place]
        value = container[key]
        container[key] = value + 1 if isinstance(value, int | float) else f"{value}x"
        path.write_text(json.dumps(body), encoding="utf-8")
        with pytest.raises(InputError, match=r"changed after the freeze|no frozen predictors"):
            transfer.read_frozen(path)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": "other"}', "null"])
def test_a_file_that_is_no_freeze_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "frozen.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=r"frozen\.json holds no frozen predictors"):
        transfer.read_frozen(path)


def test_a_missing_freeze_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="whencount freeze"):
        transfer.read_frozen(tmp_path / "frozen.json")


def outcome(folder: Path) -> Path:
    write_table(page_rows(), folder / "pages" / "rows.parquet")
    return folder / "pages" / "rows.parquet"


def test_nothing_is_frozen_once_an_outcome_exists(frozen: transfer.Frozen, tmp_path: Path) -> None:
    path = outcome(tmp_path)
    found = transfer.outcomes([tmp_path / "pages", tmp_path / "experts"])
    assert found == [path]
    with pytest.raises(InputError, match=r"1 outcome exists already .*rm -r .*rows\.parquet"):
        transfer.settle(frozen, tmp_path / "frozen.json", found)
    assert not (tmp_path / "frozen.json").exists()


def test_the_same_freeze_again_keeps_its_time_even_after_outcomes(
    retrieval: pd.DataFrame, frozen: transfer.Frozen, tmp_path: Path
) -> None:
    path = tmp_path / "frozen.json"
    transfer.settle(frozen, path, [])
    os.utime(path, (1, 1))
    before = path.read_bytes()
    later = transfer.freeze(retrieval, now=NOW + timedelta(days=1))
    kept = transfer.settle(later, path, [outcome(tmp_path)])
    assert kept.frozen == NOW
    assert path.read_bytes() == before
    # Newer than what it was made from, or Snakemake would make it again for ever.
    assert path.stat().st_mtime > 1


@pytest.mark.parametrize("change", ["criteria", "rows", "tampered"])
def test_another_freeze_is_refused_after_outcomes_and_made_before_them(
    retrieval: pd.DataFrame, frozen: transfer.Frozen, tmp_path: Path, change: str
) -> None:
    path = tmp_path / "frozen.json"
    transfer.settle(frozen, path, [])
    other = frozen
    if change == "criteria":
        other = transfer.freeze(retrieval, criteria=transfer.Criteria(sign_accuracy=0.6))
    elif change == "rows":
        other = transfer.freeze(retrieval[retrieval["collection"] != "limit"])
    else:
        path.write_text(path.read_text().replace('"mae_ratio": 1.5', '"mae_ratio": 9.5'))
    before = path.read_bytes()
    with pytest.raises(InputError, match=r"froze other predictors|changed after the freeze"):
        transfer.settle(other, path, [outcome(tmp_path)])
    assert path.read_bytes() == before
    transfer.settle(other, path, [])
    assert transfer.digest_of(transfer.read_frozen(path)) == transfer.digest_of(other)


OUTCOMES: dict[str, Any] = {
    "pages/jobs/a.per_example.parquet": {"selector": ["111"], "score": [1.0], "prediction": [""]},
    "pages/rows/a.parquet": {"model": ["m"], "q000": [0.5]},
    "experts/per_document.parquet": {"rule": ["native"], "nll": [3.0]},
    "experts/deep/down/baselines.parquet": {"rule": ["native"], "quality": [3.0]},
}
NO_OUTCOMES: dict[str, Any] = {
    "experts/training.parquet": {"step": [1], "loss": [3.0], "validation": [3.0]},
    "pages/page_statistics.parquet": {"layer": [1], "head": [0], "frequency": [0.5]},
    "experts/routing.parquet": {"layer": [0], "expert": [1], "frequency": [0.1]},
    "elsewhere/rows.parquet": {"q000": [0.5]},
}


@pytest.mark.parametrize("name", OUTCOMES)
def test_an_outcome_is_known_by_its_columns(tmp_path: Path, name: str) -> None:
    write_table(pd.DataFrame(OUTCOMES[name]), tmp_path / name)
    assert transfer.outcomes([tmp_path / "pages", tmp_path / "experts"]) == [tmp_path / name]


@pytest.mark.parametrize("name", NO_OUTCOMES)
def test_preparations_are_no_outcomes(tmp_path: Path, name: str) -> None:
    write_table(pd.DataFrame(NO_OUTCOMES[name]), tmp_path / name)
    assert transfer.outcomes([tmp_path / "pages", tmp_path / "experts"]) == []


def test_parts_of_an_unfinished_outcome_count(tmp_path: Path) -> None:
    folder = tmp_path / "pages" / "rows" / ".m.vt.512.parquet.partial"
    folder.mkdir(parents=True)
    (folder / "key.json").write_text("{}")
    assert transfer.outcomes([tmp_path / "pages"]) == []
    (folder / "part0.npz").write_bytes(b"")
    assert transfer.outcomes([tmp_path / "pages"]) == [folder]
    # The training of a model holds none; rows of a model that is called `model.` do.
    training = tmp_path / "experts" / ".model.small.partial"
    rows = tmp_path / "experts" / "rows" / ".model.a.8.parquet.partial"
    for unfinished in (training, rows):
        unfinished.mkdir(parents=True)
        (unfinished / "part0.npz").write_bytes(b"")
    assert transfer.outcomes([tmp_path / "experts"]) == [rows]


def test_outcomes_behind_links_count(tmp_path: Path) -> None:
    write_table(pd.DataFrame({"q000": [0.5]}), tmp_path / "elsewhere" / "a.parquet")
    folder = tmp_path / "experts"
    folder.mkdir()
    (folder / "rows").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    (folder / "loop").symlink_to(folder, target_is_directory=True)
    assert transfer.outcomes([folder]) == [folder / "rows" / "a.parquet"]


def test_a_damaged_table_is_named_not_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "pages" / "rows.parquet"
    path.parent.mkdir()
    path.write_bytes(b"PAR1")
    with pytest.raises(InputError, match=r"rows\.parquet cannot be read as a table"):
        transfer.outcomes([tmp_path / "pages"])


def test_one_corpus_cannot_be_frozen(retrieval: pd.DataFrame) -> None:
    with pytest.raises(InputError, match="one corpus, scifact"):
        transfer.freeze(retrieval[retrieval["collection"] == "scifact"])


@pytest.mark.parametrize("absent", ["zipf_slope", "pseudo_dense_011"])
def test_retrieval_rows_without_a_column_cannot_be_frozen(
    retrieval: pd.DataFrame, absent: str
) -> None:
    with pytest.raises(InputError, match="the primary rows have no"):
        transfer.freeze(retrieval.drop(columns=absent))


FAULTY: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "no column variant": lambda rows: rows.drop(columns="variant"),
    "1 rows of pages stand twice": lambda rows: pd.concat([rows, rows.iloc[:1]]),
    "an infinite zipf_slope": lambda rows: rows.assign(zipf_slope=np.inf),
    "1 of 48 rows of pages have a quality": lambda rows: rows.assign(
        q010=rows["q010"].where(rows.index > 0, np.nan)
    ),
    "something else than numbers": lambda rows: rows.assign(zipf_slope="steep"),
}


@pytest.mark.parametrize("sentence", FAULTY)
def test_faulty_rows_are_named(frozen: transfer.Frozen, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        transfer.apply(frozen, "pages", FAULTY[sentence](page_rows()))


def test_the_order_of_rows_changes_nothing(
    retrieval: pd.DataFrame, frozen: transfer.Frozen
) -> None:
    shuffled = retrieval.sample(frac=1, random_state=3)
    assert transfer.digest_of(transfer.freeze(shuffled, now=NOW)) == transfer.digest_of(frozen)
    rows = page_rows()
    pd.testing.assert_frame_equal(
        transfer.apply(frozen, "pages", rows),
        transfer.apply(frozen, "pages", rows.sample(frac=1, random_state=3)),
    )


def test_two_predictors_are_declared() -> None:
    assert [kind for kind, one in KINDS.items() if one.declared] == ["registered", "pseudo"]
