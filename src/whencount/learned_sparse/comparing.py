"""What the vectors of several models cost on one collection, and against one of them.

A model trained with FLOPS is set beside the baseline at an equal number of stored weights: fewer
weights alone make any index cheaper.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from whencount.economics import Economics, economics
from whencount.errors import InputError
from whencount.learned_sparse.equal_nnz import compare_at_equal_nnz
from whencount.vectors import SparseVectors

if TYPE_CHECKING:
    import pandas as pd

Sides = tuple[SparseVectors, SparseVectors]
MEASURES = (
    "document_nnz",
    "query_nnz",
    "live_features",
    "activation_support",
    "weight_support",
    "query_support",
    "posting_work",
    "payload_bytes",
)


def costs_beside(models: Mapping[str, Sides], baseline: str, collection: str) -> pd.DataFrame:
    """A line per model as it is (`cut` is "none"), and one per pair cut to equal weights.

    Args:
        models: documents and queries of each, of the same texts in the same order.
        baseline: which of them the others are compared with.
        collection: its name.

    Returns:
        Columns model, collection, cut ("none" or "equal"), MEASURES, and of lines with cut "equal"
        `baseline_posting_work`, `baseline_activation_support` and their ratios
        `posting_work_ratio` and `support_ratio` (model over baseline); NaN elsewhere. A model of
        another vocabulary has no such line.

    Raises:
        InputError: there is no such baseline, or the models' texts differ.
    """
    import pandas as pd

    if baseline not in models:
        raise InputError(f"there is no model {baseline!r}; name one of {', '.join(models)}")
    lines: list[dict[str, Any]] = []
    for name, (documents, queries) in models.items():
        key = {"model": name, "collection": collection}
        lines.append({**key, "cut": "none", **_measures(economics(documents, queries))})
        first = models[baseline]
        if name == baseline or documents.vocabulary_size != first[0].vocabulary_size:
            continue
        found = compare_at_equal_nnz(first, (documents, queries))
        lines.append(
            {
                **key,
                "cut": "equal",
                **_measures(found.second),
                "baseline_posting_work": found.first.posting_work,
                "baseline_activation_support": found.first.activation_support,
                "posting_work_ratio": found.posting_work_ratio,
                "support_ratio": found.support_ratio,
            }
        )
    columns = ["model", "collection", "cut", *MEASURES, "baseline_posting_work"]
    columns += ["baseline_activation_support", "posting_work_ratio", "support_ratio"]
    return pd.DataFrame(lines).reindex(columns=columns)


def training_lines(logs: Mapping[str, Sequence[Mapping[str, float]]]) -> pd.DataFrame:
    """The logs of all trained models: model, step, base_loss and the regularisers with weights."""
    import pandas as pd

    kept = ("base_loss", "document_regularizer_loss", "query_regularizer_loss")
    weights = ("document_regularizer_weight", "query_regularizer_weight", "learning_rate")
    columns = ["model", "step", *kept, *weights]
    lines = [
        {"model": model, **{name: line.get(name) for name in columns[1:]}}
        for model, log in logs.items()
        for line in log
        if "base_loss" in line
    ]
    return pd.DataFrame(lines, columns=columns).astype(
        {name: "float64" for name in (*kept, *weights)} | {"step": "int64", "model": "object"}
    )


def _measures(found: Economics) -> dict[str, Any]:
    return {name: getattr(found, name) for name in MEASURES}
