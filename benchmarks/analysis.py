"""Time of the statistics: nDCG@10 against pytrec_eval, and the bootstrap of a whole study.

Run as `python -m benchmarks.analysis`; prints one JSON object per row.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytrec_eval
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from whencount.judgements import Judgements
from whencount.measures import ndcg
from whencount.significance import bootstrap

# Rows of the study per collection, with its evaluated queries: the 1,226 rows on the ten
# collections and the 126 of MS MARCO (study, section 4).
STUDY = {
    "arguana": (86, 1_406),
    "nfcorpus": (86, 323),
    "scifact": (218, 300),
    "fiqa": (176, 648),
    "scidocs": (44, 1_000),
    "trec-covid": (44, 50),
    "limit": (44, 1_000),
    "miracl-hi": (176, 350),
    "miracl-bn": (176, 411),
    "miracl-te": (176, 828),
    "msmarco-dev": (42, 6_980),
    "dl19": (42, 43),
    "dl20": (42, 54),
}
DRAWS = 10_000


def run(repeats: int = 5) -> list[dict[str, Any]]:
    """Medians of CPU seconds on one thread, with their range, and the ratio to peer or target.

    Every row has what, ours, peer, ours_seconds, ours_range, peer_seconds, peer_range, ratio
    (peer / ours where there is a peer, else None) and target.
    """
    with threadpool_limits(limits=1):
        return [measure(repeats), one_row(repeats), whole_study()]


def _alternate(jobs: dict[str, Callable[[], Any]], repeats: int) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {name: [] for name in jobs}
    for job in jobs.values():
        job()
    for _ in range(repeats):
        for name, job in jobs.items():
            before = time.process_time()
            job()
            times[name].append(time.process_time() - before)
    return times


def _row(what: str, times: dict[str, list[float]], target: str, agreement: float) -> dict[str, Any]:
    ours, peer = times
    medians = {name: statistics.median(found) for name, found in times.items()}
    return {
        "what": what,
        "ours": ours,
        "peer": peer,
        "ours_seconds": medians[ours],
        "ours_range": [min(times[ours]), max(times[ours])],
        "peer_seconds": medians[peer],
        "peer_range": [min(times[peer]), max(times[peer])],
        "ratio": medians[peer] / medians[ours],
        "target": target,
        "largest_difference": agreement,
    }


def measure(repeats: int) -> dict[str, Any]:
    """nDCG@10 of 1,000 queries x 8 configurations x 100 documents.

    The peer's dictionaries are made outside the clock; ours reads the arrays of the search.
    """
    queries, documents, depth = 1_000, 100_000, 100
    random = np.random.default_rng(0)
    pairs = np.unique(
        np.repeat(np.arange(queries), 20) * documents + random.integers(0, documents, queries * 20)
    )
    relevance = random.integers(1, 4, size=len(pairs))
    judgements = Judgements.from_positions(
        pairs // documents, pairs % documents, relevance, queries, documents
    )
    positions = np.empty((1, 8, queries, depth), dtype=np.int32)
    for configuration, query in np.ndindex(8, queries):
        own = pairs[20 * query : 20 * query + 5] % documents
        ranked = np.unique(np.concatenate([own, random.integers(0, documents, 2 * depth)]))
        positions[0, configuration, query] = random.permutation(ranked)[:depth]
    counts = np.full((1, 8, queries), depth, dtype=np.int32)
    qrels: dict[str, dict[str, int]] = {f"q{query}": {} for query in range(queries)}
    for pair, value in zip(pairs.tolist(), relevance.tolist(), strict=True):
        qrels[f"q{pair // documents}"][f"d{pair % documents}"] = value
    evaluator = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut.10"})
    runs = [
        {
            f"q{query}": {
                f"d{document}": float(depth - rank)
                for rank, document in enumerate(positions[0, configuration, query].tolist())
            }
            for query in range(queries)
        }
        for configuration in range(8)
    ]
    ours = ndcg(positions, counts, judgements)[0]
    theirs = np.array(
        [
            [result[f"q{query}"]["ndcg_cut_10"] for query in range(queries)]
            for result in map(evaluator.evaluate, runs)
        ]
    )
    times = _alternate(
        {
            "whencount.measures.ndcg": lambda: ndcg(positions, counts, judgements),
            "pytrec_eval": lambda: [evaluator.evaluate(one) for one in runs],
        },
        repeats,
    )
    return _row(
        "nDCG@10 of 1,000 queries x 8 x 100",
        times,
        "at least 40 times pytrec_eval",
        float(np.abs(ours - theirs).max()),
    )


def _plain(quality: NDArray[np.float64], draws: int, seed: int) -> float:
    """The bootstrap p of the margin of one row: multinomial counts and a matrix product."""
    queries = len(quality)
    counts = np.random.default_rng(seed).multinomial(
        queries, np.full(queries, 1 / queries), size=draws
    )
    means = counts @ quality / queries
    margins = (means[:, 7] - means[:, 0]) / means.std(axis=1)
    mean = quality.mean(axis=0)
    observed = (mean[7] - mean[0]) / mean.std()
    return float((1 + (np.abs(margins - observed) >= abs(observed)).sum()) / (draws + 1))


def one_row(repeats: int) -> dict[str, Any]:
    """One row of 100 that share draws, 1,000 queries, against a bootstrap of the row alone."""
    quality = _quality(100, 1_000)
    result: list[Any] = []
    times = _alternate(
        {
            "whencount.significance.bootstrap": lambda: result.append(
                bootstrap(quality, collection="scidocs", draws=DRAWS)
            ),
            "multinomial and matrix product": lambda: _plain(quality[0], DRAWS, 0),
        },
        min(repeats, 3),
    )
    shared = times["whencount.significance.bootstrap"]
    times["whencount.significance.bootstrap"] = [seconds / len(quality) for seconds in shared]
    difference = abs(result[0].p[0, 0] - _plain(quality[0], DRAWS, 0))
    return _row(
        "bootstrap of one row, 1,000 queries x 10,000 draws, among 100 rows",
        times,
        "",
        difference,
    )


def whole_study() -> dict[str, Any]:
    """Every row of the published grid, once."""
    rows = sum(number for number, _ in STUDY.values())
    seconds = 0.0
    for collection, (number, queries) in STUDY.items():
        quality = _quality(number, queries)
        before = time.process_time()
        bootstrap(quality, collection=collection, draws=DRAWS)
        seconds += time.process_time() - before
    return {
        "what": f"bootstrap of the study: {rows:,} rows x 10,000 draws",
        "ours": "whencount.significance.bootstrap",
        "peer": None,
        "ours_seconds": seconds,
        "ours_range": [seconds, seconds],
        "peer_seconds": None,
        "peer_range": None,
        "ratio": None,
        "target": "at most 10 s for 1,300 rows",
        "largest_difference": None,
    }


def _quality(rows: int, queries: int) -> NDArray[np.float64]:
    random = np.random.default_rng([rows, queries])
    base = random.random((rows, queries, 1))
    return np.clip(base + random.normal(0.005, 0.2, size=(rows, queries, 8)), 0, 1)


if __name__ == "__main__":
    for line in run():
        print(json.dumps(line))
