"""References: text BM25, dense exact search, their fusion; each returns a run."""

from whencount.references.dense import dense
from whencount.references.evaluation import quality
from whencount.references.fusion import fuse
from whencount.references.lexical import bm25, count_terms, count_words, tokenize
from whencount.references.runs import (
    Run,
    read_run,
    read_trec_run,
    run_of_rankings,
    write_run,
    write_trec_run,
)

__all__ = [
    "Run",
    "bm25",
    "count_terms",
    "count_words",
    "dense",
    "fuse",
    "quality",
    "read_run",
    "read_trec_run",
    "run_of_rankings",
    "tokenize",
    "write_run",
    "write_trec_run",
]
