"""Reading vectors of whatever format people have them in, in bounded memory (docs/formats.md)."""

from __future__ import annotations

from whencount.reading.formats import FORMATS
from whencount.reading.gathering import Collection, gather, read_collection, shards_of
from whencount.reading.source import VectorSource, open_vectors
from whencount.reading.vocabulary import Vocabulary

__all__ = [
    "FORMATS",
    "Collection",
    "VectorSource",
    "Vocabulary",
    "gather",
    "open_vectors",
    "read_collection",
    "shards_of",
]
