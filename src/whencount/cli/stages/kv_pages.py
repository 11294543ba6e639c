"""Steps of the study of pages: the haystack, one job of decoding, the tables of all jobs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from whencount.cli.stages.options import (
    JSON,
    JSON_LIST,
    OUTSIDE,
    READS,
    WRITES,
    StageCommand,
    checkpoint_key,
    held_threads,
    write_table,
)


def _files_of_haystack(given: dict[str, Any]) -> list[Path]:
    from whencount.provenance import files_named

    return files_named(given["haystack"])


@click.command(
    "kv-haystack",
    cls=StageCommand,
    concerns=lambda given: {"pages.haystack": given["haystack"]},
    sources=_files_of_haystack,
)
@click.option("--haystack", type=JSON, required=True, help="Where prose comes from, as in config.")
@click.option("--collection", type=READS, help="Prepared collection, where the study has it.")
@click.option("--seed", type=int, required=True)
@click.option("--out", type=WRITES, required=True, help="Parquet table of sentences to write.")
def kv_haystack(haystack: dict[str, Any], collection: Path | None, seed: int, out: Path) -> None:
    """Read the prose that needles are hidden in, as a table of sentences."""
    from whencount import ruler

    name = str(haystack.get("name") or haystack.get("path") or haystack["source"])
    ruler.write_prose(ruler.open_prose(haystack, collection, seed), out, name)


def _concerns_of_job(given: dict[str, Any]) -> dict[str, Any]:
    return {f"pages.models.{given['name']}": given["model"], "pages": given["study"]}


@click.command("kv-pages", cls=StageCommand, concerns=_concerns_of_job)
@click.option("--name", required=True, help="What the model is called.")
@click.option("--model", type=JSON, required=True, help="The model, as in the config.")
@click.option("--task", required=True, help="A task of RULER.")
@click.option("--context", type=int, required=True, help="Tokens of an example.")
@click.option("--study", type=JSON, required=True, help="`pages` of the config, less its lists.")
@click.option("--haystack", type=READS, help="Table written by `stage kv-haystack`.")
@click.option("--questions", type=OUTSIDE, help="File of questions, for qa_1 and qa_2.")
@click.option("--frozen", type=READS, help="Predictors frozen before, where transfer is tested.")
@click.option("--seed", type=int, required=True)
@click.option("--threads", type=int, required=True)
@click.option("--rows", type=WRITES, required=True)
@click.option("--per-example", type=WRITES, required=True)
@click.option("--baselines", type=WRITES, required=True)
@click.option("--page-statistics", type=WRITES, required=True)
@click.option("--selected", type=WRITES, required=True)
def kv_pages(
    name: str,
    model: dict[str, Any],
    task: str,
    context: int,
    study: dict[str, Any],
    haystack: Path | None,
    questions: Path | None,
    frozen: Path | None,
    seed: int,
    threads: int,
    rows: Path,
    **others: Path,
) -> None:
    """Decode every example of a task under all selectors, configurations and budgets."""
    with held_threads(threads):
        from whencount import ruler
        from whencount.checkpoints import parts_of
        from whencount.language_models import load_language_model
        from whencount.pages.evaluation import evaluate

        texts = ruler.Texts(
            prose=() if haystack is None else ruler.read_prose(haystack),
            questions={} if questions is None else {task: ruler.read_questions(task, questions)},
        )
        loaded = load_language_model(model, threads=threads)
        examples = ruler.open_examples(
            task,
            context=context,
            number=study["examples"],
            encode=loaded.encode,
            texts=texts,
            frame=ruler.Frame(*loaded.frame()),
            seed=seed,
        )
        key = checkpoint_key(
            "kv-pages",
            [path for path in (haystack, frozen) if path is not None],
            model=model,
            task=task,
            context=context,
            study=study,
            seed=seed,
            threads=threads,
            questions=_digest(questions),
        )
        with parts_of(rows, key) as parts:
            tables = evaluate(loaded, name, examples, study, seed=seed, checkpoints=parts)
            for kind, path in {"rows": rows, **others}.items():
                write_table(tables[kind], path)


def _digest(questions: Path | None) -> str | None:
    from whencount.checkpoints import digest_of

    return None if questions is None else digest_of(questions)


def _parts_of_jobs(given: dict[str, Any]) -> list[Path]:
    from whencount.pages.collecting import KINDS

    return [path for kind in KINDS for path in _tables(given["parts"], kind, given["jobs"])]


def _tables(folder: Path, kind: str, jobs: list[list[Any]]) -> Iterator[Path]:
    for job in jobs:
        yield folder / kind / f"{'.'.join(map(str, job))}.parquet"


@click.command("kv-collect", cls=StageCommand, reads=_parts_of_jobs)
@click.option("--jobs", type=JSON_LIST, required=True, help="[[model, task, context], ...]")
@click.option("--without", type=JSON_LIST, required=True, help="[[task, reason, remedy], ...]")
@click.option("--parts", type=click.Path(path_type=Path), required=True, help="Folder of tables.")
@click.option("--rows", type=WRITES, required=True)
@click.option("--per-example", type=WRITES, required=True)
@click.option("--baselines", type=WRITES, required=True)
@click.option("--page-statistics", type=WRITES, required=True)
@click.option("--selected", type=WRITES, required=True)
@click.option("--unavailable", type=WRITES, required=True, help="Tasks whose data is absent.")
def kv_collect(
    jobs: list[list[Any]],
    without: list[list[str]],
    parts: Path,
    unavailable: Path,
    **tables: Path,
) -> None:
    """Gather the tables of all jobs; list the tasks that could not be run."""
    import pandas as pd

    from whencount.pages.collecting import COMPLETE, collect
    from whencount.tables import read_table

    wanted = [(str(model), str(task), int(context)) for model, task, context in jobs]
    for kind, path in tables.items():
        frames = [read_table(one) for one in _tables(parts, kind, jobs)]
        write_table(collect(frames, wanted, complete=kind in COMPLETE), path)
    for task, reason, remedy in without:
        click.echo(f"{task} was not run: {reason}; {remedy}", err=True)
    columns = ["task", "reason", "remedy"]
    write_table(pd.DataFrame(without, columns=columns).astype("str"), unavailable)
