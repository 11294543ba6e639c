"""Steps from vectors to rows: references and scoring."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from whencount.cli.stages.options import (
    JSON,
    JSON_LIST,
    JSON_PATHS,
    READS,
    WRITES,
    StageCommand,
    checkpoint_key,
    held_threads,
    write_table,
)


def _vectors(given: dict[str, Any], part: str) -> list[Path]:
    """The part of every folder of vectors that a step reads, and its collection."""
    folders = [*given["documents"], given["queries"]]
    return [*(folder / part for folder in folders), given["collection"]]


def _vectors_of(given: dict[str, Any]) -> list[Path]:
    if given.get("whole"):
        return _vectors(given, "")
    return _vectors(given, f"{given['representation']}.seed{given.get('seed', 0)}")


@click.command(
    cls=StageCommand,
    concerns=lambda given: {
        "references.bm25": {"k1": given["k1"], "b": given["b"]},
        "search.depth": given["depth"],
    },
)
@click.option("--collection", type=READS, required=True)
@click.option("--k1", type=float, required=True)
@click.option("--b", type=float, required=True)
@click.option("--depth", type=int, required=True)
@click.option("--threads", type=int, required=True)
@click.option("--out", type=WRITES, required=True, help="Parquet run to write.")
def bm25(collection: Path, k1: float, b: float, depth: int, threads: int, out: Path) -> None:
    """Rank a collection by text BM25."""
    with held_threads(threads):
        from whencount import references
        from whencount.collections import load_prepared
        from whencount.scoring import Parameters

        prepared = load_prepared(collection)
        run = references.bm25(prepared, Parameters(k1, b), depth=depth)
        references.write_run(run, prepared, out)


@click.command(
    cls=StageCommand,
    concerns=lambda given: {"search.depth": given["depth"]},
    reads=lambda given: _vectors(given, "states.npy"),
)
@click.option("--queries", type=READS, required=True)
@click.option("--collection", type=READS, required=True)
@click.option("--depth", type=int, required=True)
@click.option("--threads", type=int, required=True)
@click.option("--out", type=WRITES, required=True, help="Parquet run to write.")
@click.argument("documents", type=READS, nargs=-1, required=True)
def dense(
    documents: tuple[Path, ...],
    queries: Path,
    collection: Path,
    depth: int,
    threads: int,
    out: Path,
) -> None:
    """Rank a collection by the cosine of the encoder's pooled states."""
    with held_threads(threads):
        import numpy as np

        from whencount import references
        from whencount.collections import load_prepared

        prepared = load_prepared(collection)
        shards = [np.load(folder / "states.npy", mmap_mode="r") for folder in documents]
        states = np.load(queries / "states.npy", mmap_mode="r")
        run = references.dense(shards, states, depth=depth)
        references.write_run(run, prepared, out)


@click.command(
    cls=StageCommand,
    concerns=lambda given: {"references.rrf": {"k": given["k"], "depth": given["depth"]}},
)
@click.option("--collection", type=READS, required=True)
@click.option("--k", type=int, required=True, help="Of 1 / (k + rank).")
@click.option("--depth", type=int, required=True, help="Documents that count, and that remain.")
@click.option("--out", type=WRITES, required=True, help="Parquet run to write.")
@click.argument("runs", type=READS, nargs=-1, required=True)
def rrf(collection: Path, k: int, depth: int, out: Path, runs: tuple[Path, ...]) -> None:
    """Fuse the rankings of references by reciprocal rank."""
    from whencount import references
    from whencount.collections import load_prepared

    prepared = load_prepared(collection)
    fusion = references.fuse(
        [references.read_run(path, prepared) for path in runs], k=k, depth=depth
    )
    references.write_run(fusion, prepared, out)


@click.command(
    "external-run",
    cls=StageCommand,
    concerns=lambda given: {"search.depth": given["depth"]},
    reads=_vectors_of,
)
@click.option("--representation", required=True, help="splade_external, say.")
@click.option("--queries", type=READS, required=True)
@click.option("--collection", type=READS, required=True)
@click.option("--depth", type=int, required=True)
@click.option("--threads", type=int, required=True)
@click.option("--out", type=WRITES, required=True, help="Parquet run to write.")
@click.argument("documents", type=READS, nargs=-1, required=True)
def external_run(
    representation: str,
    documents: tuple[Path, ...],
    queries: Path,
    collection: Path,
    depth: int,
    threads: int,
    out: Path,
) -> None:
    """Rank a collection by the inner product of external vectors, all weights kept."""
    with held_threads(threads):
        from whencount import references
        from whencount.collections import load_prepared
        from whencount.scoring import CONFIGURATIONS
        from whencount.search import search
        from whencount.vectors import SparseVectors

        prepared = load_prepared(collection)
        name = f"{representation}.seed0"
        rankings = search(
            SparseVectors.concatenate([SparseVectors.load(folder / name) for folder in documents]),
            SparseVectors.load(queries / name),
            depth=depth,
            configurations=CONFIGURATIONS[:1],
            threads=threads,
        )
        run = references.run_of_rankings(
            rankings.positions[0, 0], rankings.scores[0, 0], rankings.counts[0, 0]
        )
        references.write_run(run, prepared, out)


@click.command(
    cls=StageCommand,
    concerns=lambda given: {
        "seed": given["study_seed"],
        "search.depth": given["depth"],
        "cells": given["cells"],
    },
    reads=lambda given: [*_vectors_of(given), *map(Path, given["references"].values())],
)
@click.option("--representation", required=True)
@click.option("--whole", is_flag=True, help="The folders are vectors, not those of several.")
@click.option("--collection-name", required=True)
@click.option("--corpus", required=True, help="The collection whose documents it has.")
@click.option("--references", type=JSON_PATHS, default="{}", help='{"bm25": "its run", ...}')
@click.option("--seed", type=int, required=True)
@click.option("--queries", type=READS, required=True)
@click.option("--collection", type=READS, required=True)
@click.option("--cells", type=JSON_LIST, required=True, help="[[budget, k1, b, control], ...]")
@click.option("--depth", type=int, required=True)
@click.option("--study-seed", type=int, required=True)
@click.option("--threads", type=int, required=True)
@click.option("--rows", type=WRITES, required=True, help="Parquet table to write.")
@click.option("--per-query", type=WRITES, required=True, help="Parquet table to write.")
@click.argument("documents", type=READS, nargs=-1, required=True)
def score(
    representation: str,
    whole: bool,
    collection_name: str,
    corpus: str,
    references: dict[str, str],
    seed: int,
    documents: tuple[Path, ...],
    queries: Path,
    collection: Path,
    cells: list[list[Any]],
    depth: int,
    study_seed: int,
    threads: int,
    rows: Path,
    per_query: Path,
) -> None:
    """Score every cell of one representation of one collection."""
    with held_threads(threads):
        from whencount import rows as library
        from whencount.cells import derived_seed, score_cells
        from whencount.checkpoints import parts_of
        from whencount.collections import load_prepared
        from whencount.measures import Judgements
        from whencount.naming import Cell, Job
        from whencount.references import read_run
        from whencount.vectors import SparseVectors

        job = Job(representation, collection_name, seed)
        name = "" if whole else f"{representation}.seed{seed}"
        prepared = load_prepared(collection)
        judgements = Judgements.from_qrels(
            prepared.qrels, prepared.query_ids, prepared.document_ids
        )
        key = checkpoint_key(
            "score",
            [
                *(folder / name for folder in (*documents, queries)),
                collection,
                *references.values(),
            ],
            cells=cells,
            depth=depth,
            seed=[study_seed, seed],
        )
        with parts_of(rows, key) as parts:
            results = score_cells(
                [SparseVectors.load(folder / name) for folder in documents],
                SparseVectors.load(queries / name),
                judgements,
                [Cell(str(budget), float(k1), float(b), what) for budget, k1, b, what in cells],
                depth=depth,
                seed=derived_seed(study_seed, job.name, "control"),
                threads=threads,
                references={
                    label: read_run(path, prepared).matrices(len(prepared.queries), 10)[0]
                    for label, path in references.items()
                },
                checkpoints=parts,
            )
            table, details = library.tables(
                job, results, prepared.query_ids, judgements.evaluated, corpus=corpus
            )
            write_table(details, per_query)
            write_table(table, rows)


@click.command(cls=StageCommand, concerns=lambda given: {"families": given["grid"]["families"]})
@click.option("--grid", type=JSON, required=True, help="What the families are, as in the config.")
@click.option("--out", type=WRITES, required=True, help="Parquet table to write.")
@click.argument("tables", type=READS, nargs=-1, required=True)
def collect(grid: dict[str, Any], out: Path, tables: tuple[Path, ...]) -> None:
    """Gather the rows of all jobs in one table."""
    from whencount import collecting
    from whencount.tables import read_table

    write_table(collecting.collect([read_table(path) for path in tables], grid), out)
