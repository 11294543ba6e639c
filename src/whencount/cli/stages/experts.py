"""Steps of the study of expert routing: texts, a small model, calibration, evaluation, tables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from whencount.cli.stages.options import (
    JSON,
    JSON_LIST,
    READS,
    WRITES,
    StageCommand,
    checkpoint_key,
    held_threads,
    write_table,
)

_SHARED = ("active", "variants", "comparisons", "preserved_share", "k1", "b")
"""Keys of `experts` that every job of routing depends on."""


def _model_of(model: dict[str, Any], folder: Path | None) -> dict[str, Any]:
    """What `load_language_model` takes: a trained model is the folder that was trained."""
    if folder is not None:
        return {"source": "folder", "path": str(folder)}
    return {key: value for key, value in model.items() if key != "cards"}


def _files_of(key: str) -> Any:
    def files(given: dict[str, Any]) -> list[Path]:
        from whencount.provenance import files_named

        return files_named(given[key])

    return files


def _compared(given: dict[str, Any]) -> dict[str, Any]:
    study = {f"experts.{key}": given["study"][key] for key in _SHARED if key in given["study"]}
    if given.get("folder") is None:
        study[f"experts.models.{given['name']}"] = given["model"]
    return study


@click.command(
    "expert-text",
    cls=StageCommand,
    concerns=lambda given: {f"experts.texts.{given['name']}": given["source"]},
    sources=_files_of("source"),
)
@click.option("--name", required=True, help="What the text is called.")
@click.option("--source", type=JSON, required=True, help="The text, as in the config.")
@click.option("--seed", type=int, required=True)
@click.option("--out", type=WRITES, required=True, help="Parquet table of documents to write.")
def expert_text(name: str, source: dict[str, Any], seed: int, out: Path) -> None:
    """Read a text and deal its documents out to training, calibration and evaluation."""
    from whencount.experts.texts import prepare_text

    options = dict(source)
    parts = options.pop("parts")
    write_table(prepare_text(name, options, parts, seed), out)


@click.command(
    "expert-training",
    cls=StageCommand,
    concerns=lambda given: {f"experts.models.{given['name']}": given["model"]},
)
@click.option("--name", required=True, help="What the model is called.")
@click.option("--model", type=JSON, required=True, help="The model, as in the config.")
@click.option("--text", type=READS, required=True, help="Table written by `stage expert-text`.")
@click.option("--about", default="", help="What the text is, for the model card.")
@click.option("--seed", type=int, required=True)
@click.option("--threads", type=int, required=True)
@click.option("--out", type=WRITES, required=True, help="Folder to write.")
def expert_training(
    name: str, model: dict[str, Any], text: Path, about: str, seed: int, threads: int, out: Path
) -> None:
    """Train a small OLMoE from scratch."""
    with held_threads(threads):
        from whencount.checkpoints import parts_of
        from whencount.experts.trained import train_model
        from whencount.tables import read_table

        options = {key: value for key, value in model.items() if key not in ("source", "text")}
        # Not the number of threads: the result is the same with any.
        key = checkpoint_key("expert-training", [text], model=options, seed=seed)
        with parts_of(out, key) as parts:
            train_model(
                name,
                read_table(text),
                options,
                out,
                seed=seed,
                threads=threads,
                about=about,
                checkpoints=parts,
            )


@click.command(
    "expert-calibration",
    cls=StageCommand,
    concerns=lambda given: _compared(given) | {"experts.calibration": given["calibration"]},
)
@click.option("--name", required=True, help="What the model is called.")
@click.option("--model", type=JSON, required=True, help="The model, as in the config.")
@click.option("--folder", type=READS, help="Folder of a model that the study trained.")
@click.option("--text", type=READS, required=True, help="Table written by `stage expert-text`.")
@click.option("--calibration", type=JSON, required=True, help="As in the config.")
@click.option("--study", type=JSON, required=True, help="What is compared, as in the config.")
@click.option("--active", type=int, required=True, help="Experts per token.")
@click.option("--seed", type=int, required=True)
@click.option("--threads", type=int, required=True)
@click.option("--out", type=WRITES, required=True, help="Folder to write.")
def expert_calibration(
    name: str,
    model: dict[str, Any],
    folder: Path | None,
    text: Path,
    calibration: dict[str, Any],
    study: dict[str, Any],
    active: int,
    seed: int,
    threads: int,
    out: Path,
) -> None:
    """Measure what the routing of a model shows before any outcome."""
    with held_threads(threads):
        from whencount.checkpoints import parts_of
        from whencount.experts.label_free import RoutingStudy, prepare_routing
        from whencount.language_models import load_language_model
        from whencount.tables import read_table

        key = checkpoint_key(
            "expert-calibration",
            [path for path in (text, folder) if path is not None],
            model={"name": name} | model,
            calibration=calibration,
            study=study,
            active=active,
            seed=seed,
            threads=threads,
        )
        with parts_of(out, key) as parts:
            prepare_routing(
                load_language_model(_model_of(model, folder), threads=threads),
                read_table(text),
                calibration,
                RoutingStudy.of(study, active, seed),
                out,
                checkpoints=parts,
            )


@click.command(
    "expert-evaluation",
    cls=StageCommand,
    concerns=lambda given: (
        _compared(given) | {f"experts.evaluations.{given['evaluation_name']}": given["evaluation"]}
    ),
    sources=_files_of("evaluation"),
)
@click.option("--name", required=True, help="What the model is called.")
@click.option("--model", type=JSON, required=True, help="The model, as in the config.")
@click.option("--folder", type=READS, help="Folder of a model that the study trained.")
@click.option("--evaluation-name", required=True, help="What the evaluation is called.")
@click.option("--evaluation", type=JSON, required=True, help="It, as in the config.")
@click.option("--text", type=READS, help="Table written by `stage expert-text`.")
@click.option("--calibration", type=READS, required=True, help="Of `stage expert-calibration`.")
@click.option("--study", type=JSON, required=True, help="What is compared, as in the config.")
@click.option("--active", type=int, required=True, help="Experts per token.")
@click.option("--frozen", type=READS, help="Predictors frozen before, where transfer is tested.")
@click.option("--seed", type=int, required=True)
@click.option("--threads", type=int, required=True)
@click.option("--rows", type=WRITES, required=True)
@click.option("--per-document", type=WRITES, required=True)
@click.option("--baselines", type=WRITES, required=True)
def expert_evaluation(
    name: str,
    model: dict[str, Any],
    folder: Path | None,
    evaluation_name: str,
    evaluation: dict[str, Any],
    text: Path | None,
    calibration: Path,
    study: dict[str, Any],
    active: int,
    frozen: Path | None,
    seed: int,
    threads: int,
    rows: Path,
    per_document: Path,
    baselines: Path,
) -> None:
    """Evaluate a model under every rule."""
    with held_threads(threads):
        from whencount.checkpoints import digest_of, parts_of
        from whencount.experts.evaluation import open_evaluation
        from whencount.experts.label_free import RoutingStudy, read_prepared
        from whencount.experts.rows import evaluate
        from whencount.language_models import load_language_model
        from whencount.tables import read_table

        key = checkpoint_key(
            "expert-evaluation",
            [path for path in (text, folder, calibration, frozen) if path is not None],
            model={"name": name} | model,
            evaluation={"name": evaluation_name} | evaluation,
            files=[digest_of(path) for path in _files_of("evaluation")({"evaluation": evaluation})],
            study=study,
            active=active,
            seed=seed,
            threads=threads,
        )
        table = None if text is None else read_table(text)
        with (
            parts_of(rows, key) as parts,
            open_evaluation(evaluation_name, evaluation, table) as opened,
        ):
            tables = evaluate(
                load_language_model(_model_of(model, folder), threads=threads),
                name,
                opened,
                evaluation_name,
                read_prepared(calibration),
                RoutingStudy.of(study, active, seed),
                checkpoints=parts,
            )
            write_table(tables["per_document"], per_document)
            write_table(tables["baselines"], baselines)
            write_table(tables["rows"], rows)


def _tables(parts: Path, kind: str, jobs: list[list[Any]]) -> Iterator[Path]:
    for job in jobs:
        yield parts / kind / f"{'.'.join(map(str, job))}.parquet"


def _calibrations(given: dict[str, Any]) -> dict[tuple[str, int], Path]:
    """{(model, active): its calibration}, in the order of the jobs."""
    wanted = dict.fromkeys((str(model), int(active)) for model, _, active in given["jobs"])
    return {
        (model, active): given["parts"] / f"calibration.{model}.{active}"
        for model, active in wanted
    }


def _trained(given: dict[str, Any]) -> dict[str, Path]:
    return {name: given["parts"] / f"model.{name}" for name in given["trained"]}


def _collected(given: dict[str, Any]) -> list[Path]:
    from whencount.experts.rows import KINDS

    return [
        *(path for kind in KINDS for path in _tables(given["parts"], kind, given["jobs"])),
        *_calibrations(given).values(),
        *_trained(given).values(),
    ]


@click.command("expert-collect", cls=StageCommand, reads=_collected)
@click.option("--jobs", type=JSON_LIST, required=True, help="[[model, evaluation, active], ...]")
@click.option("--trained", type=JSON_LIST, required=True, help="Models that the study trained.")
@click.option("--parts", type=click.Path(path_type=Path), required=True, help="Folder of tables.")
@click.option("--rows", type=WRITES, required=True)
@click.option("--per-document", type=WRITES, required=True)
@click.option("--baselines", type=WRITES, required=True)
@click.option("--routing", type=WRITES, required=True)
@click.option("--training", type=WRITES, required=True)
def expert_collect(jobs: list[list[Any]], trained: list[str], parts: Path, **outputs: Path) -> None:
    """Gather the tables of all jobs."""
    from whencount.experts.label_free import read_prepared
    from whencount.experts.rows import KINDS, collect
    from whencount.experts.trained import read_training
    from whencount.tables import read_table

    given = {"jobs": jobs, "trained": trained, "parts": parts}
    tables = collect(
        {kind: [read_table(path) for path in _tables(parts, kind, jobs)] for kind in KINDS},
        [
            (model, active, read_prepared(path).routing)
            for (model, active), path in _calibrations(given).items()
        ],
        [(name, read_training(path)) for name, path in _trained(given).items()],
    )
    for kind, path in outputs.items():
        write_table(tables[kind], path)
