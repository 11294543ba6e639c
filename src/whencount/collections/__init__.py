"""Collections: documents, queries and qrels, from wherever they are to one layout on disk."""

from whencount.collections.fit_text import FitPassages, open_fit_passages, without_overlap
from whencount.collections.model import Collection, Document, Qrels, Query
from whencount.collections.preparation import prepare, prepare_passages
from whencount.collections.prepared import (
    Counts,
    PreparedCollection,
    Texts,
    load_prepared,
    read_texts,
)
from whencount.collections.qrels import read_qrels
from whencount.collections.registry import SOURCES, open_collection

__all__ = [
    "SOURCES",
    "Collection",
    "Counts",
    "Document",
    "FitPassages",
    "PreparedCollection",
    "Qrels",
    "Query",
    "Texts",
    "load_prepared",
    "open_collection",
    "open_fit_passages",
    "prepare",
    "prepare_passages",
    "read_qrels",
    "read_texts",
    "without_overlap",
]
