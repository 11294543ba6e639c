"""`whencount score`: a run of every configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from whencount.cli.options import (
    format_option,
    parse_configurations,
    read_inputs,
    scorer_from,
    scoring_options,
)


@click.command(
    epilog="""\b
Examples:
  whencount score --documents docs.jsonl --queries queries.jsonl --out runs
  whencount score --documents docs.jsonl.gz --queries queries.jsonl --out runs \\
      --query-budget 32 --document-budget 128 --configurations 000,111 --format parquet"""
)
@scoring_options
@format_option(
    "TREC runs for trec_eval, or Parquet with the exact scores.", default="trec", show_default=True
)
def score(out: Path, file_format: str, configurations: str, **options: Any) -> None:
    """Rank documents under each configuration of the scorer.

    Writes one run per configuration, DIR/000.trec (the inner product) to DIR/111.trec (BM25); the
    bits are IDF, saturation and length. Only documents with a score above 0 are listed. Scores in
    TREC runs are rounded to single precision and made to fall strictly, so that trec_eval keeps the
    order; Parquet runs have them as they are.
    """
    chosen = parse_configurations(configurations)
    scorer = scorer_from(options)
    files = read_inputs(options)
    from whencount.decomposition import write_runs
    from whencount.files import atomic_files

    with atomic_files(out) as folder:
        empty = write_runs(folder, files.documents, files.queries, scorer, chosen, file_format)
    click.echo(
        f"{out}: {len(chosen)} runs of {len(files.queries):,} queries over"
        f" {len(files.documents):,} documents; {empty:,} rankings are empty",
        err=True,
    )
