"""A small study, through Snakemake, on real text and a real encoder (configs/test.yaml)."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest
import yaml

ROOT = Path(__file__).parents[1]
CONFIG = ROOT / "configs" / "test.yaml"
RESULTS = Path("results/test")
PAGE = Path("reports/test/retrieval.html")

pytestmark = pytest.mark.study


def snakemake(folder: Path, *arguments: str, config: Path = CONFIG) -> str:
    """Run Snakemake in `folder` and return what it said; fails on a non-zero exit status."""
    command = [sys.executable, "-m", "snakemake", "-s", str(ROOT / "Snakefile"), "-d", str(folder)]
    command += ["--configfile", str(config), "--cores", "2", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def planned(output: str) -> dict[str, int]:
    """Jobs per rule in the table that a dry run prints."""
    found = re.findall(r"^(\w+) +(\d+)$", output, re.MULTILINE)
    return {rule: int(count) for rule, count in found if rule != "total"}


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study")
    snakemake(folder, "study")
    return folder


def test_the_study_ends_with_a_report_and_every_row(study: Path) -> None:
    assert (study / PAGE).stat().st_size > 10_000
    site = (study / PAGE.with_name("index.html")).read_text(encoding="utf-8")
    assert '<a href="retrieval.html">' in site
    assert 'id="detail-0"' in site
    rows = pd.read_parquet(study / RESULTS / "rows.parquet")
    assert len(rows) == 129
    assert set(rows["collection"]) == {"limit", "api-docs"}
    assert rows["representation"].nunique() == 15
    qualities = rows.filter(regex=r"^q[01]{3}$")
    assert qualities.shape[1] == 8
    assert ((qualities >= 0) & (qualities <= 1)).all().all()
    assert (rows.loc[rows["collection"] == "api-docs", "q011"] > 0.05).all()


def test_pooled_quantised_codes_leave_saturation_and_length_nothing(study: Path) -> None:
    rows = pd.read_parquet(study / RESULTS / "rows.parquet")
    quantised = rows[rows["representation"].isin(["pq_pooled", "rq_pooled"])]
    assert len(quantised)
    assert (quantised["shapley_saturation"] == 0.0).all()
    assert (quantised["shapley_length"] == 0.0).all()


def test_length_has_exactly_no_part_where_b_is_zero(study: Path) -> None:
    rows = pd.read_parquet(study / RESULTS / "rows.parquet")
    assert (rows.loc[rows["b"] == 0.0, "shapley_length"] == 0.0).all()
    assert (rows["b"] == 0.0).any()


def test_per_query_qualities_average_to_the_rows(study: Path) -> None:
    rows = pd.read_parquet(study / RESULTS / "rows.parquet")
    for row in rows[rows["families"].str.contains("primary")].to_dict("records"):
        name = f"{row['representation']}.{row['collection']}.seed{row['seed']}.parquet"
        queries = pd.read_parquet(study / RESULTS / "per_query" / name)
        cell = queries[
            (queries["budget"] == row["budget"])
            & (queries["k1"] == row["k1"])
            & (queries["b"] == row["b"])
            & (queries["control"] == row["control"])
        ]
        assert len(cell) == row["queries"]
        assert cell["q111"].mean() == pytest.approx(row["q111"], rel=1e-12)


def test_a_second_call_has_nothing_to_do(study: Path) -> None:
    assert "Nothing to be done" in snakemake(study, "study")


SLOW = pytest.mark.slow
PAGES = {
    **{"retrieval_report": 1, "hypotheses_report": 1, "part_pages": 1},
    **{"site": 1, "report": 1},
}
ANALYSIS = {"collect": 1, "significance": 1, "shares": 1, "predictors": 1, "hypotheses": 1}
LOST = {
    "significance.parquet": {"significance": 1, **PAGES},
    # Its top ten stand in for labels, so every row of the collection depends on it.
    "references/bm25.limit.parquet": {
        "bm25": 1,
        "rrf": 1,
        "reference_quality": 1,
        "score": 16,
        "moved": 1,
        **ANALYSIS,
        **PAGES,
    },
    "per_query/pca_token.limit.seed0.parquet": {"score": 1, "moved": 1, **ANALYSIS, **PAGES},
}


@pytest.mark.parametrize("name", LOST)
def test_a_lost_table_asks_only_for_what_depends_on_it(study: Path, name: str) -> None:
    lost = study / RESULTS / name
    aside = lost.with_suffix(".aside")
    lost.rename(aside)
    try:
        assert planned(snakemake(study, "report", "--dry-run")) == LOST[name]
    finally:
        aside.rename(lost)


@pytest.mark.parametrize(
    "name", [name if "significance" in name else pytest.param(name, marks=SLOW) for name in LOST]
)
def test_a_lost_table_is_made_again_to_the_same_bytes(study: Path, name: str) -> None:
    lost, kept = (
        study / RESULTS / name,
        study / RESULTS / "rows" / "pca_token.api-docs.seed0.parquet",
    )
    before, untouched = lost.read_bytes(), kept.stat().st_mtime_ns
    lost.unlink()
    snakemake(study, "report")
    assert lost.read_bytes() == before
    assert kept.stat().st_mtime_ns == untouched


def test_one_representation_of_one_collection_can_be_asked_for(study: Path) -> None:
    name = "rows/sae_token.limit.seed0.parquet"
    (study / RESULTS / name).unlink()
    jobs = planned(snakemake(study, str(RESULTS / name), "--dry-run"))
    assert jobs == {"score": 1}
    snakemake(study, str(RESULTS / name))


def test_the_report_is_drawn_from_results_copied_from_elsewhere(
    study: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "elsewhere"
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".*", "results", "reports", "build"))
    # File by file, so that every time of change is lost, and without Snakemake's own notes.
    shutil.copytree(study / "results", copy / "results", copy_function=shutil.copyfile)
    command = ["make", "report", f"BIN={Path(sys.executable).parent}", "CONFIG=configs/test.yaml"]
    command += ["-o", ".venv/.ready"]
    done = subprocess.run(command, cwd=copy, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    ran = set(re.findall(r"^ *\d* *rule (\w+):$|\(Rule: (\w+)\)", done.stdout + done.stderr))
    assert {a or b for a, b in ran} <= {
        "retrieval_report",
        "hypotheses_report",
        "part_pages",
        "site",
        "report",
    }
    assert (copy / PAGE).read_bytes() == (study / PAGE).read_bytes()


def test_a_row_outside_the_configuration_is_refused_by_name(study: Path) -> None:
    command = [sys.executable, "-m", "snakemake", "-s", str(ROOT / "Snakefile"), "-d", str(study)]
    command += ["--configfile", str(CONFIG), "--cores", "1", "--dry-run"]
    command += [str(RESULTS / "rows/pca_token.limit.seed7.parquet")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "no row of pca_token.limit.seed7" in done.stdout + done.stderr


def test_rows_made_twice_from_scratch_are_the_same_bytes(study: Path, tmp_path: Path) -> None:
    kept = [
        RESULTS / kind / f"{representation}.limit.seed0.parquet"
        for representation in ("sae_token", "kmeans_pooled")
        for kind in ("rows", "per_query")
    ]
    kept += [RESULTS / "references" / f"{name}.limit.parquet" for name in ("bm25", "dense")]
    snakemake(tmp_path, *map(str, kept))
    for path in kept:
        assert (study / path).read_bytes() == (tmp_path / path).read_bytes(), path


@pytest.mark.slow
def test_two_runs_from_scratch_give_the_same_bytes(study: Path, tmp_path: Path) -> None:
    snakemake(tmp_path, "study")
    for name in ("rows", "significance", "shares", "references"):
        path = RESULTS / f"{name}.parquet"
        assert (study / path).read_bytes() == (tmp_path / path).read_bytes(), name
    assert (study / PAGE).read_bytes() == (tmp_path / PAGE).read_bytes()


def test_a_collection_of_ones_own_joins_by_configuration_alone(study: Path, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    (folder / "qrels").mkdir(parents=True)
    words = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"]
    (folder / "corpus.jsonl").write_text(
        "".join(
            f'{{"_id": "doc/{word}", "title": "{word}", "text": "All about {word} <script>"}}\n'
            for word in words
        )
    )
    (folder / "queries.jsonl").write_text(
        "".join(f'{{"_id": "q-{word}", "text": "what is {word}?"}}\n' for word in words)
    )
    (folder / "qrels" / "test.tsv").write_text(
        "query-id\tcorpus-id\tscore\n" + "".join(f"q-{w}\tdoc/{w}\t1\n" for w in words)
    )
    config = yaml.safe_load(CONFIG.read_text())
    config["collections"]["mine"] = {"source": "beir", "path": str(folder), "split": "test"}
    changed = tmp_path / "config.yaml"
    changed.write_text(yaml.safe_dump(config))
    work = tmp_path / "work"
    shutil.copytree(study, work)
    target = RESULTS / "rows" / "sae_token.mine.seed0.parquet"
    output = snakemake(work, str(target), config=changed)
    assert "encoding the documents of mine" in output
    assert "encoding the documents of limit" not in output
    assert pq.read_table(work / target).num_rows == 1


@pytest.mark.slow
def test_the_study_of_two_arms_runs_on_what_the_study_has(study: Path, tmp_path: Path) -> None:
    folder = study / RESULTS / "fusion"
    options = yaml.safe_load(CONFIG.read_text(encoding="utf-8"))
    options["fusion"] = {"queries": 12, "documents": 60, "floor": 0.3, "draws": 200}
    config = tmp_path / "config.yaml"
    config.write_text(yaml.safe_dump(options, sort_keys=False), encoding="utf-8")
    snakemake(study, "fusion", config=config)
    claims = pd.read_parquet(folder / "claims.parquet")
    assert set(claims["verdict"]) <= {"held", "refuted", "undecided"}
    assert (pd.read_parquet(folder / "reversals.parquet")["violations"] == 0).all()
    page = (study / PAGE.with_name("fusion.html")).read_text(encoding="utf-8")
    assert "<h1" in page
    assert "satisfies its condition" in page


def test_a_wrong_key_stops_snakemake_with_a_sentence(tmp_path: Path) -> None:
    config = yaml.safe_load(CONFIG.read_text())
    config["encoder"]["max_token"] = 32
    changed = tmp_path / "config.yaml"
    changed.write_text(yaml.safe_dump(config))
    command = [sys.executable, "-m", "snakemake", "-s", str(ROOT / "Snakefile"), "--dry-run"]
    command += ["--configfile", str(changed), "-d", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "encoder: unknown key 'max_token' (did you mean 'max_tokens'?)" in (
        done.stdout + done.stderr
    )


def test_a_dry_run_imports_no_heavy_library() -> None:
    code = (
        "import sys; sys.argv = ['snakemake', '--dry-run', '--quiet', 'all', '--configfile',"
        f" {str(ROOT / 'configs' / 'full.yaml')!r}, '-s', {str(ROOT / 'Snakefile')!r}];"
        "import snakemake.cli, atexit;"
        "atexit.register(lambda: print('HEAVY', sorted({'torch', 'transformers', 'faiss', 'numba'}"
        " & set(sys.modules))));"
        "snakemake.cli.main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert "HEAVY []" in done.stdout, done.stdout + done.stderr
    assert done.returncode == 0
