"""Steps of the study of learned sparse vectors: train, encode, count; then all of them together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from whencount.cli.stages.options import (
    JSON,
    JSON_PATHS,
    READS,
    WRITES,
    StageCommand,
    checkpoint_key,
    held_threads,
    write_table,
)
from whencount.cli.stages.vectors import _texts_of


@click.command(
    "learned-train",
    cls=StageCommand,
    concerns=lambda given: {f"learned_sparse.models.{given['model']}": given["options"]},
)
@click.option("--model", required=True, help="What the model is called.")
@click.option("--passages", type=READS, required=True)
@click.option("--options", type=JSON, required=True, help="training, as in the config.")
@click.option("--seed", type=int, required=True)
@click.option("--threads", type=int, required=True)
@click.option("--out", type=WRITES, required=True, help="Folder of the model to write.")
def learned_train(
    model: str, passages: Path, options: dict[str, Any], seed: int, threads: int, out: Path
) -> None:
    """Train a SPLADE model on pairs made of the fit passages."""
    with held_threads(threads):
        from whencount.checkpoints import parts_of
        from whencount.collections.prepared import read_texts
        from whencount.learned_sparse.study import train_model

        key = checkpoint_key(
            "learned-train",
            [passages],
            model=model,
            options=options,
            seeds=[seed],
            threads=threads,
        )
        with parts_of(out, key) as parts:
            train_model(read_texts(passages), options, seed, out, threads, parts)


@click.command(
    "learned-encode",
    cls=StageCommand,
    concerns=lambda given: {"learned_sparse": given["options"]},
    reads=lambda given: [
        _texts_of(given["collection"], given["side"]),
        *([given["trained"]] if given["trained"] else []),
    ],
)
@click.option("--options", type=JSON, required=True, help="A model, as in the config.")
@click.option("--trained", type=READS, help="Folder of learned-train.")
@click.option("--collection", type=READS, required=True, help="Prepared collection.")
@click.option("--side", type=click.Choice(["query", "passage"]), required=True)
@click.option("--shard", type=int, default=0, show_default=True)
@click.option("--shards", type=int, default=1, show_default=True)
@click.option("--threads", type=int, required=True)
@click.option("--out", type=WRITES, required=True, help="Folder of vectors to write.")
def learned_encode(
    options: dict[str, Any],
    trained: Path | None,
    collection: Path,
    side: str,
    shard: int,
    shards: int,
    threads: int,
    out: Path,
) -> None:
    """Encode a shard of texts by a SPLADE model."""
    with held_threads(threads):
        from whencount.collections.prepared import read_texts
        from whencount.learned_sparse.study import encode_texts

        texts = read_texts(_texts_of(collection, side))
        start, stop = len(texts) * shard // shards, len(texts) * (shard + 1) // shards
        encode_texts(
            texts[start:stop], options, "query" if side == "query" else "passage", out, trained
        )


@click.command("learned-costs", cls=StageCommand, reads=lambda given: _folders(given["vectors"]))
@click.option("--vectors", type=JSON, required=True, help='{"model": [queries, documents, ...]}')
@click.option("--baseline", required=True)
@click.option("--collection-name", required=True)
@click.option("--out", type=WRITES, required=True)
def learned_costs(
    vectors: dict[str, list[str]], baseline: str, collection_name: str, out: Path
) -> None:
    """Count what the vectors of all models cost on one collection."""
    from whencount.learned_sparse.comparing import costs_beside
    from whencount.vectors import SparseVectors

    models = {
        name: (
            SparseVectors.concatenate([SparseVectors.load(one) for one in folders[1:]]),
            SparseVectors.load(folders[0]),
        )
        for name, folders in vectors.items()
    }
    write_table(costs_beside(models, baseline, collection_name), out)


def _folders(vectors: dict[str, list[str]]) -> list[Path]:
    return [Path(folder) for folders in vectors.values() for folder in folders]


@click.command("learned-collect", cls=StageCommand)
@click.option("--trained", type=JSON_PATHS, default="{}", help='{"model": "its folder", ...}')
@click.option("--out", type=WRITES, required=True)
@click.argument("tables", type=READS, nargs=-1)
def learned_collect(trained: dict[str, str], out: Path, tables: tuple[Path, ...]) -> None:
    """Gather the tables of all jobs, or how all models were trained."""
    import pandas as pd

    from whencount.learned_sparse.comparing import training_lines
    from whencount.learned_sparse.training import read_log
    from whencount.tables import read_table

    if tables:
        write_table(pd.concat([read_table(path) for path in tables], ignore_index=True), out)
    else:
        write_table(training_lines({name: read_log(path) for name, path in trained.items()}), out)
