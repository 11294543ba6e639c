"""`whencount bake`: a correction folded into the weights of documents."""

from __future__ import annotations

from pathlib import Path

import click

from whencount.cli.options import COUNT, FILE

_FORMATS = ("jsonl", "ciff", "npz", "parquet", "qdrant", "rank-features", "milvus")


@click.command(
    epilog="""\b
Examples:
  whencount bake --documents docs.jsonl --configuration 011 --out baked.jsonl
  whencount bake --documents docs.jsonl --queries queries.jsonl --configuration 111 \\
      --idf queries --queries-out baked-queries.jsonl --format npz --out baked.npz
  whencount bake --documents docs.jsonl --queries queries.jsonl --configuration 011 \\
      --bits 8 --format ciff --out index.ciff"""
)
@click.option(
    "--documents", type=FILE, required=True, metavar="FILE", help="Vectors, of any format."
)
@click.option("--queries", type=FILE, metavar="FILE", help="Needed where IDF goes into them.")
@click.option(
    "--configuration",
    required=True,
    metavar="BITS",
    help="IDF, saturation and length: 011 is saturation and length.",
)
@click.option("--k1", type=float, default=1.2, show_default=True, help="Saturation, at least 0.")
@click.option("--b", type=float, default=0.75, show_default=True, help="Length, from 0 to 1.")
@click.option("--document-budget", type=COUNT, metavar="N", help="Keep each document's N largest.")
@click.option(
    "--idf",
    type=click.Choice(["documents", "queries"]),
    default="documents",
    show_default=True,
    help="Which side it is multiplied into, where it is on.",
)
@click.option(
    "--bits",
    type=click.IntRange(1, 16),
    metavar="N",
    help="Whole numbers of so many bits; the error is bounded and reported.",
)
@click.option(
    "--format",
    "file_format",
    type=click.Choice(_FORMATS),
    default="jsonl",
    show_default=True,
    help="Of what is written.",
)
@click.option("--out", type=FILE, required=True, metavar="FILE", help="Baked documents.")
@click.option("--queries-out", type=FILE, metavar="FILE", help="Baked queries, JSON lines.")
@click.option("--json", "as_json", is_flag=True, help="Say what was written as JSON.")
def bake(
    documents: Path,
    queries: Path | None,
    configuration: str,
    k1: float,
    b: float,
    document_budget: int | None,
    idf: str,
    bits: int | None,
    file_format: str,
    out: Path,
    queries_out: Path | None,
    as_json: bool,
) -> None:
    """Fold saturation, length and IDF into weights, so that any engine ranks by them.

    An engine that adds up products of query and document weights then gives the corrected score
    without knowing of it. `whencount advise` says which configuration is worth it.
    """
    import json
    from tempfile import TemporaryDirectory

    from whencount.errors import InputError
    from whencount.exporting.baking import Baking
    from whencount.exporting.baking import bake as library
    from whencount.exporting.formats import Names
    from whencount.reading import read_collection
    from whencount.scoring import Configuration, Parameters

    if queries_out is not None and queries is None:
        raise InputError("--queries-out needs --queries; name the queries that shall be baked")
    chosen = Configuration.parse(configuration)
    parameters = Parameters(k1, b)
    if chosen.idf and idf == "queries" and queries is None:
        raise InputError(
            "IDF goes into the queries, so name them with --queries, or choose --idf documents"
        )
    if queries_out is None and queries is not None and chosen.idf and idf == "queries":
        queries_out = out.with_name(f"{out.name}.queries.jsonl")
    # Beside the output, which has to have room anyway; a system's /tmp may be small.
    with TemporaryDirectory(prefix=".whencount-", dir=out.parent) as scratch:
        read = read_collection(documents, queries, folder=Path(scratch) / "vectors")
        baking = Baking(
            [read.documents.cap(document_budget)],
            Names(read.features),
            chosen,
            parameters,
            idf == "documents",
            bits,
        )
        report = library(baking, file_format, out, read.queries, queries_out)
    if as_json:
        click.echo(json.dumps(report.as_json()))
        return
    click.echo(f"{out}: {report.documents:,} documents, {report.weights:,} weights", err=True)
    if queries_out is not None:
        click.echo(f"{queries_out}: the queries to ask with", err=True)
    if report.step is not None:
        told = f"one step is {report.step:.6g}; no weight is off by more than {report.step:.6g}"
        click.echo(f"{told}, the largest error is {report.largest_error:.6g}", err=True)
        if report.largest_bound is not None:
            bound = f"no score of these queries is off by more than {report.largest_bound:.6g}"
            click.echo(bound, err=True)
