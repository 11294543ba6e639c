"""How good the references are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from whencount.collections.prepared import PreparedCollection
from whencount.errors import InputError
from whencount.references.runs import read_run

_DEPTH = 100


def quality(
    runs: Sequence[str | Path], collections: Mapping[str, PreparedCollection]
) -> pd.DataFrame:
    """Measure runs; each file is called `REFERENCE.COLLECTION.parquet`.

    Returns:
        One row per run, in the order given: `reference`, `collection` (string), `queries`
        (int64, those with a relevant judgement), `ndcg_10` and `recall_100` (float64, means over
        them).

    Raises:
        InputError: a file has another kind of name, or belongs to no given collection.
    """
    from whencount.judgements import Judgements
    from whencount.measures import ndcg, recall

    rows = []
    for path in map(Path, runs):
        reference, _, collection = path.name.removesuffix(".parquet").partition(".")
        if collection not in collections:
            raise InputError(
                f"{path} is not named REFERENCE.COLLECTION.parquet after one of the collections"
                f" {', '.join(collections)}"
            )
        prepared = collections[collection]
        known = prepared.query_positions >= 0
        judgements = Judgements.from_positions(
            prepared.query_positions[known],
            prepared.document_positions[known],
            prepared.qrels.relevance[known],
            len(prepared.queries),
            len(prepared),
        )
        run = read_run(path, prepared)
        positions, _, counts = run.matrices(len(prepared.queries), _DEPTH)
        evaluated = judgements.evaluated
        rows.append(
            {
                "reference": reference,
                "collection": collection,
                "queries": int(np.count_nonzero(evaluated)),
                "ndcg_10": float(ndcg(positions, counts, judgements)[evaluated].mean()),
                "recall_100": float(
                    recall(positions, counts, judgements, cutoff=_DEPTH)[evaluated].mean()
                ),
            }
        )
    types = {"reference": "str", "collection": "str", "queries": "int64"}
    types |= dict.fromkeys(("ndcg_10", "recall_100"), "float64")
    return pd.DataFrame(rows, columns=list(types)).astype(types)
