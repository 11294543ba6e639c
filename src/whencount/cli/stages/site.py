"""Steps to the site: which documents move, and the page that links and explores everything."""

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


def _moved_reads(given: dict[str, Any]) -> list[Path]:
    found = [given["collection"]]
    for source in given["sources"]:
        folders = [*map(Path, source["documents"]), Path(source["queries"])]
        for representation, seed, per_query in source["jobs"]:
            found += [folder / f"{representation}.seed{seed}" for folder in folders]
            found.append(Path(per_query))
    return found


@click.command(
    cls=StageCommand,
    concerns=lambda given: {"seed": given["study_seed"]},
    reads=_moved_reads,
)
@click.option("--collection-name", required=True)
@click.option("--collection", type=READS, required=True)
@click.option(
    "--sources",
    type=JSON_LIST,
    required=True,
    help='[{"documents": [folders], "queries": folder,'
    ' "jobs": [[representation, seed, its table per query], ...]}, ...]',
)
@click.option("--study-seed", type=int, required=True)
@click.option("--threads", type=int, required=True)
@click.option("--out", type=WRITES, required=True, help="Parquet table to write.")
def moved(
    collection_name: str,
    collection: Path,
    sources: list[dict[str, Any]],
    study_seed: int,
    threads: int,
    out: Path,
) -> None:
    """Rank again the queries that change most, list the documents that move."""
    with held_threads(threads):
        import pandas as pd

        from whencount.collections import load_prepared
        from whencount.measures import Judgements
        from whencount.naming import Job
        from whencount.progress import progress
        from whencount.site import moved_documents, no_documents
        from whencount.tables import read_table
        from whencount.vectors import SparseVectors

        prepared = load_prepared(collection)
        jobs = [(source, job) for source in sources for job in source["jobs"]]
        judgements = Judgements.from_qrels(
            prepared.qrels, prepared.query_ids, prepared.document_ids
        )
        found = []
        for source, (representation, seed, per_query) in progress(
            jobs, len(jobs), f"ranking again on {collection_name}", "table"
        ):
            name = f"{representation}.seed{seed}"
            shards = [SparseVectors.load(Path(folder) / name) for folder in source["documents"]]
            found.append(
                moved_documents(
                    Job(representation, collection_name, int(seed)),
                    read_table(per_query),
                    SparseVectors.concatenate(shards),
                    SparseVectors.load(Path(source["queries"]) / name),
                    judgements,
                    prepared.query_ids,
                    prepared.document_ids,
                    study_seed=study_seed,
                    threads=threads,
                )
            )
        filled = [table for table in found if len(table)]
        write_table(pd.concat(filled, ignore_index=True) if filled else no_documents(), out)


def _site_reads(given: dict[str, Any]) -> list[Path]:
    return [
        *([given["rows"]] if given["rows"] is not None else []),
        *(Path(path) for name in ("per_query", "moved", "collection") for path in given[name]),
        *given["page"],
    ]


@click.command(
    "site",
    cls=StageCommand,
    concerns=lambda given: {
        "study": given["settings"]["study"],
        "statistics": {"family": given["settings"]["family"]},
    },
    reads=_site_reads,
)
@click.option("--settings", type=JSON, required=True, help='{"study": name, "family": reported}')
@click.option("--rows", type=READS, help="rows.parquet; without it the page has links alone.")
@click.option("--per-query", type=READS, multiple=True, help="Tables of qualities per query.")
@click.option("--moved", type=READS, multiple=True, help="Tables of documents that move.")
@click.option("--collection", type=READS, multiple=True, help="Where texts are read from.")
@click.option("--page", type=READS, multiple=True, help="Pages that the study itself makes.")
@click.option(
    "--reports", type=click.Path(path_type=Path), required=True, help="Folder of pages to link."
)
@click.option("--texts", type=WRITES, help="File for the texts; without it the page has ids.")
@click.option("--out", type=WRITES, required=True, help="HTML page to write.")
def site(
    settings: dict[str, Any],
    rows: Path | None,
    per_query: tuple[Path, ...],
    moved: tuple[Path, ...],
    collection: tuple[Path, ...],
    page: tuple[Path, ...],
    reports: Path,
    texts: Path | None,
    out: Path,
) -> None:
    """Write the page that links every report and explores the rows."""
    from whencount.site import write_site
    from whencount.tables import read_table

    write_site(
        reports,
        out,
        study=str(settings["study"]),
        family=str(settings["family"]),
        rows=None if rows is None else read_table(rows),
        per_query={path.stem: path for path in per_query},
        moved={path.stem: read_table(path) for path in moved},
        collections=collection,
        texts_out=texts,
    )
