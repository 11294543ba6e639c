"""Run in a process of its own: build an index from shards, search it, print the peaks as JSON."""

from __future__ import annotations

import json
import re
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from whencount.engine import cpu
from whencount.engine.index import Index
from whencount.engine.storage import write_index
from whencount.search import search
from whencount.vectors import SparseVectors

VOCABULARY, NONZEROS, SHARD, QUERIES, DEPTH, THREADS = 20_000, 128, 10_000, 100, 100, 2


def private_bytes() -> int:
    """Memory of this process that is not a file on disk."""
    status = Path("/proc/self/status").read_text()
    found = re.search(r"RssAnon:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) * 1024


def peak(work: Callable[[], object]) -> int:
    """The largest growth of private memory while `work` runs."""
    before = most = private_bytes()
    done = threading.Event()

    def watch() -> None:
        nonlocal most
        while not done.wait(0.002):
            most = max(most, private_bytes())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        work()
    finally:
        done.set()
        watcher.join()
    return max(most, private_bytes()) - before


def shard(rows: int, nonzeros: int, seed: int) -> SparseVectors:
    """Random rows: distinct features by random steps around the vocabulary."""
    random = np.random.default_rng(seed)
    steps = random.integers(1, VOCABULARY // nonzeros, (rows, nonzeros))
    features = (random.integers(0, VOCABULARY, (rows, 1)) + steps.cumsum(axis=1)) % VOCABULARY
    values = -np.sort(-random.lognormal(0.0, 1.0, (rows, nonzeros)), axis=1)
    return SparseVectors(
        np.array([str(row) for row in range(rows)], dtype=object),
        np.arange(rows + 1, dtype=np.int64) * nonzeros,
        features.astype(np.int32).ravel(),
        values.astype(np.float32).ravel(),
        VOCABULARY,
    )


def shards(documents: int) -> Iterator[SparseVectors]:
    for start in range(0, documents, SHARD):
        yield shard(min(SHARD, documents - start), NONZEROS, start + 1)


def main(folder: str, documents: int) -> None:
    queries = shard(QUERIES, 32, 0)
    search(shard(10, NONZEROS, 0), queries.slice(0, 1), threads=THREADS)  # compile, or load
    one_shard = peak(lambda: shard(SHARD, NONZEROS, 1))
    building = peak(lambda: write_index(folder, shards(documents)))
    index = Index.load(folder)
    searching = peak(lambda: search(index, queries, depth=DEPTH, threads=THREADS))
    print(
        json.dumps(
            {
                "one_shard": one_shard,
                "building": building,
                "searching": searching,
                "stated": cpu.working_bytes(index, 1, 8, QUERIES, DEPTH, THREADS),
                "per_document": 12 * documents,
                "index": index.nbytes(),
                "nonzeros": index.nonzeros,
            }
        )
    )


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
