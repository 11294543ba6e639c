"""`whencount cluster`: ask Slurm, before a study is handed to it."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.option(
    "--folder",
    type=click.Path(path_type=Path),
    default=Path(),
    help="Where the study runs.  [default: here]",
)
def cluster(folder: Path) -> None:
    """Tell whether Slurm would take a study from here, and what it has.

    It hands in nothing. Where it would go wrong it says why and ends with exit status 2.
    """
    from whencount.cluster import check

    found = check(folder)
    accounts = "keeps accounts" if found.accounting else "keeps no accounts"
    click.echo(
        f"Slurm answers: cluster {found.name}, {found.nodes} nodes take jobs,"
        f" {found.gpus} GPUs on them. It remembers a finished job for {found.remembers} s and"
        f" {accounts}. No job of an earlier run here is left."
    )
