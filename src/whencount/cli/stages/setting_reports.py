"""Steps from the tables of a setting, KV pages or experts, to its page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from whencount.cli.stages.options import JSON, JSON_PATHS, OUTSIDE, WRITES, StageCommand


def _concerns(given: dict[str, Any]) -> dict[str, Any]:
    settings = given["settings"]
    return {"study": settings["study"], **{settings["setting"]: settings["settings"]}}


@click.command("setting-report", cls=StageCommand, concerns=_concerns)
@click.option("--notebook", type=OUTSIDE, required=True)
@click.option("--settings", type=JSON, required=True, help="Parameters of the notebook.")
@click.option("--tables", type=JSON_PATHS, required=True, help='{"rows": "its file", ...}')
@click.option("--figures", type=WRITES, required=True, help="Folder for the figures as files.")
@click.option("--out", type=WRITES, required=True, help="HTML page to write.")
def setting_report(
    notebook: Path, settings: dict[str, Any], tables: dict[str, str], figures: Path, out: Path
) -> None:
    """Run the notebook of a setting and render it to one self-contained page."""
    from whencount.reports import render

    parameters = {"study": settings["study"], "settings": settings["settings"]}
    render(notebook, {**parameters, "tables": tables}, figures, out)
