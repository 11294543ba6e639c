"""Steps of latent terms from passages to dictionaries."""

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
    "latent-train",
    cls=StageCommand,
    concerns=lambda given: {
        "encoder": given["encoder"],
        f"latent_terms.models.{given['model']}": given["options"],
    },
)
@click.option("--model", required=True, help="What the model is called.")
@click.option("--encoder", type=JSON, required=True, help="Settings of the backbone.")
@click.option("--passages", type=READS, required=True)
@click.option("--options", type=JSON, required=True, help="Sizes and training of the dictionaries.")
@click.option("--seeds", required=True, help="0,1,2: a dictionary each.")
@click.option("--seed", type=int, required=True, help="Of the order of the passages.")
@click.option("--threads", type=int, required=True)
@click.option("--out", type=WRITES, required=True, help="Folder of dictionaries to write.")
def latent_train(
    model: str,
    encoder: dict[str, Any],
    passages: Path,
    options: dict[str, Any],
    seeds: str,
    seed: int,
    threads: int,
    out: Path,
) -> None:
    """Train the dictionaries of a model, a seed each, on a stream of token states."""
    with held_threads(threads):
        from whencount.checkpoints import parts_of
        from whencount.collections.prepared import read_texts
        from whencount.encoders import load_encoder, resolve_device
        from whencount.latent_terms.states import StateStream
        from whencount.latent_terms.training import LatentOptions, train

        parsed = LatentOptions(**options)
        chosen = [int(one) for one in seeds.split(",")]
        key = checkpoint_key(
            "latent-train",
            [passages],
            encoder=encoder,
            options=options,
            seeds=[seed, *chosen],
            threads=threads,
        )
        stream = StateStream.deal(
            load_encoder(encoder, threads),
            read_texts(passages),
            buffer=parsed.buffer,
            held_back=parsed.held_back,
            seed=seed,
        )
        with parts_of(out, key) as parts:
            train(
                stream,
                parsed,
                chosen,
                out,
                device=resolve_device(encoder.get("device", "auto")),
                threads=threads,
                checkpoints=parts,
            )


@click.command("latent-training", cls=StageCommand)
@click.option("--models", type=JSON_PATHS, required=True, help='{"model": "its folder", ...}')
@click.option("--out", type=WRITES, required=True)
def latent_training(models: dict[str, str], out: Path) -> None:
    """Gather how the dictionaries of all models were trained."""
    from whencount.latent_terms.collecting import training_table

    write_table(training_table({name: Path(path) for name, path in models.items()}), out)


@click.command(
    "latent-encode",
    cls=StageCommand,
    concerns=lambda given: {"encoder": given["encoder"]},
    reads=lambda given: [given["dictionaries"], _texts_of(given["collection"], given["side"])],
)
@click.option("--encoder", type=JSON, required=True, help="Settings of the backbone.")
@click.option("--collection", type=READS, required=True, help="Prepared collection.")
@click.option("--side", type=click.Choice(["query", "passage"]), required=True)
@click.option("--dictionaries", type=READS, required=True, help="Folder of latent-train.")
@click.option("--seeds", required=True, help="0,1,2: those to encode by.")
@click.option("--shard", type=int, default=0, show_default=True)
@click.option("--shards", type=int, default=1, show_default=True)
@click.option("--maximum-stored", type=int, default=0, help="Weights per vector; 0 keeps all.")
@click.option("--threads", type=int, required=True)
@click.argument("outs", type=WRITES, nargs=-1, required=True)
def latent_encode(
    encoder: dict[str, Any],
    collection: Path,
    side: str,
    dictionaries: Path,
    seeds: str,
    shard: int,
    shards: int,
    maximum_stored: int,
    threads: int,
    outs: tuple[Path, ...],
) -> None:
    """Encode a shard of texts once and sum its codes by the dictionary of every seed.

    OUTS are folders of vectors, one per seed.
    """
    with held_threads(threads):
        from whencount.checkpoints import parts_of
        from whencount.collections import read_texts
        from whencount.encoders import load_encoder
        from whencount.encoding import encode_collection

        names = [f"seed{seed}" for seed in seeds.split(",")]
        texts = read_texts(_texts_of(collection, side))
        start, stop = len(texts) * shard // shards, len(texts) * (shard + 1) // shards
        key = checkpoint_key(
            "latent-encode",
            [texts.path, dictionaries],
            encoder=encoder,
            side=side,
            seeds=names,
            rows=[start, stop],
            maximum_stored=maximum_stored,
            threads=threads,
        )
        with parts_of(outs[0], key) as parts:
            encode_collection(
                load_encoder(encoder, threads),
                texts[start:stop],
                {name: dictionaries / name for name in names},
                dict(zip(names, outs, strict=True)),
                kind="query" if side == "query" else "passage",
                maximum_stored=maximum_stored or None,
                total=stop - start,
                checkpoints=parts,
            )
