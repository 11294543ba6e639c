"""Steps of the transfer test: predictors frozen, applied to other settings, judged, drawn."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from whencount.cli.stages.options import (
    JSON,
    OUTSIDE,
    READS,
    WRITES,
    StageCommand,
    held_threads,
    write_table,
)
from whencount.errors import InputError

_FROZEN_OPTIONS = ("reference", "sign_accuracy", "mae_ratio", "draws")


class FreezeCommand(StageCommand):
    """A step that, where it refuses, leaves a freeze that stands there with its manifest."""

    def invoke(self, ctx: click.Context) -> Any:
        from whencount.files import atomic_file
        from whencount.provenance import manifest_path

        out = Path(ctx.params["out"])
        before = {}
        for path in (out, manifest_path(out)):
            with suppress(OSError):
                before[path] = path.read_bytes()
        try:
            return super().invoke(ctx)
        except InputError:
            record = before.get(manifest_path(out))
            if record is not None and out.is_file() and out.read_bytes() == before.get(out):
                with atomic_file(manifest_path(out)) as temporary:
                    temporary.write_bytes(record)
            raise


def _concerns(given: dict[str, Any]) -> dict[str, Any]:
    options = given["options"]
    reported = {key: options[key] for key in ("family", "collections") if key in options}
    return {
        "seed": options["seed"],
        "statistics": reported,
        "transfer": {key: options[key] for key in _FROZEN_OPTIONS},
    }


@click.command(cls=FreezeCommand, concerns=_concerns)
@click.option("--rows", type=READS, required=True, help="Rows of the retrieval study.")
@click.option("--options", type=JSON, required=True, help="The transfer of the config, and more.")
@click.option("--outcomes", type=JSON, required=True, help='{"setting": "folder of its results"}')
@click.option("--out", type=WRITES, required=True, help="JSON file to write.")
def freeze(rows: Path, options: dict[str, Any], outcomes: dict[str, str], out: Path) -> None:
    """Fit predictors on retrieval rows and freeze them, before any outcome of the settings."""
    with held_threads(1):
        from whencount import transfer
        from whencount.provenance.manifest import hash_of_file
        from whencount.tables import read_table

        new = transfer.freeze(
            read_table(rows),
            family=options["family"],
            collections=options.get("collections"),
            reference=options["reference"],
            criteria=transfer.Criteria(
                options["sign_accuracy"], options["mae_ratio"], options["draws"], options["seed"]
            ),
            rows_hash=hash_of_file(rows),
        )
        transfer.settle(new, out, transfer.outcomes(outcomes.values()))


@click.command("transfer", cls=StageCommand)
@click.option("--frozen", type=READS, required=True, help="The frozen predictors.")
@click.option("--pages", type=READS, help="Rows of the setting of KV pages.")
@click.option("--experts", type=READS, help="Rows of the setting of expert routing.")
@click.option("--predictions", type=WRITES, required=True, help="Parquet table to write.")
@click.option("--out", type=WRITES, required=True, help="Parquet table to write.")
def transfer_test(
    frozen: Path, pages: Path | None, experts: Path | None, predictions: Path, out: Path
) -> None:
    """Apply frozen predictors to the rows of other settings, and say whether transfer holds."""
    with held_threads(1):
        import pandas as pd

        from whencount import transfer
        from whencount.tables import read_table

        found = transfer.read_frozen(frozen)
        given = {
            name: path
            for name, path in (("pages", pages), ("experts", experts))
            if path is not None
        }
        if not given:
            raise InputError("name the rows of a setting: --pages, --experts or both")
        parts, late = [], {}
        for setting, path in given.items():
            parts.append(transfer.apply(found, setting, read_table(path)))
            early = transfer.started_before(found.frozen, path)
            if early:
                late[setting] = transfer.too_early(early, found.frozen)
        predicted = pd.concat(parts, ignore_index=True)
        write_table(predicted, predictions)
        write_table(transfer.assess(found, predicted, late), out)


@click.command("transfer-report", cls=StageCommand, concerns=lambda given: dict(given["settings"]))
@click.option("--notebook", type=OUTSIDE, required=True)
@click.option("--settings", type=JSON, required=True, help="Parameters of the notebook.")
@click.option("--frozen", type=READS, required=True, help="The frozen predictors.")
@click.option("--transfer", type=READS, required=True, help="The scores and verdicts.")
@click.option("--predictions", type=READS, required=True, help="What was predicted.")
@click.option("--figures", type=WRITES, required=True, help="Folder for the figures as files.")
@click.option("--out", type=WRITES, required=True, help="HTML page to write.")
def transfer_report(
    notebook: Path, settings: dict[str, Any], figures: Path, out: Path, **tables: Path
) -> None:
    """Run the notebook of the transfer test and render it to one self-contained page."""
    from whencount.reports import render

    render(notebook, settings | {name: str(path) for name, path in tables.items()}, figures, out)
