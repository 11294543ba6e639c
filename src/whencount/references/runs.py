"""Runs: ranked documents per query, as Parquet inside and TREC run files at the border."""

from __future__ import annotations

import gzip
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from whencount.collections.model import object_array
from whencount.errors import InputError
from whencount.files import atomic_file, lines_of
from whencount.tables import read_table, write_table


class Identified(Protocol):
    """What names the positions of a run; a prepared collection does."""

    @property
    def query_ids(self) -> NDArray[np.object_]:
        """Ids of all queries, in order."""

    @property
    def document_ids(self) -> NDArray[np.object_]:
        """Ids of all documents, in order."""


@dataclass(frozen=True)
class Run:
    """Ranked documents; one row per (query, document), by query position, then rank.

    Attributes:
        query_positions: int32, shape (rows,), rising.
        document_positions: int32, shape (rows,).
        ranks: int32, shape (rows,), 1, 2, ... within a query.
        scores: float64, shape (rows,), falling within a query.
    """

    query_positions: NDArray[np.int32]
    document_positions: NDArray[np.int32]
    ranks: NDArray[np.int32]
    scores: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.ranks)

    @classmethod
    def concatenate(cls, parts: Sequence[Run]) -> Run:
        """The rows of all parts, one after the other."""
        if not parts:
            empty = np.empty(0, dtype=np.int32)
            return cls(empty, empty, empty, np.empty(0))
        return cls(
            np.concatenate([part.query_positions for part in parts]),
            np.concatenate([part.document_positions for part in parts]),
            np.concatenate([part.ranks for part in parts]),
            np.concatenate([part.scores for part in parts]),
        )

    def matrices(
        self, queries: int, depth: int
    ) -> tuple[NDArray[np.int32], NDArray[np.float64], NDArray[np.int32]]:
        """Positions (queries, depth; -1 past the end), scores (0 there) and counts (queries,)."""
        inside = self.ranks <= depth
        rows, columns = self.query_positions[inside], self.ranks[inside] - 1
        positions = np.full((queries, depth), -1, dtype=np.int32)
        scores = np.zeros((queries, depth))
        positions[rows, columns] = self.document_positions[inside]
        scores[rows, columns] = self.scores[inside]
        return positions, scores, np.bincount(rows, minlength=queries).astype(np.int32)


def run_of_rankings(
    positions: NDArray[np.int32], scores: NDArray[np.float64], counts: NDArray[np.int32]
) -> Run:
    """A run out of one configuration of `whencount.search.Rankings`.

    Args:
        positions: shape (queries, depth), best first.
        scores: the same shape.
        counts: shape (queries,), how many entries of each row count.
    """
    rows, columns = np.nonzero(np.arange(positions.shape[1]) < counts[:, None])
    return Run(
        rows.astype(np.int32),
        positions[rows, columns],
        (columns + 1).astype(np.int32),
        scores[rows, columns].astype(np.float64),
    )


def write_run(run: Run, collection: Identified, path: str | Path) -> None:
    """Write a run as Parquet: `query_id`, `document_id` (string), `rank` (int32), `score`
    (float64), by query position, then rank.

    Raises:
        InputError: the place cannot be written.
    """
    frame = pd.DataFrame(
        {
            "query_id": collection.query_ids[run.query_positions],
            "document_id": collection.document_ids[run.document_positions],
            "rank": run.ranks,
            "score": run.scores,
        }
    )
    frame = frame.astype({"query_id": "str", "document_id": "str"})
    write_table(frame, path)


def read_run(path: str | Path, collection: Identified) -> Run:
    """Read a run that `write_run` wrote, for the same collection.

    Raises:
        InputError: the file is no run, or names a query or document the collection lacks.
    """
    frame = read_table(path)
    missing = {"query_id", "document_id", "rank", "score"} - set(frame.columns)
    if missing:
        raise InputError(f"{path} is no run: it lacks the columns {', '.join(sorted(missing))}")
    positions = {}
    for column, ids in (
        ("query_id", collection.query_ids),
        ("document_id", collection.document_ids),
    ):
        names = frame[column].to_numpy(dtype=object)
        found = _positions(names, ids)
        if (found < 0).any():
            raise InputError(
                f"{path}: {column} {names[int(np.flatnonzero(found < 0)[0])]!r} is not in the"
                " collection; the run belongs to another"
            )
        positions[column] = found
    order = np.lexsort((frame["rank"].to_numpy(), positions["query_id"]))
    return Run(
        positions["query_id"][order],
        positions["document_id"][order],
        frame["rank"].to_numpy(dtype=np.int32)[order],
        frame["score"].to_numpy(dtype=np.float64)[order],
    )


def write_trec_run(run: Run, collection: Identified, path: str | Path, name: str) -> None:
    """Write a TREC run file: `query Q0 document rank score name`; .gz by the file's name.

    trec_eval keeps scores as float32 and orders equal ones by document id. So that it keeps our
    order, scores are printed as float32 and each is lowered to the next number below its
    predecessor where the two would be equal.

    Raises:
        InputError: an id or the name holds white space, or the place cannot be written.
    """
    queries = collection.query_ids[run.query_positions]
    documents = collection.document_ids[run.document_positions]
    for kind, ids in (("query", queries), ("document", documents), ("run", [name])):
        for identifier in pd.unique(object_array(ids)):
            if identifier.split() != [identifier]:
                raise InputError(
                    f"{kind} id {identifier!r} holds white space, which TREC run files cannot"
                    " carry; write Parquet instead, or rename it"
                )
    scores = strictly_falling(run)
    with atomic_file(path) as temporary:
        zipped = Path(path).suffix == ".gz"
        # No time stamp inside, so that equal runs are equal files.
        binary = temporary.open("wb")
        stream = gzip.GzipFile("", "wb", fileobj=binary, mtime=0) if zipped else binary
        with binary, stream:
            for row in zip(queries, documents, run.ranks, scores, strict=True):
                query, document, rank, score = row
                line = f"{query} Q0 {document} {rank} {float(score):.9g} {name}\n"
                stream.write(line.encode())


def strictly_falling(run: Run) -> NDArray[np.float32]:
    """Scores as float32, lowered just enough to fall strictly within each query."""
    queries = int(run.query_positions.max()) + 1 if len(run) else 0
    depth = int(run.ranks.max()) if len(run) else 0
    _, scores, counts = run.matrices(queries, depth)
    with np.errstate(over="ignore"):
        result = scores.astype(np.float32)
    for rank in range(1, depth):
        below = np.nextafter(result[:, rank - 1], np.float32(-np.inf))
        result[:, rank] = np.minimum(result[:, rank], below)
    return result[np.arange(depth) < counts[:, None]]


def read_trec_run(path: str | Path) -> pd.DataFrame:
    """Read a TREC run file, .gz too.

    Returns:
        `query_id`, `document_id`, `rank` (1, 2, ... anew), `score` (float64): queries in the
        order of the file, documents by falling score, equal scores by the rank in the file.

    Raises:
        InputError: the file is missing, empty or malformed (the line is named), a score is not
            finite, or a query has a document twice.
    """
    rows: list[tuple[str, str, int, float]] = []
    seen: dict[tuple[str, str], int] = {}
    for number, line in lines_of(path):
        fields = line.decode("utf-8", "replace").split()
        if len(fields) != 6:
            raise InputError(
                f"{path}, line {number}: found {len(fields)} columns; a TREC run has six: query"
                " Q0 document rank score name"
            )
        query, _, document, rank, score, _ = fields
        try:
            rows.append((query, document, int(rank), float(score)))
        except ValueError:
            raise InputError(
                f"{path}, line {number}: rank {rank!r} and score {score!r} must be numbers"
            ) from None
        if not math.isfinite(rows[-1][3]):
            raise InputError(f"{path}, line {number}: score {score!r} is not finite")
        earlier = seen.setdefault((query, document), number)
        if earlier != number:
            raise InputError(
                f"{path}, line {number}: query {query!r} has document {document!r} already on"
                f" line {earlier}; remove one"
            )
    if not rows:
        raise InputError(f"{path} is empty; a TREC run has lines of six columns")
    frame = pd.DataFrame(rows, columns=["query_id", "document_id", "rank", "score"])
    codes, _ = pd.factorize(frame["query_id"])
    order = np.lexsort((frame["rank"], -frame["score"].to_numpy(), codes))
    frame = frame.iloc[order].reset_index(drop=True)
    frame["rank"] = frame.groupby("query_id", sort=False).cumcount() + 1
    return frame


def _positions(names: NDArray[np.object_], ids: NDArray[np.object_]) -> NDArray[np.int32]:
    # Few distinct names, perhaps very many ids: hash the few.
    codes, distinct = pd.factorize(names)
    found = pd.Index(distinct).get_indexer(pd.Index(ids))
    position = np.full(len(distinct), -1, dtype=np.int32)
    present = np.flatnonzero(found >= 0)
    position[found[present]] = present
    return position[codes]
