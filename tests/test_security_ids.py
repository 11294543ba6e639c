"""Ids that no file could be called are ids like others, or are refused in a sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner, Result

from whencount.cli import main

NUL = "nul\0here"
IDS = [NUL, "../../up", "a/b", "/etc/passwd", "<script>alert(1)</script>"]


def call(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Vectors and texts with such ids, in the middle of a folder that is watched."""
    work = tmp_path / "a" / "b" / "work"
    (work / "data" / "qrels").mkdir(parents=True)
    monkeypatch.chdir(work)
    lines = [{"id": one, "vector": {one: 1.0, "shared": 2.0}} for one in IDS]
    Path("vectors.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
    judged = "".join(f"{one}\t{one}\t1\n" for one in IDS)
    Path("qrels.tsv").write_text("query-id\tcorpus-id\tscore\n" + judged)
    Path("data/qrels/test.tsv").write_text(Path("qrels.tsv").read_text())
    texts = [{"_id": one, "title": "", "text": f"about {one}"} for one in IDS]
    for name in ("corpus", "queries"):
        text = "".join(json.dumps(one) + "\n" for one in texts)
        Path(f"data/{name}.jsonl").write_text(text)
    return tmp_path


def files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_a_run_that_cannot_hold_an_id_is_refused_by_name_and_not_begun(work: Path) -> None:
    before = files(work)
    vectors = ["--documents", "vectors.jsonl", "--queries", "vectors.jsonl"]
    done = call("score", *vectors, "--out", "runs")
    assert done.exit_code == 2
    assert "nul" in done.output
    assert "Traceback" not in done.output
    assert files(work) == before


def test_measures_take_any_id(work: Path) -> None:
    before = files(work)
    vectors = ["--documents", "vectors.jsonl", "--queries", "vectors.jsonl"]
    done = call("decompose", *vectors, "--qrels", "qrels.tsv", "--out", "out", "--draws", "10")
    assert done.exit_code == 0, done.output
    assert {name.split("/")[-1] for name in files(work) - before} == {
        "rows.parquet",
        "per_query.parquet",
    }
    assert set(pd.read_parquet("out/per_query.parquet")["query_id"]) == set(IDS)


def prepare() -> Result:
    source = json.dumps({"source": "beir", "path": "data", "split": "test"})
    return call("stage", "collection", "--name", "mine", "--source", source, "--out", "collection")


def test_a_collection_refuses_control_characters_in_an_id(work: Path) -> None:
    before = files(work)
    done = prepare()
    assert done.exit_code == 2
    assert r"the id 'nul\x00here'" in done.output
    assert files(work) == before


def test_a_collection_takes_any_other_id_and_calls_no_file_by_it(work: Path) -> None:
    for path in Path("data").rglob("*.*"):
        lines = path.read_text().splitlines(keepends=True)
        path.write_text("".join(line for line in lines if "nul" not in line))
    before = files(work)
    done = prepare()
    assert done.exit_code == 0, done.output
    written = files(work) - before
    assert {name.split("/")[-1].removeprefix(".") for name in written} <= {
        "documents.parquet",
        "queries.parquet",
        "qrels.parquet",
        "collection.json",
        "collection.manifest.json",
        "collection.checked.json",
    }
    assert set(pd.read_parquet("collection/documents.parquet")["id"]) == set(IDS) - {NUL}
