"""The tables that the report on latent terms draws from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from whencount.attribution import QUALITY_COLUMNS
from whencount.reports.setting_tables import needed_table

if TYPE_CHECKING:
    import pandas as pd

_NAMES = ("representation", "collection", "seed")
_NEEDED: dict[str, tuple[str, ...]] = {
    "rows": (*_NAMES, *QUALITY_COLUMNS, "gain", "shapley_idf", "phi"),
    "grid": (*_NAMES, "scorer", "phi", "k1", "b", "development", "test", "chosen", "untuned"),
    "comparisons": ("representation", "collection", "comparison", "difference", "holm_p"),
    "tuned": (*_NAMES, "query_id", "part", "scorer", "setting", "ndcg_10"),
    "recall": (*_NAMES, "scorer", "setting", "part", "cutoff", "recall"),
    "reference_recall": ("collection", "scorer", "part", "cutoff", "recall"),
    "pruning": (*_NAMES, "threshold", "features", "posting_work", "inner", "bm25"),
    "frequencies": (*_NAMES, "rank", "frequency", "zipf_slope"),
    "reference_frequencies": ("collection", "kind", "rank", "frequency", "zipf_slope"),
    "words": ("collection", "query_id", "ndcg_10"),
    "training": ("model", "seed", "step", "states", "validation_fvu", "dead"),
}


@dataclass(frozen=True)
class LatentTables:
    """The tables of a study of latent terms (docs/tables.md has their columns).

    Attributes:
        rows, grid, comparisons, tuned, recall, reference_recall, pruning, frequencies,
            reference_frequencies, words, training: the tables of these names.
    """

    rows: pd.DataFrame
    grid: pd.DataFrame
    comparisons: pd.DataFrame
    tuned: pd.DataFrame
    recall: pd.DataFrame
    reference_recall: pd.DataFrame
    pruning: pd.DataFrame
    frequencies: pd.DataFrame
    reference_frequencies: pd.DataFrame
    words: pd.DataFrame
    training: pd.DataFrame


def load_latent(paths: Mapping[str, str | Path]) -> LatentTables:
    """Read the tables of a study of latent terms, from files by the names of LatentTables.

    Raises:
        InputError: a table is missing or damaged, or lacks a column.
    """
    read = {name: needed_table(paths, name, columns) for name, columns in _NEEDED.items()}
    return LatentTables(**read)
