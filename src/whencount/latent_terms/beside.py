"""What stands beside latent terms: the words of the text, a dense ranking, other vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from whencount import measures
from whencount.collections.prepared import PreparedCollection
from whencount.latent_terms import recall
from whencount.latent_terms.frequencies import curve
from whencount.latent_terms.splitting import development_split
from whencount.references.dense import dense
from whencount.references.lexical import count_terms
from whencount.references.runs import Run, run_of_rankings
from whencount.scoring import Configuration, Parameters
from whencount.search import search

if TYPE_CHECKING:
    import pandas as pd

WORDS, DENSE = "words", "dense"
_DEPTH = 10


def beside(
    collection: PreparedCollection,
    options: Mapping[str, Any],
    *,
    limit: bool,
    study_seed: int,
    states: tuple[Sequence[NDArray[Any]], NDArray[Any]] | None = None,
    threads: int | None = None,
) -> dict[str, pd.DataFrame]:
    """Text BM25 and, where recall is asked for, a dense ranking; frequencies of words.

    Args:
        collection: prepared.
        options: k1, b, development, recall, as in `latent_terms` of the configuration.
        limit: whether deep recall is asked for.
        study_seed: of the split of queries.
        states: pooled states of the documents, in shards, and of the queries; None ranks by words
            alone.
        threads: of the search.

    Returns:
        `words` (query_id, ndcg_10 of BM25 on words), `recall` (as `recall.COLUMNS`) and
        `frequencies` (kind, representation and the columns of `rank_frequency`).
    """
    import pandas as pd

    judgements = measures.Judgements.from_qrels(
        collection.qrels, collection.query_ids, collection.document_ids
    )
    development = development_split(collection.query_ids, options["development"], study_seed)
    documents, queries = count_terms(collection)
    depth = max(_DEPTH, *options["recall"]) if limit else _DEPTH
    rankings = search(
        documents,
        queries,
        (Parameters(float(options["k1"]), float(options["b"])),),
        configurations=(Configuration.parse("111"),),
        depth=depth,
        threads=threads,
    )
    run = run_of_rankings(rankings.positions[0, 0], rankings.scores[0, 0], rankings.counts[0, 0])
    positions, _, counts = run.matrices(len(queries), _DEPTH)
    quality = measures.ndcg(positions, counts, judgements, _DEPTH)
    evaluated = judgements.evaluated
    runs: dict[str, Run] = {WORDS: run} if limit else {}
    if limit and states is not None:
        runs[DENSE] = dense(states[0], states[1], depth=depth)
    deep = [
        recall.recall_of_run(one, judgements, options["recall"], development, name)
        for name, one in runs.items()
    ]
    return {
        "words": pd.DataFrame(
            {
                "query_id": np.asarray(collection.query_ids[evaluated]),
                "ndcg_10": quality[evaluated],
            }
        ),
        "recall": pd.concat(deep, ignore_index=True) if deep else recall.empty(),
        "frequencies": curve(WORDS, WORDS, [documents]),
    }
