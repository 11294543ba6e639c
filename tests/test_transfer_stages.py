"""The transfer test by its stages, its command, its page, and the order of its jobs."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pandas as pd
import pytest
import yaml
from click.testing import CliRunner, Result
from prediction_rows import prediction_rows
from transfer_tables import expert_rows, page_rows

from whencount import transfer
from whencount.cli import main
from whencount.provenance import check_input, manifest_path, read_manifest, recorded
from whencount.provenance.manifest import write_manifest
from whencount.reports import render
from whencount.tables import read_table, write_table

ROOT = Path(__file__).parents[1]
NOTEBOOK = ROOT / "workflow" / "notebooks" / "transfer.ipynb"
OPTIONS = {
    "reference": "dense",
    "sign_accuracy": 0.7,
    "mae_ratio": 1.5,
    "draws": 500,
    "family": "primary",
    "seed": 0,
}
ROWS, FROZEN = Path("results/rows.parquet"), Path("results/transfer/frozen.json")
TABLES = (Path("results/transfer.parquet"), Path("results/transfer_predictions.parquet"))


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory whose retrieval rows are there, as an artefact."""
    monkeypatch.chdir(tmp_path)
    made(ROWS, prediction_rows(collections=("scifact", "fiqa", "limit")))
    return tmp_path


def made(path: Path, table: pd.DataFrame, *inputs: Path) -> None:
    """Write a table with a manifest, as a stage does."""
    with recorded(stage="collect", outputs=[path], inputs=list(inputs)):
        write_table(table, path)


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, list(map(str, arguments)))


def freeze(**changed: float) -> Result:
    outcomes = json.dumps({"pages": "results/pages", "experts": "results/experts"})
    options: list[str | Path] = ["--options", json.dumps(OPTIONS | changed)]
    options += ["--outcomes", outcomes]
    return run("stage", "freeze", "--rows", ROWS, *options, "--out", FROZEN)


def judge() -> Result:
    given: list[str | Path] = []
    for name in ("pages", "experts"):
        path = Path("results") / name / "rows.parquet"
        given += [f"--{name}", path] if path.exists() else []
    given += ["--predictions", TABLES[1], "--out", TABLES[0]]
    return run("stage", "transfer", "--frozen", FROZEN, *given)


def succeeded(result: Result) -> None:
    assert result.exit_code == 0, result.output


def test_predictors_are_frozen_then_outcomes_made_then_judged(study: Path) -> None:
    succeeded(freeze())
    made(Path("results/pages/rows.parquet"), page_rows())
    made(Path("results/experts/rows.parquet"), expert_rows())
    succeeded(judge())
    frozen = transfer.read_frozen(FROZEN)
    assert frozen.rows["sha256"] == read_manifest(manifest_path(ROWS)).files["."].sha256
    predicted = pd.concat(
        [
            transfer.apply(frozen, "pages", page_rows()),
            transfer.apply(frozen, "experts", expert_rows()),
        ],
        ignore_index=True,
    )
    pd.testing.assert_frame_equal(read_table(TABLES[1]), predicted)
    found = read_table(TABLES[0])
    assert set(found["status"]) == {"confirmatory"}
    pd.testing.assert_frame_equal(found, transfer.assess(frozen, predicted), check_dtype=False)
    recorded_inputs = {one.path for one in read_manifest(manifest_path(TABLES[0])).inputs}
    assert recorded_inputs == {
        "transfer/frozen.json",
        "pages/rows.parquet",
        "experts/rows.parquet",
    }
    before = [path.read_bytes() for path in TABLES]
    succeeded(judge())
    assert [path.read_bytes() for path in TABLES] == before


def test_a_freeze_that_was_changed_is_refused(study: Path) -> None:
    succeeded(freeze())
    made(Path("results/pages/rows.parquet"), page_rows())
    text = FROZEN.read_text(encoding="utf-8")
    FROZEN.write_text(text.replace('"mae_ratio": 1.5', '"mae_ratio": 9.5'), encoding="utf-8")
    result = judge()
    assert result.exit_code == 2
    assert "frozen.json is not what" in result.output
    # With a manifest to match, the digest within still tells.
    with recorded(stage="freeze", outputs=[FROZEN], inputs=[ROWS]):
        pass
    result = judge()
    assert result.exit_code == 2
    assert "was changed after the freeze" in result.output
    assert not any(path.exists() for path in TABLES)


def test_a_refused_freeze_leaves_the_old_one_with_its_manifest(study: Path) -> None:
    succeeded(freeze())
    before = FROZEN.read_bytes()
    made(Path("results/experts/rows/a.parquet"), expert_rows())
    result = freeze(sign_accuracy=0.5)
    assert result.exit_code == 2
    assert "results/experts/rows/a.parquet" in result.output
    assert FROZEN.read_bytes() == before
    check_input(FROZEN)
    succeeded(freeze())
    assert FROZEN.read_bytes() == before


def test_nothing_is_left_of_a_freeze_that_came_too_late(study: Path) -> None:
    made(Path("results/pages/per_example/a.parquet"), page_rows())
    result = freeze()
    assert result.exit_code == 2
    assert "nothing was frozen before them" in result.output
    assert not FROZEN.exists()
    assert not manifest_path(FROZEN).exists()


def test_outcomes_begun_before_a_moment_are_found_behind_their_table(study: Path) -> None:
    early, late = Path("results/pages/rows/a.parquet"), Path("results/pages/rows/b.parquet")
    table = Path("results/pages/rows.parquet")
    made(early, page_rows())
    made(late, page_rows())
    made(table, page_rows(), early, late)
    now = datetime.now(UTC)
    manifest = read_manifest(manifest_path(early))
    then = (now - timedelta(hours=2)).isoformat(timespec="seconds")
    write_manifest(replace(manifest, run={**manifest.run, "started": then}), early)
    assert transfer.started_before(now - timedelta(hours=3), table) == []
    assert transfer.started_before(now - timedelta(hours=1), table) == [early]
    assert set(transfer.started_before(now + timedelta(hours=1), table)) == {table, early, late}
    sentence = transfer.too_early([early, late], now)
    assert "a.parquet and 1 more began before" in sentence


def test_judging_outcomes_from_before_the_freeze_is_exploratory(study: Path) -> None:
    succeeded(freeze())
    table = Path("results/pages/rows.parquet")
    made(table, page_rows())
    manifest = read_manifest(manifest_path(table))
    write_manifest(
        replace(manifest, run={**manifest.run, "started": "2020-01-01T00:00:00+00:00"}), table
    )
    succeeded(judge())
    found = read_table(TABLES[0])
    assert set(found["status"]) == {"exploratory"}
    assert found["status_reason"].str.contains("rows.parquet began before").all()


@pytest.fixture
def configured(study: Path) -> Path:
    """The working directory with a configuration of its own."""
    whole = yaml.safe_load((ROOT / "configs" / "test.yaml").read_text(encoding="utf-8"))
    default = yaml.safe_load((ROOT / "config.yaml").read_text(encoding="utf-8"))
    whole |= {"results": "results", "reports": "reports"}
    whole |= {name: default[name] for name in ("pages", "experts")}
    whole["transfer"] = True
    (study / "config.yaml").write_text(yaml.safe_dump(whole), encoding="utf-8")
    (study / "workflow").symlink_to(ROOT / "workflow")
    return study


def test_the_command_freezes_what_the_configuration_says(configured: Path) -> None:
    result = run("freeze")
    assert result.exit_code == 0, result.output
    frozen = transfer.read_frozen(FROZEN)
    assert transfer.digest_of(frozen)[:16] in result.output
    assert frozen.retrieval["reference"] == "dense"
    check_input(FROZEN)
    written = FROZEN.read_bytes()
    assert run("freeze").exit_code == 0
    assert FROZEN.read_bytes() == written


def test_the_command_wants_a_configuration_that_tests_transfer(configured: Path) -> None:
    text = (configured / "config.yaml").read_text(encoding="utf-8")
    (configured / "config.yaml").write_text(text.replace("transfer: true", "transfer: false"))
    result = run("freeze")
    assert result.exit_code == 2
    assert "no transfer is tested" in result.output


def test_the_page_shows_verdicts_and_what_was_frozen(tmp_path: Path) -> None:
    frozen = transfer.freeze(prediction_rows())
    rows = page_rows(tasks=["<script>alert(1)</script>", "vt"])
    predicted = transfer.apply(frozen, "pages", rows.replace({"variant": {"head": "<b>h"}}))
    paths = {name: tmp_path / name for name in ("frozen", "transfer", "predictions")}
    transfer.write_frozen(frozen, paths["frozen"])
    write_table(transfer.assess(frozen, predicted), paths["transfer"])
    write_table(predicted, paths["predictions"])
    given = {name: str(path) for name, path in paths.items()} | {"study": "made up"}
    render(NOTEBOOK, given, tmp_path / "figures", tmp_path / "transfer.html")
    page = (tmp_path / "transfer.html").read_text(encoding="utf-8")
    assert "<script" not in page
    assert "<b>h" not in page
    assert transfer.digest_of(frozen) in page
    assert "thin evidence" in page
    assert "Transfer holds in" in page
    assert {path.stem for path in (tmp_path / "figures").glob("*.svg")} == {
        "signs",
        "errors",
        "predicted_pages",
    }


def snakemake(folder: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", "snakemake", "-s", str(ROOT / "Snakefile"), "-d", str(folder)]
    command += ["--configfile", "config.yaml", "--cores", "1", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def edges(dot: str) -> set[tuple[str, str]]:
    """(rule, rule that takes its output) of a graph of rules."""
    names = dict(re.findall(r'(\d+)\[label = "(\w+)"', dot))
    return {(names[a], names[b]) for a, b in re.findall(r"(\d+) -> (\d+)", dot)}


def test_what_computes_outcomes_waits_for_the_freeze(configured: Path) -> None:
    found = edges(snakemake(configured, "transfer", "--rulegraph", "--forceall"))
    assert ("freeze", "transfer_test") in found
    waiting = {rule for before, rule in found if before == "freeze"}
    outcomes = {"pages_evaluation", "expert_evaluation"}
    assert waiting == outcomes | {"transfer_test", "transfer_report", "transfer"}
    alone = edges(
        snakemake(configured, "results/pages/rows.parquet", "--rulegraph", "--forceall",
                  "--config", "transfer=false")
    )  # fmt: skip
    assert alone
    assert not {"freeze", "score"} & {rule for edge in alone for rule in edge}
