"""Text BM25 through the study's own scorer: term counts as vectors, all three switches on."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import repeat
from typing import Protocol

import numpy as np
import pandas as pd
import regex

from whencount.collections.model import Document, Query
from whencount.progress import progress
from whencount.references.runs import Run, run_of_rankings
from whencount.scoring import Configuration, Parameters
from whencount.vectors import SparseVectors

_WORD = regex.compile(r"[\p{L}\p{N}\p{M}]+")
_FULL = Configuration(idf=True, saturation=True, length=True)


class Texts(Protocol):
    """What BM25 needs of a prepared collection."""

    @property
    def queries(self) -> Sequence[Query]:
        """All queries in order."""

    def document_batches(self) -> Iterable[Sequence[Document]]:
        """The documents in order, batch by batch."""

    def __len__(self) -> int:
        """How many documents there are."""


def tokenize(text: str) -> list[str]:
    """The words of a text: NFC, case folded, maximal runs of letters, numbers and marks.

    Marks (Unicode category M) belong to words, so that the vowel signs of Indic scripts stay.
    No stemming, no stop words.
    """
    folded = unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())
    return _WORD.findall(folded)


def bm25(
    collection: Texts,
    parameters: Parameters = Parameters(),  # noqa: B008
    *,
    depth: int = 100,
    threads: int | None = None,
) -> Run:
    """Rank a collection by BM25 over Unicode words, exactly.

    A query weighs a word by how often it has it; a document's length is its number of words.

    Args:
        collection: a prepared collection.
        parameters: k1 and b, by default 1.2 and 0.75.
        depth: how many documents to keep per query at most; all have a score above 0.
        threads: how many to use; None for as many as the process may run on.

    Raises:
        InputError: the depth is below 1.
    """
    from whencount.search import search

    documents, queries = count_terms(collection)
    rankings = search(
        documents,
        queries,
        (parameters,),
        depth=depth,
        configurations=(_FULL,),
        threads=threads,
    )
    return run_of_rankings(rankings.positions[0, 0], rankings.scores[0, 0], rankings.counts[0, 0])


def count_terms(collection: Texts) -> tuple[SparseVectors, SparseVectors]:
    """The term counts of documents and queries, as `count_words` without the words."""
    documents, queries, _ = count_words(collection)
    return documents, queries


def count_words(collection: Texts) -> tuple[SparseVectors, SparseVectors, list[str]]:
    """The term counts of documents and queries over the documents' vocabulary, and its words.

    Words of queries that no document has are left out. Texts are read in batches; memory holds
    the vocabulary and eight bytes per distinct word of a document.
    """
    vocabulary: dict[str, int] = {}
    blocks: list[SparseVectors] = []
    sizes = (len(blocks[-1]) for _ in repeat(None))
    batches = progress(
        collection.document_batches(), len(collection), "counting words", "document", sizes
    )
    for batch in batches:
        blocks.append(_count([document.text for document in batch], vocabulary, grow=True))
    texts = [query.text for query in collection.queries]
    queries = _count(texts, vocabulary, grow=False)
    size = len(vocabulary)
    return _joined(blocks, size), _joined([queries], size), list(vocabulary)


def _count(texts: list[str], vocabulary: dict[str, int], *, grow: bool) -> SparseVectors:
    words = [tokenize(text) for text in texts]
    lengths = np.fromiter(map(len, words), np.int64, len(words))
    flat = np.array([word for text in words for word in text], dtype=object)
    codes, distinct = pd.factorize(flat)
    # Python sees each distinct word of the batch once, numpy every occurrence.
    if grow:
        for word in distinct:
            vocabulary.setdefault(word, len(vocabulary))
    numbers = np.fromiter((vocabulary.get(word, -1) for word in distinct), np.int64, len(distinct))
    terms = numbers[codes]
    rows = np.repeat(np.arange(len(words), dtype=np.int64), lengths)
    known = terms >= 0
    span = max(len(vocabulary), 1)
    keys, counts = np.unique(rows[known] * span + terms[known], return_counts=True)
    values = counts.astype(np.float32)
    return SparseVectors.from_coo(
        [""] * len(texts), keys // span, keys % span, values, np.iinfo(np.int32).max
    )


def _joined(parts: list[SparseVectors], vocabulary_size: int) -> SparseVectors:
    # The vocabulary is complete only after the last batch.
    return replace(SparseVectors.concatenate(parts), vocabulary_size=max(vocabulary_size, 1))
