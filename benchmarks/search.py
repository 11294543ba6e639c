"""Time of the search: all eight configurations against one pass of public peers, and how it grows.

Run as `python -m benchmarks.search [--million]`; prints one JSON object per row.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np

from benchmarks import data, peers
from benchmarks.measure import Timing, by_turns
from whencount.engine.index import Index, eight_bit_levels
from whencount.scoring import CONFIGURATIONS, Parameters
from whencount.search import search
from whencount.vectors import SparseVectors

GRID = tuple(Parameters(k1, b) for k1, b in product((0.6, 1.2, 2.4), (0.0, 0.5, 0.75)))
DEPTH = 100
TARGETS = {("z", 1_000_000): 1.0, ("z", 100_000): 1.2, ("f", 100_000): 1.5}
Job = Callable[[], Any]


def _row(name: str, timing: Timing, asked: int, /, **more: Any) -> dict[str, Any]:
    scale = 1e3 / asked
    return {
        "job": name,
        "cpu_ms": timing.median * scale,
        "lowest": min(timing.processor) * scale,
        "highest": max(timing.processor) * scale,
        "wall_ms": float(np.median(timing.wall)) * scale,
        **more,
    }


def against_peers(shape: str, documents: int, queries: int, rounds: int) -> list[dict[str, Any]]:
    """CPU milliseconds per query, one thread, top 100, and ratios to the faster peer."""
    collection = data.generate(documents, 128, shape, 0)
    wanted = data.generate(queries, 32, shape, 1, "q")
    index = Index.build(collection)
    postings = peers.columns(collection)
    few = wanted.slice(0, min(queries, 50))
    jobs: dict[str, Job] = {
        "whencount, all eight": lambda: search(index, wanted, depth=DEPTH, threads=1),
        "splade-index, one": peers.splade_index(postings, wanted, DEPTH),
        "bm25s, one, no query weights": peers.bm25s(postings, wanted, DEPTH),
    }
    slow: dict[str, Job] = {}
    if documents <= 100_000:
        slow["scipy sparse product, one"] = peers.scipy_product(collection, few, DEPTH)
    times = by_turns(jobs, rounds)
    fastest = min(timing.median for name, timing in times.items() if "one" in name)
    shared = data.shared_features(collection, wanted)
    rows = []
    for name, timing in times.items():
        own = {"ratio": timing.median / fastest, "shape": shape, "documents": documents}
        own |= {"queries": queries, "shared": shared}
        if name.startswith("whencount"):
            own["target"] = TARGETS.get((shape, documents))
            own["bytes_per_nonzero"] = index.nbytes() / index.nonzeros
        else:
            own["bytes_per_nonzero"] = 8.0
        rows.append(_row(name, timing, queries, **own))
    for name, timing in by_turns(slow, 2).items() if slow else ():
        ratio = timing.median / len(few) / (fastest / queries)
        rows.append(_row(name, timing, len(few), ratio=ratio, shape=shape, documents=documents))
    return rows


def sweep(shape: str, documents: int, queries: int, rounds: int) -> list[dict[str, Any]]:
    """One, three and nine cells of (k1, b), all eight configurations each."""
    index = Index.build(data.generate(documents, 128, shape, 0))
    wanted = data.generate(queries, 32, shape, 1, "q")

    def job(cells: tuple[Parameters, ...]) -> Job:
        return lambda: search(index, wanted, cells, depth=DEPTH, threads=1)

    times = by_turns({str(n): job(GRID[-n:]) for n in (1, 3, 9)}, rounds)
    one = times["1"].median
    return [
        _row(f"{name} cells", timing, queries, ratio=timing.median / one, shape=shape)
        for name, timing in times.items()
    ]


def threads(documents: int, queries: int, rounds: int) -> list[dict[str, Any]]:
    """Wall time on one and on two threads; meaningful on an idle machine only."""
    index = Index.build(data.generate(documents, 128, "z", 0))
    wanted = data.generate(queries, 32, "z", 1, "q")

    def job(count: int) -> Job:
        return lambda: search(index, wanted, depth=DEPTH, threads=count)

    times = by_turns({"1": job(1), "2": job(2)}, rounds)
    one = float(np.median(times["1"].wall))
    return [
        _row(f"{name} threads", timing, queries, speed=one / float(np.median(timing.wall)))
        for name, timing in times.items()
    ]


def growth(million: bool, rounds: int) -> list[dict[str, Any]]:
    """All eight configurations on shape z while one size changes; the others stay at their usual.

    Usual: 100,000 documents of 128 non-zeros, 300 queries of 32.
    """

    def measured(label: str, documents: int, nonzeros: int, queries: int) -> dict[str, Any]:
        collection = data.generate(documents, nonzeros, "z", 0)
        wanted = data.generate(queries, 32, "z", 1, "q")
        started = time.process_time()
        index = Index.build(collection)
        built = time.process_time() - started
        times = by_turns({label: lambda: search(index, wanted, depth=DEPTH, threads=1)}, rounds)
        shared = data.shared_features(collection, wanted)
        row = _row(label, times[label], queries, documents=documents, nonzeros=nonzeros)
        return row | {
            "queries": queries,
            "ns_per_posting": row["cpu_ms"] * 1e6 / (documents * shared),
            "build_ns_per_nonzero": built * 1e9 / index.nonzeros,
        }

    sizes = (1_000, 10_000, 100_000) + ((1_000_000,) if million else ())
    rows = [measured("documents", size, 128, 300) for size in sizes]
    rows += [measured("queries", 100_000, 128, count) for count in (1, 10, 100, 1_000)]
    rows += [measured("non-zeros", 100_000, count, 300) for count in (16, 64, 256)]
    return rows


def passes(shape: str, documents: int, queries: int) -> list[dict[str, Any]]:
    """What each part of a search costs, milliseconds per query, by the CPU clock."""
    from whencount.engine import exact, kernels

    index = Index.build(data.generate(documents, 128, shape, 0))
    wanted: SparseVectors = data.generate(queries, 32, shape, 1, "q")
    spent: dict[str, float] = {}
    parts = ((kernels, "collect"), (kernels, "merge"), (exact, "rescore"), (exact, "sort_heaps"))

    def timed(function: Callable[..., Any], name: str) -> Callable[..., Any]:
        def run(*arguments: Any) -> Any:
            before = time.process_time()
            result = function(*arguments)
            spent[name] = spent.get(name, 0.0) + time.process_time() - before
            return result

        return run

    search(index, wanted, threads=1)
    originals = [(module, name, getattr(module, name)) for module, name in parts]
    try:
        for module, name, function in originals:
            setattr(module, name, timed(function, name))
        before = time.process_time()
        search(index, wanted, threads=1)
        total = time.process_time() - before
    finally:
        for module, name, function in originals:
            setattr(module, name, function)
    spent["everything else"] = total - sum(spent.values())
    return [
        {"shape": shape, "part": name, "cpu_ms": seconds * 1e3 / queries, "share": seconds / total}
        for name, seconds in spent.items()
    ]


def eight_bits(documents: int, queries: int) -> list[dict[str, Any]]:
    """What 8-bit values lose: top 10 and top 100 shared with those of 32-bit values."""
    collection = data.generate(documents, 128, "z", 0)
    wanted = data.generate(queries, 32, "z", 1, "q")
    levels = eight_bit_levels(float(collection.values.min()), float(collection.values.max()))
    usual = Index.build(collection)
    small = Index.build(collection, levels=levels)
    left = search(usual, wanted, depth=DEPTH).positions[0]
    right = search(small, wanted, depth=DEPTH).positions[0]
    rows = []
    for number, configuration in enumerate(CONFIGURATIONS):
        shared = {
            depth: float(
                np.mean(
                    [
                        len(np.intersect1d(one[:depth], other[:depth])) / depth
                        for one, other in zip(left[number], right[number], strict=True)
                    ]
                )
            )
            for depth in (10, 100)
        }
        rows.append(
            {
                "configuration": str(configuration),
                "top10": shared[10],
                "top100": shared[100],
                "bytes_per_nonzero": small.nbytes() / small.nonzeros,
                "usual_bytes": usual.nbytes() / usual.nonzeros,
            }
        )
    return rows


def run(million: bool = False, rounds: int = 5) -> dict[str, list[dict[str, Any]]]:
    """Every table of this benchmark, by name."""
    return {
        "peers": [
            *(against_peers("z", 1_000_000, 200, 3) if million else []),
            *against_peers("z", 100_000, 1_000, rounds),
            *against_peers("f", 100_000, 1_000, rounds),
        ],
        "sweep": [*sweep("z", 100_000, 500, rounds), *sweep("f", 100_000, 500, rounds)],
        "threads": threads(100_000, 1_000, rounds),
        "growth": growth(million, 3),
        "eight_bits": eight_bits(100_000, 300),
        "passes": [*passes("z", 100_000, 1_000), *passes("f", 100_000, 1_000)],
    }


def main() -> None:
    """Print every row as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--million", action="store_true", help="also 1,000,000 documents: 8 GB")
    for name, rows in run(parser.parse_args().million).items():
        for row in rows:
            print(json.dumps({"table": name, **row}), flush=True)


if __name__ == "__main__":
    main()
