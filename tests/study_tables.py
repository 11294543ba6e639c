"""Tables of a made-up study in the real schema: qualities are drawn, everything else computed.

A representation has an evenness of values (`value_cv`) and each switch an effect; per-query
qualities scatter around them. Targets, significance and shares come from the library itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from whencount import attribution
from whencount.config import load
from whencount.grid import expand
from whencount.naming import Cell, Job, Representation
from whencount.rows import row_keys
from whencount.scoring import CONFIGURATIONS, SWITCHES
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
    """The tables that a report draws from."""

    rows: pd.DataFrame
    significance: pd.DataFrame
    shares: pd.DataFrame
    references: pd.DataFrame
    predictors: pd.DataFrame
    predictions: pd.DataFrame
    decisions: pd.DataFrame
    hypotheses: pd.DataFrame

    @property
    def reported(self) -> pd.DataFrame:
        """The rows that the statistics report."""
        return self.rows[self.rows["families"].str.contains("primary")]

    def replace(self, old: str, new: str) -> StudyTables:
        """The tables with another name for a collection, say."""
        return StudyTables(*(table.replace(old, new) for table in self._tables().values()))

    def write(self, folder: Path) -> dict[str, str]:
        """Write all of them; the paths by name, as the report's parameters take them."""
        paths = {}
        for name, table in self._tables().items():
            write_table(table, folder / f"{name}.parquet")
            paths[name] = str(folder / f"{name}.parquet")
        return paths

    def _tables(self) -> dict[str, pd.DataFrame]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


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
            for switch in SWITCHES:
                row[f"disruption_{switch}"] = 0.0 if tied else random.uniform(0.05, 0.5)
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
    predicted = _predictions(reported, seed)
    return StudyTables(
        frame,
        tested,
        attribution.share_table(reported, draws=200),
        _references(config, seed),
        _predictors(predicted),
        predicted,
        _decisions(reported),
        _hypotheses(),
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
            for reference in ("bm25", "dense", "rrf")
        ]
    )


_NOISE = {"registered": 1.0, "index": 0.7, "pseudo_bm25": 0.3, "pseudo_rrf": 0.2}
_TARGETS = {
    "idf": "shapley_idf",
    "saturation": "shapley_saturation",
    "length": "shapley_length",
    "collection_gain": "collection_gain",
    "margin": "margin",
}


def _predictions(reported: pd.DataFrame, seed: int) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    keys = ["representation", "collection", "budget", "k1", "b", "seed", "control"]
    parts = []
    for target, column in _TARGETS.items():
        observed = reported[column].to_numpy(dtype=np.float64)
        spread = np.nanstd(observed)
        for predictors, noise in _NOISE.items():
            axes = {"ridge": ("family", "corpus", "parameters"), "boosted": ("corpus",)}
            if predictors.startswith("pseudo") and target != "margin":
                axes["unfitted"] = ("primary",)
            for model, names in axes.items():
                for axis in names:
                    off = random.normal(0, noise * spread, len(reported))
                    parts.append(
                        reported[keys].assign(
                            target=target,
                            predictors=predictors,
                            model=model,
                            axis=axis,
                            fold="limit",
                            observed=observed,
                            predicted=observed + off,
                        )
                    )
    return pd.concat(parts, ignore_index=True)


def _predictors(predictions: pd.DataFrame) -> pd.DataFrame:
    lines = []
    keys = ["target", "predictors", "model", "axis"]
    for key, part in predictions.dropna().groupby(keys, sort=False):
        error = part["observed"] - part["predicted"]
        positive = float((part["observed"] > 0).mean())
        lines.append(
            dict(zip(keys, key, strict=True))
            | {
                "rows_fitted": len(part),
                "rows": len(part),
                "r2": 1 - (error**2).sum() / ((part["observed"].var(ddof=0)) * len(part)),
                "spearman": part["observed"].corr(part["predicted"], method="spearman"),
                "sign_accuracy": (np.sign(part["observed"]) == np.sign(part["predicted"])).mean(),
                "majority_accuracy": math.nan if "unfitted" in key else max(positive, 1 - positive),
                "always_accuracy": positive,
                "never_accuracy": 1 - positive,
                "mae": error.abs().mean(),
                "rmse": (error**2).mean() ** 0.5,
                "alpha": 10.0,
                "left_out": 0,
            }
        )
    return pd.DataFrame(lines)


def _decisions(reported: pd.DataFrame) -> pd.DataFrame:
    groups = [("all", "", reported)]
    groups += [("collection", str(name), part) for name, part in reported.groupby("collection")]
    lines = []
    for reference in ("bm25", "dense", "rrf"):
        for scope, value, part in groups:
            never, always = float(part["q010"].mean()), float(part["q111"].mean())
            oracle = max(never, always) + 0.002
            rule = always + 0.6 * (oracle - always)
            share = 0.6
            lines.append(
                {
                    "reference": reference,
                    "scope": scope,
                    "value": value,
                    "rows": len(part),
                    "never": never,
                    "always": always,
                    "rule": rule,
                    "oracle": oracle,
                    "recovered": share,
                    "recovered_low": share - 0.1,
                    "recovered_high": share + 0.1,
                    "gain_over_always": rule - always,
                    "low": rule - always - 0.001,
                    "high": rule - always + 0.001,
                    "accuracy": 0.8,
                }
            )
    return pd.DataFrame(lines)


def _hypotheses() -> pd.DataFrame:
    """H1 and H5 pass, H2 fails, H3 passes twice, H4 cannot be tested, H1 was registered late."""
    none = math.nan
    lines: list[tuple[Any, ...]] = [
        ("H1", "", "share_within", 28, 0.39, none, none, none, none, True, 0.3933),
        ("H2", "", "paired_greater", 28, 0.05, 0.06, none, 0.7, 1.0, False, 0.09279),
        ("H3", "k1 0.6", "rank_correlation", 28, 0.8, none, 0.3, 1e-6, 1e-5, True, 0.8859),
        ("H3", "k1 2.4", "rank_correlation", 28, 0.7, none, 0.3, 1e-5, 1e-4, True, 0.8918),
        ("H4", "k1 0.6", "model_ranking", 0, none, none, none, none, none, None, 0.8695),
        ("H4", "k1 2.4", "model_ranking", 28, 0.6, none, 0.5, 1e-3, 0.01, True, 0.9033),
        ("H5", "", "exactly_zero", 84, 0.0, none, 0.0, none, none, True, 0.0),
        ("H6", "", "paired_greater", 28, 0.05, 0.04, none, 1e-4, 1e-3, True, 0.04536),
    ]
    columns = ["hypothesis", "setting", "test", "rows", "estimate", "comparison", "threshold"]
    columns += ["p", "holm_p", "passes", "published"]
    table = pd.DataFrame(lines, columns=columns).astype({"passes": "boolean"})
    tested = table["passes"].notna()
    late = table["hypothesis"] == "H1"
    status = pd.Series("confirmatory", index=table.index).mask(late, "exploratory")
    reason = pd.Series("", index=table.index).mask(late, "the rows existed before")
    return table.assign(
        registration="confirmatory",
        statement="A claim of <i>" + table["hypothesis"] + "</i>",
        status=status.where(tested, "not testable"),
        reason=reason.where(tested, "4 rows, and at least 5 are needed"),
        published_comparison=none,
        published_p=none,
    )
