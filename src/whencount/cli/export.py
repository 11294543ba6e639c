"""`whencount export`: a study as one file for publishing."""

from __future__ import annotations

from pathlib import Path

import click

from whencount.cli.options import warn

FOLDER = click.Path(path_type=Path)


@click.command(
    epilog="""\b
Examples:
  whencount export --out study.tar.zst
  whencount export --results results/mine --reports reports/mine --configuration my.yaml \\
      --out mine.tar.zst"""
)
@click.option("--results", type=FOLDER, default="results", show_default=True, metavar="DIR")
@click.option("--reports", type=FOLDER, metavar="DIR", help="[default: reports, if there]")
@click.option(
    "--configuration", type=FOLDER, metavar="FILE", help="[default: config.yaml, if there]"
)
@click.option("--with-vectors", is_flag=True, help="Vectors, states and bases too: gigabytes.")
@click.option("--out", type=FOLDER, required=True, metavar="FILE", help="Archive to write.")
def export(
    results: Path,
    reports: Path | None,
    configuration: Path | None,
    with_vectors: bool,
    out: Path,
) -> None:
    """Pack tables, pages, figures, manifests, configuration and hypotheses in one archive.

    Everything is checked first. The text of no collection goes in. Writes FILE and FILE.sha256; the
    same study gives the same bytes.
    """
    from whencount.provenance.publishing import export_study

    if reports is None and Path("reports").is_dir():
        reports = Path("reports")
    if configuration is None and Path("config.yaml").is_file():
        configuration = Path("config.yaml")
    done = export_study(
        results, reports, out, configuration=configuration, with_vectors=with_vectors
    )
    click.echo(f"{out}: {done.members:,} files, {done.bytes / 1e6:,.1f} MB unpacked")
    if done.left_out:
        click.echo(f"left out: {len(done.left_out)} artefacts, listed in its contents.json")
    if done.places:
        warn(
            "the archive tells where things lie on this machine, as the configuration does:"
            f" {'; '.join(done.places)}. If nobody shall see that, write these paths relative to"
            " the repository, run the study and export again"
        )
    click.echo(f"SHA-256 {done.sha256}")
