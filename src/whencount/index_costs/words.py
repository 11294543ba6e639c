"""The words of texts as sparse vectors, so that text BM25 stands beside other representations."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from whencount.collections.prepared import PreparedCollection
from whencount.files import atomic_directory
from whencount.references.lexical import count_terms


def write_words(
    prepared: PreparedCollection, documents: str | Path, queries: str | Path, part: str
) -> None:
    """Write the word counts of documents and queries; each folder appears whole or not at all.

    Args:
        prepared: the collection.
        documents, queries: the folders.
        part: what the vectors are called in them.
    """
    counts = count_terms(prepared)
    ids = prepared.document_ids, prepared.query_ids
    for vectors, names, path in zip(counts, ids, (documents, queries), strict=True):
        with atomic_directory(path) as folder:
            replace(vectors, ids=names).save(folder / part)
