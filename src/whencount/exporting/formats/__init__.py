"""Files of baked documents, one module per format; a new one is a file and a line in FORMATS."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from whencount.exporting.formats import (
    ciff,
    json_lines,
    matrix,
    milvus,
    parquet,
    qdrant,
    rank_features,
)
from whencount.exporting.formats.naming import Names
from whencount.vectors import SparseVectors


@dataclass(frozen=True)
class Baked:
    """Documents ready to be written.

    Attributes:
        blocks: gives the weights a block at a time, in order, afresh on every call.
        names: of the features.
        rows, nonzeros: how many there are in all.
        whole: whether all weights are whole numbers.
    """

    blocks: Callable[[], Iterator[SparseVectors]]
    names: Names
    rows: int
    nonzeros: int
    whole: bool


@dataclass(frozen=True)
class Format:
    """How documents are written.

    Attributes:
        about: one line for a person.
        write: writes a file, whole or not at all.
        needs_whole: whether weights must be whole numbers.
        suffix: what the file's name usually ends in.
    """

    about: str
    write: Callable[[Path, Baked], None]
    needs_whole: bool
    suffix: str


FORMATS = {
    "jsonl": Format("JSON lines of Anserini and Pyserini", json_lines.write, False, ".jsonl"),
    "ciff": Format("Common Index File Format (PISA, Lucene)", ciff.write, True, ".ciff"),
    "npz": Format("CSR matrix of SciPy, ids and features beside", matrix.write, False, ".npz"),
    "parquet": Format("Parquet: id, indices, values", parquet.write, False, ".parquet"),
    "qdrant": Format("points of Qdrant, JSON lines", qdrant.write, False, ".jsonl"),
    "rank-features": Format(
        "_bulk of OpenSearch and Elasticsearch, rank_features",
        rank_features.write,
        False,
        ".ndjson",
    ),
    "milvus": Format("rows of Milvus, Parquet for bulk insert", milvus.write, False, ".parquet"),
}

__all__ = ["FORMATS", "Baked", "Format", "Names"]
