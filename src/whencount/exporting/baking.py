"""Baking: documents whose plain inner product with a query is the corrected score."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from whencount.errors import InputError
from whencount.exporting.formats import FORMATS, Baked, Names
from whencount.exporting.formats.naming import numbers_of, rows_of
from whencount.exporting.impacts import Steps, folding_of, score_bound, steps_of
from whencount.scoring import Configuration, Parameters
from whencount.vectors import SparseVectors


@dataclass(frozen=True)
class Baking:
    """What is baked, and how.

    Attributes:
        shards: the documents, in order, capped already; memory-mapped is fine.
        names: of the features.
        configuration, parameters: of the scorer.
        idf_in_documents: whether IDF goes into the documents; into the queries otherwise.
        bits: whole numbers of so many bits; None keeps real numbers.
    """

    shards: Sequence[SparseVectors]
    names: Names
    configuration: Configuration
    parameters: Parameters
    idf_in_documents: bool = True
    bits: int | None = None


@dataclass(frozen=True)
class Report:
    """What was written.

    Attributes:
        documents, weights: how many.
        step: of whole numbers; None for real ones.
        largest_error: measured, of a document weight; 0 for real numbers.
        largest_bound: no score of the queries given is further off; None without queries.
    """

    documents: int
    weights: int
    step: float | None
    largest_error: float
    largest_bound: float | None

    def as_json(self) -> dict[str, Any]:
        """As JSON values."""
        return dict(self.__dict__)


def bake(
    baking: Baking,
    file_format: str,
    out: str | Path,
    queries: SparseVectors | None = None,
    queries_out: str | Path | None = None,
) -> Report:
    """Write the baked documents, and the queries that go with them.

    The inner product of a baked document with a baked query (an unchanged one, where IDF is off or
    in the documents) is the score of the configuration, to single precision; with whole numbers it
    is the score over `step`, and off by at most the bound. Memory holds a block of documents and
    the statistics of the collection.

    Args:
        baking: what is baked.
        file_format: of FORMATS.
        out: the file of documents.
        queries: of the same vocabulary; None writes none.
        queries_out: where they go, JSON lines `{"id": ..., "vector": {...}}`.

    Raises:
        InputError: an unknown format, a format of whole numbers without bits, nothing stored, IDF
            in the queries without queries, or the file cannot be written.
    """
    path = Path(out)
    chosen = _format(file_format, baking.bits)
    needs_queries = baking.configuration.idf and not baking.idf_in_documents
    if needs_queries and queries is None:
        raise InputError(
            "IDF goes into the queries, so they must be baked too; name them with --queries, or put"
            " IDF into the documents with --idf documents"
        )
    folding = folding_of(
        baking.shards,
        baking.configuration,
        baking.parameters,
        idf_in_documents=baking.idf_in_documents,
    )
    steps = None if baking.bits is None else steps_of(folding.documents(baking.shards), baking.bits)

    def blocks() -> Iterator[SparseVectors]:
        for block in folding.documents(baking.shards):
            yield block if steps is None else steps.round(block)

    rows = sum(map(len, baking.shards))
    weights = sum(shard.nonzeros for shard in baking.shards)
    chosen.write(path, Baked(blocks, baking.names, rows, weights, steps is not None))
    error = 0.0
    if steps is not None:
        error = max(map(steps.error, folding.documents(baking.shards)), default=0.0)
    folded = None if queries is None else folding.queries(queries)
    if folded is not None and queries_out is not None:
        _write_queries(Path(queries_out), folded, baking.names)
    return Report(
        rows,
        weights,
        None if steps is None else steps.step,
        error,
        _bound(steps, folded),
    )


def _format(name: str, bits: int | None) -> Any:
    if name not in FORMATS:
        from whencount.collections.model import nearest

        raise InputError(f"there is no format {name!r}; {nearest(name, FORMATS)}")
    if FORMATS[name].needs_whole and bits is None:
        raise InputError(
            f"the format {name} holds whole numbers; bake with --bits 8 (up to 16), and read the"
            " bound on the error that is reported"
        )
    return FORMATS[name]


def _bound(steps: Steps | None, queries: SparseVectors | None) -> float | None:
    if queries is None:
        return None
    if steps is None:
        return 0.0
    return float(score_bound(queries, 0.0, steps.bound, 0.0).max(initial=0.0))


def _write_queries(path: Path, queries: SparseVectors, names: Names) -> None:
    import orjson

    from whencount.files import atomic_file

    features, weights = names.of(np.asarray(queries.features)), numbers_of(queries)
    with atomic_file(path) as temporary, temporary.open("wb") as stream:
        for name, low, high in rows_of(queries):
            vector = dict(zip(features[low:high], weights[low:high], strict=True))
            stream.write(orjson.dumps({"id": name, "vector": vector}) + b"\n")
