"""`whencount register`: record a file of hypotheses before the rows it speaks of exist."""

from __future__ import annotations

from pathlib import Path

import click

from whencount.cli.options import FILE, warn


@click.command(
    epilog="""\b
Example:
  whencount register hypotheses/confirmatory.yaml --results results/my-study"""
)
@click.argument("file", type=FILE)
@click.option(
    "--results",
    type=FILE,
    default=Path("results"),
    show_default=True,
    metavar="DIR",
    help="Results of the study: the rows that exist there now are recorded.",
)
@click.option(
    "--out",
    type=FILE,
    metavar="RECORD",
    help="The record.  [default: FILE's name with .registration.json, beside it]",
)
def register(file: Path, results: Path, out: Path | None) -> None:
    """Record a file of hypotheses before the rows it speaks of exist.

    The record holds the hash of FILE, the version of the code, the time, and the key of every row
    that the results hold now. Commit both. Tests of rows computed later are confirmatory; after any
    change of FILE, even in a comment, they are exploratory.
    """
    from whencount import registration

    record = registration.register(file, results=results, out=out)
    if not results.exists():
        warn(
            f"{results} does not exist: the record says that no row existed, and speaks of the rows"
            " that this folder will hold; see that it is the `results` of your study"
        )
    known = f"{len(record.rows):,} rows existed" if record.rows else "no row existed"
    click.echo(
        f"{record.path}: registered {file}, sha256 {record.sha256[:16]}; {known}. Commit both."
    )
