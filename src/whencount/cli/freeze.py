"""`whencount freeze`: predictors, references and thresholds, before the outcomes they speak of."""

from __future__ import annotations

import json
from pathlib import Path

import click

from whencount.cli.options import FILE
from whencount.errors import InputError

_SCHEMA = Path("workflow") / "schemas" / "config.schema.yaml"


@click.command(
    epilog="""\b
Examples:
  whencount freeze
  whencount freeze my.yaml

`snakemake transfer` does this itself, before it computes the other settings."""
)
@click.argument("config", type=FILE, default=Path("config.yaml"), metavar="[CONFIG]")
def freeze(config: Path) -> None:
    """Freeze predictors for the transfer test of a configuration (by default config.yaml).

    Fits them on the rows of the retrieval study, which must be there, and writes them with their
    thresholds and a hash of it all to transfer/frozen.json below the results. Refuses where an
    outcome of another setting exists already, a partial one too: predictors are frozen first.
    Where the same was frozen before, nothing changes.
    """
    from whencount import transfer
    from whencount.cli.stages.transfer import freeze as stage
    from whencount.config import check_transfer, freeze_options, load

    if not _SCHEMA.is_file():
        raise InputError(f"{_SCHEMA} is not here; run this at the root of the repository")
    study = load(config, _SCHEMA)
    check_transfer(study)
    results = Path(study["results"])
    out = results / "transfer" / "frozen.json"
    outcomes = {name: str(results / name) for name in study["transfer"]["settings"]}
    arguments = {
        "--rows": str(results / "rows.parquet"),
        "--options": json.dumps(freeze_options(study), sort_keys=True),
        "--outcomes": json.dumps(outcomes),
        "--out": str(out),
    }
    stage.main(
        [part for pair in arguments.items() for part in pair],
        prog_name="freeze",
        standalone_mode=False,
    )
    frozen = transfer.read_frozen(out)
    when = frozen.frozen.strftime("%Y-%m-%d %H:%M UTC")
    click.echo(
        f"{out}: {len(frozen.predictors)} predictors, fitted on {frozen.rows['primary']} rows of"
        f" {len(frozen.retrieval['corpora'])} corpora, frozen {when}; digest"
        f" {transfer.digest_of(frozen)[:16]}"
    )
