"""The analysis of anyone's rows: the published figures, other forms of tables, malformed ones."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from click.testing import CliRunner, Result
from prediction_rows import prediction_rows

from whencount import attribution
from whencount.analysis import analyse, as_json, share_groups
from whencount.cli import main
from whencount.errors import InputError
from whencount.foreign_rows import read_rows
from whencount.hypotheses import load_file, shipped_files
from whencount.registration import register
from whencount.row_families import inferred_families

REFERENCE = Path(__file__).parents[1] / ".." / "shared" / "reference"
ROWS, STATISTICS = REFERENCE / "shapley_rows.csv", REFERENCE / "index_statistics.csv"
needs_reference = pytest.mark.skipif(
    not ROWS.exists(), reason="the published rows are not here (../shared/reference)"
)


def call(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["analyse", *map(str, arguments)])


def parsed(result: Result) -> dict[str, Any]:
    assert result.exit_code == 0, result.output

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    found: dict[str, Any] = json.loads(result.stdout, parse_constant=refuse)
    return found


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    out = tmp_path_factory.mktemp("published")
    return parsed(
        call("--rows", ROWS, "--index-statistics", STATISTICS, "--out", out / "new", "--json")
    )


@needs_reference
def test_the_command_finds_the_published_shares_to_four_digits(published: dict[str, Any]) -> None:
    assert {switch: round(entry["share"], 4) for switch, entry in published["shares"].items()} == {
        "idf": 0.1048,
        "saturation": 0.6065,
        "length": 0.2887,
    }
    assert all(
        entry["low"] < entry["share"] < entry["high"] for entry in published["shares"].values()
    )
    assert published["shares_over"]["rows"] == 140
    assert published["shares_over"]["family"] == "primary"
    assert len(published["shares_over"]["collections"]) == 10
    # The interval that H1 takes its bounds from was published as [.36, .42].
    both = published["collection_statistics"]
    assert (round(both["low"], 2), round(both["high"], 2)) == (0.36, 0.42)


@needs_reference
def test_the_command_finds_the_published_hypotheses(published: dict[str, Any]) -> None:
    found = published["hypotheses"]
    stated = json.loads((REFERENCE / "confirmatory.json").read_text())
    assert round(found["H1"]["estimate"], 4) == stated["H1"]["collection_statistics_share"]
    assert found["H1"]["interval"] == stated["H1"]["interval"]
    for name, greater, lesser in (
        ("H2", "mean_k1_0.6", "mean_k1_2.4"),
        ("H6", "mean_b_0.75", "mean_b_0.5"),
    ):
        assert round(found[name]["estimate"], 5) == stated[name][greater]
        assert round(found[name]["comparison"], 5) == stated[name][lesser]
        assert found[name]["p"] == pytest.approx(stated[name]["p"], rel=1e-9)
        assert found[name]["holm_p"] == pytest.approx(3.6298533573402865e-05, rel=1e-9)
        assert found[name]["rows"] == stated[name]["pairs"]
    for name, key in (("H3", "rho"), ("H4", "spearman")):
        for k1 in ("0.6", "2.4"):
            setting = found[name]["settings"][f"k1 {k1}"]
            assert round(setting["estimate"], 4) == stated[name][k1][key]
            assert setting["p"] == pytest.approx(stated[name][k1]["p"], rel=1e-9)
            assert setting["holm_p"] == pytest.approx(stated[name][k1]["holm_p"], rel=1e-9)
    assert found["H5"]["estimate"] == 0
    assert found["H5"]["rows"] == stated["H5"]["rows"]
    assert all(found[f"H{number}"]["passes"] is True for number in range(1, 7))
    assert found["D1"]["passes"] is None
    assert found["D1"]["status"] == "not testable"


def qualities(**changes: Any) -> pd.DataFrame:
    """Four rows of two representations on two collections, eight qualities each."""
    names = [("sae", "token", "one"), ("sae", "token", "two"), ("pca", "pooled", "one")]
    names.append(("pca", "pooled", "two"))
    frame = pd.DataFrame(names, columns=["basis", "granularity", "collection"])
    frame = frame.assign(budget="32/128", k1=1.2, b=0.75, seed=0, control="")
    for place, name in enumerate(attribution.QUALITY_COLUMNS):
        frame[name] = [0.1 + 0.01 * place, 0.2, 0.3 + 0.02 * place, 0.5 - 0.01 * place]
    return frame.assign(**changes)


Save = Callable[[pd.DataFrame], Path]


@pytest.fixture(params=["csv", "csv.gz", "tsv", "parquet"])
def save(request: pytest.FixtureRequest, tmp_path: Path) -> Save:
    path = tmp_path / f"rows.{request.param}"

    def saver(frame: pd.DataFrame) -> Path:
        if request.param == "parquet":
            frame.to_parquet(path, index=False)
        else:
            frame.to_csv(path, index=False, sep="\t" if request.param == "tsv" else ",")
        return path

    return saver


@pytest.fixture
def csv(tmp_path: Path) -> Save:
    def saver(frame: pd.DataFrame) -> Path:
        frame.to_csv(tmp_path / "rows.csv", index=False)
        return tmp_path / "rows.csv"

    return saver


def test_eight_qualities_and_their_targets_say_the_same(save: Save) -> None:
    frame = qualities()
    found = read_rows(save(frame)).frame
    targets = attribution.targets(frame)
    pd.testing.assert_frame_equal(found[list(targets.columns)], targets)
    keys = ["basis", "granularity", "collection", "budget", "k1", "b"]
    columns = ["gain", "shapley_idf", "shapley_saturation", "shapley_length"]
    again = read_rows(save(pd.concat([frame[keys], targets[columns]], axis=1)))
    pd.testing.assert_frame_equal(again.frame[columns], targets[columns])
    assert any("no column seed" in note for note in again.notes)


def test_names_and_budgets_of_publications_become_those_of_the_configuration(csv: Save) -> None:
    frame = qualities(budget="q32_d128", collection=["miracl_hi", "dl19"] * 2, control="none")
    found = read_rows(csv(frame)).frame
    assert set(found["budget"]) == {"32/128"}
    assert set(found["collection"]) == {"miracl-hi", "trec-dl-2019"}
    assert set(found["control"]) == {""}
    assert found["representation"].tolist()[::2] == ["sae_token", "pca_pooled"]
    assert (found["corpus"] == found["collection"]).all()


def test_settings_of_single_precision_are_those_that_were_written(tmp_path: Path) -> None:
    frame = qualities(k1=0.6, b=0.75).astype({"k1": "float32", "b": "float32", "q000": "float32"})
    frame.to_parquet(tmp_path / "rows.parquet")
    assert set(read_rows(tmp_path / "rows.parquet").frame["k1"]) == {0.6}


def test_a_collection_called_na_keeps_its_name(csv: Save) -> None:
    found = read_rows(csv(qualities(collection=["NA", "null"] * 2))).frame
    assert found["collection"].tolist() == ["NA", "null"] * 2


def test_basis_and_granularity_come_out_of_the_representation(csv: Save) -> None:
    frame = qualities(representation=["sae_shared_token", "mine"] * 2, collection=[*"aabb"])
    found = read_rows(csv(frame.drop(columns=["basis", "granularity"]))).frame
    assert found["basis"].tolist() == ["sae_shared", "mine"] * 2
    assert found["granularity"].tolist() == ["token", ""] * 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: rows.drop(columns="collection"), "lacks the column collection"),
        (lambda rows: rows.drop(columns=["k1", "b"]), "lacks the columns k1, b"),
        (lambda rows: rows.drop(columns="basis"), "add a column representation"),
        (lambda rows: rows.drop(columns="q010"), r"it lacks q010\) nor all targets"),
        (lambda rows: rows.assign(q010=[0.1, None, 0.3, 0.4]), "2|3.*q010 is missing"),
        (lambda rows: rows.assign(q010=["0.1", "x", "1", "0"]), "q010 is 'x'; give a number"),
        (lambda rows: rows.assign(q111=[0.1, 0.2, 0.3, 1.5]), "q111 is 1.5; a quality must lie"),
        (lambda rows: rows.assign(q111=[0.1, 0.2, -0.3, 0.5]), "q111 is -0.3; a quality"),
        (lambda rows: rows.assign(gain=0.07), "gain is 0.07; the eight qualities"),
        (lambda rows: rows.assign(collection="one"), "are the same row .*, one, "),
        (lambda rows: rows.assign(budget="32"), "budget is '32'; write it as 32/128"),
        (lambda rows: rows.assign(b=1.5), "b is 1.5; it must lie"),
        (lambda rows: rows.assign(k1=-1), "k1 is -1; it must be at least 0"),
        (lambda rows: rows.assign(seed=0.5), "seed is 0.5; it must be a whole number"),
        (lambda rows: rows.assign(collection=["one", "", "one", "two"]), "collection is ''"),
        (lambda rows: rows.assign(seed=1e23), "seed is 1e[+]23; it must be a whole number"),
        (lambda rows: rows.assign(seed=-1), "seed is -1; it must be a whole number"),
        (lambda rows: rows.assign(basis=["pca", "", "pca", ""]), "basis is ''; name it"),
        (lambda rows: rows.assign(granularity=""), "granularity is ''; name it"),
        (lambda rows: rows.assign(value_cv="much"), "value_cv is 'much'; give a number"),
        (lambda rows: rows.assign(value_cv=math.inf), "value_cv is '?inf'?; give a number"),
        (lambda rows: rows.assign(pseudo_rrf_000="x"), "pseudo_rrf_000 is 'x'; give a number"),
        (lambda rows: rows.assign(k1=True), "k1 is '?True'?; give a number"),
        (lambda rows: rows.assign(k1=pd.Timestamp("2026-01-01")), "k1 is .*2026.*; give a number"),
        (lambda rows: rows[:0], "has no rows"),
    ],
)
@pytest.mark.parametrize("save", ["csv", "parquet"], indirect=True)
def test_a_malformed_table_is_one_sentence_and_exit_2(
    save: Save, tmp_path: Path, change: Callable[[pd.DataFrame], pd.DataFrame], message: str
) -> None:
    path = save(change(qualities()))
    result = call("--rows", path, "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert path.name in result.stderr
    with pytest.raises(InputError, match=message):
        read_rows(path)
    assert result.stderr.startswith("Error: ")
    assert len(result.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_a_list_where_a_number_belongs_is_told(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    for column in ("k1", "q010"):
        frame = qualities()
        frame[column] = pd.Series([[1.2, 3.0]] * 4, index=frame.index)
        frame.to_parquet(path)
        with pytest.raises(InputError, match=rf"row 1 .*: {column} is .*; give a number"):
            read_rows(path)


def test_the_line_of_a_fault_is_named(csv: Save) -> None:
    path = csv(qualities(q111=[0.1, 0.2, 0.3, 1.5]))
    with pytest.raises(InputError, match=r"rows\.csv, line 5 \(pca_pooled, two, seed 0, 32/128"):
        read_rows(path)


def targets_alone() -> pd.DataFrame:
    frame = qualities()
    columns = ["gain", "shapley_idf", "shapley_saturation", "shapley_length"]
    return pd.concat([frame.iloc[:, :8], attribution.targets(frame)[columns]], axis=1)


def test_shapley_values_must_add_up_to_the_gain_beyond_rounding(csv: Save) -> None:
    frame = targets_alone().round(6)
    read_rows(csv(frame))
    frame["shapley_idf"] += [0, 0, 2e-5, 0]
    with pytest.raises(InputError, match=r"line 4 .*do not add up"):
        read_rows(csv(frame))
    frame["shapley_idf"] += [0, 0, float("inf"), 0]
    with pytest.raises(InputError, match=r"line 4 .*shapley_idf is inf; give a number"):
        read_rows(csv(frame))


@pytest.mark.parametrize(
    ("suffix", "content"),
    [
        ("parquet", b""),
        ("parquet", b"PAR1"),
        ("csv", b""),
        ("csv", b"\xff\xfe\x00"),
        ("csv", b'a,b\n"1,2\n3'),
        ("csv.gz", b"a,b\n1,2\n"),
        ("csv", b"a,b\n1,2,3\n"),
        ("csv", b"a;b\n1;2\n"),
        ("csv", b"a,b,a\n1,2,3\n"),
        ("xlsx", b"PK"),
    ],
)
def test_what_is_no_table_is_told(tmp_path: Path, suffix: str, content: bytes) -> None:
    path = tmp_path / f"rows.{suffix}"
    path.write_bytes(content)
    result = call("--rows", path, "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert str(path) in result.stderr
    assert "Traceback" not in result.output


def test_lines_of_another_length_than_the_header_are_told(csv: Save) -> None:
    path = csv(qualities())
    lines = path.read_text().splitlines()
    for changed, message in ((lines[3] + ",1", "in line 4, saw"), (lines[3][:-9], "line 4 is cut")):
        path.write_text("\n".join([*lines[:3], changed, *lines[4:]]))
        with pytest.raises(InputError, match=message):
            read_rows(path)


def test_a_missing_table_is_told(tmp_path: Path) -> None:
    result = call("--rows", tmp_path / "none.csv", "--out", tmp_path / "out")
    assert (result.exit_code, "none.csv" in result.stderr) == (2, True)


def statistics(**changes: Any) -> pd.DataFrame:
    frame = qualities()[["basis", "granularity", "collection", "budget"]]
    return frame.assign(value_cv=[0.1, 0.2, 0.3, 0.4]).assign(**changes)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (statistics(collection=["one", "two", "one", "three"]), "line 5: .*three.* is no row of"),
        (statistics(collection="one"), "line 2 and line 3 are the same row"),
        (statistics(value_cv=["a", 1, 2, 3]), "value_cv is 'a'"),
        (statistics(q000=0.1), "both have the column q000"),
        (statistics().drop(columns="value_cv"), "has no column beside the keys"),
        (statistics().drop(columns="collection"), "lacks the column collection"),
    ],
)
def test_statistics_that_do_not_fit_are_told(
    csv: Save, tmp_path: Path, changed: pd.DataFrame, message: str
) -> None:
    rows = csv(qualities())
    changed.to_csv(tmp_path / "statistics.csv", index=False)
    with pytest.raises(InputError, match=message):
        read_rows(rows, tmp_path / "statistics.csv")


def test_statistics_are_merged_on_the_keys_both_have(csv: Save, tmp_path: Path) -> None:
    rows = pd.concat([qualities(), qualities(k1=0.6)])
    statistics(budget="q32_d128")[:3].to_csv(tmp_path / "statistics.csv", index=False)
    found = read_rows(csv(rows), tmp_path / "statistics.csv")
    assert found.frame["value_cv"].fillna(-1).tolist() == [0.1, 0.2, 0.3, -1] * 2
    assert "2 of 8 rows have no line of index statistics" in found.notes


def test_families_are_inferred_from_settings() -> None:
    def row(representation: str, collection: str = "c", **settings: Any) -> dict[str, Any]:
        basis, granularity = representation.rsplit("_", 1)
        names = {"representation": representation, "basis": basis, "granularity": granularity}
        defaults = {"seed": 0, "budget": "32/128", "k1": 1.2, "b": 0.75, "control": ""}
        return names | {"collection": collection} | defaults | settings

    grid = [(k1, b) for k1 in (0.6, 1.2, 2.4) for b in (0.0, 0.5, 0.75)]
    rows = pd.DataFrame(
        [
            *(row("sae_token", k1=k1, b=b) for k1, b in grid),
            *(row("pca_token", k1=k1, b=b) for k1, b in grid[:8]),
            row("sae_token", budget="native"),
            row("sae_token", seed=1),
            row("sae_token", control="uniform_df"),
            row("sae_shared_token"),
            row("splade_external"),
            row("sae_token", "msmarco-dev", budget="16/64"),
        ]
    )
    found = inferred_families(rows).tolist()
    assert found[:9] == ["parameters"] * 5 + ["primary budgets parameters"] + ["parameters"] * 3
    # Eight of nine are no grid.
    assert found[9:17] == [""] * 5 + ["primary"] + [""] * 2
    assert found[17:] == ["budgets", "seeds", "controls", "shared_dictionary", "", "held_back"]


def test_shares_of_a_budget_are_over_rows_that_differ_in_it_alone() -> None:
    rows = prediction_rows(seed=3)
    primary = rows[rows["families"].str.contains("primary")]
    table = share_groups(rows, primary, draws=20)
    native = rows[rows["budget"] == "native"]
    assert 0 < len(native) < len(primary)
    group = table[(table["value"] == "native") & (table["part"] == "idf")]
    assert group["rows"].tolist() == [len(native)]
    assert group["share"].item() == pytest.approx(
        native["shapley_idf"].sum() / native["gain"].sum()
    )
    idf = table[(table["scope"] == "all") & (table["part"] == "idf")]["share"].item()
    length = table[(table["scope"] == "all") & (table["part"] == "length")]["share"].item()
    both = table[(table["scope"] == "all") & (table["part"] == "idf+length")]["share"].item()
    assert both == pytest.approx(idf + length)
    assert idf == pytest.approx(primary["shapley_idf"].sum() / primary["gain"].sum())


def test_a_study_with_every_column_has_predictors_and_a_decision_rule(
    tmp_path: Path,
) -> None:
    rows = prediction_rows(
        collections=("one", "two", "three"),
        bases=("identity", "kmeans", "sae"),
        references=("bm25",),
        seed=4,
    )
    rows = rows[rows["families"].str.contains("primary")]
    rows.to_parquet(tmp_path / "rows.parquet", index=False)
    arguments = ["--rows", tmp_path / "rows.parquet", "--out", tmp_path / "out"]
    found = parsed(call(*arguments, "--predictors", "ridge", "--json"))
    assert {line["model"] for line in found["predictors"]} == {"ridge", "unfitted"}
    assert {line["axis"] for line in found["predictors"]} >= {"family", "corpus"}
    assert {line["reference"] for line in found["decisions"]} == {"bm25"}
    for name in ("shares", "hypotheses", "predictors", "predictions", "decisions"):
        pd.read_parquet(tmp_path / "out" / f"{name}.parquet")
    assert json.loads((tmp_path / "out" / "summary.json").read_text()) == found


def test_without_json_the_tables_are_printed(tmp_path: Path) -> None:
    qualities().to_csv(tmp_path / "rows.csv", index=False)
    result = call("--rows", tmp_path / "rows.csv", "--out", tmp_path / "out")
    assert result.exit_code == 0
    for text in ("Shares of the gain", "by collection", "Hypotheses", "not testable"):
        assert text in result.stdout


def test_the_page_says_it_too_and_loads_nothing(tmp_path: Path) -> None:
    qualities(collection=["<b>one", "two"] * 2).to_csv(tmp_path / "rows.csv", index=False)
    result = call("--rows", tmp_path / "rows.csv", "--out", tmp_path / "out")
    page = (tmp_path / "out" / "analysis.html").read_text(encoding="utf-8")
    assert "&lt;b&gt;one" in page
    assert "<b>one" not in page
    assert "http" not in page.replace('http-equiv="Content-Security-Policy"', "")
    for text in ("Shares of the gain", "Hypotheses", "not testable"):
        assert text in page
    assert "no column families" in result.stderr


def test_what_is_supplied_is_noted(csv: Save) -> None:
    notes = read_rows(csv(qualities().drop(columns=["seed", "control"]))).notes
    assert notes[:2] == (
        "the table has no column seed; taken as 0",
        "the table has no column control; taken as none",
    )


def test_a_second_analysis_leaves_nothing_of_the_first(tmp_path: Path) -> None:
    rows = prediction_rows(bases=("identity", "gaussian"), seed=4)
    rows[rows["families"].str.contains("primary")].to_parquet(tmp_path / "rows.parquet")
    out = tmp_path / "out"
    arguments = ["--rows", tmp_path / "rows.parquet", "--out", out, "--predictors", "none"]
    assert call(*arguments).exit_code == 0
    assert len(pd.read_parquet(out / "decisions.parquet")) > 0
    targets_alone().to_csv(tmp_path / "rows.csv", index=False)
    assert call("--rows", tmp_path / "rows.csv", "--out", out).exit_code == 0
    assert len(pd.read_parquet(out / "decisions.parquet")) == 0


def test_the_results_of_a_study_are_not_written_over(tmp_path: Path) -> None:
    qualities().to_parquet(tmp_path / "rows.parquet", index=False)
    result = call("--rows", tmp_path / "rows.parquet", "--out", tmp_path)
    assert result.exit_code == 2
    assert "choose another folder" in result.stderr
    result = call("--rows", tmp_path / "rows.parquet", "--out", tmp_path / "rows.parquet")
    assert "is a file; name a folder" in result.stderr


def test_two_files_with_one_name_of_a_hypothesis_are_refused(tmp_path: Path) -> None:
    first = shipped_files()[0]
    second = tmp_path / "again.yaml"
    second.write_bytes(first.read_bytes())
    qualities().to_csv(tmp_path / "rows.csv", index=False)
    arguments = ["--rows", tmp_path / "rows.csv", "--out", tmp_path / "out"]
    result = call(*arguments, "--hypotheses", first, "--hypotheses", second)
    assert result.exit_code == 2
    assert "both have a hypothesis H1" in result.stderr


def test_a_registration_beside_the_file_is_heard(tmp_path: Path) -> None:
    path = tmp_path / "zero.yaml"
    path.write_text(
        "hypotheses:\n  Z:\n    statement: nothing\n    test: exactly_zero\n    value: gain\n"
    )
    register(path, results=tmp_path / "results")
    (tmp_path / "results").mkdir()
    qualities().to_parquet(tmp_path / "results" / "rows.parquet", index=False)
    arguments = ["--rows", tmp_path / "results" / "rows.parquet", "--out", tmp_path / "out"]
    found = parsed(call(*arguments, "--hypotheses", path, "--json"))["hypotheses"]["Z"]
    # Gains are not 0: a confirmatory failure, reported as one.
    assert (found["status"], found["passes"], found["reason"]) == ("confirmatory", False, "")
    path.write_text(path.read_text().replace("nothing", "nothing at all"))
    found = parsed(call(*arguments, "--hypotheses", path, "--json"))["hypotheses"]["Z"]
    assert found["status"] == "exploratory"
    assert "changed after its registration" in found["reason"]


def test_the_same_table_gives_the_same_bytes(csv: Save) -> None:
    path = csv(qualities())
    assert as_json(analyse(read_rows(path))) == as_json(analyse(read_rows(path)))
    assert load_file(shipped_files()[0]).name == "confirmatory"
