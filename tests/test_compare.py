"""Comparisons of runs against pytrec_eval and plain loops."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import pytrec_eval
from click.testing import CliRunner

from whencount.cli.compare import compare as command
from whencount.collections.qrels import read_qrels
from whencount.comparing_runs import compare
from whencount.errors import InputError


@pytest.fixture
def files(tmp_path: Path) -> Path:
    random = np.random.default_rng(0)
    judged = {
        f"q{q}": {f"d{d}": int(random.integers(0, 3)) for d in random.choice(60, 8, replace=False)}
        for q in range(40)
    }
    judged["q39"] = dict.fromkeys(judged["q39"], 0)  # nothing relevant: left out
    (tmp_path / "qrels.tsv").write_text(
        "".join(f"{q}\t0\t{d}\t{r}\n" for q, docs in judged.items() for d, r in docs.items())
    )
    for name, skill in (("bad", 0.0), ("good", 3.0), ("same", 0.0)):
        draws = np.random.default_rng(1 if name in ("bad", "same") else 2)
        lines = []
        for q, docs in judged.items():
            if name == "good" and q == "q0":
                continue  # ranks nothing for this one
            scores = {f"d{d}": draws.random() + skill * docs.get(f"d{d}", 0) for d in range(60)}
            best = sorted(scores, key=lambda d: -scores[d])[:30]
            lines += [f"{q} Q0 {d} {r + 1} {scores[d]} x\n" for r, d in enumerate(best)]
        (tmp_path / f"{name}.trec").write_text("".join(lines))
    return tmp_path


def theirs(files: Path, name: str, measure: str) -> dict[str, float]:
    qrels: dict[str, dict[str, int]] = {}
    for line in (files / "qrels.tsv").read_text().splitlines():
        q, _, d, r = line.split("\t")
        qrels.setdefault(q, {})[d] = int(r)
    run: dict[str, dict[str, float]] = {}
    for line in (files / f"{name}.trec").read_text().splitlines():
        q, _, d, _, score, _ = line.split()
        run.setdefault(q, {})[d] = float(score)
    key = measure.replace("@", "_").replace("ndcg", "ndcg_cut")
    found = pytrec_eval.RelevanceEvaluator(qrels, {key}).evaluate(run)
    return {q: values[key] for q, values in found.items()}


@pytest.mark.parametrize("measure", ["ndcg@10", "recall@5", "ndcg@3"])
def test_qualities_are_those_of_pytrec_eval(files: Path, measure: str) -> None:
    names = ("bad", "good", "same")
    runs = {name: files / f"{name}.trec" for name in names}
    found = compare(runs, read_qrels(files / "qrels.tsv"), measure=measure, draws=200)
    assert len(found.query_ids) == 39
    assert found.unknown == 1
    assert found.means["answered"].tolist() == [39, 38, 39]
    for row, name in enumerate(names):
        expected = theirs(files, name, measure)
        for column, query in enumerate(found.query_ids):
            assert found.per_query[row, column] == pytest.approx(
                expected.get(str(query), 0.0), abs=1e-9
            )


def test_pairs_count_and_test_differences(files: Path) -> None:
    runs = {name: files / f"{name}.trec" for name in ("bad", "good", "same")}
    found = compare(runs, read_qrels(files / "qrels.tsv"), draws=999)
    pairs = {(one["first"], one["second"]): one for one in found.pairs.to_dict("records")}
    better = pairs["bad", "good"]
    difference = found.per_query[1] - found.per_query[0]
    assert better["difference"] == pytest.approx(difference.mean())
    assert (better["wins"], better["losses"]) == ((difference > 0).sum(), (difference < 0).sum())
    assert better["low"] > 0
    assert better["p"] == pytest.approx(1 / 1000)
    assert better["holm"] >= better["p"]
    equal = pairs["bad", "same"]
    assert (equal["difference"], equal["p"], equal["ties"]) == (0, 1, 39)


def run(*arguments: str) -> Any:
    return CliRunner().invoke(command, list(arguments))


def test_the_command_writes_page_and_tables_and_repeats_itself(files: Path) -> None:
    given = [str(files / f"{name}.trec") for name in ("bad", "good")]
    given += ["--qrels", str(files / "qrels.tsv"), "--draws", "100"]
    done = run(*given, "--out", str(files / "out"))
    assert done.exit_code == 0, done.output
    assert "good.trec less bad.trec: +" in done.output
    page = (files / "out" / "comparison.html").read_text(encoding="utf-8")
    assert "<svg" in page
    assert len(pd.read_parquet(files / "out" / "per_query.parquet")) == 39
    told = json.loads(run(*given, "--json").stdout)
    assert told["pairs"][0]["wins"] > told["pairs"][0]["losses"]


@pytest.mark.parametrize(
    ("names", "more", "sentence"),
    [
        (["bad"], [], "two or more"),
        (["bad", "bad"], [], "twice"),
        (["bad", "missing"], [], "missing.trec"),
        (["bad", "good"], ["--measure", "map"], "ndcg@K"),
        (["bad", "good"], ["--measure", "ndcg@0"], "ndcg@K"),
        (["bad", "elsewhere"], [], "none of the 39 judged queries"),
    ],
)
def test_bad_input_is_one_sentence_and_nothing_is_written(
    files: Path, names: list[str], more: list[str], sentence: str
) -> None:
    (files / "elsewhere.trec").write_text("z1 Q0 d1 1 1 x\n")
    paths = [str(files / f"{name}.trec") for name in names]
    done = run(*paths, "--qrels", str(files / "qrels.tsv"), "--out", str(files / "o"), *more)
    assert done.exit_code != 0
    assert sentence in f"{done.output}{done.exception}"
    assert not (files / "o").exists()


def test_qrels_without_a_relevant_document_are_refused(files: Path) -> None:
    (files / "none.tsv").write_text("q1\t0\td1\t0\n")
    with pytest.raises(InputError, match="no judgement is above 0"):
        compare(
            {name: files / f"{name}.trec" for name in ("bad", "good")},
            read_qrels(files / "none.tsv"),
        )
