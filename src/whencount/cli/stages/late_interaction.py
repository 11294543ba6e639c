"""Steps of the study of late interaction: one collection, then all of them together."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from whencount.cli.stages.options import (
    JSON,
    READS,
    WRITES,
    StageCommand,
    held_threads,
    write_table,
)
from whencount.cli.stages.vectors import _texts_of

TABLES = ("rows", "per_query", "funnel", "codes")


@click.command(
    "late-job",
    cls=StageCommand,
    concerns=lambda given: {"encoder": given["encoder"], "late_interaction": given["options"]},
    reads=lambda given: [_texts_of(given["corpus"], "passage"), given["collection"]],
)
@click.option("--encoder", type=JSON, required=True, help="Settings of the encoder.")
@click.option("--options", type=JSON, required=True, help="queries, places, depth, ..., funnel.")
@click.option("--collection", type=READS, required=True, help="Prepared collection.")
@click.option("--corpus", type=READS, required=True, help="That whose documents it has.")
@click.option("--seed", type=int, required=True)
@click.option("--threads", type=int, required=True)
@click.option("--index", type=WRITES, help="Folder of the index to write; none where left out.")
@click.option("--out", type=WRITES, required=True, help="Folder of tables to write.")
def late_job(
    encoder: dict[str, Any],
    options: dict[str, Any],
    collection: Path,
    corpus: Path,
    seed: int,
    threads: int,
    index: Path | None,
    out: Path,
) -> None:
    """Rank a collection by late interaction, exactly and through its index."""
    with held_threads(threads):
        import torch

        from whencount.collections import load_prepared
        from whencount.collections.prepared import read_texts
        from whencount.encoders import load_encoder
        from whencount.files import atomic_directory
        from whencount.late_interaction.study import LateOptions, late_tables

        torch.set_num_threads(threads)
        out.parent.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            kept = None if index is None else stack.enter_context(atomic_directory(index))
            tables = late_tables(
                load_encoder(encoder, threads),
                load_prepared(collection),
                read_texts(_texts_of(corpus, "passage")),
                LateOptions(**options),
                seed,
                threads,
                scratch=out.parent,
                index=kept,
            )
        with atomic_directory(out) as folder:
            for name, table in tables.items():
                write_table(table, folder / f"{name}.parquet")


@click.command("late-collect", cls=StageCommand)
@click.option("--table", type=click.Choice(TABLES), required=True)
@click.option("--out", type=WRITES, required=True)
@click.argument("jobs", type=READS, nargs=-1, required=True)
def late_collect(table: str, out: Path, jobs: tuple[Path, ...]) -> None:
    """Gather a table of all collections."""
    import pandas as pd

    from whencount.tables import read_table

    parts = [read_table(job / f"{table}.parquet") for job in jobs]
    write_table(pd.concat(parts, ignore_index=True), out)
