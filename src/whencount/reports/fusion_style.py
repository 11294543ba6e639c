"""Names, marks and tables of the report on two arms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from whencount.errors import InputError
from whencount.reports.setting_style import BLUE, GREEN, GREY, PINK, RED, SKY, YELLOW, Mark
from whencount.reports.style import INK
from whencount.tables import read_table

RULE_NAMES = {
    "dense_first": "dense first",
    "lexical_first": "lexical first",
    "reciprocal_rank": "RRF",
    "min_max": "min-max",
    "square_root": "square-root mixture",
    "joint_density": "S*, judged null",
    "joint_density_foreign": "S*, foreign null",
    "most_significant": "most significant arm",
    "oracle": "oracle",
}
RULE_MARKS = {
    "lexical_first": Mark(GREY, "X"),
    "reciprocal_rank": Mark(RED, "o"),
    "min_max": Mark(YELLOW, "s"),
    "square_root": Mark(PINK, "v"),
    "joint_density": Mark(BLUE, "D"),
    "joint_density_foreign": Mark(SKY, "d"),
    "most_significant": Mark(GREEN, "P"),
    "oracle": Mark(INK, "*"),
}
POLICY_NAMES = {
    "always_dense": "never fuse",
    "always_fused": "always fuse (RRF)",
    "per_collection": "label-free, per collection",
    "per_query": "label-free, per query",
    "oracle": "oracle of the two",
}
POLICY_MARKS = {
    "always_dense": Mark(INK, "o"),
    "always_fused": Mark(RED, "s"),
    "per_collection": Mark(BLUE, "D"),
    "per_query": Mark(GREEN, "^"),
    "oracle": Mark(GREY, "*"),
}
VERDICTS = {"held": "held", "refuted": "REFUTED", "undecided": "cannot be decided here"}

_COLUMNS = {
    "rules": ("dense_arm", "collection", "rule", "ndcg_10", "difference", "low", "high", "holm"),
    "decisions": ("dense_arm", "collection", "policy", "ndcg_10", "fused", "right"),
    "claims": ("claim", "statement", "refuted_when", "verdict", "evidence"),
    "events": ("dense_arm", "collection", "rule", "queries"),
    "reversals": ("dense_arm", "collection", "rule", "pairs", "reversals", "violations"),
    "nulls": ("dense_arm", "collection", "null", "arm", "level", "rate", "low", "high"),
    "drift": ("dense_arm", "collection", "null", "arm", "fifth", "length", "rate"),
    "checks": ("dense_arm", "collection", "check", "quantity", "value", "count"),
}


@dataclass(frozen=True)
class FusionTables:
    """The tables of the study of two arms (docs/tables.md has their columns)."""

    rules: pd.DataFrame
    decisions: pd.DataFrame
    claims: pd.DataFrame
    events: pd.DataFrame
    reversals: pd.DataFrame
    nulls: pd.DataFrame
    drift: pd.DataFrame
    checks: pd.DataFrame

    def named(self) -> dict[str, pd.DataFrame]:
        """Every table by its name."""
        return {name: getattr(self, name) for name in _COLUMNS}


def load_fusion(paths: Mapping[str, str | Path]) -> FusionTables:
    """Read the tables.

    Raises:
        InputError: one is not named, cannot be read, or lacks a column.
    """
    read = {}
    for name, columns in _COLUMNS.items():
        if name not in paths:
            raise InputError(f"the table {name} of the study of two arms is not named; name it")
        table = read_table(paths[name])
        missing = [column for column in columns if column not in table]
        if missing:
            raise InputError(
                f"{paths[name]} lacks the columns {', '.join(missing)}; make it again by"
                " `snakemake fusion`"
            )
        read[name] = table
    return FusionTables(**read)


def rule_name(rule: str) -> str:
    """The name of a rule; of one of a person's own its own."""
    return RULE_NAMES.get(rule, rule)
