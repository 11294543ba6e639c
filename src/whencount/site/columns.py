"""The columns of rows.parquet for a reader: their names in words, and groups to find them in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

FILTERS = (
    *("representation", "basis", "granularity", "collection", "budget", "k1", "b", "seed"),
    *("control", "families", "best"),
)
"""The columns that a person filters by, in the order of the page."""

BEST = "best"
"""Made here: the configuration of the highest quality, the first of equal ones."""

_LABELS = {
    "representation": "representation",
    "families": "family",
    "best": "best configuration",
    "queries": "queries evaluated",
    "gain": "gain: 111 minus 000",
    "collection_gain": "G: 111 minus 010",
    "margin": "margin: gain in standard deviations",
    "shapley_idf": "Shapley value of IDF",
    "shapley_saturation": "Shapley value of saturation",
    "shapley_length": "Shapley value of length",
    "main_effect_idf": "main effect of IDF",
    "main_effect_saturation": "main effect of saturation",
    "main_effect_length": "main effect of length",
    "value_cv": "cv of stored values",
    "peak_ratio": "peak ratio",
    "top_share": "top share",
    "length_cv": "cv of document lengths",
    "length_log_sd": "sd of log length",
    "nnz_cv": "cv of stored pairs per document",
    "active_fraction": "active fraction",
    "zipf_slope": "Zipf slope",
    "gini": "Gini coefficient",
    "frequency_top_share": "frequency in the top 1 %",
    "mass_top_share": "mass in the top 1 %",
    "idf_variance": "variance of IDF",
    "disruption_idf": "disruption by IDF",
    "disruption_saturation": "disruption by saturation",
    "disruption_length": "disruption by length",
}
_PREFIXES = {
    "q": ("nDCG@10 of {}", "Quality"),
    "tie_share_": ("ties at rank 10, {}", "Ties"),
    "expected_": ("tie-expected nDCG@10 of {}", "Ties"),
    "score_spread_": ("score spread of {}", "Rankings without labels"),
    "score_drop_": ("score drop of {}", "Rankings without labels"),
}
_GROUPS = (
    ("What the switches bring", ("gain", "collection_gain", "margin", "shapley_", "main_effect_")),
    ("Rankings without labels", ("disruption_", "score_")),
    ("Pseudo-labels", ("pseudo_",)),
    ("The setting", ("query_budget", "document_budget", "k1", "b", "seed", "queries")),
)
ORDER = (
    *("Quality", "What the switches bring", "The setting", "The index without labels"),
    *("Rankings without labels", "Pseudo-labels", "Ties"),
)
"""The groups of columns, as a person meets them."""


@dataclass(frozen=True)
class Column:
    """A column of the explorer: its name in the table, in words, and its group."""

    name: str
    label: str
    group: str


def numeric_columns(rows: pd.DataFrame) -> list[Column]:
    """The columns that can be plotted, in the order of ORDER."""
    found = [_described(str(name)) for name in rows.select_dtypes("number").columns]
    return sorted(found, key=lambda one: ORDER.index(one.group))


def label_of(name: str) -> str:
    """A column's name in words."""
    return _described(name).label


def filters_of(rows: pd.DataFrame) -> list[str]:
    """The columns of FILTERS that a table has."""
    return [name for name in FILTERS if name in rows.columns]


def _described(name: str) -> Column:
    for prefix, (text, group) in _PREFIXES.items():
        rest = name.removeprefix(prefix)
        if rest != name and _is_bits(rest):
            return Column(name, text.format(rest), group)
    group = next((title for title, starts in _GROUPS if _starts(name, starts)), "")
    if name.startswith("pseudo_"):
        reference, _, bits = name.removeprefix("pseudo_").rpartition("_")
        return Column(name, f"pseudo-label nDCG@10 of {bits}, by {reference}", group)
    label = _LABELS.get(name, name.replace("_", " "))
    return Column(name, label, group or "The index without labels")


def _is_bits(text: str) -> bool:
    return len(text) == 3 and not set(text) - {"0", "1"}


def _starts(name: str, starts: Sequence[str]) -> bool:
    return any(name == one or (one.endswith("_") and name.startswith(one)) for one in starts)
