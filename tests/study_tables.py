"""Tables of a made-up study in the real schema: qualities are drawn, everything else computed.

A representation has an evenness of values (`value_cv`) and each switch an effect; per-query
qualities scatter around them. Targets, significance and shares come from the library itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from whencount import attribution
from whencount.config import load
from whencount.grid import Cell, Job, Representation, expand
from whencount.rows import row_keys
from whencount.scoring import CONFIGURATIONS
from whencount.significance import significance
from whencount.tables import write_table

ROOT = Path(__file__).parents[1]
SCHEMA = ROOT / "workflow" / "schemas" / "config.schema.yaml"
QUERIES = 40
DRAWS = 999
ALPHA = 0.05
EVENNESS = {"identity": 0.4, "gaussian": 0.5, "pca": 0.7, "kmeans": 1.2, "sae": 0.9}


@dataclass(frozen=True)
class StudyTables:
    """The four tables that a report draws from."""

    rows: pd.DataFrame
    significance: pd.DataFrame
    shares: pd.DataFrame
    references: pd.DataFrame

    def write(self, folder: Path) -> dict[str, str]:
        """Write all of them; the paths by name, as the report's parameters take them."""
        paths = {}
        for name in ("rows", "significance", "shares", "references"):
            write_table(getattr(self, name), folder / f"{name}.parquet")
            paths[name] = str(folder / f"{name}.parquet")
        return paths


def study_tables(config: Mapping[str, Any] | None = None, seed: int = 0) -> StudyTables:
    """Tables of the configuration, config.yaml where none is given."""
    config = config or load(ROOT / "config.yaml", SCHEMA)
    rows, per_query = [], []
    for job, cells in expand(config).items():
        for cell, families in cells.items():
            random = np.random.default_rng([seed, *f"{job.name}{cell}".encode()])
            quality = _quality(job, cell, random)
            row = row_keys(job, cell) | {"families": " ".join(families), "queries": QUERIES}
            row |= {f"q{c}": quality[:, n].mean() for n, c in enumerate(CONFIGURATIONS)}
            tied = _is_tied(job.representation)
            for c in CONFIGURATIONS:
                row[f"tie_share_{c}"] = random.uniform(0.5, 0.9) if tied else 0.0
                row[f"expected_{c}"] = row[f"q{c}"] - 0.004 * tied
            row["value_cv"] = _value_cv(job.representation, random)
            rows.append(row)
            if "primary" in families:
                block = pd.DataFrame(quality, columns=list(attribution.QUALITY_COLUMNS))
                block["query_id"] = [f"q{n}" for n in range(QUERIES)]
                per_query.append(block.assign(**row_keys(job, cell)))
    frame = pd.DataFrame(rows).astype({"query_budget": "Int64", "document_budget": "Int64"})
    frame = pd.concat([frame, attribution.targets(frame)], axis=1)
    keys = ["representation", "budget", "k1", "b", "seed", "control"]
    tested = significance(pd.concat(per_query), keys, draws=DRAWS)
    reported = frame[frame["families"].str.contains("primary")]
    return StudyTables(
        frame, tested, attribution.share_table(reported, draws=200), _references(config, seed)
    )


def _is_tied(name: str) -> bool:
    return name in ("pq_pooled", "rq_pooled")


def _value_cv(name: str, random: np.random.Generator) -> float:
    representation = Representation.parse(name)
    if _is_tied(name):
        return 0.0
    token = 1.6 if representation.granularity == "token" else 1.0
    base = EVENNESS.get(representation.basis, 0.3)
    return float(base * token * random.uniform(0.85, 1.15))


def _quality(job: Job, cell: Cell, random: np.random.Generator) -> NDArray[np.float64]:
    """Shape (queries, 8); a switch without effect changes nothing at all."""
    place = sum(job.collection.encode()) % 3
    saturation = 0.1 * _value_cv(job.representation, random) * (1.5 - 0.3 * cell.k1)
    length = 0.08 * cell.b
    idf = 0.02 * (1 - place)
    if _is_tied(job.representation):
        saturation = length = 0.0
    if cell.control == "uniform_df":
        idf = 0.0
    if cell.control == "shuffled_df":
        idf = -0.03
    base = random.beta(2, 5, size=(QUERIES, 1)) * 0.6 + 0.05 * place
    difficulty = random.normal(1, 0.6, size=(QUERIES, 3))
    effects = difficulty * np.array([idf, saturation, length])
    on = np.array([[int(bit) for bit in str(c)] for c in CONFIGURATIONS])
    # The tangent makes switches overlap, and leaves one without effect without any.
    quality: NDArray[np.float64] = np.clip(base + 0.4 * np.tanh(2.5 * (effects @ on.T)), 0, 1)
    return quality


def _references(config: Mapping[str, Any], seed: int) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    return pd.DataFrame(
        [
            {
                "collection": collection,
                "reference": reference,
                "queries": QUERIES,
                "ndcg_10": random.uniform(0.35, 0.5),
                "recall_100": random.uniform(0.6, 0.9),
            }
            for collection in config["collections"]
            for reference in ("bm25", "dense")
        ]
    )
