"""Our exact search of all eight configurations beside PISA's pruned search of one.

Run as `python -m benchmarks.pruning`; prints one JSON object per row. PISA is optional
(`whencount.exporting.pisa.PACKAGES`); without it this benchmark is left out.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks import data
from benchmarks.measure import by_turns
from whencount.engine.index import Index
from whencount.engine.storage import open_index, write_index
from whencount.errors import InputError
from whencount.exporting import folding_of, pisa, steps_of, write_ciff
from whencount.scoring import CONFIGURATIONS, Configuration, Parameters
from whencount.search import collection_statistics, search
from whencount.vectors import SparseVectors

CONFIGURATION = Configuration.parse("111")
DOCUMENT_BITS, QUERY_BITS = 8, 5
DEPTHS = (10, 100)
Job = Callable[[], Any]


def side_by_side(
    shape: str, documents: int, nonzeros: int, asked: int, queries: int, rounds: int
) -> list[dict[str, Any]]:
    """CPU milliseconds per query on one thread, and ratios to the fastest of PISA.

    PISA searches full BM25 folded into whole numbers of 8 bits, with query weights of 5 bits.
    """
    collection = data.generate(documents, nonzeros, shape, 0)
    wanted = data.generate(queries, asked, shape, 1, "q")
    folding = folding_of([collection], CONFIGURATION, Parameters())
    steps = steps_of(folding.documents([collection]), DOCUMENT_BITS)
    folded = folding.queries(wanted)
    whole = steps_of([folded], QUERY_BITS).round(folded)
    index = Index.build(collection)
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        write_index(folder / "index", map(steps.round, folding.documents([collection])))
        ids = [str(one) for one in range(documents)]
        write_ciff(folder / "index.ciff", open_index(folder / "index"), ids)
        engine = pisa.Pisa(folder / "index.ciff", folder / "pisa")
        prepared = engine.prepare(whole)
        for depth in DEPTHS:
            jobs: dict[str, Job] = {
                "whencount, all eight": _ours(index, wanted, depth, CONFIGURATIONS),
                "whencount, 111 alone": _ours(index, wanted, depth, (CONFIGURATION,)),
                "whencount, all eight, a query at a time": _one_by_one(index, wanted, depth),
            }
            for algorithm in pisa.ALGORITHMS:
                jobs[f"PISA, {algorithm}"] = _theirs(engine, prepared, depth, algorithm)
            times = by_turns(jobs, rounds)
            fastest = min(one.median for name, one in times.items() if name.startswith("PISA"))
            for name, timing in times.items():
                scale = 1e3 / queries
                own = {"shape": shape, "documents": documents, "nonzeros": nonzeros}
                own |= {"query": asked, "depth": depth, "job": name}
                own |= {"cpu_ms": timing.median * scale, "lowest": min(timing.processor) * scale}
                own |= {"highest": max(timing.processor) * scale, "ratio": timing.median / fastest}
                ours = name.startswith("whencount")
                size = index.nbytes() if ours else engine.bytes
                own["bytes_per_nonzero"] = size / index.nonzeros
                rows.append(own)
    return rows


def _ours(index: Index, wanted: SparseVectors, depth: int, chosen: Sequence[Configuration]) -> Job:
    return lambda: search(index, wanted, depth=depth, threads=1, configurations=chosen)


def _one_by_one(index: Index, wanted: SparseVectors, depth: int) -> Job:
    statistics = collection_statistics(index)

    def run() -> None:
        for query in range(len(wanted)):
            one = wanted.slice(query, query + 1)
            search(index, one, depth=depth, threads=1, statistics=statistics)

    return run


def _theirs(engine: pisa.Pisa, prepared: Any, depth: int, algorithm: str) -> Job:
    return lambda: engine.retrieve(prepared, depth, algorithm)


def run(rounds: int = 3) -> list[dict[str, Any]]:
    """Every row: queries of few features, which engines that prune are made for, and of many.

    Raises:
        ImportError: PISA is not there.
    """
    try:
        pisa.native()
    except InputError as error:
        raise ImportError(str(error)) from error
    return [
        *side_by_side("z", 100_000, 64, 4, 100, rounds),
        *side_by_side("z", 100_000, 128, 32, 100, rounds),
        *side_by_side("f", 100_000, 128, 32, 100, rounds),
    ]


def main() -> None:
    """Print every row as JSON."""
    for row in run():
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
