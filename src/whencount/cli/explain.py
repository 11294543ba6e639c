"""`whencount explain`: where a page, a figure or a table comes from."""

from __future__ import annotations

import json
from pathlib import Path

import click


@click.command(
    epilog="""\b
Examples:
  whencount explain reports/retrieval.html
  whencount explain results/rows/sae_token.limit.seed0.parquet --depth 2
  whencount explain results/vectors/limit/queries/sae_token.seed0 --json"""
)
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--depth", type=click.IntRange(0), metavar="N", help="Steps to go down.  [all]")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def explain(path: Path, depth: int | None, as_json: bool) -> None:
    """Print what PATH was made from, down to the files of the collections, and by which code.

    Each artefact stands once, with what wrote it and the hashes of its content, its code and its
    part of the configuration.
    """
    from whencount.provenance.explanation import explain as follow
    from whencount.provenance.explanation import lines_of_origin

    origin = follow(path, depth)
    if as_json:
        click.echo(json.dumps(origin.record(), indent=1))
    else:
        for line in lines_of_origin(origin):
            click.echo(line)
