"""Paired comparisons of runs: differences per query, bootstrap, Holm over all pairs, wins."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from whencount.collections.model import Qrels
from whencount.errors import InputError
from whencount.judgements import Judgements
from whencount.latent_terms.comparing import paired
from whencount.measures import ndcg, recall
from whencount.references.runs import read_trec_run
from whencount.significance import holm

if TYPE_CHECKING:
    import pandas as pd

MEASURES: Mapping[str, Callable[..., NDArray[np.float64]]] = {"ndcg": ndcg, "recall": recall}
TIE = 1e-9
"""Differences of a query up to this are a tie: rounding alone makes some."""


@dataclass(frozen=True)
class Comparison:
    """What was found.

    Attributes:
        measure: its name, `ndcg@10` say.
        query_ids: the evaluated queries, those with a relevant document.
        per_query: float64, shape (runs, queries); 0 where a run ranks nothing for a query.
        means: run, mean, answered (queries for which it ranks something).
        pairs: first, second, difference (second less first), low, high, p, holm, wins, ties,
            losses (of the second).
        unknown: judged queries without a relevant document, which are left out.
    """

    measure: str
    query_ids: NDArray[np.object_]
    per_query: NDArray[np.float64]
    means: pd.DataFrame
    pairs: pd.DataFrame
    unknown: int


def parse_measure(text: str) -> tuple[Callable[..., NDArray[np.float64]], int]:
    """`ndcg@10` as a function and a cutoff.

    Raises:
        InputError: it is none of MEASURES, or the cutoff is no whole number above 0.
    """
    name, at, cutoff = text.lower().partition("@")
    if name not in MEASURES or not at or not cutoff.isdigit() or int(cutoff) < 1:
        raise InputError(f"the measure {text!r} is not known; give ndcg@K or recall@K, ndcg@10 say")
    return MEASURES[name], int(cutoff)


def compare(
    runs: Mapping[str, str | Path],
    qrels: Qrels,
    *,
    measure: str = "ndcg@10",
    draws: int = 10_000,
    seed: int = 0,
) -> Comparison:
    """Compare every pair of runs on the queries that have a relevant document.

    Intervals and p are those of a paired bootstrap over queries (`latent_terms.comparing.paired`);
    Holm's adjustment is over all pairs. Documents stand by falling score, equal scores by the rank
    in the file.

    Args:
        runs: name to a TREC run.
        qrels: judgements.
        measure: ndcg@K or recall@K, as trec_eval computes them.
        draws, seed: of the bootstrap.

    Raises:
        InputError: fewer than two runs, a malformed file, no query to evaluate, or a run of other
            queries.
    """
    import pandas as pd

    if len(runs) < 2:
        raise InputError("one run has nothing to be compared with; name two or more")
    if draws < 1:
        raise InputError(f"{draws} draws; give at least 1")
    function, cutoff = parse_measure(measure)
    query_ids, unknown = _evaluated(qrels)
    rows, answered = [], []
    for path in runs.values():
        quality, count = _quality(Path(path), qrels, query_ids, function, cutoff)
        if not count:
            raise InputError(
                f"{path} ranks none of the {len(query_ids)} judged queries; check that the ids of"
                " run and qrels belong together"
            )
        rows.append(quality)
        answered.append(count)
    per_query = np.stack(rows)
    names = list(runs)
    means = pd.DataFrame({"run": names, "mean": per_query.mean(axis=1), "answered": answered})
    pairs = _pairs(names, per_query, draws, seed)
    return Comparison(measure.lower(), query_ids, per_query, means, pairs, unknown)


def _evaluated(qrels: Qrels) -> tuple[NDArray[np.object_], int]:
    import pandas as pd

    relevant = pd.Series(qrels.relevance > 0).groupby(qrels.query_ids).any()
    known = relevant.index[relevant].to_numpy(dtype=object)
    if not len(known):
        raise InputError("no judgement is above 0, so no query can be evaluated; check the qrels")
    return known, int((~relevant).sum())


def _quality(
    path: Path,
    qrels: Qrels,
    query_ids: NDArray[np.object_],
    function: Callable[..., NDArray[np.float64]],
    cutoff: int,
) -> tuple[NDArray[np.float64], int]:
    """Quality of a run per query, and for how many queries it ranks something."""
    import pandas as pd

    run = read_trec_run(path)
    run = run[run["rank"] <= cutoff]
    rows = pd.Index(query_ids).get_indexer(pd.Index(run["query_id"]))
    run, rows = run[rows >= 0], rows[rows >= 0]
    names = pd.unique(
        np.concatenate([run["document_id"].to_numpy(dtype=object), qrels.document_ids])
    )
    judgements = Judgements.from_qrels(qrels, query_ids, names)
    depth = int(run["rank"].max()) if len(run) else 1
    positions = np.full((len(query_ids), depth), -1, dtype=np.int32)
    columns = run["rank"].to_numpy() - 1
    positions[rows, columns] = pd.Index(names).get_indexer(pd.Index(run["document_id"]))
    counts = np.bincount(rows, minlength=len(query_ids)).astype(np.int32)
    quality = function(positions, counts, judgements, cutoff)
    return quality, int((counts > 0).sum())


def _pairs(names: list[str], per_query: NDArray[np.float64], draws: int, seed: int) -> pd.DataFrame:
    import pandas as pd

    chosen = list(combinations(range(len(names)), 2))
    differences = np.stack([per_query[two] - per_query[one] for one, two in chosen])
    tests = [paired(one, collection="runs", draws=draws, seed=seed) for one in differences]
    return pd.DataFrame(
        {
            "first": [names[one] for one, _ in chosen],
            "second": [names[two] for _, two in chosen],
            "difference": [one.mean for one in tests],
            "low": [one.low for one in tests],
            "high": [one.high for one in tests],
            "p": [one.p for one in tests],
            "holm": holm([one.p for one in tests]),
            "wins": (differences > TIE).sum(axis=1),
            "ties": (np.abs(differences) <= TIE).sum(axis=1),
            "losses": (differences < -TIE).sum(axis=1),
        }
    )
