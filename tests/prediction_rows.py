"""Rows of a made-up study with everything a predictor reads: features, pseudo-labels, qualities.

Each representation has an unevenness, each collection a use for collection statistics; qualities
follow from them, and features and pseudo-labels show them through noise.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from whencount import attribution
from whencount.diagnostics import TIER_1, TIER_2
from whencount.naming import RANDOM_BASES, Cell, Job, Representation
from whencount.ranking_diagnostics import TIER_3, pseudo_columns
from whencount.rows import row_keys
from whencount.scoring import CONFIGURATIONS

BASES = ("identity", "gaussian", "pca", "kmeans", "pq", "rq", "sae")
ON = np.array([[int(bit) for bit in str(configuration)] for configuration in CONFIGURATIONS])
LABEL = re.compile(r"(q|expected_|tie_share_)[01]{3}|main_effect_.+|shapley_.+")
SAME_CORPUS = {"dl19": "msmarco", "dl20": "msmarco"}


def prediction_rows(
    *,
    collections: Sequence[str] = ("msmarco", "dl19", "dl20", "scifact", "fiqa", "limit"),
    small: Sequence[str] = ("scifact", "fiqa"),
    bases: Sequence[str] = BASES,
    references: Sequence[str] = ("bm25", "dense"),
    seed: int = 0,
) -> pd.DataFrame:
    """Primary rows of every collection, all other families on the small ones.

    One row (kmeans_pooled on the last collection) has eight equal qualities; pq_pooled and
    rq_pooled respond to IDF alone.
    """
    unevenness = np.random.default_rng([seed, 1]).uniform(0.2, 1.0, size=(len(BASES), 2))
    use = np.random.default_rng([seed, 2]).uniform(-0.05, 0.08, size=(len(collections), 2))
    rows = []
    for basis, granularity in product(bases, ("pooled", "token")):
        representation = Representation(basis, granularity)
        for place, collection in enumerate(collections):
            for cell, fitted, families in _cells(basis, collection in small):
                job = Job(representation.name, collection, fitted)
                random = np.random.default_rng([seed, *f"{job.name}{cell}".encode()])
                row: dict[str, Any] = row_keys(job, cell) | {"families": families}
                row["corpus"] = SAME_CORPUS.get(collection, collection)
                level = unevenness[BASES.index(basis), int(granularity == "token")]
                effects = np.array([use[place, 0], 0.1 * level / cell.k1, cell.b * use[place, 1]])
                effects *= random.normal(1, 0.2, size=3)
                if job.representation in ("pq_pooled", "rq_pooled"):
                    effects[1:] = 0.0
                base = 0.1 + 0.2 * random.uniform()
                if (job.representation, collection) == ("kmeans_pooled", collections[-1]):
                    effects[:] = 0.0
                for name, values in (
                    ("q", base + ON @ effects),
                    *_seen(references, effects, random),
                ):
                    row |= {f"{name}{c}": values[n] for n, c in enumerate(CONFIGURATIONS)}
                noise = random.normal(0, 0.1, size=(3, 19))
                row |= dict(zip(TIER_1, use[place, 0] * 10 + noise[0], strict=False))
                row |= dict(zip(TIER_2, level / cell.k1 + noise[1], strict=False))
                row |= dict(zip(TIER_3, effects[1] * 5 + noise[2], strict=True))
                rows.append(row)
    frame = pd.DataFrame(rows).astype({"query_budget": "Int64", "document_budget": "Int64"})
    frame = pd.concat([frame, attribution.targets(frame)], axis=1)
    for configuration in CONFIGURATIONS:
        frame[f"expected_{configuration}"] = frame[f"q{configuration}"]
        frame[f"tie_share_{configuration}"] = 0.0
    return frame


def labels(rows: pd.DataFrame) -> list[str]:
    others = ("gain", "margin", "collection_gain")
    return [name for name in rows.columns if LABEL.fullmatch(name) or name in others]


def permuted(rows: pd.DataFrame, chosen: pd.Series, seed: int = 1) -> pd.DataFrame:
    """The rows with all labels of the chosen ones dealt out anew among them."""
    columns = labels(rows)
    result = rows.copy()
    order = np.random.default_rng(seed).permutation(int(chosen.sum()))
    result.loc[chosen, columns] = rows.loc[chosen, columns].to_numpy()[order]
    assert not result[columns].equals(rows[columns])
    return result


def _seen(
    references: Sequence[str], effects: NDArray[np.float64], random: np.random.Generator
) -> list[tuple[str, NDArray[np.float64]]]:
    """The qualities that each reference sees: other effects, off by noise."""
    seen = []
    for reference in references:
        noisy = effects + random.normal(0, 0.02, size=3) * (effects != 0)
        prefix = pseudo_columns(reference)[0].removesuffix("000")
        seen.append((prefix, 0.2 + ON @ noisy))
    return seen


def _cells(basis: str, every: bool) -> list[tuple[Cell, int, str]]:
    """(cell, seed of the basis, families) of one representation of one collection."""
    cells = [(Cell("32/128", 1.2, 0.75), 0, "primary budgets parameters")]
    if not every:
        return cells
    cells += [(Cell(budget, 1.2, 0.75), 0, "budgets") for budget in ("16/64", "64/256", "native")]
    cells += [
        (Cell("32/128", k1, b), 0, "parameters")
        for k1 in (0.6, 1.2, 2.4)
        for b in (0.0, 0.5, 0.75)
        if (k1, b) != (1.2, 0.75)
    ]
    if basis in RANDOM_BASES:
        cells += [(Cell("32/128", 1.2, 0.75), fitted, "seeds") for fitted in (1, 2)]
    return [*cells, (Cell("32/128", 1.2, 0.75, "shuffled_df"), 0, "controls")]
