"""The steps of the workflow, called as the rules call them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from whencount.cli import main

WORDS = ["alpha", "beta", "gamma", "delta"]


def stage(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["stage", *arguments])


def beir_folder(path: Path, relevance: int = 1) -> Path:
    (path / "qrels").mkdir(parents=True)
    (path / "corpus.jsonl").write_text(
        "".join(json.dumps({"_id": f"d-{w}", "title": "", "text": w}) + "\n" for w in WORDS)
    )
    (path / "queries.jsonl").write_text(
        "".join(json.dumps({"_id": f"q-{w}", "text": w}) + "\n" for w in WORDS)
    )
    (path / "qrels" / "test.tsv").write_text(
        "query-id\tcorpus-id\tscore\n" + "".join(f"q-{w}\td-{w}\t{relevance}\n" for w in WORDS)
    )
    return path


def collection(path: Path, out: Path) -> Result:
    source = json.dumps({"source": "beir", "path": str(path)})
    return stage("collection", "--name", "toy", "--source", source, "--out", str(out))


def test_a_collection_is_prepared_and_ranked_by_text(tmp_path: Path) -> None:
    prepared, run = tmp_path / "toy", tmp_path / "bm25.toy.parquet"
    assert collection(beir_folder(tmp_path / "beir"), prepared).exit_code == 0
    options = ["--k1", "1.2", "--b", "0.75", "--depth", "10", "--threads", "1", "--out", str(run)]
    assert stage("bm25", "--collection", str(prepared), *options).exit_code == 0
    table = tmp_path / "references.parquet"
    found = json.dumps({"toy": str(prepared)})
    done = stage("reference-quality", "--collections", found, "--out", str(table), str(run))
    assert done.exit_code == 0, done.output
    import pandas as pd

    assert pd.read_parquet(table)["ndcg_10"].tolist() == [1.0]


def test_a_collection_with_nothing_relevant_is_refused_before_any_encoding(tmp_path: Path) -> None:
    done = collection(beir_folder(tmp_path / "beir", relevance=0), tmp_path / "out")
    assert done.exit_code == 2
    assert "no query has a positive judgement" in done.output
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("value", ["[1]", "3", '"beir"', "{"])
def test_a_source_that_is_no_object_is_refused(tmp_path: Path, value: str) -> None:
    done = stage("collection", "--name", "x", "--source", value, "--out", str(tmp_path / "x"))
    assert done.exit_code == 2
    assert "JSON" in done.output


def test_a_polite_kill_takes_half_written_files_away(tmp_path: Path) -> None:
    folder, results = beir_folder(tmp_path / "beir"), tmp_path / "results"
    results.mkdir()
    with (folder / "corpus.jsonl").open("a") as corpus:
        corpus.writelines(f'{{"_id": "{number}", "text": "more"}}\n' for number in range(2_000_000))
    source = json.dumps({"source": "beir", "path": str(folder)})
    command = [sys.executable, "-m", "whencount.cli", "stage", "collection", "--name", "toy"]
    command += ["--source", source, "--out", str(results / "toy")]
    process = subprocess.Popen(command, env=os.environ, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not list(results.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=60) == 128 + signal.SIGTERM
    assert list(results.iterdir()) == []
