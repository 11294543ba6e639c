"""Steps from tables to pages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from whencount.cli.stages.options import FILE, JSON


@click.command()
@click.option("--notebook", type=FILE, required=True)
@click.option("--settings", type=JSON, required=True, help="Parameters of the notebook.")
@click.option("--rows", type=FILE, required=True)
@click.option("--significance", type=FILE, required=True)
@click.option("--shares", type=FILE, required=True)
@click.option("--references", type=FILE, required=True)
@click.option("--figures", type=FILE, required=True, help="Folder for the figures as files.")
@click.option("--out", type=FILE, required=True, help="HTML page to write.")
def report(
    notebook: Path, settings: dict[str, Any], figures: Path, out: Path, **tables: Path
) -> None:
    """Run a report notebook and render it to one self-contained page."""
    from whencount.reports import render

    render(notebook, settings | {name: str(path) for name, path in tables.items()}, figures, out)
