"""Rankings as files: TREC runs that trec_eval reads in our order, or Parquet with exact scores.

trec_eval keeps scores in single precision and sorts equal ones by document id, descending. So the
scores of a TREC run are printed as single-precision numbers that fall strictly within a query: each
is the score rounded to single precision, moved by as few representable numbers as it takes. A tie
of n documents spreads over n neighbouring numbers, the middle one being the score: a relative error
of at most n * 2^-24. Where scores are apart nothing but the rounding happens. Parquet runs have the
scores themselves, in double precision.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from whencount.errors import InputError

_LARGEST_STEP = int(np.array(np.finfo(np.float32).max).view(np.int32))

RUN_SCHEMA = pa.schema(
    [
        ("query_id", pa.string()),
        ("document_id", pa.string()),
        ("rank", pa.int32()),  # from 1
        ("score", pa.float64()),
    ]
)


def printed_scores(scores: NDArray[np.float64], counts: NDArray[np.int32]) -> NDArray[np.float32]:
    """Single-precision scores that fall strictly within each ranking.

    Args:
        scores: float64, shape (queries, depth), falling.
        counts: int32, shape (queries,).

    Returns:
        float32, the shape of `scores`; 0 past `counts`. Scores beyond the range of single
        precision become its largest values, and those below it run on below 0.
    """
    rank = np.arange(scores.shape[-1], dtype=np.int64)
    valid = rank < counts[..., None]
    rounded = np.minimum(scores, np.finfo(np.float32).max).astype(np.float32)
    # Bits of floats of at least 0, read as integers, order as the floats do; one step is 1. Room is
    # left at the upper end of the range.
    steps = np.minimum(rounded.view(np.int32).astype(np.int64), _LARGEST_STEP - len(rank))
    # Lowered only, and raised only, as little as needed: halfway between, nothing moves further
    # than it must.
    shifted = np.where(valid, steps + rank, np.iinfo(np.int64).min // 4)
    lowered = np.minimum.accumulate(shifted, axis=-1)
    raised = np.maximum.accumulate(shifted[..., ::-1], axis=-1)[..., ::-1]
    steps = (lowered + raised) // 2 - rank
    magnitude = np.where(valid, np.abs(steps), 0).astype(np.int32).view(np.float32)
    return np.where(steps < 0, -magnitude, magnitude)


class RunWriter(ABC):
    """Writes one run, some queries at a time; a context manager that closes the file.

    Queries with an empty ranking leave no line.
    """

    @abstractmethod
    def __enter__(self) -> Self: ...

    @abstractmethod
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

    @abstractmethod
    def append(
        self,
        query_ids: NDArray[np.object_],
        positions: NDArray[np.int32],
        scores: NDArray[np.float64],
        counts: NDArray[np.int32],
    ) -> None:
        """Add the rankings of some queries.

        Args:
            query_ids: shape (queries,).
            positions: int32, shape (queries, depth), document positions in rank order.
            scores: float64, the same shape.
            counts: int32, shape (queries,).

        Raises:
            InputError: an id cannot stand in the format.
        """


def _columns(
    query_ids: NDArray[np.object_],
    document_ids: pa.Array,
    positions: NDArray[np.int32],
    counts: NDArray[np.int32],
) -> tuple[pa.Array, pa.Array, NDArray[np.int32], NDArray[np.bool_]]:
    """Query id, document id and rank of every line, and which places of the rankings are lines."""
    rank = np.arange(1, positions.shape[-1] + 1, dtype=np.int32)
    valid = rank <= counts[:, None]
    queries = pa.array(query_ids, type=pa.string()).take(
        pa.array(np.repeat(np.arange(len(query_ids)), counts))
    )
    documents = document_ids.take(pa.array(positions[valid]))
    return queries, documents, np.broadcast_to(rank, positions.shape)[valid], valid


class TrecWriter(RunWriter):
    """Lines `query Q0 document rank score tag`.

    Raises:
        InputError: on making it, a document id holds white space, which a TREC run cannot carry;
            on appending, a query id.
    """

    def __init__(self, path: Path, document_ids: pa.Array, tag: str) -> None:
        _refuse_white_space(document_ids, "document")
        self._path, self._documents, self._tag = path, document_ids, tag

    def __enter__(self) -> Self:
        self._stream: IO[bytes] = self._path.open("wb")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stream.close()

    def append(
        self,
        query_ids: NDArray[np.object_],
        positions: NDArray[np.int32],
        scores: NDArray[np.float64],
        counts: NDArray[np.int32],
    ) -> None:
        _refuse_white_space(pa.array(query_ids, type=pa.string()), "query")
        queries, documents, rank, valid = _columns(query_ids, self._documents, positions, counts)
        if len(rank) == 0:
            return
        lines = pc.binary_join_element_wise(
            queries,
            "Q0",
            documents,
            pa.array(rank).cast(pa.string()),
            pa.array(printed_scores(scores, counts)[valid]).cast(pa.string()),
            self._tag,
            " ",
        )
        self._stream.write(("\n".join(lines.to_pylist()) + "\n").encode())


class ParquetWriter(RunWriter):
    """A table with RUN_SCHEMA; the tag stands in its metadata."""

    def __init__(self, path: Path, document_ids: pa.Array, tag: str) -> None:
        self._path, self._documents = path, document_ids
        self._schema = RUN_SCHEMA.with_metadata({"tag": tag})

    def __enter__(self) -> Self:
        self._writer = pq.ParquetWriter(self._path, self._schema, compression="zstd")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._writer.close()

    def append(
        self,
        query_ids: NDArray[np.object_],
        positions: NDArray[np.int32],
        scores: NDArray[np.float64],
        counts: NDArray[np.int32],
    ) -> None:
        queries, documents, rank, valid = _columns(query_ids, self._documents, positions, counts)
        columns = [queries, documents, pa.array(rank), pa.array(scores[valid])]
        self._writer.write_table(pa.table(columns, schema=self._schema))


WRITERS: dict[str, type[TrecWriter] | type[ParquetWriter]] = {
    "trec": TrecWriter,
    "parquet": ParquetWriter,
}
"""By format, which is also the ending of the file's name."""


def _refuse_white_space(ids: pa.Array, noun: str) -> None:
    found = pc.index(pc.match_substring_regex(ids, r"[\s\x00-\x1f\x7f]"), True).as_py()
    if found >= 0:
        raise InputError(
            f"{noun} id {ids[found].as_py()!r} holds white space or a control character, which a"
            " TREC run cannot carry; write the runs with --format parquet"
        )
