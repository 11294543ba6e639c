"""Rankings that stand in for relevance: runs of another system, or BM25 over the texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from whencount.collections.jsonl import json_documents, json_queries
from whencount.collections.model import Document, Query
from whencount.errors import InputError
from whencount.references.lexical import bm25
from whencount.references.runs import read_trec_run

CUTOFF = 10
_DOCUMENTS_AT_ONCE = 4096


class TextFiles:
    """The texts of a corpus and of queries in JSON lines, as BEIR has them."""

    def __init__(self, corpus: str | Path, queries: str | Path) -> None:
        self._corpus = Path(corpus)
        self.queries: Sequence[Query] = json_queries(queries)
        self.ids: list[str] = []
        self._count = sum(1 for _ in json_documents(self._corpus))

    def __len__(self) -> int:
        return self._count

    def document_batches(self) -> Iterator[list[Document]]:
        """The documents in order, batch by batch; their ids are kept in `ids`."""
        self.ids = []
        documents = json_documents(self._corpus)
        while batch := list(islice(documents, _DOCUMENTS_AT_ONCE)):
            self.ids += [document.id for document in batch]
            yield batch


def from_run(
    path: str | Path, query_ids: NDArray[np.object_], document_ids: NDArray[np.object_]
) -> NDArray[np.int32]:
    """The first ten documents of a TREC run: int32, shape (queries, 10), -1 past the end.

    Raises:
        InputError: as `read_trec_run`, or nothing of it is known here.
    """
    run = read_trec_run(path)
    return _positions(
        run["query_id"], run["document_id"], run["rank"], query_ids, document_ids, str(path)
    )


def from_texts(
    corpus: str | Path,
    queries: str | Path,
    query_ids: NDArray[np.object_],
    document_ids: NDArray[np.object_],
    threads: int | None = None,
) -> NDArray[np.int32]:
    """The first ten documents by text BM25 (k1 1.2, b .75), as `from_run`.

    Raises:
        InputError: a file is malformed, or nothing of it is known here.
    """
    texts = TextFiles(corpus, queries)
    run = bm25(texts, depth=CUTOFF, threads=threads)
    asked = np.array([query.id for query in texts.queries], dtype=object)
    known = np.array(texts.ids, dtype=object)
    return _positions(
        pd.Series(asked[run.query_positions]),
        pd.Series(known[run.document_positions]),
        pd.Series(run.ranks),
        query_ids,
        document_ids,
        f"{corpus} and {queries}",
    )


def _positions(
    queries: pd.Series,
    documents: pd.Series,
    ranks: pd.Series,
    query_ids: NDArray[np.object_],
    document_ids: NDArray[np.object_],
    name: str,
) -> NDArray[np.int32]:
    first = (ranks <= CUTOFF).to_numpy()
    rows = pd.Index(query_ids).get_indexer(pd.Index(queries[first]))
    # Few distinct names, perhaps millions of ids: the few are hashed.
    codes, distinct = pd.factorize(documents[first])
    places = pd.Index(distinct).get_indexer(pd.Index(document_ids))
    position = np.full(len(distinct), -1, dtype=np.int32)
    present = np.flatnonzero(places >= 0)
    position[places[present]] = present
    columns = ranks[first].to_numpy() - 1
    known = (rows >= 0) & (position[codes] >= 0)
    if not known.any():
        raise InputError(
            f"{name}: no query and document of it are among the vectors; check that their ids are"
            " the same"
        )
    found = np.full((len(query_ids), CUTOFF), -1, dtype=np.int32)
    found[rows[known], columns[known]] = position[codes][known]
    # Gaps of unknown documents close, so that -1 stands past the end only.
    order = np.argsort(found < 0, axis=1, kind="stable")
    return np.take_along_axis(found, order, axis=1)
