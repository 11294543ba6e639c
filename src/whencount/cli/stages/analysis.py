"""Steps from rows to tables: tests, shares, quality of references."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from whencount.cli.stages.options import (
    JSON,
    JSON_PATHS,
    OUTSIDE,
    READS,
    WRITES,
    StageCommand,
    held_threads,
    write_table,
)


def _statistics(given: dict[str, Any]) -> dict[str, Any]:
    options = dict(given["options"])
    return {"seed": options.pop("seed"), "statistics": options}


def _registrations(given: dict[str, Any]) -> list[Path]:
    from whencount.registration import record_path

    return [record for file in given["files"] if (record := record_path(file)).exists()]


@click.command(cls=StageCommand, concerns=_statistics)
@click.option("--rows", type=READS, required=True)
@click.option("--options", type=JSON, required=True, help="The statistics of the config, seed too.")
@click.option("--out", type=WRITES, required=True, help="Parquet table to write.")
@click.argument("per_query", type=READS, nargs=-1, required=True)
def significance(
    rows: Path, options: dict[str, Any], out: Path, per_query: tuple[Path, ...]
) -> None:
    """Bootstrap the reported rows over queries, with Holm's correction."""
    import pandas as pd

    from whencount import significance as library
    from whencount.naming import CELL_KEYS
    from whencount.study_rows import reported, row_names
    from whencount.tables import read_table

    table = reported(read_table(rows), options["family"], options.get("collections"))
    paths = {path.name: path for path in per_query}
    details = pd.concat(
        [
            read_table(paths[f"{name}.parquet"]).assign(**keys)
            for name, keys in row_names(table).items()
        ]
    )
    names = [name for name in CELL_KEYS if name != "collection"]
    wanted = details.merge(table[list(CELL_KEYS)], on=list(CELL_KEYS))
    result = library.significance(wanted, names, draws=options["draws"], seed=options["seed"])
    write_table(result, out)


@click.command(cls=StageCommand, concerns=_statistics)
@click.option("--rows", type=READS, required=True)
@click.option("--options", type=JSON, required=True, help="The statistics of the config, seed too.")
@click.option("--out", type=WRITES, required=True, help="Parquet table to write.")
def shares(rows: Path, options: dict[str, Any], out: Path) -> None:
    """Share the gain out among the three switches, with intervals."""
    from whencount import attribution
    from whencount.study_rows import reported
    from whencount.tables import read_table

    table = reported(read_table(rows), options["family"], options.get("collections"))
    write_table(
        attribution.share_table(table, draws=options["share_draws"], seed=options["seed"]), out
    )


@click.command("reference-quality", cls=StageCommand)
@click.option("--collections", type=JSON_PATHS, required=True, help='{"name": "prepared folder"}')
@click.option("--out", type=WRITES, required=True, help="Parquet table to write.")
@click.argument("runs", type=READS, nargs=-1)
def reference_quality(collections: dict[str, str], out: Path, runs: tuple[Path, ...]) -> None:
    """Measure the references; a run is called `REFERENCE.COLLECTION.parquet`."""
    from whencount import references
    from whencount.collections import load_prepared

    prepared = {name: load_prepared(folder) for name, folder in collections.items()}
    write_table(references.quality(runs, prepared), out)


@click.command(cls=StageCommand, concerns=_statistics)
@click.option("--rows", type=READS, required=True)
@click.option("--options", type=JSON, required=True, help="The statistics of the config, seed too.")
@click.option("--predictors", "scores", type=WRITES, required=True, help="Parquet table to write.")
@click.option("--predictions", type=WRITES, required=True, help="Parquet table to write.")
@click.option("--decisions", type=WRITES, required=True, help="Parquet table to write.")
@click.option("--left-out", type=WRITES, required=True, help="Parquet table to write.")
@click.option("--notes", type=WRITES, required=True, help="JSON list to write: what was left out.")
@click.option("--threads", type=int, required=True)
def predictors(
    rows: Path,
    options: dict[str, Any],
    scores: Path,
    predictions: Path,
    decisions: Path,
    left_out: Path,
    notes: Path,
    threads: int,
) -> None:
    """Predict the targets from columns that need no label; apply the decision rule."""
    with held_threads(threads):
        import json

        from whencount import prediction
        from whencount.files import atomic_file
        from whencount.study_rows import reported
        from whencount.tables import read_table

        table, wanted = read_table(rows), options.get("collections")
        chosen = reported(table, options["family"], wanted)
        if len(prediction.candidates(chosen)):
            found = prediction.predict(
                table, primary_family=options["family"], seed=options["seed"], collections=wanted
            )
        else:
            found = prediction.nothing_predicted(
                f"Nothing is predicted: the family {options['family']} has only controls and shared"
                " dictionaries, on which no predictor is fitted."
            )
        decided = prediction.decisions(chosen, draws=options["share_draws"], seed=options["seed"])
        with atomic_file(notes) as temporary:
            temporary.write_text(json.dumps(list(found.notes), indent=1) + "\n", encoding="utf-8")
        write_table(found.left_out, left_out)
        write_table(decided, decisions)
        write_table(found.predictions, predictions)
        write_table(found.predictors, scores)


@click.command(cls=StageCommand, concerns=_statistics, sources=_registrations)
@click.option("--rows", type=READS, required=True)
@click.option("--options", type=JSON, required=True, help="The statistics of the config, seed too.")
@click.option("--out", type=WRITES, required=True, help="Parquet table to write.")
@click.argument("files", type=OUTSIDE, nargs=-1, required=True)
def hypotheses(rows: Path, options: dict[str, Any], out: Path, files: tuple[Path, ...]) -> None:
    """Test the hypotheses of files, each with its registration where there is one beside it."""
    import pandas as pd

    from whencount.hypotheses import confirm
    from whencount.registration import record_path
    from whencount.tables import read_table

    table = read_table(rows)
    tested = [
        confirm(
            file,
            record if (record := record_path(file)).exists() else None,
            table,
            source=rows,
            draws=options["share_draws"],
            seed=options["seed"],
        )
        for file in files
    ]
    write_table(pd.concat(tested, ignore_index=True), out)
