"""A study of a few small files with the layout and the stages of a real one, manifests and all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from whencount.provenance import recorded
from whencount.tables import write_table

JOBS = ("pca_token.tiny.seed0", "sae_token.tiny.seed0")
SECRET = "a sentence that only the corpus holds"


def write_study(root: Path) -> None:
    """Write results/ and reports/ below `root`, which must be the working directory."""
    results = Path("results")
    data = Path("data")
    data.mkdir(parents=True)
    (data / "corpus.jsonl").write_text(f'{{"_id": "d1", "text": "{SECRET}"}}\n')
    with stage("collection", [results / "collections/tiny"], [], sources=[data / "corpus.jsonl"]):
        folder = results / "collections" / "tiny"
        folder.mkdir(parents=True)
        documents = pd.DataFrame({"id": ["d1", "d2"], "text": [SECRET, "other"]})
        write_table(documents, folder / "documents.parquet")
        write_table(pd.DataFrame({"query": ["q1"]}), folder / "qrels.parquet")
    with stage("fit-text", [results / "fit/passages"], []):
        folder = results / "fit" / "passages"
        folder.mkdir(parents=True)
        write_table(pd.DataFrame({"text": [SECRET]}), folder / "documents.parquet")
    with stage("fit-states", [results / "fit/states"], [results / "fit/passages"]):
        (results / "fit" / "states").mkdir()
        np.save(results / "fit" / "states" / "pooled.npy", np.arange(12, dtype=np.float32))
    for name in ("pca_token.seed0", "sae_token.seed0"):
        with stage("fit-basis", [results / "bases" / name], [results / "fit/states"], seed=0):
            (results / "bases" / name).mkdir(parents=True)
            (results / "bases" / name / "manifest.json").write_text(f'{{"name": "{name}"}}\n')
    bases = [results / "bases" / name for name in ("pca_token.seed0", "sae_token.seed0")]
    for side in ("documents.0of1", "queries"):
        folder = results / "vectors" / "tiny" / side
        with stage("encode", [folder], [results / "collections/tiny", *bases]):
            for base in bases:
                (folder / base.name).mkdir(parents=True)
                np.save(folder / base.name / "values.npy", np.full(5, len(base.name + side)))
            np.save(folder / "states.npy", np.zeros(3, dtype=np.float32))
    vectors = results / "vectors" / "tiny"
    dense = results / "references" / "dense.tiny.parquet"
    with stage("dense", [dense], [vectors / "documents.0of1/states.npy", vectors / "queries"]):
        write_table(pd.DataFrame({"query_id": ["q1"], "document_id": ["d1"]}), dense)
    for job in JOBS:
        name = f"{job.split('.')[0]}.seed0"
        outputs = [results / "rows" / f"{job}.parquet", results / "per_query" / f"{job}.parquet"]
        inputs = [vectors / side / name for side in ("documents.0of1", "queries")]
        with stage("score", outputs, [*inputs, results / "collections/tiny"], seed=0):
            for path in outputs:
                write_table(pd.DataFrame({"job": [job], "q000": [0.5]}), path)
    with stage("collect", [results / "rows.parquet"], rows_of(results)):
        write_table(pd.DataFrame({"job": list(JOBS)}), results / "rows.parquet")
    notebook = Path("workflow/notebooks/retrieval.ipynb")
    notebook.parent.mkdir(parents=True)
    notebook.write_text(
        '{"nbformat": 4, "cells": [{"cell_type": "code", "source": ["from whencount.reports import'
        ' pieces\\n"]}]}'
    )
    outputs = [Path("reports/retrieval.html"), results / "figures/retrieval"]
    inputs = [results / "rows.parquet", dense]
    with stage("report", outputs, inputs, sources=[notebook]):
        outputs[0].parent.mkdir()
        outputs[0].write_text("<h1>A page</h1>")
        outputs[1].mkdir(parents=True)
        (outputs[1] / "quality.svg").write_text("<svg/>")
    (results / "README.md").write_text("what stands here\n")
    (results / "logs").mkdir()
    (results / "logs" / "score.log").write_text("done\n")
    Path("config.yaml").write_text("study: tiny\nsearch: {depth: 100}\nreferences: {dense: {}}\n")


def rows_of(results: Path) -> list[Path]:
    """The tables of rows of the jobs."""
    return [results / "rows" / f"{job}.parquet" for job in JOBS]


def stage(name: str, outputs: list[Path], inputs: list[Path], **more: Any) -> Any:
    """Record one stage."""
    return recorded(
        outputs=outputs,
        inputs=inputs,
        stage=name,
        configuration={"search.depth": 100},
        **more,
    )
