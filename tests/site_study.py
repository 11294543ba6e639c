"""A tiny study that the site is made of: random vectors, scored and ranked by the library."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import oracle
import pandas as pd

from whencount import rows as library
from whencount.cells import derived_seed, score_cells
from whencount.collections.model import Qrels
from whencount.judgements import Judgements
from whencount.naming import Cell, Job
from whencount.site import moved_documents
from whencount.vectors import SparseVectors

HOSTILE = "</script><script>window.broken=1</script><img src=x onerror='window.broken=2'>&\u2028"
CELLS = (
    Cell("4/8", 1.2, 0.75),
    Cell("4/8", 0.6, 0.0),
    Cell("native", 1.2, 0.75),
    Cell("4/8", 1.2, 0.75, "shuffled_df"),
)
COLLECTIONS = ("animals", "plants")
REPRESENTATIONS = ("pca_token", "sae_pooled")
DOCUMENTS, QUERIES, FEATURES = 60, 20, 24


@dataclass(frozen=True)
class Collection:
    """Vectors and judgements; two documents of each query are relevant, one of them more so."""

    documents: SparseVectors
    queries: SparseVectors
    qrels: Qrels
    judgements: Judgements


@dataclass(frozen=True)
class SiteStudy:
    """Tables as a study writes them."""

    rows: pd.DataFrame
    per_query: dict[str, Path]
    moved: dict[str, pd.DataFrame]


def collection(name: str) -> Collection:
    """A made-up collection; one document has a hostile id."""
    random = np.random.default_rng([7, *name.encode()])
    weights = random.gamma(0.6, 1.0, size=(DOCUMENTS, FEATURES)) * random.gamma(
        2, 1, (DOCUMENTS, 1)
    )
    documents = oracle.vectors(np.where(random.random(weights.shape) < 0.5, weights, 0))
    asked = np.where(
        random.random((QUERIES, FEATURES)) < 0.25, random.random((QUERIES, FEATURES)), 0
    )
    queries = oracle.vectors(asked, "q")
    documents.ids[3] = HOSTILE
    triples = []
    for query in queries.ids:
        first, second = random.choice(DOCUMENTS, 2, replace=False)
        triples += [(query, documents.ids[first], 1), (query, documents.ids[second], 2)]
    qrels = Qrels.from_rows(triples)
    return Collection(
        documents, queries, qrels, Judgements.from_qrels(qrels, queries.ids, documents.ids)
    )


def site_study(folder: Path) -> SiteStudy:
    """Score, and write the tables per query to `folder`."""
    rows, per_query = [], {}
    moved: dict[str, list[pd.DataFrame]] = {name: [] for name in COLLECTIONS}
    for name in COLLECTIONS:
        made = collection(name)
        for number, representation in enumerate(REPRESENTATIONS):
            job = Job(representation, name, 0)
            # The second representation sees half of the features.
            documents, queries = (
                one.cap(8 // (1 + number)) for one in (made.documents, made.queries)
            )
            results = score_cells(
                [documents], queries, made.judgements, CELLS,
                seed=derived_seed(0, job.name, "control"), threads=1,
            )  # fmt: skip
            table, details = library.tables(job, results, queries.ids, made.judgements.evaluated)
            families = [
                "primary parameters" if cell == CELLS[0] else "parameters" for cell in sorted(CELLS)
            ]
            rows.append(table.assign(families=families))
            per_query[job.name] = folder / f"{job.name}.parquet"
            details.to_parquet(per_query[job.name])
            moved[name].append(
                moved_documents(
                    job,
                    details,
                    documents,
                    queries,
                    made.judgements,
                    queries.ids,
                    documents.ids,
                    threads=1,
                )
            )
    return SiteStudy(
        pd.concat(rows, ignore_index=True),
        per_query,
        {name: pd.concat(parts, ignore_index=True) for name, parts in moved.items()},
    )
