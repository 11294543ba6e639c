"""Choosing part of a collection: the judged queries, a seeded sample of a stream."""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Iterable

from whencount.collections.model import Document, Qrels, Query
from whencount.errors import InputError


def keep_judged(queries: Iterable[Query], qrels: Qrels, name: str) -> list[Query]:
    """The queries with at least one judgement, in their order.

    Raises:
        InputError: none is judged.
    """
    judged = qrels.judged_queries()
    kept = [query for query in queries if query.id in judged]
    if not kept:
        example = qrels.query_ids[0] if len(qrels) else "none"
        raise InputError(
            f"collection {name!r}: the qrels judge none of its queries (the first judged id is"
            f" {example!r}); check that queries and qrels belong together"
        )
    return kept


def sample_documents(documents: Iterable[Document], size: int | None, seed: int) -> list[Document]:
    """`size` documents drawn without replacement, in the order of the stream; None keeps all.

    A document is drawn by a hash of the seed and its id, so the draw depends on the set of
    documents and not on their order. Memory holds the sample only.
    """
    if size is None:
        return list(documents)
    # A heap of the smallest priorities, largest on top; the position breaks hash ties.
    heap: list[tuple[int, int, Document]] = []
    for position, document in enumerate(documents):
        entry = (-priority(seed, document.id), -position, document)
        if len(heap) < size:
            heapq.heappush(heap, entry)
        elif entry[:2] > heap[0][:2]:
            heapq.heapreplace(heap, entry)
    return [document for _, _, document in sorted(heap, key=lambda entry: -entry[1])]


def priority(seed: int, text: str) -> int:
    """A 64-bit number that looks random, from a seed and a text."""
    digest = hashlib.blake2b(
        text.encode("utf-8", "surrogatepass"), digest_size=8, key=str(seed).encode()
    )
    return int.from_bytes(digest.digest(), "big")
