"""Steps of the study of two arms: a collection under a dense arm, then all of them together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from whencount.cli.stages.options import (
    JSON,
    JSON_LIST,
    READS,
    WRITES,
    StageCommand,
    held_threads,
    write_table,
)


def _job_reads(given: dict[str, Any]) -> list[Path]:
    folders = [*given["documents"], given["queries"], *given["foreign_queries"]]
    states = [folder / "states.npy" for folder in folders]
    runs = [one for one in (given["lexical_run"], given["dense_run"]) if one is not None]
    return [*states, given["collection"], *given["foreign_collection"], *runs]


@click.command(
    "fusion-job",
    cls=StageCommand,
    concerns=lambda given: {
        "references.bm25": {"k1": given["k1"], "b": given["b"]},
        "fusion": {**given["options"], "dense_arm": given["arm"]},
    },
    reads=_job_reads,
)
@click.option("--collection", type=READS, required=True)
@click.option("--queries", type=READS, required=True, help="Their vectors.")
@click.option("--foreign-collection", type=READS, multiple=True, help="Queries of the null.")
@click.option("--foreign-queries", type=READS, multiple=True, help="Their vectors, in this order.")
@click.option("--lexical-run", type=READS, required=True, help="Text BM25.")
@click.option("--dense-run", type=READS, help="Left out where states are projected.")
@click.option("--arm", type=JSON, required=True, help='The dense arm: {} or {"dimensions": 16}.')
@click.option("--options", type=JSON, required=True, help="depth, floor, queries, documents.")
@click.option("--k1", type=float, required=True)
@click.option("--b", type=float, required=True)
@click.option("--seed", type=int, required=True)
@click.option("--threads", type=int, required=True)
@click.option("--out", type=WRITES, required=True, help="Folder of tables to write.")
@click.argument("documents", type=READS, nargs=-1, required=True)
def fusion_job(
    documents: tuple[Path, ...],
    queries: Path,
    collection: Path,
    foreign_collection: tuple[Path, ...],
    foreign_queries: tuple[Path, ...],
    lexical_run: Path,
    dense_run: Path | None,
    arm: dict[str, Any],
    options: dict[str, Any],
    k1: float,
    b: float,
    seed: int,
    threads: int,
    out: Path,
) -> None:
    """Calibrate two arms on one half of the queries, evaluate all rules on the other."""
    with held_threads(threads):
        from whencount.collections import load_prepared
        from whencount.files import atomic_directory
        from whencount.fusion.evaluation import Options, evaluate
        from whencount.fusion.inputs import read_inputs
        from whencount.scoring import Parameters

        inputs = read_inputs(
            load_prepared(collection),
            documents,
            queries,
            [
                (load_prepared(one), vectors)
                for one, vectors in zip(foreign_collection, foreign_queries, strict=True)
            ],
            lexical_run,
            dense_run,
            Parameters(k1, b),
            depth=options["depth"],
            dimensions=arm.get("dimensions"),
            seed=seed,
        )
        tables = evaluate(inputs, Options(**options, seed=seed))
        with atomic_directory(out) as folder:
            for name, table in tables.items():
                write_table(table, folder / f"{name}.parquet")


@click.command(
    "fusion-collect",
    cls=StageCommand,
    concerns=lambda given: {"fusion.draws": given["draws"]},
    reads=lambda given: [given["parts"] / f"{arm}.{on}" for arm, on in given["jobs"]],
)
@click.option("--jobs", type=JSON_LIST, required=True, help="[[dense arm, collection], ...]")
@click.option("--parts", type=click.Path(path_type=Path), required=True)
@click.option("--draws", type=int, required=True, help="Of the bootstrap.")
@click.option("--seed", type=int, required=True)
@click.option("--rules", type=WRITES, required=True)
@click.option("--decisions", type=WRITES, required=True)
@click.option("--claims", type=WRITES, required=True)
@click.option("--per-query", type=WRITES, required=True)
@click.option("--events", type=WRITES, required=True)
@click.option("--reversals", type=WRITES, required=True)
@click.option("--nulls", type=WRITES, required=True)
@click.option("--drift", type=WRITES, required=True)
@click.option("--checks", type=WRITES, required=True)
def fusion_collect(
    jobs: list[list[str]], parts: Path, draws: int, seed: int, **outputs: Path
) -> None:
    """Gather the tables of all jobs, test the rules, hold every claim against them."""
    from whencount.fusion.claims import claims_table
    from whencount.fusion.summary import decisions_table, gathered, rules_table
    from whencount.significance import attainability
    from whencount.tables import read_table

    kinds = [name for name in outputs if name not in ("rules", "decisions", "claims")]
    tables = gathered(
        {
            (arm, on): {
                kind: read_table(parts / f"{arm}.{on}" / f"{kind}.parquet") for kind in kinds
            }
            for arm, on in jobs
        }
    )
    tables["rules"] = rules_table(tables["per_query"], draws, seed)
    tests = int(tables["rules"]["p"].notna().sum())
    if tests:
        click.echo(attainability(tests, draws).message, err=True)
    tables["decisions"] = decisions_table(tables["per_query"])
    tables["claims"] = claims_table(tables)
    for name, path in outputs.items():
        write_table(tables[name], path)
