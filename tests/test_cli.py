"""The command line: golden cases, runs that trec_eval keeps in our order, bad input."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import pytrec_eval
from click.testing import CliRunner, Result

from whencount.cli import COMMANDS, main
from whencount.scoring import CONFIGURATIONS

SHARED = Path(__file__).parents[1] / ".." / "shared"
NAMES = [str(configuration) for configuration in CONFIGURATIONS]


def golden_cases() -> list[Any]:
    path = SHARED / "golden/scorer.json"
    if not path.exists():
        return [pytest.param({}, marks=pytest.mark.skip("golden/scorer.json is not here"))]
    cases = json.loads(path.read_text())["cases"]
    return [pytest.param(case, id=f"k1={case['k1']},b={case['b']}") for case in cases]


def call(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def write_lines(path: Path, records: list[Any]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def write_qrels(path: Path, qrels: Mapping[str, Mapping[str, int]]) -> Path:
    path.write_text(
        "".join(
            f"{query} 0 {document} {relevance}\n"
            for query, judged in qrels.items()
            for document, relevance in judged.items()
        )
    )
    return path


def inputs(folder: Path, case: Mapping[str, Any]) -> list[object]:
    arguments: list[object] = [
        "--documents",
        write_lines(folder / "documents.jsonl", case["documents"]),
        "--queries",
        write_lines(folder / "queries.jsonl", case["queries"]),
    ]
    for option in ("k1", "b", "query_budget", "document_budget"):
        if case.get(option) is not None:
            arguments += [f"--{option.replace('_', '-')}", case[option]]
    return arguments


SMALL: dict[str, Any] = {
    "documents": [
        {"id": "a", "vector": {"1": 2.0, "2": 1.0}},
        {"id": "b", "vector": {"1": 1.0}},
        {"id": "c", "vector": {"2": 1.0, "3": 4.0}},
        {"id": "d", "vector": {}},
    ],
    "queries": [
        {"id": "q1", "vector": {"1": 1.0, "3": 0.5}},
        {"id": "q2", "vector": {"2": 1.0}},
        {"id": "q3", "vector": {}},
    ],
}
SMALL_QRELS = {"q1": {"b": 1, "a": 0}, "q2": {"c": 2, "gone": 1}, "q3": {"d": 1}}


def read_run(path: Path) -> dict[str, list[tuple[str, int, float]]]:
    run: dict[str, list[tuple[str, int, float]]] = {}
    for line in path.read_text().splitlines():
        query, literal, document, rank, score, tag = line.split(" ")
        assert literal == "Q0"
        assert tag == f"whencount-{path.stem}"
        run.setdefault(query, []).append((document, int(rank), float(score)))
    return run


@pytest.mark.parametrize("case", golden_cases())
@pytest.mark.parametrize("file_format", ["trec", "parquet"])
def test_golden_rankings_hold_through_score(
    tmp_path: Path, case: dict[str, Any], file_format: str
) -> None:
    out = tmp_path / "runs"
    result = call("score", *inputs(tmp_path, case), "--out", out, "--format", file_format)
    assert result.exit_code == 0, result.output
    assert sorted(entry.name for entry in out.iterdir()) == [f"{n}.{file_format}" for n in NAMES]
    for name in NAMES:
        if file_format == "trec":
            run = read_run(out / f"{name}.trec")
            tolerance = 1e-6 + 20 * 2**-24  # ties of up to twenty spread in single precision
        else:
            frame = pd.read_parquet(out / f"{name}.parquet")
            run = {
                str(query): list(
                    lines[["document_id", "rank", "score"]].itertuples(index=False, name=None)
                )
                for query, lines in frame.groupby("query_id", sort=False)
            }
            tolerance = 2**-23  # weights are kept in single precision
        for query, expected in case["expected"][name]["top"].items():
            ours = run.get(query, [])
            assert [rank for _, rank, _ in ours] == list(range(1, len(ours) + 1))
            top = ours[: len(expected)]
            assert len(top) == len(expected)
            np.testing.assert_allclose(
                [score for *_, score in top], [score for _, score in expected], rtol=tolerance
            )
            for place, (document, score) in enumerate(expected):
                near = [
                    other
                    for other, other_score in expected
                    if abs(other_score - score) <= 1e-6 * score
                ]
                if near == [document]:
                    assert top[place][0] == document


@pytest.mark.parametrize("case", golden_cases())
def test_golden_qualities_and_targets_hold_through_decompose(
    tmp_path: Path, case: dict[str, Any]
) -> None:
    qrels = write_qrels(tmp_path / "qrels.trec", case["qrels"])
    result = call(
        "decompose",
        *inputs(tmp_path, case),
        *("--qrels", qrels, "--out", tmp_path / "out", "--draws", 200, "--json"),
    )
    assert result.exit_code == 0, result.output
    ours = json.loads(result.stdout)
    per_query = pd.read_parquet(tmp_path / "out/per_query.parquet").set_index("query_id")
    for name in NAMES:
        expected = case["expected"][name]
        for query, value in expected["ndcg@10"].items():
            assert per_query.loc[query, f"q{name}"] == pytest.approx(value, abs=1e-9)
        assert len(per_query) == len(expected["ndcg@10"])
        assert ours["quality"][name] == pytest.approx(expected["mean_ndcg@10"], abs=1e-9)
    for key, value in case["expected_row"].items():
        assert ours[key] == pytest.approx(value, abs=1e-9)
    row = pd.read_parquet(tmp_path / "out/rows.parquet").iloc[0]
    assert row["gain"] == ours["gain"]
    assert row["shapley_length"] == ours["shapley"]["length"]
    assert row["p_full"] == ours["p"]["full"]


def test_trec_eval_keeps_the_order_of_large_ties(tmp_path: Path) -> None:
    # Sixty equal documents whose ids sort against their order, and scores beyond single precision.
    documents = [{"id": f"d{number:02}", "vector": {"1": 1.0}} for number in range(60)]
    documents.insert(30, {"id": "top", "vector": {"1": 1.00000012}})
    case = {"documents": documents, "queries": [{"id": "q", "vector": {"1": 3e38, "2": 1.0}}]}
    out = tmp_path / "runs"
    arguments = [*inputs(tmp_path, case), "--out", out, "--configurations", "000,111"]
    assert call("score", *arguments).exit_code == 0
    assert sorted(entry.name for entry in out.iterdir()) == ["000.trec", "111.trec"]
    order = ["top", *(f"d{number:02}" for number in range(60))]
    lines = read_run(out / "000.trec")["q"]
    assert [document for document, *_ in lines] == order
    assert (np.diff(np.array([score for *_, score in lines], dtype=np.float32)) < 0).all()
    # trec_eval orders by the score alone: reciprocal rank tells where it put each document.
    for place, document in enumerate(order):
        oracle = pytrec_eval.RelevanceEvaluator({"q": {document: 1}}, {"recip_rank"})
        run = {"q": {name: score for name, _, score in lines}}
        assert oracle.evaluate(run)["q"]["recip_rank"] == pytest.approx(1 / (place + 1))


def test_json_has_exactly_the_declared_keys(tmp_path: Path) -> None:
    qrels = write_qrels(tmp_path / "qrels", SMALL_QRELS)
    arguments = ["--qrels", qrels, "--out", tmp_path / "out", "--json"]
    result = call("decompose", *inputs(tmp_path, SMALL), *arguments)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    switches = ["idf", "saturation", "length"]
    assert list(found) == [
        "quality",
        "gain",
        "shapley",
        "margin",
        "collection_gain",
        "main_effect",
        "p",
        "holm",
    ]
    assert list(found["quality"]) == NAMES
    assert list(found["shapley"]) == list(found["main_effect"]) == switches
    assert list(found["p"]) == list(found["holm"]) == ["full", *switches]


def test_featureless_query_counts_with_zero_and_unknown_documents_are_warned_of_once(
    tmp_path: Path,
) -> None:
    qrels = write_qrels(tmp_path / "qrels", SMALL_QRELS)
    result = call(
        "decompose", *inputs(tmp_path, SMALL), "--qrels", qrels, "--out", tmp_path / "out"
    )
    assert result.exit_code == 0, result.output
    warnings = [line for line in result.stderr.splitlines() if line.startswith("Warning")]
    assert warnings == [
        "Warning: 1 of 3 queries have no feature; their rankings are empty",
        f"Warning: 1 judgements in {qrels} name documents that have no vector; they are kept, so"
        " that their queries cannot reach nDCG 1",
        "Warning: only 3 evaluated queries: resampling so few says little, so read nothing into p",
    ]
    assert "3 of 3 queries evaluated" in result.stdout
    per_query = pd.read_parquet(tmp_path / "out/per_query.parquet")
    assert per_query["query_id"].tolist() == ["q1", "q2", "q3"]
    assert (per_query.loc[2, [f"q{name}" for name in NAMES]] == 0).all()
    row = pd.read_parquet(tmp_path / "out/rows.parquet").iloc[0]
    assert row["queries"] == 3


def test_undefined_margin_is_null_in_tables_and_zero_in_json(tmp_path: Path) -> None:
    case = {
        "documents": [{"id": "a", "vector": {"1": 1.0}}],
        "queries": [{"id": "q", "vector": {"1": 1.0}}],
    }
    qrels = write_qrels(tmp_path / "qrels", {"q": {"a": 1}})
    arguments = [*inputs(tmp_path, case), "--qrels", qrels, "--out", tmp_path / "out"]
    result = call("decompose", *arguments, "--json")
    assert json.loads(result.stdout)["margin"] == 0.0
    assert json.loads(result.stdout)["p"]["full"] == 1.0
    assert pd.read_parquet(tmp_path / "out/rows.parquet")["margin"].isna().all()
    assert "undefined, as the configurations do not differ" in call("decompose", *arguments).stdout


def test_same_seed_gives_the_same_files_whatever_they_are_called(tmp_path: Path) -> None:
    contents = []
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        qrels = write_qrels(folder / f"{name}.qrels", SMALL_QRELS)
        arguments = ["--qrels", qrels, "--out", folder / "out", "--format", "trec", "--seed", 4]
        assert call("decompose", *inputs(folder, SMALL), *arguments).exit_code == 0
        contents.append(
            {path.name: path.read_bytes() for path in sorted((folder / "out").iterdir())}
        )
    assert list(contents[0]) == sorted(
        [*(f"{name}.trec" for name in NAMES), "per_query.parquet", "rows.parquet"]
    )
    assert contents[0] == contents[1]


def test_depth_shortens_the_ranking_that_is_measured(tmp_path: Path) -> None:
    qrels = write_qrels(tmp_path / "qrels", {"q1": {"b": 1}})
    arguments = [*inputs(tmp_path, SMALL), "--qrels", qrels, "--out", tmp_path / "out", "--json"]
    deep = json.loads(call("decompose", *arguments).stdout)["quality"]["000"]
    shallow = json.loads(call("decompose", *arguments, "--depth", 1).stdout)["quality"]["000"]
    assert deep > 0
    assert shallow == 0


def test_other_files_in_the_folder_stay_and_own_ones_are_replaced(tmp_path: Path) -> None:
    out = tmp_path / "runs"
    out.mkdir()
    (out / "notes.txt").write_text("mine")
    (out / "000.trec").write_text("old")
    assert call("score", *inputs(tmp_path, SMALL), "--out", out).exit_code == 0
    assert (out / "notes.txt").read_text() == "mine"
    assert (out / "000.trec").read_text().startswith("q1 Q0 ")
    assert sorted(path.name for path in out.iterdir()) == [
        *(f"{name}.trec" for name in NAMES),
        "notes.txt",
    ]


def test_fault_while_writing_leaves_the_folder_as_it_was(tmp_path: Path) -> None:
    out = tmp_path / "runs"
    out.mkdir()
    (out / "000.trec").write_text("old")
    case = {**SMALL, "queries": [{"id": "a query", "vector": {"1": 1.0}}]}
    result = call("score", *inputs(tmp_path, case), "--out", out)
    assert result.exit_code == 2
    assert "Error: query id 'a query' holds white space" in result.stderr
    assert [path.name for path in out.iterdir()] == ["000.trec"]
    assert (out / "000.trec").read_text() == "old"
    result = call("score", *inputs(tmp_path, case), "--out", out, "--format", "parquet")
    assert result.exit_code == 0


BAD = {
    "--k1=-1": "k1 is -1.0; it must be a finite number of at least 0",
    "--k1=nan": "k1 is nan",
    "--b=1.5": "b is 1.5; it must lie between 0 and 1",
    "--depth=0": "Invalid value for '--depth'",
    "--query-budget=0": "Invalid value for '--query-budget'",
    "--configurations=000,12": "configuration '12' is not three bits",
    "--format=json": "Invalid value for '--format'",
}


@pytest.mark.parametrize("option", BAD)
def test_option_out_of_range_is_one_sentence_and_status_2(tmp_path: Path, option: str) -> None:
    out = tmp_path / "runs"
    result = call("score", *inputs(tmp_path, SMALL), "--out", out, option)
    assert result.exit_code == 2
    assert BAD[option] in result.stderr
    assert "Traceback" not in result.stderr
    assert not out.exists()


def test_bad_files_are_one_sentence_and_status_2(tmp_path: Path) -> None:
    arguments = inputs(tmp_path, SMALL)
    out = tmp_path / "out"
    good = write_qrels(tmp_path / "good", SMALL_QRELS)
    strangers = write_qrels(tmp_path / "strangers", {"other": {"a": 1}})
    negative = write_qrels(tmp_path / "negative", {"q1": {"a": 0}})
    malformed = tmp_path / "malformed"
    malformed.write_text("q1 0 a 1\nq1 0\n")
    (tmp_path / "taken").write_text("a file")
    broken = write_lines(tmp_path / "broken.jsonl", [{"id": "x", "vector": {"1": -1}}])
    for qrels, sentence in {
        strangers: "no query to evaluate: of 3 queries 0 are judged",
        negative: "of 3 queries 1 are judged and none has a relevant document",
        malformed: "malformed, line 2",
        tmp_path / "absent": "absent cannot be read",
    }.items():
        result = call("decompose", *arguments, "--qrels", qrels, "--out", out)
        assert result.exit_code == 2, result.output
        errors = [line for line in result.stderr.splitlines() if line.startswith("Error: ")]
        assert len(errors) == 1
        assert sentence in errors[0]
        assert not out.exists()
    result = call("decompose", *arguments, "--qrels", good, "--out", tmp_path / "taken")
    assert result.exit_code == 2
    assert "taken is a file; name a folder" in result.stderr
    result = call("score", *arguments, "--queries", broken, "--out", out)
    assert result.exit_code == 2
    assert "broken.jsonl, line 1: feature '1' has weight -1.0" in result.stderr
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("option", ["depth", "query-budget", "document-budget", "threads", "seed"])
def test_number_beyond_31_bits_is_one_sentence_and_status_2(tmp_path: Path, option: str) -> None:
    qrels = write_qrels(tmp_path / "qrels", SMALL_QRELS)
    result = call(
        "decompose", *inputs(tmp_path, SMALL), "--qrels", qrels, "--out", tmp_path / "out",
        f"--{option}", 10**20,
    )  # fmt: skip
    assert result.exit_code == 2
    assert f"Invalid value for '--{option}'" in result.stderr
    assert not (tmp_path / "out").exists()


def test_depth_beyond_the_collection_lists_all_of_it(tmp_path: Path) -> None:
    for name, depth in (("deep", 2**31 - 1), ("whole", 4)):
        arguments = [*inputs(tmp_path, SMALL), "--out", tmp_path / name, "--depth", depth]
        assert call("score", *arguments).exit_code == 0
    for name in NAMES:
        deep = (tmp_path / "deep" / f"{name}.trec").read_text()
        assert deep == (tmp_path / "whole" / f"{name}.trec").read_text()


def test_too_few_draws_are_warned_of(tmp_path: Path) -> None:
    qrels = write_qrels(tmp_path / "qrels", SMALL_QRELS)
    arguments = ["--qrels", qrels, "--out", tmp_path / "out", "--draws", 40]
    result = call("decompose", *inputs(tmp_path, SMALL), *arguments)
    assert result.exit_code == 0
    assert "the smallest attainable Holm p is 0.07317, so nothing can pass 0.05" in result.stderr


def test_help_lists_every_command_without_loading_the_library() -> None:
    code = (
        "import sys; from click.testing import CliRunner; from whencount.cli import main;"
        "print(CliRunner().invoke(main, ['--help']).output);"
        "print(*(set(sys.modules) & {'numpy', 'numba', 'pandas', 'torch', 'pyarrow'}))"
    )
    finished = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    for name in COMMANDS:
        assert f"  {name} " in finished.stdout
    assert finished.stdout.splitlines()[-1] == ""


@pytest.mark.parametrize("command", ["score", "decompose"])
def test_help_of_a_command_shows_examples(command: str) -> None:
    result = call(command, "--help")
    assert result.exit_code == 0
    assert "Examples:" in result.output
    assert f"whencount {command} --documents" in result.output


def test_unknown_command_is_refused() -> None:
    assert call("rank").exit_code == 2


def test_few_queries_are_warned_of(tmp_path: Path) -> None:
    qrels = write_qrels(tmp_path / "qrels", SMALL_QRELS)
    arguments = [*inputs(tmp_path, SMALL), "--qrels", qrels, "--out", tmp_path / "out", "--json"]
    result = call("decompose", *arguments)
    assert "Warning: only" in result.stderr
    assert "read nothing into p" in result.stderr
    json.loads(result.stdout)
