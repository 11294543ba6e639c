"""Steps from text to vectors: collections, fit passages, bases, encoding."""

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
)


def _texts_of(collection: Path, side: str) -> Path:
    return collection / ("documents.parquet" if side == "passage" else "queries.parquet")


def _files_of_source(given: dict[str, Any]) -> list[Path]:
    from whencount.provenance import files_named

    return files_named(given["source"])


@click.command(
    cls=StageCommand,
    concerns=lambda given: {f"collections.{given['name']}": given["source"]},
    sources=_files_of_source,
)
@click.option("--name", required=True, help="What the collection is called.")
@click.option("--source", type=JSON, required=True, help="Where it comes from, as in the config.")
@click.option("--corpus", type=READS, help="Prepared collection whose documents this one shares.")
@click.option("--out", type=WRITES, required=True, help="Folder to write.")
def collection(name: str, source: dict[str, Any], corpus: Path | None, out: Path) -> None:
    """Read and check a collection."""
    from whencount.collections import open_collection, prepare

    prepare(open_collection(name, source), out, corpus=corpus)


@click.command(
    "fit-text",
    cls=StageCommand,
    concerns=lambda given: {"fit.text": given["source"]},
    sources=_files_of_source,
)
@click.option("--source", type=JSON, required=True, help="Where the passages come from.")
@click.option("--seed", type=int, required=True)
@click.option("--out", type=WRITES, required=True, help="Folder to write.")
def fit_text(source: dict[str, Any], seed: int, out: Path) -> None:
    """Choose the passages that the bases are fitted on."""
    from whencount.collections import open_fit_passages, prepare_passages

    prepare_passages(open_fit_passages(source, seed), out)


@click.command(
    "fit-states",
    cls=StageCommand,
    concerns=lambda given: {"encoder": given["encoder"], "fit": given["options"]},
)
@click.option("--encoder", type=JSON, required=True, help="The encoder, as in the config.")
@click.option("--passages", type=READS, required=True)
@click.option("--options", type=JSON, required=True, help="The options of `fit` in the config.")
@click.option("--seed", type=int, required=True)
@click.option("--threads", type=int, required=True)
@click.option("--out", type=WRITES, required=True, help="Folder to write.")
def fit_states(
    encoder: dict[str, Any],
    passages: Path,
    options: dict[str, Any],
    seed: int,
    threads: int,
    out: Path,
) -> None:
    """Encode the fit passages and keep the states that bases are fitted on."""
    with held_threads(threads):
        from whencount import fitting
        from whencount.checkpoints import parts_of
        from whencount.collections import load_prepared
        from whencount.encoders import load_encoder

        prepared = load_prepared(passages)
        key = checkpoint_key(
            "fit-states", [passages], encoder=encoder, options=options, seed=seed, threads=threads
        )
        with parts_of(out, key) as parts:
            fitting.fit_states(
                load_encoder(encoder, threads),
                ((document.id, document.text) for document in prepared.documents()),
                out,
                seed=seed,
                total=len(prepared),
                checkpoints=parts,
                **options,
            )


@click.command(
    "fit-basis",
    cls=StageCommand,
    concerns=lambda given: {
        f"bases.{given['representation'].split('_')[0]}": given["options"],
    },
)
@click.option("--states", type=READS, required=True, help="Folder written by `stage fit-states`.")
@click.option("--representation", required=True, help="sae_token, say.")
@click.option("--options", type=JSON, required=True, help="The options of the basis.")
@click.option("--dictionary", type=READS, help="Take this fitted basis as it is; find the scale.")
@click.option("--seed", type=int, required=True)
@click.option("--threads", type=int, required=True)
@click.option("--out", type=WRITES, required=True, help="Folder to write.")
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
    with held_threads(threads):
        from dataclasses import asdict

        from whencount import fitting
        from whencount.checkpoints import parts_of
        from whencount.naming import Representation
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
        read = [states] if dictionary is None else [states, dictionary]
        key = checkpoint_key("fit-basis", read, spec=asdict(spec), threads=threads)
        with parts_of(out, key) as parts:
            fitting.fit_basis(
                states, spec, out, dictionary=dictionary, threads=threads, checkpoints=parts
            )


@click.command(
    cls=StageCommand,
    concerns=lambda given: {"encoder": given["encoder"]},
    reads=lambda given: [
        *map(Path, given["representations"].values()),
        _texts_of(given["collection"], given["side"]),
    ],
)
@click.option("--encoder", type=JSON, required=True, help="The encoder, as in the config.")
@click.option("--collection", type=READS, required=True, help="Prepared collection.")
@click.option("--side", type=click.Choice(["query", "passage"]), required=True)
@click.option(
    "--representations", type=JSON_PATHS, required=True, help='{"name": "folder of a basis"}'
)
@click.option("--shard", type=int, default=0, show_default=True)
@click.option("--shards", type=int, default=1, show_default=True)
@click.option("--maximum-stored", type=int, default=0, help="Weights per vector; 0 keeps all.")
@click.option("--threads", type=int, required=True)
@click.option("--out", type=WRITES, required=True, help="Folder to write.")
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
    with held_threads(threads):
        from whencount.checkpoints import parts_of
        from whencount.collections import read_texts
        from whencount.encoders import load_encoder
        from whencount.encoding import encode_collection
        from whencount.files import atomic_directory

        texts = read_texts(_texts_of(collection, side))
        start, stop = len(texts) * shard // shards, len(texts) * (shard + 1) // shards
        key = checkpoint_key(
            "encode",
            [texts.path, *representations.values()],
            encoder=encoder,
            side=side,
            rows=[start, stop],
            maximum_stored=maximum_stored,
            threads=threads,
        )
        with parts_of(out, key) as parts, atomic_directory(out) as folder:
            encode_collection(
                load_encoder(encoder, threads),
                texts[start:stop],
                representations,
                {name: folder / name for name in representations},
                kind="query" if side == "query" else "passage",
                dense_out=folder / "states.npy",
                maximum_stored=maximum_stored or None,
                total=stop - start,
                checkpoints=parts,
            )


@click.command(
    "encode-external",
    cls=StageCommand,
    concerns=lambda given: {
        f"external.{given['representation'].removesuffix('_external')}": given["encoder"],
    },
    reads=lambda given: [_texts_of(given["collection"], given["side"])],
)
@click.option("--encoder", type=JSON, required=True, help="The encoder, as in `external`.")
@click.option("--collection", type=READS, required=True, help="Prepared collection.")
@click.option("--side", type=click.Choice(["query", "passage"]), required=True)
@click.option("--representation", required=True, help="splade_external, say.")
@click.option("--shard", type=int, default=0, show_default=True)
@click.option("--shards", type=int, default=1, show_default=True)
@click.option("--maximum-stored", type=int, default=0, help="Weights per vector; 0 keeps all.")
@click.option("--threads", type=int, required=True)
@click.option("--out", type=WRITES, required=True, help="Folder to write.")
def encode_external(
    encoder: dict[str, Any],
    collection: Path,
    side: str,
    representation: str,
    shard: int,
    shards: int,
    maximum_stored: int,
    threads: int,
    out: Path,
) -> None:
    """Encode a shard of texts by a sparse encoder of others."""
    with held_threads(threads):
        from whencount.references.sparse_encoder import encode_external as library

        library(
            encoder,
            collection,
            "query" if side == "query" else "passage",
            out,
            representation=f"{representation}.seed0",
            shard=shard,
            shards=shards,
            maximum_stored=maximum_stored or None,
            threads=threads,
        )
