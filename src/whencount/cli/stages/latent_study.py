"""Steps of the study of latent terms, from vectors to tables and the browser of features."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from whencount.cli.stages.options import (
    JSON,
    JSON_PATHS,
    READS,
    WRITES,
    Json,
    StageCommand,
    checkpoint_key,
    held_threads,
    write_table,
)


def _concerns(given: dict[str, Any]) -> dict[str, Any]:
    return {"latent_terms": given["options"], "seed": given["study_seed"]}


@click.command("latent-score", cls=StageCommand, concerns=_concerns)
@click.option("--model", required=True, help="What the model is called.")
@click.option("--collection-name", required=True)
@click.option("--corpus", required=True, help="The collection whose documents it has.")
@click.option("--seed", type=int, required=True)
@click.option("--options", type=JSON, required=True, help="`latent_terms` of the config.")
@click.option("--references", type=JSON_PATHS, default="{}", help='{"bm25": "its run", ...}')
@click.option("--queries", type=READS, required=True)
@click.option("--collection", type=READS, required=True)
@click.option("--limit", type=bool, required=True, help="Whether deep recall is asked for.")
@click.option("--depth", type=int, required=True)
@click.option("--study-seed", type=int, required=True)
@click.option("--threads", type=int, required=True)
@click.option("--rows", type=WRITES, required=True)
@click.option("--per-query", type=WRITES, required=True)
@click.option("--grid", type=WRITES, required=True)
@click.option("--tuned", type=WRITES, required=True)
@click.option("--recall", type=WRITES, required=True)
@click.option("--pruning", type=WRITES, required=True)
@click.option("--frequencies", type=WRITES, required=True)
@click.argument("documents", type=READS, nargs=-1, required=True)
def latent_score(
    model: str,
    collection_name: str,
    corpus: str,
    seed: int,
    options: dict[str, Any],
    references: dict[str, str],
    queries: Path,
    collection: Path,
    limit: bool,
    depth: int,
    study_seed: int,
    threads: int,
    documents: tuple[Path, ...],
    **outputs: Path,
) -> None:
    """Score, tune and prune the latent terms of one model on one collection at one seed."""
    with held_threads(threads):
        from whencount.checkpoints import parts_of
        from whencount.collections import load_prepared
        from whencount.latent_terms.scoring import job_tables, representation_of
        from whencount.measures import Judgements
        from whencount.naming import Job
        from whencount.references import read_run
        from whencount.vectors import SparseVectors

        prepared = load_prepared(collection)
        key = checkpoint_key(
            "latent-score",
            [*documents, queries, collection, *references.values()],
            options=options,
            limit=limit,
            depth=depth,
            seed=[study_seed, seed],
        )
        with parts_of(outputs["rows"], key) as parts:
            found = job_tables(
                Job(representation_of(model), collection_name, seed),
                [SparseVectors.load(folder) for folder in documents],
                SparseVectors.load(queries),
                Judgements.from_qrels(prepared.qrels, prepared.query_ids, prepared.document_ids),
                prepared.query_ids,
                options,
                corpus=corpus,
                references={
                    label: read_run(path, prepared).matrices(len(prepared.queries), 10)[0]
                    for label, path in references.items()
                },
                depth=depth,
                study_seed=study_seed,
                limit=limit,
                threads=threads,
                checkpoints=parts,
            )
            for kind, path in outputs.items():
                write_table(found[kind], path)


@click.command("latent-beside", cls=StageCommand, concerns=_concerns)
@click.option("--options", type=JSON, required=True, help="`latent_terms` of the config.")
@click.option("--collection", type=READS, required=True)
@click.option("--dense-queries", type=READS, help="Folder of the queries' pooled states.")
@click.option("--dense-documents", type=READS, multiple=True, help="The same of a shard.")
@click.option("--limit", type=bool, required=True, help="Whether deep recall is asked for.")
@click.option("--study-seed", type=int, required=True)
@click.option("--threads", type=int, required=True)
@click.option("--words", type=WRITES, required=True)
@click.option("--recall", type=WRITES, required=True)
@click.option("--frequencies", type=WRITES, required=True)
def latent_beside(
    options: dict[str, Any],
    collection: Path,
    dense_queries: Path | None,
    dense_documents: tuple[Path, ...],
    limit: bool,
    study_seed: int,
    threads: int,
    **outputs: Path,
) -> None:
    """Measure what stands beside the latent terms of a collection: words, a dense ranking."""
    with held_threads(threads):
        import numpy as np

        from whencount.collections import load_prepared
        from whencount.latent_terms.beside import beside

        def states(folder: Path) -> Any:
            return np.load(folder / "states.npy", mmap_mode="r")

        found = beside(
            load_prepared(collection),
            options,
            limit=limit,
            study_seed=study_seed,
            states=([*map(states, dense_documents)], states(dense_queries))
            if dense_queries is not None
            else None,
            threads=threads,
        )
        for kind, path in outputs.items():
            write_table(found[kind], path)


@click.command("latent-learned-frequencies", cls=StageCommand)
@click.option(
    "--vectors", type=JSON_PATHS, required=True, help='{"splade.0": "its first shard", ...}'
)
@click.option("--out", type=WRITES, required=True)
def latent_learned_frequencies(vectors: dict[str, str], out: Path) -> None:
    """Rank the features of SPLADE-like vectors by document frequency."""
    from whencount.latent_terms.frequencies import learned_frequencies
    from whencount.vectors import SparseVectors

    shards: dict[str, list[SparseVectors]] = {}
    for name, folder in vectors.items():
        shards.setdefault(name.rsplit(".", 1)[0], []).append(SparseVectors.load(folder))
    write_table(learned_frequencies(shards), out)


def _parts(given: dict[str, Any]) -> list[Path]:
    if given["collections"]:
        return [*map(Path, given["collections"].values())]
    return [given["parts"] / given["kind"] / f"{name}.parquet" for name in given["jobs"]]


@click.command("latent-collect", cls=StageCommand, reads=_parts)
@click.option("--kind", required=True, help="rows, per_query, grid, ...; words for that of texts.")
@click.option("--jobs", type=Json(list), required=True, help='["MODEL.COLLECTION.seedN", ...]')
@click.option("--parts", type=click.Path(path_type=Path), required=True, help="Folder of tables.")
@click.option("--collections", type=JSON_PATHS, default="{}", help='{"limit": "its table", ...}')
@click.option("--out", type=WRITES, required=True)
def latent_collect(
    kind: str, jobs: list[str], parts: Path, collections: dict[str, str], out: Path
) -> None:
    """Gather a table of all jobs, or of what stands beside them on all collections."""
    from whencount.latent_terms.collecting import beside_tables, collect
    from whencount.tables import read_table

    if collections:
        table = beside_tables({name: read_table(path) for name, path in collections.items()})
    else:
        frames = [read_table(parts / kind / f"{name}.parquet") for name in jobs]
        table = collect(kind, frames, len(jobs))
    write_table(table, out)


@click.command(
    "latent-compare",
    cls=StageCommand,
    concerns=lambda given: {"statistics": {"draws": given["draws"]}, "seed": given["study_seed"]},
)
@click.option("--tuned", type=READS, required=True)
@click.option("--words", type=READS, required=True)
@click.option("--draws", type=int, required=True)
@click.option("--study-seed", type=int, required=True)
@click.option("--out", type=WRITES, required=True)
def latent_compare(tuned: Path, words: Path, draws: int, study_seed: int, out: Path) -> None:
    """Compare scorers and settings on the test queries."""
    from whencount.latent_terms.comparing import comparisons
    from whencount.tables import read_table

    table = comparisons(read_table(tuned), read_table(words), draws=draws, seed=study_seed)
    write_table(table, out)


@click.command(
    "latent-reversal",
    cls=StageCommand,
    concerns=lambda given: {"statistics": {"draws": given["draws"]}, "seed": given["study_seed"]},
)
@click.option("--latent", type=READS, required=True, help="Qualities per query of latent terms.")
@click.option("--learned", type=READS, help="Qualities per query of SPLADE-like vectors.")
@click.option("--draws", type=int, required=True)
@click.option("--study-seed", type=int, required=True)
@click.option("--out", type=WRITES, required=True)
def latent_reversal(
    latent: Path, learned: Path | None, draws: int, study_seed: int, out: Path
) -> None:
    """Compare BM25 with the inner product on latent terms and on SPLADE-like vectors."""
    from whencount.latent_terms.reversal import learned_side, reversal
    from whencount.tables import read_table

    own = read_table(latent)
    sides = {
        "latent": own,
        "learned_sparse": None if learned is None else learned_side(read_table(learned), own),
    }
    write_table(reversal(sides, draws=draws, seed=study_seed), out)


@click.command(
    "latent-features",
    cls=StageCommand,
    concerns=lambda given: {"latent_terms": given["options"], "encoder": given["encoder"]},
    reads=lambda given: [
        *(given[name] for name in ("queries", "corpus", "collection")),
        *given["documents"],
        given["dictionaries"],
    ],
)
@click.option("--options", type=JSON, required=True, help="phi and browser, as in the config.")
@click.option("--encoder", type=JSON, required=True, help="Settings of the backbone.")
@click.option("--dictionaries", type=READS, required=True, help="Folder of latent-train.")
@click.option("--queries", type=READS, required=True)
@click.option("--corpus", type=READS, required=True, help="Prepared texts of the documents.")
@click.option("--collection", type=READS, required=True, help="Prepared texts of the queries.")
@click.option("--threads", type=int, required=True)
@click.option("--features", type=WRITES, required=True)
@click.option("--examples", type=WRITES, required=True)
@click.argument("documents", type=READS, nargs=-1, required=True)
def latent_features(
    options: dict[str, Any],
    encoder: dict[str, Any],
    dictionaries: Path,
    queries: Path,
    corpus: Path,
    collection: Path,
    threads: int,
    features: Path,
    examples: Path,
    documents: tuple[Path, ...],
) -> None:
    """Find the passages and queries, and their tokens, in which every feature is strongest."""
    with held_threads(threads):
        from functools import partial

        from whencount.encoders import load_encoder
        from whencount.latent_terms.features import feature_tables
        from whencount.latent_terms.firing import firing_spans
        from whencount.representations import Representation
        from whencount.vectors import SparseVectors

        loaded = load_encoder(encoder, threads)
        dictionary = Representation.load(dictionaries / f"seed{options['browser']['seed']}")
        dictionary.basis.to(loaded.device)
        tables = feature_tables(
            [SparseVectors.load(folder) for folder in documents],
            SparseVectors.load(queries),
            corpus,
            collection,
            options["browser"],
            exponent=float(options["phi"]),
            firing=partial(firing_spans, loaded, dictionary),
        )
        write_table(tables[0], features)
        write_table(tables[1], examples)


@click.command(
    "latent-browser",
    cls=StageCommand,
    concerns=lambda given: {"latent_terms": given["settings"]},
)
@click.option("--settings", type=JSON, required=True, help="Study, model, collection, seed.")
@click.option("--features", type=READS, required=True)
@click.option("--examples", type=READS, required=True)
@click.option("--out", type=WRITES, required=True, help="HTML page to write.")
def latent_browser(settings: dict[str, Any], features: Path, examples: Path, out: Path) -> None:
    """Write the page on which a person reads features and sets their categories."""
    from whencount.latent_terms.browser import write_browser
    from whencount.tables import read_table

    write_browser(read_table(features), read_table(examples), settings, out)
