"""Hypotheses: the published outcomes, failures that stay failures, and the word confirmatory."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from prediction_rows import prediction_rows
from scipy.stats import norm, rankdata, spearmanr

from whencount.errors import InputError
from whencount.foreign_rows import read_rows
from whencount.hypotheses import COLUMNS, confirm, load_file, run_tests, shipped_files
from whencount.registration import register
from whencount.tables import write_table

REFERENCE = Path(__file__).parents[1] / ".." / "shared" / "reference"
CONFIRMATORY = shipped_files()[0]
HELD_BACK = shipped_files()[1]


@pytest.fixture(scope="module")
def published() -> pd.DataFrame:
    if not REFERENCE.exists():
        pytest.skip("the published rows are not here (../shared/reference)")
    return read_rows(REFERENCE / "shapley_rows.csv", REFERENCE / "index_statistics.csv").frame


Lines = dict[tuple[str, str], dict[Any, Any]]


def by_name(table: pd.DataFrame) -> Lines:
    """The lines of hypotheses.parquet by hypothesis and setting."""
    return {(line["hypothesis"], line["setting"]): line for line in table.to_dict("records")}


def only(table: pd.DataFrame) -> dict[Any, Any]:
    (line,) = table.to_dict("records")
    return line


@pytest.fixture(scope="module")
def outcome(published: pd.DataFrame) -> Lines:
    return by_name(confirm(CONFIRMATORY, None, published))


# Estimate, comparison, raw p, Holm p: ../shared/reference/confirmatory.json.
PUBLISHED = {
    ("H1", ""): (0.3933, None, None, None),
    ("H2", ""): (0.09279, 0.07994, 1.8149266786701433e-05, 3.6298533573402865e-05),
    ("H3", "k1 0.6"): (0.8859, None, 2.2097950626753668e-24, 8.839180250701467e-24),
    ("H3", "k1 2.4"): (0.8918, None, 4.1217071364711076e-25, 2.0608535682355538e-24),
    ("H4", "k1 0.6"): (0.8695, None, 1.6219791730710974e-22, 4.865937519213293e-22),
    ("H4", "k1 2.4"): (0.9033, None, 1.0770456894470657e-26, 6.462274136682394e-26),
    ("H5", ""): (0.0, None, None, None),
    ("H6", ""): (0.04536, 0.02949, 1.945426852012768e-05, 3.6298533573402865e-05),
}


@pytest.mark.parametrize("name", PUBLISHED, ids=" ".join)
def test_the_published_rows_give_the_published_outcome(
    outcome: Lines, name: tuple[str, str]
) -> None:
    line = outcome[name]
    estimate, comparison, p, holm_p = PUBLISHED[name]
    # Four or five decimals were published, and p-values in full; so much they must agree.
    assert line["estimate"] == pytest.approx(estimate, abs=5e-5 if abs(estimate) > 0.1 else 5e-6)
    if comparison is not None:
        assert line["comparison"] == pytest.approx(comparison, abs=5e-6)
    for found, expected in ((line["p"], p), (line["holm_p"], holm_p)):
        assert np.isnan(found) if expected is None else found == pytest.approx(expected, rel=1e-9)
    assert line["passes"]
    assert line["rows"] == (210 if name[0] == "H5" else 70)
    assert (line["status"], line["reason"]) == ("exploratory", "not registered")


def test_the_published_figures_of_the_file_are_those_that_it_finds(
    published: pd.DataFrame,
) -> None:
    outcome = confirm(CONFIRMATORY, None, published)
    for found, stated in (
        ("estimate", "published"),
        ("comparison", "published_comparison"),
        ("p", "published_p"),
    ):
        known = outcome[outcome[stated].notna()]
        assert known[found].to_numpy() == pytest.approx(known[stated].to_numpy(), rel=1e-3)


def test_length_zero_is_exact_and_one_last_digit_fails(published: pd.DataFrame) -> None:
    changed = published.copy()
    place = changed.index[changed["b"] == 0][7]
    changed.loc[place, "shapley_length"] = -1e-300
    line = by_name(confirm(CONFIRMATORY, None, changed))["H5", ""]
    assert line["passes"] is False
    assert line["estimate"] == 1e-300


def table(**columns: Any) -> pd.DataFrame:
    """Rows of twenty representations at two k1, with a column of values at each."""
    frames = []
    for k1, values in columns["values"].items():
        count = len(values)
        frames.append(
            pd.DataFrame(
                {
                    "representation": [f"r{n}_token" for n in range(count)],
                    "basis": [f"r{n}" for n in range(count)],
                    "granularity": "token",
                    "collection": columns.get("collection", "c"),
                    "corpus": columns.get("corpus", "c"),
                    "seed": 0,
                    "budget": "32/128",
                    "k1": k1,
                    "b": 0.75,
                    "control": "",
                    "families": "parameters",
                    "gain": 0.5,
                    "shapley_saturation": np.asarray(values, dtype=float),
                    "value_cv": columns.get("value_cv", np.arange(count, dtype=float)),
                }
            )
        )
    return pd.concat(frames, ignore_index=True)


PAIRED = """
hypotheses:
  P:
    statement: more at 0.6
    test: paired_greater
    rows: {b: 0.75}
    value: shapley_saturation
    greater: {k1: 0.6}
    lesser: {k1: 2.4}
"""
CORRELATED = """
hypotheses:
  R:
    statement: they go together
    test: rank_correlation
    values: [value_cv, shapley_saturation]
    centred_within: corpus
    at_least: 0.3
"""


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str], Path]:
    def writer(content: str) -> Path:
        path = tmp_path / "study.yaml"
        path.write_text(content)
        return path

    return writer


def test_signed_ranks_leave_out_zeros_and_follow_the_normal_approximation(
    write: Callable[[str], Path],
) -> None:
    random = np.random.default_rng(3)
    lesser = random.normal(size=60).round(1)
    greater = lesser + random.normal(0.3, 1, size=60).round(1)
    line = only(confirm(write(PAIRED), None, table(values={0.6: greater, 2.4: lesser})))
    # Wilcoxon (1945) by hand: ranks of |d| without zeros, variance corrected for ties.
    difference = (greater - lesser).round(12)
    difference = difference[difference != 0]
    assert 0 < len(difference) < 60
    ranks = rankdata(np.abs(difference))
    size = len(difference)
    _, ties = np.unique(ranks, return_counts=True)
    variance = size * (size + 1) * (2 * size + 1) / 24 - (ties**3 - ties).sum() / 48
    z = (ranks[difference > 0].sum() - size * (size + 1) / 4) / np.sqrt(variance)
    assert line["p"] == pytest.approx(norm.sf(z), rel=0.02)
    assert line["rows"] == 60


def test_eight_pairs_all_greater_have_the_exact_p(write: Callable[[str], Path]) -> None:
    values = {0.6: np.arange(8) * 1.1 + 0.5, 2.4: np.arange(8.0)}
    line = only(confirm(write(PAIRED), None, table(values=values)))
    assert line["p"] == pytest.approx(2**-8)
    assert line["passes"]


def test_a_failed_hypothesis_stays_in_the_table_as_failed(write: Callable[[str], Path]) -> None:
    values = {0.6: np.arange(8.0), 2.4: np.arange(8) * 1.1 + 0.5}
    line = only(confirm(write(PAIRED), None, table(values=values)))
    assert not line["passes"]
    assert line["p"] == pytest.approx(1.0)
    assert line["status"] == "exploratory"


def test_pairs_without_any_difference_are_no_evidence(write: Callable[[str], Path]) -> None:
    values = {0.6: np.arange(8.0), 2.4: np.arange(8.0)}
    line = only(confirm(write(PAIRED), None, table(values=values)))
    assert (line["p"], bool(line["passes"])) == (1.0, False)


def test_pairs_are_matched_by_collection_and_representation_in_any_order(
    write: Callable[[str], Path],
) -> None:
    random = np.random.default_rng(0)
    rows = table(values={0.6: random.normal(size=20), 2.4: random.normal(size=20)})
    first = confirm(write(PAIRED), None, rows)
    shuffled = rows.sample(frac=1, random_state=1)
    pd.testing.assert_frame_equal(first, confirm(write(PAIRED), None, shuffled))
    # A row without a partner is no pair.
    assert only(confirm(write(PAIRED), None, rows.iloc[1:]))["rows"] == 19


def test_means_of_a_corpus_are_subtracted_before_ranking(write: Callable[[str], Path]) -> None:
    # Within each corpus the two fall, across corpora they rise.
    corpora = np.repeat(["one", "two"], 6)
    offset = np.repeat([0.0, 100.0], 6)
    inside = np.tile(np.arange(6.0), 2)
    rows = table(values={1.2: -inside + offset}, corpus=corpora, value_cv=inside + offset)
    within = only(confirm(write(CORRELATED), None, rows))
    assert within["estimate"] == pytest.approx(-1)
    assert not within["passes"]
    # A table without corpora has one per collection.
    renamed = rows.drop(columns="corpus").assign(collection=corpora)
    assert only(confirm(write(CORRELATED), None, renamed))["estimate"] == pytest.approx(-1)
    plain = write(CORRELATED.replace("    centred_within: corpus\n", ""))
    across = only(confirm(plain, None, rows))
    expected = spearmanr(inside + offset, -inside + offset)
    assert across["estimate"] == pytest.approx(expected.statistic)
    assert across["p"] == pytest.approx(expected.pvalue)


def test_a_model_ranks_by_the_sign_it_was_fitted_with(write: Callable[[str], Path]) -> None:
    pytest.importorskip("sklearn")
    from whencount.prediction import fit_ridge

    random = np.random.default_rng(5)
    feature = random.normal(size=20)
    rows = table(
        values={1.2: -feature + 0.3 * random.normal(size=20), 0.6: random.normal(size=20)},
        value_cv=feature,
    )
    path = write("""
hypotheses:
  M:
    statement: it ranks
    test: model_ranking
    fitted_on: {k1: 1.2}
    rows: {k1: 0.6}
    predictor: value_cv
    target: shapley_saturation
    at_least: 0.5
""")
    line = only(confirm(path, None, rows))
    fitted, ranked = rows[rows["k1"] == 1.2], rows[rows["k1"] == 0.6]
    model = fit_ridge(
        fitted[["value_cv"]], fitted["shapley_saturation"], np.arange(20) % 4, alpha=10.0
    )
    predicted = model.predict(ranked[["value_cv"]])
    expected = spearmanr(predicted, ranked["shapley_saturation"]).statistic
    assert line["estimate"] == pytest.approx(expected)


def test_a_share_is_within_its_bounds_or_fails(write: Callable[[str], Path]) -> None:
    path = write("""
hypotheses:
  S:
    statement: a share
    test: share_within
    parts: [saturation]
    low: 0.2
    high: 0.4
""")
    rows = table(values={1.2: [0.1, 0.3]})
    line = only(confirm(path, None, rows))
    assert line["estimate"] == pytest.approx(0.4 / 1.0)
    assert line["passes"]
    rows.loc[0, "shapley_saturation"] = 0.2
    assert not only(confirm(path, None, rows))["passes"]


def test_a_test_that_cannot_be_made_still_counts_in_holm(published: pd.DataFrame) -> None:
    without = published[published["k1"] != 2.4]
    lines = by_name(confirm(CONFIRMATORY, None, without))
    assert lines["H2", ""]["status"] == "not testable"
    assert "k1 2.4" in lines["H2", ""]["reason"]
    assert pd.isna(lines["H2", ""]["passes"])
    # H6 is now the largest p but those of the three missing tests: four times its p.
    assert lines["H6", ""]["holm_p"] == pytest.approx(4 * 1.945426852012768e-05)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda rows: rows.drop(columns="value_cv"), "no column value_cv"),
        (lambda rows: rows.assign(value_cv=np.nan), "have no value_cv"),
        (lambda rows: rows.assign(value_cv=0.1 + 0.2), "value_cv is the same"),
        (lambda rows: rows[:4], "4 rows, and at least 5"),
        (lambda rows: rows[:0], "the table has no rows"),
    ],
    ids=["no column", "missing values", "constant", "few rows", "no rows"],
)
def test_what_rows_lack_is_a_reason_and_no_crash(
    write: Callable[[str], Path], change: Callable[[pd.DataFrame], pd.DataFrame], reason: str
) -> None:
    rows = table(values={1.2: np.random.default_rng(0).normal(size=12)})
    line = only(confirm(write(CORRELATED), None, change(rows)))
    assert line["status"] == "not testable"
    assert reason in line["reason"]
    assert line["rows"] == 0


def test_no_family_and_no_setting_are_reasons(write: Callable[[str], Path]) -> None:
    rows = table(values={1.2: np.arange(8.0), 0.9: np.arange(8.0)})
    line = only(confirm(write(PAIRED), None, rows))
    assert line["reason"] == "no row has k1 0.6; there are 0.9, 1.2"
    nowhere = write(PAIRED.replace("rows: {b: 0.75}", "rows: {family: seeds}"))
    assert "'seeds'" in only(confirm(nowhere, None, rows))["reason"]


def test_every_shipped_hypothesis_has_an_outcome_on_a_small_study() -> None:
    rows = prediction_rows(seed=1)
    for path in shipped_files():
        lines = confirm(path, None, rows)
        assert list(lines.columns) == list(COLUMNS)
        assert set(lines["status"]) <= {"exploratory", "not testable"}
        assert (lines["passes"].isna() == (lines["status"] == "not testable")).all()


def test_the_decision_rule_is_compared_with_always(write: Callable[[str], Path]) -> None:
    from whencount.prediction import decisions

    rows = prediction_rows(seed=2)
    path = write("""
hypotheses:
  D:
    statement: better than always
    test: decision_rule
    rows: {family: primary}
    reference: bm25
""")
    line = only(confirm(path, None, rows))
    primary = rows[rows["families"].str.contains("primary")]
    (found,) = (
        decisions(primary, draws=50)
        .query("reference == 'bm25' and scope == 'all'")
        .to_dict("records")
    )
    assert line["estimate"] == pytest.approx(found["rule"])
    assert line["comparison"] == pytest.approx(found["always"])
    assert bool(line["passes"]) == (found["rule"] > found["always"])
    absent = write(path.read_text().replace("bm25", "absent"))
    assert "pseudo_absent_000" in only(confirm(absent, None, rows))["reason"]


def test_the_second_registration_is_about_the_held_back_rows() -> None:
    names = ("msmarco-dev", "trec-dl-2019", "trec-dl-2020")
    rows = prediction_rows(collections=(*names, "scifact"), small=(), references=("dense",), seed=3)
    assert only(confirm(HELD_BACK, None, rows))["status"] == "not testable"
    line = only(confirm(HELD_BACK, None, rows.assign(families="held_back")))
    assert line["status"] == "exploratory"
    # Two granularities of seven bases on three collections; scifact is none of them.
    assert line["rows"] == 42
    assert 0 < line["comparison"] < 1


def test_the_files_at_the_root_are_those_of_the_package() -> None:
    root = Path(__file__).parents[1] / "hypotheses"
    for path in shipped_files():
        assert (root / path.name).read_bytes() == path.read_bytes()
    assert [one.name for one in load_file(CONFIRMATORY).hypotheses] == [
        f"H{n}" for n in range(1, 7)
    ]
    assert load_file(HELD_BACK).hypotheses[0].options["reference"] == "dense"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty or not a mapping"),
        ("hypotheses: {", "line 1: not valid YAML"),
        ("hypotheses:\n  H1: {}\n  H1: {}\n", "line 3.*'H1' stands twice"),
        ("hypotheses: {}\n", "hypotheses"),
        (PAIRED.replace("greater:", "grater:"), r"hypotheses.P: unknown key 'grater' .*'greater'"),
        (PAIRED.replace("k1: 0.6", "k1: -1"), r"hypotheses.P.greater.k1: -1"),
        (PAIRED.replace("k1: 0.6", "k1: .nan"), "no finite number"),
        (PAIRED.replace("paired_greater", "paired_lesser"), "'paired_lesser' is not allowed"),
        (PAIRED + "    settings: {low: {k1: 1}}\n", "unknown key 'settings'"),
        (PAIRED + "    published: {low: {p: 1}}\n", "published: .*'low' is not allowed"),
        (PAIRED + "alpha: 2\n", "alpha: 2"),
        (PAIRED.replace("statement: more at 0.6", "statement: ''"), "hypotheses.P.statement"),
    ],
)
def test_a_faulty_file_is_told_by_its_place(
    write: Callable[[str], Path], content: str, message: str
) -> None:
    path = write(content)
    with pytest.raises(InputError, match=message) as told:
        load_file(path)
    assert str(path) in str(told.value)


def test_a_share_with_exchanged_bounds_is_refused(write: Callable[[str], Path]) -> None:
    content = CONFIRMATORY.read_text().replace("low: 0.36", "low: 0.46")
    with pytest.raises(InputError, match=r"H1: low 0.46 is above high 0.42"):
        load_file(write(content))


# Confirmatory or exploratory.


@pytest.fixture
def registered(tmp_path: Path) -> tuple[Path, Path, pd.DataFrame]:
    """A file registered before any row, the rows written after it, and their table."""
    path = tmp_path / "study.yaml"
    path.write_text(PAIRED)
    register(path, results=tmp_path / "results", now=datetime(2026, 1, 1, tzinfo=UTC))
    rows = table(values={0.6: np.arange(8) * 1.1 + 0.5, 2.4: np.arange(8.0)})
    write_table(rows, tmp_path / "results" / "rows.parquet")
    return path, tmp_path / "results" / "rows.parquet", rows


def state(path: Path, source: Path | None, rows: pd.DataFrame) -> tuple[str, str]:
    record = path.with_name("study.registration.json")
    line = only(confirm(path, record, rows, source=source))
    return str(line["status"]), str(line["reason"])


def test_rows_made_after_the_registration_are_confirmatory(
    registered: tuple[Path, Path, pd.DataFrame],
) -> None:
    path, source, rows = registered
    assert state(path, source, rows) == ("confirmatory", "")


def test_a_failure_of_a_confirmatory_test_is_shown_as_one(
    registered: tuple[Path, Path, pd.DataFrame],
) -> None:
    path, source, rows = registered
    worse = rows.assign(shapley_saturation=-rows["shapley_saturation"])
    record = path.with_name("study.registration.json")
    line = only(confirm(path, record, worse, source=source))
    assert (line["status"], bool(line["passes"])) == ("confirmatory", False)


@pytest.mark.parametrize("edit", [b"\n", b"# better said\n", b"    published: {p: 0.01}\n"])
def test_any_later_byte_makes_it_exploratory(
    registered: tuple[Path, Path, pd.DataFrame], edit: bytes
) -> None:
    path, source, rows = registered
    path.write_bytes(path.read_bytes() + edit)
    assert state(path, source, rows) == (
        "exploratory",
        "the file was changed after its registration",
    )


def test_one_row_that_existed_makes_its_test_exploratory(tmp_path: Path) -> None:
    path = tmp_path / "study.yaml"
    path.write_text(PAIRED)
    rows = table(values={0.6: np.arange(8) * 1.1 + 0.5, 2.4: np.arange(8.0)})
    write_table(rows[:1], tmp_path / "results" / "rows" / "first.parquet")
    register(path, results=tmp_path / "results", now=datetime(2026, 1, 1, tzinfo=UTC))
    write_table(rows, tmp_path / "results" / "rows.parquet")
    assert state(path, tmp_path / "results" / "rows.parquet", rows) == (
        "exploratory",
        "1 of the 16 rows it uses existed before the registration",
    )
    # The pair of that row is left out: the test uses rows made later alone.
    others = rows[rows["representation"] != "r0_token"]
    assert state(path, tmp_path / "results" / "rows.parquet", others)[0] == "confirmatory"


def test_an_edited_record_makes_it_exploratory(
    registered: tuple[Path, Path, pd.DataFrame],
) -> None:
    path, source, rows = registered
    record = path.with_name("study.registration.json")
    record.write_text(record.read_text().replace('"count": 0', '"count": 1'))
    status, reason = state(path, source, rows)
    assert status == "exploratory"
    assert "not whole" in reason


def test_rows_from_elsewhere_or_from_before_are_exploratory(
    registered: tuple[Path, Path, pd.DataFrame],
) -> None:
    path, source, rows = registered
    assert "not known" in state(path, None, rows)[1]
    elsewhere = source.parents[1] / "other.parquet"
    write_table(rows, elsewhere)
    assert "not those of the registered folder" in state(path, elsewhere, rows)[1]
    before = datetime(2025, 12, 31, tzinfo=UTC).timestamp()
    os.utime(source, (before, before))
    assert "written before the registration" in state(path, source, rows)[1]


def test_without_a_record_tests_are_exploratory(
    registered: tuple[Path, Path, pd.DataFrame],
) -> None:
    path, source, rows = registered
    assert only(confirm(path, None, rows, source=source))["reason"] == "not registered"


def test_the_same_rows_give_the_same_table(published: pd.DataFrame) -> None:
    file = load_file(CONFIRMATORY)
    first = run_tests(file, published)
    pd.testing.assert_frame_equal(first, run_tests(file, published.sample(frac=1, random_state=0)))
