"""`whencount grid`: the counts of the published study, jobs as Snakemake plans them, bad input."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result
from study_tables import ROOT

from whencount.cli import main


def call(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["grid", *map(str, arguments)])


@pytest.fixture(scope="module")
def full() -> dict[str, Any]:
    result = call(ROOT / "configs" / "full.yaml", "--json")
    assert result.exit_code == 0, result.output
    parsed: dict[str, Any] = json.loads(result.stdout)
    return parsed


def test_the_published_grid_has_the_published_counts(full: dict[str, Any]) -> None:
    """Study, section 4."""
    families = full["rows"]["families"]
    assert families["budgets"] + families["budgets_native"] == 462
    assert {name: families[name] for name in families if not name.startswith("budgets")} == {
        "primary": 182,
        "parameters": 630,
        "seeds": 100,
        "controls": 84,
        "shared_dictionary": 20,
        "held_back": 84,
    }
    assert full["rows"]["reported_collections"] == 1226
    assert full["rows"]["union"] == 1226 + 42 + 84
    assert full["jobs"]["collections"] == {"collection": 13}
    assert full["estimate"]["documents"] == 10_485_548  # eleven corpora, section 3
    assert full["estimate"]["unknown"] == []


def test_the_page_for_people_tells_the_same_and_marks_assumptions(full: dict[str, Any]) -> None:
    result = call(ROOT / "configs" / "full.yaml")
    assert result.exit_code == 0
    words = " ".join(result.stdout.split())
    assert "all, each once 1,352 1,226 on the collections that statistics report" in words
    assert "10,485,548, each corpus once" in words
    assert f"{full['jobs']['scoring']['score']} score" in words
    assert "25,000 tokens per GPU-second" in words
    assert "(assumption; --gpu-" in words
    assert "(docs/performance.md)" in words
    given = " ".join(
        call(ROOT / "configs" / "full.yaml", "--gpu-tokens-per-second", 9).stdout.split()
    )
    assert "9 tokens per GPU-second" in given
    assert "(assumption; --gpu-" not in given


def planned(config: Path, folder: Path) -> dict[str, int]:
    """Jobs per rule as a dry run of the workflow counts them."""
    command = [sys.executable, "-m", "snakemake", "-s", str(ROOT / "Snakefile"), "-d", str(folder)]
    command += [
        "study",
        "--configfile",
        str(config),
        "--cores",
        "2",
        "--dry-run",
        "--quiet",
        "rules",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found = re.findall(r"^(\w+) +(\d+)$", done.stdout + done.stderr, re.MULTILINE)
    return {rule: int(count) for rule, count in found if rule not in ("total", "study")}


def test_jobs_are_those_that_snakemake_plans(tmp_path: Path) -> None:
    """With shards, a shared corpus, seeds, a shared dictionary alone, and an external encoder."""
    study = yaml.safe_load((ROOT / "configs" / "test.yaml").read_text())
    study["external"] = {"splade": {"source": "folder", "path": "splade"}}
    study["collections"]["limit"]["shards"] = 3
    study["collections"]["again"] = {
        **study["collections"]["limit"],
        "corpus": "limit",
        "shards": 2,
    }
    cells = {"budgets": ["native"], "k1": [1.2], "b": [0.75]}
    study["families"] = {
        "primary": {**cells, "representations": ["pca_pooled", "kmeans_token"]},
        "seeds": {
            **cells,
            "representations": ["kmeans_token"],
            "collections": ["again"],
            "seeds": [1],
        },
        "others": {
            **cells,
            "representations": ["sae_shared_pooled", "splade_external"],
            "collections": ["limit"],
        },
    }
    config = tmp_path / "study.yaml"
    config.write_text(yaml.safe_dump(study))
    result = call(config, "--json")
    assert result.exit_code == 0, result.output
    jobs = json.loads(result.stdout)["jobs"]
    ours = {rule: number for kind in jobs for rule, number in jobs[kind].items()}
    ours = {rule: number for rule, number in ours.items() if rule not in jobs["analysis"]}
    theirs = planned(config, tmp_path)
    assert ours == {rule: number for rule, number in theirs.items() if rule in ours}
    analysis = {"collect", "significance", "shares", "reference_quality", "retrieval_report"}
    assert analysis <= set(jobs["analysis"])
    assert set(theirs) <= set(ours) | set(jobs["analysis"])


def test_collections_of_unknown_size_are_called_unknown(tmp_path: Path) -> None:
    study = yaml.safe_load((ROOT / "configs" / "test.yaml").read_text())
    study["collections"]["far"] = {"source": "ir_datasets", "id": "nobody/knows"}
    config = tmp_path / "study.yaml"
    config.write_text(yaml.safe_dump(study))
    result = call(config)
    assert result.exit_code == 0
    assert re.search(r"far +unknown +unknown", result.stdout)
    assert "Without far: nothing here tells how large it is" in result.stdout


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"families": {"a": {"budgets": ["1/2"], "k1": [1], "b": [2]}}}, "families.a.b"),
        ({"collections": {"nfcorpsu": {}}}, "nfcorpus"),
        ({"bases": {"pac": {}}}, "did you mean 'pca'"),
    ],
)
def test_a_wrong_configuration_is_told_in_one_sentence(
    tmp_path: Path, change: dict[str, Any], words: str
) -> None:
    study = yaml.safe_load((ROOT / "configs" / "test.yaml").read_text())
    config = tmp_path / "study.yaml"
    config.write_text(yaml.safe_dump(study | change))
    result = call(config)
    assert result.exit_code == 2
    assert result.output.startswith("Error: ")
    assert words in result.output
    assert "Traceback" not in result.output
    assert call(tmp_path / "none.yaml").exit_code == 2


def test_nothing_heavy_is_imported() -> None:
    code = (
        "import sys; from whencount.cli import main;"
        f"main(['grid', {str(ROOT / 'configs' / 'full.yaml')!r}], standalone_mode=False);"
        "heavy = {'torch', 'transformers', 'faiss', 'sklearn', 'scipy', 'numba', 'ir_datasets'};"
        "sys.exit(repr(heavy & set(sys.modules)) if heavy & set(sys.modules) else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("rate", ["nan", "inf", "0", "-1"])
def test_a_rate_that_is_none_is_refused(rate: str) -> None:
    result = call(ROOT / "config.yaml", "--gpu-tokens-per-second", rate)
    assert result.exit_code == 2
    assert "gpu-tokens-per-second" in result.stderr
