"""`whencount stage ...`: the steps that the workflow runs, one command per rule.

Each reads files, calls one library function, and writes its output whole or not at all.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click


class Json(click.ParamType[Any]):
    """A JSON object (or, where asked for, a list) on the command line."""

    name = "json"

    def __init__(self, kind: type = dict) -> None:
        self.kind = kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            parsed = json.loads(value)
        except json.JSONDecodeError as error:
            self.fail(f"not valid JSON: {error}", param, ctx)
        if not isinstance(parsed, self.kind):
            self.fail(f"{value} is no JSON {'list' if self.kind is list else 'object'}", param, ctx)
        return parsed


JSON = Json()
JSON_LIST = Json(list)
FILE = click.Path(path_type=Path)


@contextmanager
def _threads(count: int) -> Iterator[None]:
    """Hold every pool of threads (BLAS, OpenMP, numba) to `count`, so that results repeat."""
    import os

    from threadpoolctl import threadpool_limits

    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = str(count)
    with threadpool_limits(limits=count):
        yield


def _write_table(frame: Any, path: Path) -> None:
    from whencount.tables import write_table

    write_table(frame, path)


@click.group()
def stage() -> None:
    """Run one step of the workflow (the rules in workflow/rules call these)."""


@stage.command()
@click.option("--name", required=True, help="What the collection is called.")
@click.option("--source", type=JSON, required=True, help="Where it comes from, as in the config.")
@click.option("--corpus", type=FILE, help="Prepared collection whose documents this one shares.")
@click.option("--out", type=FILE, required=True, help="Folder to write.")
def collection(name: str, source: dict[str, Any], corpus: Path | None, out: Path) -> None:
    """Read and check a collection."""
    from whencount.collections import open_collection, prepare

    prepare(open_collection(name, source), out, corpus=corpus)


@stage.command("fit-text")
@click.option("--source", type=JSON, required=True, help="Where the passages come from.")
@click.option("--seed", type=int, required=True)
@click.option("--out", type=FILE, required=True, help="Folder to write.")
def fit_text(source: dict[str, Any], seed: int, out: Path) -> None:
    """Choose the passages that the bases are fitted on."""
    from whencount.collections import open_fit_passages, prepare_passages

    prepare_passages(open_fit_passages(source, seed), out)


@stage.command("fit-states")
@click.option("--encoder", type=JSON, required=True, help="The encoder, as in the config.")
@click.option("--passages", type=FILE, required=True)
@click.option("--options", type=JSON, required=True, help="The options of `fit` in the config.")
@click.option("--seed", type=int, required=True)
@click.option("--threads", type=int, required=True)
@click.option("--out", type=FILE, required=True, help="Folder to write.")
def fit_states(
    encoder: dict[str, Any],
    passages: Path,
    options: dict[str, Any],
    seed: int,
    threads: int,
    out: Path,
) -> None:
    """Encode the fit passages and keep the states that bases are fitted on."""
    with _threads(threads):
        from whencount import fitting
        from whencount.collections import load_prepared
        from whencount.encoders import load_encoder

        prepared = load_prepared(passages)
        fitting.fit_states(
            load_encoder(encoder, threads),
            ((document.id, document.text) for document in prepared.documents()),
            out,
            seed=seed,
            total=len(prepared),
            **options,
        )


@stage.command("fit-basis")
@click.option("--states", type=FILE, required=True, help="Folder written by `stage fit-states`.")
@click.option("--representation", required=True, help="sae_token, say.")
@click.option("--options", type=JSON, required=True, help="The options of the basis.")
@click.option("--dictionary", type=FILE, help="Take this fitted basis as it is; find the scale.")
@click.option("--seed", type=int, required=True)
@click.option("--threads", type=int, required=True)
@click.option("--out", type=FILE, required=True, help="Folder to write.")
def fit_basis(
    states: Path,
    representation: str,
    options: dict[str, Any],
    dictionary: Path | None,
    seed: int,
    threads: int,
    out: Path,
) -> None:
    """Fit a basis and find its scale."""
    with _threads(threads):
        from whencount import fitting
        from whencount.grid import Representation
        from whencount.representations import RepresentationSpec

        parsed = Representation.parse(representation)
        spec = RepresentationSpec(
            name=representation,
            basis=parsed.basis,
            granularity=parsed.granularity,
            seed=seed,
            options=options,
            fitted_on=parsed.fitted_on,
        )
        fitting.fit_basis(states, spec, out, dictionary=dictionary, threads=threads)


@stage.command()
@click.option("--encoder", type=JSON, required=True, help="The encoder, as in the config.")
@click.option("--collection", type=FILE, required=True, help="Prepared collection.")
@click.option("--side", type=click.Choice(["query", "passage"]), required=True)
@click.option("--representations", type=JSON, required=True, help='{"name": "folder of a basis"}')
@click.option("--shard", type=int, default=0, show_default=True)
@click.option("--shards", type=int, default=1, show_default=True)
@click.option("--maximum-stored", type=int, default=0, help="Weights per vector; 0 keeps all.")
@click.option("--threads", type=int, required=True)
@click.option("--out", type=FILE, required=True, help="Folder to write.")
def encode(
    encoder: dict[str, Any],
    collection: Path,
    side: str,
    representations: dict[str, str],
    shard: int,
    shards: int,
    maximum_stored: int,
    threads: int,
    out: Path,
) -> None:
    """Encode a shard of texts once and write all its representations."""
    with _threads(threads):
        from whencount.collections import read_texts
        from whencount.encoders import load_encoder
        from whencount.encoding import encode_collection
        from whencount.files import atomic_directory

        texts = read_texts(
            collection / ("documents.parquet" if side == "passage" else "queries.parquet")
        )
        start, stop = len(texts) * shard // shards, len(texts) * (shard + 1) // shards
        with atomic_directory(out) as folder:
            encode_collection(
                load_encoder(encoder, threads),
                texts[start:stop],
                representations,
                {name: folder / name for name in representations},
                kind="query" if side == "query" else "passage",
                dense_out=folder / "states.npy",
                maximum_stored=maximum_stored or None,
                total=stop - start,
            )


@stage.command()
@click.option("--collection", type=FILE, required=True)
@click.option("--k1", type=float, required=True)
@click.option("--b", type=float, required=True)
@click.option("--depth", type=int, required=True)
@click.option("--threads", type=int, required=True)
@click.option("--out", type=FILE, required=True, help="Parquet run to write.")
def bm25(collection: Path, k1: float, b: float, depth: int, threads: int, out: Path) -> None:
    """Rank a collection by text BM25."""
    with _threads(threads):
        from whencount import references
        from whencount.collections import load_prepared
        from whencount.scoring import Parameters

        prepared = load_prepared(collection)
        run = references.bm25(prepared, Parameters(k1, b), depth=depth)
        references.write_run(run, prepared, out)


@stage.command()
@click.option("--queries", type=FILE, required=True)
@click.option("--collection", type=FILE, required=True)
@click.option("--depth", type=int, required=True)
@click.option("--threads", type=int, required=True)
@click.option("--out", type=FILE, required=True, help="Parquet run to write.")
@click.argument("documents", type=FILE, nargs=-1, required=True)
def dense(
    documents: tuple[Path, ...],
    queries: Path,
    collection: Path,
    depth: int,
    threads: int,
    out: Path,
) -> None:
    """Rank a collection by the cosine of the encoder's pooled states."""
    with _threads(threads):
        import numpy as np

        from whencount import references
        from whencount.collections import load_prepared

        prepared = load_prepared(collection)
        shards = [np.load(folder / "states.npy", mmap_mode="r") for folder in documents]
        states = np.load(queries / "states.npy", mmap_mode="r")
        run = references.dense(shards, states, depth=depth)
        references.write_run(run, prepared, out)


@stage.command()
@click.option("--representation", required=True)
@click.option("--collection-name", required=True)
@click.option("--seed", type=int, required=True)
@click.option("--queries", type=FILE, required=True)
@click.option("--collection", type=FILE, required=True)
@click.option("--cells", type=JSON_LIST, required=True, help="[[budget, k1, b, control], ...]")
@click.option("--depth", type=int, required=True)
@click.option("--study-seed", type=int, required=True)
@click.option("--threads", type=int, required=True)
@click.option("--rows", type=FILE, required=True, help="Parquet table to write.")
@click.option("--per-query", type=FILE, required=True, help="Parquet table to write.")
@click.argument("documents", type=FILE, nargs=-1, required=True)
def score(
    representation: str,
    collection_name: str,
    seed: int,
    documents: tuple[Path, ...],
    queries: Path,
    collection: Path,
    cells: list[list[Any]],
    depth: int,
    study_seed: int,
    threads: int,
    rows: Path,
    per_query: Path,
) -> None:
    """Score every cell of one representation of one collection."""
    with _threads(threads):
        from whencount import rows as library
        from whencount.collections import load_prepared
        from whencount.grid import Cell, Job
        from whencount.measures import Judgements
        from whencount.vectors import SparseVectors

        job = Job(representation, collection_name, seed)
        name = f"{representation}.seed{seed}"
        prepared = load_prepared(collection)
        judgements = Judgements.from_qrels(
            prepared.qrels, prepared.query_ids, prepared.document_ids
        )
        results = library.score_cells(
            [SparseVectors.load(folder / name) for folder in documents],
            SparseVectors.load(queries / name),
            judgements,
            [Cell(str(budget), float(k1), float(b), control) for budget, k1, b, control in cells],
            depth=depth,
            seed=library.derived_seed(study_seed, job.name, "control"),
            threads=threads,
        )
        table, details = library.tables(job, results, prepared.query_ids, judgements.evaluated)
        _write_table(details, per_query)
        _write_table(table, rows)


@stage.command()
@click.option("--grid", type=JSON, required=True, help="What the families are, as in the config.")
@click.option("--out", type=FILE, required=True, help="Parquet table to write.")
@click.argument("tables", type=FILE, nargs=-1, required=True)
def collect(grid: dict[str, Any], out: Path, tables: tuple[Path, ...]) -> None:
    """Gather the rows of all jobs in one table."""
    from whencount import rows
    from whencount.tables import read_table

    _write_table(rows.collect([read_table(path) for path in tables], grid), out)


@stage.command()
@click.option("--rows", type=FILE, required=True)
@click.option("--options", type=JSON, required=True, help="The statistics of the config, seed too.")
@click.option("--out", type=FILE, required=True, help="Parquet table to write.")
@click.argument("per_query", type=FILE, nargs=-1, required=True)
def significance(
    rows: Path, options: dict[str, Any], out: Path, per_query: tuple[Path, ...]
) -> None:
    """Bootstrap the reported rows over queries, with Holm's correction."""
    import pandas as pd

    from whencount import significance as library
    from whencount.rows import CELL_KEYS, reported, row_names
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
    _write_table(result, out)


@stage.command()
@click.option("--rows", type=FILE, required=True)
@click.option("--options", type=JSON, required=True, help="The statistics of the config, seed too.")
@click.option("--out", type=FILE, required=True, help="Parquet table to write.")
def shares(rows: Path, options: dict[str, Any], out: Path) -> None:
    """Share the gain out among the three switches, with intervals."""
    from whencount import attribution
    from whencount.rows import reported
    from whencount.tables import read_table

    table = reported(read_table(rows), options["family"], options.get("collections"))
    _write_table(
        attribution.share_table(table, draws=options["share_draws"], seed=options["seed"]), out
    )


@stage.command("reference-quality")
@click.option("--collections", type=JSON, required=True, help='{"name": "prepared folder"}')
@click.option("--out", type=FILE, required=True, help="Parquet table to write.")
@click.argument("runs", type=FILE, nargs=-1, required=True)
def reference_quality(collections: dict[str, str], out: Path, runs: tuple[Path, ...]) -> None:
    """Measure the references; a run is called `REFERENCE.COLLECTION.parquet`."""
    from whencount import references
    from whencount.collections import load_prepared

    prepared = {name: load_prepared(folder) for name, folder in collections.items()}
    _write_table(references.quality(runs, prepared), out)


@stage.command()
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
