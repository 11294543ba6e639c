"""Steps from tables to pages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from whencount.cli.stages.options import JSON, OUTSIDE, READS, WRITES, StageCommand

TABLES = ("rows", "significance", "shares", "references")
FURTHER_TABLES = ("predictors", "predictions", "decisions", "hypotheses")
Command = TypeVar("Command", bound=Callable[..., Any])


def _concerns(given: dict[str, Any]) -> dict[str, Any]:
    settings = given["settings"]
    return {
        "study": settings["study"],
        "statistics": {key: settings[key] for key in ("family", "alpha", "draws")},
        "fit.text": settings["settings"]["fit"],
        **{key: settings["settings"][key] for key in ("seed", "encoder", "bases")},
    }


def _hypothesis_files(given: dict[str, Any]) -> list[Path]:
    return [Path(name) for name in given["settings"]["hypothesis_files"]]


def _tables(command: Command) -> Command:
    """Give a command an option per table of the study."""
    for name in reversed(TABLES + FURTHER_TABLES):
        command = click.option(f"--{name}", type=READS, required=name in TABLES)(command)
    return command


@click.command(cls=StageCommand, concerns=_concerns, sources=_hypothesis_files)
@click.option("--notebook", type=OUTSIDE, required=True)
@click.option("--settings", type=JSON, required=True, help="Parameters of the notebook.")
@_tables
@click.option("--figures", type=WRITES, required=True, help="Folder for the figures as files.")
@click.option("--out", type=WRITES, required=True, help="HTML page to write.")
def report(
    notebook: Path, settings: dict[str, Any], figures: Path, out: Path, **tables: Path | None
) -> None:
    """Run a report notebook and render it to one self-contained page."""
    from whencount.reports import render

    # A table that is not given is none: the notebook's own default is for a person in Jupyter.
    given = {name: None if path is None else str(path) for name, path in tables.items()}
    render(notebook, settings | given, figures, out)


@click.command(cls=StageCommand, concerns=_concerns, sources=_hypothesis_files)
@click.option("--settings", type=JSON, required=True, help="Parameters, as of the report.")
@_tables
@click.option("--representations", type=WRITES, required=True, help="Folder of pages to write.")
@click.option("--collections", type=WRITES, required=True, help="Folder of pages to write.")
def pages(
    settings: dict[str, Any], representations: Path, collections: Path, **tables: Any
) -> None:
    """Write a page per representation and per collection."""
    from whencount import reports
    from whencount.reports.pages import write_pages

    write_pages(
        reports.load(**tables, family=settings["family"]),
        settings["settings"],
        representations,
        collections,
        study=settings["study"],
        family=settings["family"],
    )
