"""Recall at deep ranks, which is what a collection such as LIMIT asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from whencount import measures
from whencount.latent_terms.tuning import SCORERS, Point, weighed
from whencount.latent_terms.weights import changed
from whencount.references.runs import Run
from whencount.scoring import Parameters
from whencount.search import search
from whencount.vectors import SparseVectors

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = {
    "scorer": "str",
    "setting": "str",
    "part": "str",
    "cutoff": "int64",
    "recall": "float64",
    "queries": "int64",
}


def empty() -> pd.DataFrame:
    """The table of a collection whose recall is not asked for."""
    import pandas as pd

    return pd.DataFrame(columns=list(COLUMNS)).astype(COLUMNS)


def recall_of_vectors(
    documents: Sequence[SparseVectors],
    queries: SparseVectors,
    judgements: measures.Judgements,
    settings: Mapping[tuple[str, str], Point],
    cutoffs: Sequence[int],
    development: NDArray[np.bool_],
    *,
    budgets: tuple[int | None, int | None] = (None, None),
    threads: int | None = None,
    device: str = "cpu",
    place: Path | None = None,
) -> pd.DataFrame:
    """Recall of latent terms under scorers and settings.

    Args:
        documents: the shards of summed codes.
        queries: theirs, in the order of `judgements`.
        settings: (scorer, `untuned` or `tuned`) to its parameters.
        cutoffs: ranks.
        development: which queries the tuned parameters were chosen on.
        budgets, threads, device, place: as in `tuning.evaluate`.

    Returns:
        The columns COLUMNS. `part` is `all` queries, or those of the `test` alone; what is tuned
        is told of the test alone.
    """
    import pandas as pd

    tables = []
    for (scorer, setting), point in settings.items():
        rankings = search(
            changed(documents, weighed(point.phi, budgets[1]), place),
            weighed(point.phi, budgets[0])(queries),
            (Parameters(point.k1, point.b),),
            configurations=(SCORERS[scorer],),
            depth=max(cutoffs),
            threads=threads,
            device=device,
        )
        tables.append(
            _lines(
                rankings.positions[0, 0],
                rankings.counts[0, 0],
                judgements,
                cutoffs,
                {"all": np.ones_like(development), "test": ~development}
                if setting == "untuned"
                else {"test": ~development},
                {"scorer": scorer, "setting": setting},
            )
        )
    return pd.concat(tables, ignore_index=True)


def recall_of_run(
    run: Run,
    judgements: measures.Judgements,
    cutoffs: Sequence[int],
    development: NDArray[np.bool_],
    name: str,
) -> pd.DataFrame:
    """The same of a reference, whose name stands for the scorer and for which nothing is tuned."""
    positions, _, counts = run.matrices(judgements.queries, max(cutoffs))
    parts = {"all": np.ones_like(development), "test": ~development}
    names = {"scorer": name, "setting": "untuned"}
    return _lines(positions, counts, judgements, cutoffs, parts, names)


def _lines(
    positions: NDArray[np.int32],
    counts: NDArray[np.int32],
    judgements: measures.Judgements,
    cutoffs: Sequence[int],
    parts: Mapping[str, NDArray[np.bool_]],
    names: Mapping[str, str],
) -> pd.DataFrame:
    import pandas as pd

    lines: list[dict[str, Any]] = []
    for cutoff in cutoffs:
        found = measures.recall(positions, counts, judgements, cutoff)
        for part, inside in parts.items():
            chosen = inside & judgements.evaluated
            if chosen.any():
                lines.append(
                    {
                        **names,
                        "part": part,
                        "cutoff": int(cutoff),
                        "recall": float(found[chosen].mean()),
                        "queries": int(chosen.sum()),
                    }
                )
    return pd.DataFrame(lines, columns=list(COLUMNS)).astype(COLUMNS)
