"""A study of pages through Snakemake: a tiny random Llama, a task whose data is absent."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import yaml
from click.testing import CliRunner
from ruler_texts import question_files
from tiny_language_model import write_folder

from whencount.cli import main

ROOT = Path(__file__).parents[1]
PAGES = Path("results/pages")
CONFIGURATIONS = [f"{number:03b}" for number in range(8)]

pytestmark = pytest.mark.study


def snakemake(
    folder: Path, *arguments: str, config: str = "pages.yaml", fails: bool = False
) -> str:
    """Run Snakemake in a folder and return what it said."""
    command = [sys.executable, "-m", "snakemake", "-s", str(ROOT / "Snakefile"), "-d", str(folder)]
    command += ["--cores", "2", *arguments, "--configfile", str(folder / config)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode != 0) == fails, done.stdout + done.stderr
    return done.stdout + done.stderr


def planned(output: str) -> dict[str, int]:
    """Jobs per rule in the table that a dry run prints."""
    found = re.findall(r"^(\w+) +(\d+)$", output, re.MULTILINE)
    return {rule: int(count) for rule, count in found if rule != "total"}


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    write_folder(folder / "model", max_position_embeddings=2048)
    question_files(folder)
    config = {
        "study": "tiny",
        "pages": {
            "models": {"tiny": {"source": "folder", "path": "model"}},
            "tasks": ["niah_multikey_3", "qa_1", "qa_2"],
            "contexts": [1536],
            "examples": 2,
            "longest_answer": 3,
            "budgets": [64],
            "dense_layers": 1,
            "variants": ["head"],
            "selectors": ["full", "quest", "random"],
            "calibration_positions": 8,
            "questions": {"qa_1": {"path": "none.json"}, "qa_2": {"path": "hotpot.json"}},
        },
    }
    (folder / "pages.yaml").write_text(yaml.safe_dump(config))
    output = snakemake(folder, str(PAGES / "rows.parquet"))
    assert "NOT RUN: qa_1, none.json is not there" in output
    return folder


def test_every_job_gives_its_lines(study: Path) -> None:
    rows = pd.read_parquet(study / PAGES / "rows.parquet")
    assert rows[["model", "task", "context", "budget", "variant"]].values.tolist() == [
        ["tiny", "niah_multikey_3", 1536, 64, "head"],
        ["tiny", "qa_2", 1536, 64, "head"],
    ]
    answers = pd.read_parquet(study / PAGES / "per_example.parquet")
    # 2 tasks, 2 examples; full, two baselines, eight configurations.
    assert len(answers) == 2 * 2 * (1 + 2 + 8)
    assert set(answers["selector"]) == {"full", "quest", "random", *CONFIGURATIONS}
    assert (answers["tokens"] <= 1536).all()
    assert (answers["generated"] <= 3).all()
    for row in rows.to_dict("records"):
        mine = answers[(answers["task"] == row["task"]) & answers["selector"].isin(CONFIGURATIONS)]
        scores = mine.groupby("selector")["score"].mean()
        assert [row[f"q{name}"] for name in CONFIGURATIONS] == scores.tolist()
    baselines = pd.read_parquet(study / PAGES / "baselines.parquet")
    assert len(baselines) == 2 * (1 + 2 + 8)


def test_a_configuration_without_switches_answers_as_quest(study: Path) -> None:
    answers = pd.read_parquet(study / PAGES / "per_example.parquet")
    said = answers.pivot(index=["task", "example"], columns="selector", values="prediction")
    assert (said["000"] == said["quest"]).all()
    assert (said["010"] == said["000"]).all()
    assert (said["011"] == said["001"]).all()


def test_a_task_without_data_is_listed_with_a_remedy(study: Path) -> None:
    table = pd.read_parquet(study / PAGES / "unavailable.parquet")
    (line,) = table.to_dict("records")
    assert line["task"] == "qa_1"
    assert line["reason"] == "none.json is not there"
    assert "pages.questions.qa_1.path" in line["remedy"]


def test_tables_can_be_explained_and_verified(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(study)
    done = CliRunner().invoke(main, ["verify", "results"])
    assert done.exit_code == 0, done.output
    told = CliRunner().invoke(main, ["explain", str(PAGES / "rows.parquet")]).output
    assert "tiny.niah_multikey_3.1536" in told
    assert "kv-pages" in told
    assert "hotpot.json" in told


def test_a_lost_table_of_a_job_is_made_again_to_the_same_bytes(study: Path) -> None:
    lost = PAGES / "per_example" / "tiny.qa_2.1536.parquet"
    before = (study / lost).read_bytes()
    (study / lost).unlink()
    jobs = planned(snakemake(study, "pages", "--dry-run"))
    assert jobs == {"pages_evaluation": 1, "pages_collection": 1, "pages_report": 1, "pages": 1}
    snakemake(study, str(lost))
    assert (study / lost).read_bytes() == before


def test_a_model_that_the_study_lacks_is_refused_by_name(study: Path) -> None:
    target = str(PAGES / "rows" / "large.qa_2.1536.parquet")
    assert "pages.models has no 'large'; it has tiny" in snakemake(study, target, "-n", fails=True)


def test_a_study_whose_tasks_all_lack_data_is_refused(study: Path) -> None:
    config = yaml.safe_load((study / "pages.yaml").read_text())
    config["pages"]["tasks"] = ["qa_1"]
    (study / "lacking.yaml").write_text(yaml.safe_dump(config))
    said = snakemake(study, "pages", "-n", config="lacking.yaml", fails=True)
    assert "every task lacks its data" in said
    assert "qa_1: none.json is not there" in said


def test_a_study_without_pages_says_so(study: Path) -> None:
    (study / "test.yaml").write_bytes((ROOT / "configs" / "test.yaml").read_bytes())
    said = snakemake(study, "pages", "-n", config="test.yaml", fails=True)
    assert "no study of pages; add the key pages" in said


def test_the_published_grid_is_26_jobs_where_all_data_is_there(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    for name in ("squad-dev-v2.0.json", "hotpot_dev_distractor_v1.json"):
        (tmp_path / "data" / name).touch()
    # `study` is what a configuration of pages alone makes by default.
    arguments = ["snakemake", "study", "--dry-run", "--configfile"]
    arguments += [str(ROOT / "configs" / "pages.yaml"), "-s", str(ROOT / "Snakefile")]
    code = (
        f"import sys; sys.argv = {arguments};"
        "import snakemake.cli, atexit;"
        "heavy = {'torch', 'transformers', 'lm_eval', 'numba', 'scipy'};"
        "atexit.register(lambda: print('HEAVY', sorted(heavy & set(sys.modules))));"
        "snakemake.cli.main()"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert planned(said) == {
        "pages_evaluation": 26,
        "pages_haystack": 1,
        "pages_collection": 1,
        "pages_report": 1,
        "study": 1,
    }
    assert "HEAVY []" in said
