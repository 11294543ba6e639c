"""All tables of one job: one model on one collection at one seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from whencount import measures
from whencount import rows as study_rows
from whencount.cells import score_cells
from whencount.latent_terms import recall
from whencount.latent_terms.frequencies import rank_frequency
from whencount.latent_terms.pruning import pruning_curve
from whencount.latent_terms.splitting import development_split
from whencount.latent_terms.tuning import (
    Evaluation,
    Point,
    choose,
    evaluate,
    grid_table,
    query_table,
    weighed,
)
from whencount.latent_terms.weights import changed
from whencount.naming import Cell, Job, parse_budget
from whencount.scoring import Parameters
from whencount.search import collection_statistics
from whencount.vectors import SparseVectors

if TYPE_CHECKING:
    import pandas as pd

GRANULARITY = "latent"
KINDS = ("rows", "per_query", "grid", "tuned", "recall", "pruning", "frequencies")
"""The tables of a job, each gathered over all jobs."""


def representation_of(model: str) -> str:
    """The name of a model's latent terms in tables: `minilm_latent`, of the basis `minilm`."""
    return f"{model}_{GRANULARITY}"


def job_tables(
    job: Job,
    documents: Sequence[SparseVectors],
    queries: SparseVectors,
    judgements: measures.Judgements,
    query_ids: NDArray[np.object_],
    options: Mapping[str, Any],
    *,
    corpus: str,
    references: Mapping[str, NDArray[np.int32]],
    depth: int,
    study_seed: int,
    limit: bool,
    threads: int | None = None,
    device: str = "cpu",
    checkpoints: Path | None = None,
) -> dict[str, pd.DataFrame]:
    """Score, tune and prune the latent terms of one job.

    Args:
        job: whose they are; its representation is `representation_of` a model.
        documents: the shards of summed codes of the corpus.
        queries: theirs, in the order of `judgements`.
        judgements: of the collection.
        query_ids: in the same order.
        options: budget, phi, k1, b, grid, development, recall, pruning, as in `latent_terms` of
            the configuration.
        corpus: the collection whose documents it has.
        references: name to the first ten document positions, for pseudo-labels.
        depth: of the rankings of the rows.
        study_seed: of the split of queries.
        limit: whether deep recall is asked for.
        threads, device: of the search.
        checkpoints: a folder for what is finished, and for weighed vectors of large collections.

    Returns:
        The tables KINDS; docs/tables.md has their columns.

    Raises:
        InputError: no judged query in a part of the split, or as `score_cells`.
    """
    budgets = parse_budget(options["budget"])
    untuned = Point(float(options["phi"]), float(options["k1"]), float(options["b"]))
    development = development_split(query_ids, options["development"], study_seed)
    search_options: dict[str, Any] = {"threads": threads, "device": device}
    place = checkpoints and checkpoints / "weighed-as-untuned"
    weighed_documents = changed(documents, weighed(untuned.phi, budgets[1]), place)
    weighed_queries = weighed(untuned.phi, budgets[0])(queries)
    cell = Cell(options["budget"], untuned.k1, untuned.b)
    results = score_cells(
        [weighed_documents],
        weighed_queries,
        judgements,
        [cell],
        references=references,
        depth=depth,
        checkpoints=checkpoints,
        **search_options,
    )
    rows, per_query = study_rows.tables(
        job, results, query_ids, judgements.evaluated, corpus=corpus
    )
    place_of_phi = rows.columns.get_loc("control")
    assert isinstance(place_of_phi, int)
    rows.insert(place_of_phi + 1, "phi", untuned.phi)
    evaluations = evaluate(
        documents,
        queries,
        judgements,
        options["grid"],
        untuned,
        budgets=budgets,
        checkpoints=checkpoints,
        **search_options,
    )
    statistics = collection_statistics(weighed_documents)
    tables = {
        "rows": rows,
        "per_query": per_query,
        "grid": grid_table(evaluations, development),
        "tuned": query_table(evaluations, development, query_ids),
        "recall": recall.recall_of_vectors(
            documents,
            queries,
            judgements,
            _settings(evaluations, development),
            options["recall"],
            development,
            budgets=budgets,
            place=checkpoints and checkpoints / "weighed-for-recall",
            **search_options,
        )
        if limit
        else recall.empty(),
        "pruning": pruning_curve(
            weighed_documents,
            weighed_queries,
            judgements,
            options["pruning"],
            Parameters(untuned.k1, untuned.b),
            place=checkpoints and checkpoints / "pruned",
            **search_options,
        ),
        "frequencies": rank_frequency(statistics.document_frequency, statistics.documents),
    }
    return {kind: table if kind == "rows" else named(table, job) for kind, table in tables.items()}


def _settings(
    evaluations: Sequence[Evaluation], development: NDArray[np.bool_]
) -> dict[tuple[str, str], Point]:
    """The parameters of every scorer, as they are and as they were chosen."""
    found = {}
    for one in evaluations:
        found[one.scorer, "untuned"] = one.points[one.untuned]
        found[one.scorer, "tuned"] = one.points[choose(one, development)]
    return found


def named(table: pd.DataFrame, job: Job) -> pd.DataFrame:
    """A table with the columns representation, collection and seed before its own."""
    table = table.copy()
    for column, value in (
        ("seed", job.seed),
        ("collection", job.collection),
        ("representation", job.representation),
    ):
        table.insert(0, column, value)
    return table
