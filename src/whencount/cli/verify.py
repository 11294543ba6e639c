"""`whencount verify`: results against their manifests."""

from __future__ import annotations

import json
import shlex
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

_MOST_NAMED = 12
"""Artefacts in the command that mends all; more are named by a command of their own."""
_SCHEMA = Path("workflow/schemas/config.schema.yaml")


@click.command(
    epilog="""\b
Examples:
  whencount verify
  whencount verify results/rows/sae_token.limit.seed0.parquet
  whencount verify --source --configuration config.yaml --json

Exit status: 0 all is well, 1 something is wrong, 2 bad input."""
)
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path), metavar="[PATH]...")
@click.option("--source", is_flag=True, help="Compare code and files outside the study too.")
@click.option(
    "--configuration",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Compare with this study's configuration too.",
)
@click.option("--without-pages", is_flag=True, help="Leave the reports of the study out.")
@click.option("--quick", is_flag=True, help="Compare names and sizes alone; read no content.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option(
    "--names", is_flag=True, help="Print only the artefacts to be made again, one on a line."
)
@click.pass_context
def verify(
    context: click.Context,
    paths: tuple[Path, ...],
    source: bool,
    configuration: Path | None,
    without_pages: bool,
    quick: bool,
    as_json: bool,
    names: bool,
) -> None:
    """Check results against their manifests, and these against what they were made from.

    PATH is a folder of results or one artefact; if left out, the results of the configuration
    (else `results`), and its reports where there are some. Names every missing, changed, truncated
    or extra file, every artefact whose input was made anew since, and the command that makes it
    again.
    """
    from whencount.errors import InputError
    from whencount.provenance.recording import rebuild_command
    from whencount.provenance.verification import verify as check
    from whencount.wording import plural

    study: dict[str, Any] | None = None
    if configuration is not None:
        from whencount.config import load

        if not _SCHEMA.is_file():
            raise InputError(f"{_SCHEMA} is not here; run this at the root of the repository")
        study = load(configuration, _SCHEMA)
    folders = {"results": "results", "reports": "reports"} | (study or {})
    reports = Path(folders["reports"])
    pages = [] if without_pages or not reports.exists() else [reports]
    chosen = paths or (Path(folders["results"]), *pages)
    result = check(chosen, source=source, configuration=study, quick=quick)
    if without_pages:
        # Figures are drawn with their page.
        drawn = Path(folders["results"]) / "figures"
        result.findings[:] = [
            one for one in result.findings if not Path(one.artefact).is_relative_to(drawn)
        ]
    if not result.artefacts and not result.findings:
        shown = " and ".join(str(path) for path in chosen)
        raise InputError(f"{shown}: no artefact is there to verify; name the results of a study")
    again = sorted({Path(one.artefact) for one in result.findings})
    if as_json:
        click.echo(json.dumps(asdict(result) | {"ok": not result.findings}, indent=1))
    elif names:
        for path in again:
            click.echo(path)
    else:
        for finding in result.findings:
            click.echo(finding.sentence)
        for note in result.notes:
            click.echo(f"note: {note}")
        checked = (
            f"{result.artefacts:,} artefacts, {result.files:,} files,"
            f" {result.bytes / 1e6:,.0f} MB{', sizes alone' if quick else ''}"
        )
        if result.findings:
            click.echo(f"{checked}: {plural(len(result.findings), 'finding')}; to mend them all:")
            if len({one.command for one in result.findings}) == 1:
                click.echo(f"  {result.findings[0].command}")
            elif len(again) <= _MOST_NAMED:
                click.echo(f"  {rebuild_command(again)}")
            else:
                asked = shlex.join(["whencount", "verify", *sys.argv[2:], "--names"])
                click.echo(f"  {rebuild_command(again, f'$({asked})')}")
        else:
            click.echo(f"{checked}: all as their manifests say")
    if result.findings:
        context.exit(1)
