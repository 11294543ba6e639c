"""Steps of the study of what an index costs: word vectors, costs, times, the tables of all jobs."""

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
    checkpoint_key,
    held_threads,
    write_table,
)


@click.command("economics-words", cls=StageCommand)
@click.option("--collection", type=READS, required=True, help="Prepared collection.")
@click.option("--part", required=True, help="What the vectors are called in their folders.")
@click.option("--documents", type=WRITES, required=True, help="Folder to write.")
@click.option("--queries", type=WRITES, required=True, help="Folder to write.")
def economics_words(collection: Path, part: str, documents: Path, queries: Path) -> None:
    """Count the words of a collection's texts, as sparse vectors."""
    from whencount.collections import load_prepared
    from whencount.index_costs.words import write_words

    write_words(load_prepared(collection), documents, queries, part)


def _reads(given: dict[str, Any]) -> list[Path]:
    folders = [*given["documents"], given["queries"]]
    return [*(folder / given["part"] for folder in folders), given["collection"]]


def _concerns(given: dict[str, Any]) -> dict[str, Any]:
    return {"economics": given["study"]}


@click.command("economics-costs", cls=StageCommand, concerns=_concerns, reads=_reads)
@click.option("--keys", type=JSON, required=True, help="Columns that name the rows.")
@click.option("--part", required=True, help="sae_token.seed0, say, or states.npy, or nothing.")
@click.option("--exponent", type=float, default=1.0, help="Weights are raised to it.")
@click.option("--queries", type=READS, required=True)
@click.option("--collection", type=READS, required=True)
@click.option("--study", type=JSON, required=True, help="`economics` of the config.")
@click.option("--threads", type=int, required=True)
@click.option("--costs", type=WRITES, required=True, help="Parquet table to write.")
@click.option("--profiles", type=WRITES, required=True, help="Parquet table to write.")
@click.argument("documents", type=READS, nargs=-1, required=True)
def economics_costs(
    keys: dict[str, Any],
    part: str,
    exponent: float,
    queries: Path,
    collection: Path,
    study: dict[str, Any],
    threads: int,
    costs: Path,
    profiles: Path,
    documents: tuple[Path, ...],
) -> None:
    """Count, index and rank one representation of one collection at every budget."""
    with held_threads(threads):
        from whencount.collections import load_prepared
        from whencount.index_costs import measuring
        from whencount.measures import Judgements
        from whencount.scoring import Parameters

        prepared = load_prepared(collection)
        costs.parent.mkdir(parents=True, exist_ok=True)
        table, shown = measuring.costs(
            documents,
            queries,
            part,
            Judgements.from_qrels(prepared.qrels, prepared.query_ids, prepared.document_ids),
            keys,
            _budgets(study, keys),
            Parameters(study["k1"], study["b"]),
            costs.parent,
            threads,
            exponent,
        )
        write_table(shown, profiles)
        write_table(table, costs)


def _reads_of_jobs(given: dict[str, Any]) -> list[Path]:
    vectors = [
        Path(folder) / job["part"]
        for job in given["jobs"]
        for folder in (*job["documents"], job["queries"])
    ]
    return [*vectors, given["collection"]]


@click.command("economics-times", cls=StageCommand, concerns=_concerns, reads=_reads_of_jobs)
@click.option(
    "--jobs",
    type=JSON_LIST,
    required=True,
    help='[{"keys": {...}, "part": ..., "documents": [...], "queries": ...}, ...]',
)
@click.option("--collection", type=READS, required=True)
@click.option("--study", type=JSON, required=True, help="`economics` of the config.")
@click.option("--out", type=WRITES, required=True, help="Parquet table to write.")
def economics_times(
    jobs: list[dict[str, Any]], collection: Path, study: dict[str, Any], out: Path
) -> None:
    """Time the queries of every representation of one collection, one by one."""
    threads = int(study["threads"])
    with held_threads(threads):
        import pandas as pd

        from whencount.checkpoints import parts_of
        from whencount.collections import load_prepared
        from whencount.index_costs import measuring
        from whencount.scoring import Parameters
        from whencount.tables import read_table

        count = len(load_prepared(collection).queries)
        key = checkpoint_key(
            "economics-times",
            _reads_of_jobs({"jobs": jobs, "collection": collection}),
            jobs=jobs,
            study=study,
        )
        with parts_of(out, key) as parts:
            tables = []
            for job in jobs:
                part = parts / f"{job['keys']['representation']}.parquet"
                if not part.is_file():
                    table = measuring.times(
                        [Path(folder) for folder in job["documents"]],
                        Path(job["queries"]),
                        job["part"],
                        count,
                        {name: job["keys"][name] for name in ("representation", "collection")},
                        _budgets(study, job["keys"]),
                        Parameters(study["k1"], study["b"]),
                        parts,
                        sample=study["queries"],
                        rounds=study["rounds"],
                        threads=threads,
                        exponent=job["exponent"],
                    )
                    write_table(table, part)
                tables.append(read_table(part))
            write_table(pd.concat(tables, ignore_index=True), out)


def _budgets(study: dict[str, Any], keys: dict[str, Any]) -> list[str]:
    """Words, dense and token vectors are whole; other vectors have every budget."""
    whole = keys["kind"] in ("words", "dense", "late_interaction")
    return ["native"] if whole else list(study["budgets"])


@click.command("economics-collect", cls=StageCommand)
@click.option("--out", type=WRITES, required=True, help="Parquet table to write.")
@click.argument("tables", type=READS, nargs=-1, required=True)
def economics_collect(out: Path, tables: tuple[Path, ...]) -> None:
    """Gather one kind of table of all jobs, in the order given."""
    import pandas as pd

    from whencount.tables import read_table

    write_table(pd.concat([read_table(path) for path in tables], ignore_index=True), out)
