"""k1, b and phi by a grid: chosen on development queries, told on test queries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from whencount import measures
from whencount.checkpoints import load_arrays, save_arrays
from whencount.errors import InputError
from whencount.latent_terms.weights import changed, weigh
from whencount.progress import progress
from whencount.scoring import Configuration, Parameters
from whencount.search import search
from whencount.vectors import SparseVectors

if TYPE_CHECKING:
    import pandas as pd

SCORERS: Mapping[str, Configuration] = {
    "inner": Configuration.parse("000"),
    "bm25": Configuration.parse("111"),
}
"""The inner product, and BM25 with the query's weight as a factor."""
CUTOFF = 10


@dataclass(frozen=True, order=True)
class Point:
    """A point of the grid; the inner product has neither k1 nor b, and 0 stands for both.

    Attributes:
        phi: the exponent of the weights.
        k1, b: of BM25.
    """

    phi: float
    k1: float = 0.0
    b: float = 0.0


@dataclass(frozen=True)
class Evaluation:
    """nDCG@10 of one scorer over a grid.

    Attributes:
        scorer: of SCORERS.
        points: of the grid, then the untuned one where it is not in the grid.
        quality: float64, shape (points, queries); NaN for queries without a positive judgement.
        choosable: how many of the points, from the first, belong to the grid.
        untuned: the number of the untuned point.
    """

    scorer: str
    points: tuple[Point, ...]
    quality: NDArray[np.float64]
    choosable: int
    untuned: int


def evaluate(
    documents: Sequence[SparseVectors],
    queries: SparseVectors,
    judgements: measures.Judgements,
    grid: Mapping[str, Sequence[float]],
    untuned: Point,
    *,
    budgets: tuple[int | None, int | None] = (None, None),
    threads: int | None = None,
    device: str = "cpu",
    checkpoints: Path | None = None,
) -> list[Evaluation]:
    """Evaluate both scorers at every point of the grid.

    Args:
        documents: the shards of summed codes.
        queries: their summed codes, in the order of `judgements`.
        grid: `phi`, `k1` and `b`, each a list of values.
        untuned: the parameters that nothing is chosen for.
        budgets: of queries and of documents; None keeps every weight.
        threads, device: of the search.
        checkpoints: a folder that keeps the finished exponents, and the weighed vectors of a
            large collection.

    Raises:
        InputError: as `whencount.search.search`.
    """
    cells = {
        phi: [Point(phi, float(k1), float(b)) for k1 in grid["k1"] for b in grid["b"]]
        for phi in map(float, grid["phi"])
    }
    chosen = {"bm25": [one for group in cells.values() for one in group]}
    chosen["inner"] = [Point(phi) for phi in cells]
    own = {"bm25": untuned, "inner": Point(untuned.phi)}
    if untuned not in cells.get(untuned.phi, []):
        cells.setdefault(untuned.phi, []).append(untuned)
    found: dict[tuple[str, Point], NDArray[np.float64]] = {}
    for phi in progress(list(cells), len(cells), "tuning", "exponent"):
        kept = checkpoints and checkpoints / f"phi{phi:g}.npz"
        arrays = load_arrays(kept) if kept else None
        if arrays is None:
            arrays = _one_exponent(
                documents, queries, judgements, cells[phi], budgets, threads, device, checkpoints
            )
            if kept:
                save_arrays(kept, arrays)
        found |= {
            ("bm25", point): row for point, row in zip(cells[phi], arrays["bm25"], strict=True)
        }
        found["inner", Point(phi)] = arrays["inner"]
    return [_evaluation(scorer, chosen[scorer], own[scorer], found) for scorer in SCORERS]


def _one_exponent(
    documents: Sequence[SparseVectors],
    queries: SparseVectors,
    judgements: measures.Judgements,
    points: Sequence[Point],
    budgets: tuple[int | None, int | None],
    threads: int | None,
    device: str,
    checkpoints: Path | None,
) -> dict[str, NDArray[np.float64]]:
    query_budget, document_budget = budgets
    rankings = search(
        changed(
            documents,
            weighed(points[0].phi, document_budget),
            checkpoints and checkpoints / "weighed",
        ),
        weighed(points[0].phi, query_budget)(queries),
        [Parameters(point.k1, point.b) for point in points],
        configurations=tuple(SCORERS.values()),
        depth=CUTOFF,
        threads=threads,
        device=device,
    )
    quality = measures.ndcg(rankings.positions, rankings.counts, judgements, CUTOFF)
    place = list(SCORERS).index("bm25")
    return {"bm25": quality[:, place], "inner": quality[0, 1 - place]}


def weighed(phi: float, budget: int | None) -> Callable[[SparseVectors], SparseVectors]:
    """Cap a piece of vectors, then take phi: it keeps the order, so both orders are one."""
    return lambda vectors: weigh(vectors.cap(budget), phi)


def _evaluation(
    scorer: str,
    points: Sequence[Point],
    untuned: Point,
    found: Mapping[tuple[str, Point], NDArray[np.float64]],
) -> Evaluation:
    every = tuple(dict.fromkeys([*points, untuned]))
    quality = np.stack([found[scorer, point] for point in every])
    return Evaluation(scorer, every, quality, len(set(points)), every.index(untuned))


def choose(evaluation: Evaluation, development: NDArray[np.bool_]) -> int:
    """The number of the point with the best mean over development queries; of equals the first.

    Test queries play no part: whatever their labels are, the choice is the same.

    Args:
        evaluation: of a scorer.
        development: bool, shape (queries,).

    Raises:
        InputError: no development query has a positive judgement.
    """
    part = evaluation.quality[: evaluation.choosable, development]
    part = part[:, ~np.isnan(part[0])]
    if part.shape[1] == 0:
        raise InputError(
            "no development query has a relevant document, so nothing can be tuned; raise"
            " latent_terms.development, or take a collection with more judged queries"
        )
    return int(np.argmax(part.mean(axis=1)))


def grid_table(evaluations: Sequence[Evaluation], development: NDArray[np.bool_]) -> pd.DataFrame:
    """One line per scorer and point: scorer, phi, k1, b (null for the inner product), means.

    Columns `development` and `test` hold the mean nDCG@10 of the two parts, `chosen` the tuned
    point, `untuned` the fixed one, `in_grid` whether the point could be chosen.

    Raises:
        InputError: a part has no query with a positive judgement.
    """
    import pandas as pd

    lines: list[dict[str, Any]] = []
    for one in evaluations:
        best = choose(one, development)
        evaluated = ~np.isnan(one.quality[0])
        if not (evaluated & ~development).any():
            raise InputError(
                "no test query has a relevant document, so nothing can be told; lower"
                " latent_terms.development, or take a collection with more judged queries"
            )
        for number, point in enumerate(one.points):
            inner = one.scorer == "inner"
            lines.append(
                {
                    "scorer": one.scorer,
                    "phi": point.phi,
                    "k1": np.nan if inner else point.k1,
                    "b": np.nan if inner else point.b,
                    "development": float(one.quality[number, evaluated & development].mean()),
                    "test": float(one.quality[number, evaluated & ~development].mean()),
                    "chosen": number == best,
                    "untuned": number == one.untuned,
                    "in_grid": number < one.choosable,
                }
            )
    return pd.DataFrame(lines)


def query_table(
    evaluations: Sequence[Evaluation],
    development: NDArray[np.bool_],
    query_ids: NDArray[np.object_],
) -> pd.DataFrame:
    """One line per evaluated query, scorer and setting: query_id, part, scorer, setting, ndcg_10.

    `part` is `development` or `test`, `setting` is `untuned` or `tuned`.
    """
    import pandas as pd

    blocks = []
    for one in evaluations:
        evaluated = ~np.isnan(one.quality[0])
        for setting, number in (("untuned", one.untuned), ("tuned", choose(one, development))):
            blocks.append(
                pd.DataFrame(
                    {
                        "query_id": query_ids[evaluated],
                        "part": np.where(development[evaluated], "development", "test"),
                        "scorer": one.scorer,
                        "setting": setting,
                        "ndcg_10": one.quality[number, evaluated],
                    }
                )
            )
    return pd.concat(blocks, ignore_index=True)
