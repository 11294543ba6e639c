"""Rows of made-up settings beside retrieval, in the schema of docs/tables.md.

Qualities follow from effects of the three switches; diagnostics and pseudo-labels show these
effects in the way that they do in the retrieval rows of `prediction_rows`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from prediction_rows import ON

from whencount import attribution
from whencount.diagnostics import TIER_1, TIER_2
from whencount.ranking_diagnostics import TIER_3, pseudo_columns
from whencount.scoring import CONFIGURATIONS

MEANINGLESS = ("peak_ratio", "nnz_cv")
"""Columns that are null in the made-up rows of pages, where a page has one feature."""


def page_rows(*, tasks: Sequence[str] = ("niah", "vt", "cwe"), seed: int = 0) -> pd.DataFrame:
    """Rows of pages: models x tasks x contexts x budgets x variants."""
    keys = product(("small", "large"), tasks, (512, 1024), (128, 256), ("head", "group"))
    names = ("model", "task", "context", "budget", "variant")
    rows = [_row(dict(zip(names, key, strict=True)), "mass", seed) for key in keys]
    frame = pd.DataFrame(rows)
    frame[list(MEANINGLESS)] = np.nan
    return _with_targets(frame)


def expert_rows(*, seed: int = 0) -> pd.DataFrame:
    """Rows of experts: one model x evaluations x variants, minus nats in place of a share."""
    keys = product(("olmoe",), ("heldout", "other"), (8,), ("token", "expert"))
    names = ("model", "evaluation", "active", "variant")
    rows = [_row(dict(zip(names, key, strict=True)), "dense", seed, level=-3.0) for key in keys]
    return _with_targets(pd.DataFrame(rows))


def _row(keys: dict[str, Any], reference: str, seed: int, level: float = 0.5) -> dict[str, Any]:
    random = np.random.default_rng([seed, *repr(sorted(keys.items())).encode()])
    effects = random.normal([0.02, 0.05, 0.01], [0.03, 0.02, 0.02])
    seen = effects + random.normal(0, 0.01, size=3)
    row: dict[str, Any] = keys | {"k1": 1.2, "b": 0.75, "examples": 5}
    for prefix, values in (
        ("q", level + ON @ effects),
        (pseudo_columns(reference)[0].removesuffix("000"), 0.2 + ON @ seen),
    ):
        row |= {f"{prefix}{c}": float(values[n]) for n, c in enumerate(CONFIGURATIONS)}
    noise = random.normal(0, 0.1, size=(3, 19))
    row |= dict(zip(TIER_1, (effects[0] * 10 + noise[0]).tolist(), strict=False))
    row |= dict(zip(TIER_2, (10 * effects[1] + noise[1]).tolist(), strict=False))
    row |= dict(zip(TIER_3, (effects[1] * 5 + noise[2]).tolist(), strict=True))
    return row


def _with_targets(rows: pd.DataFrame) -> pd.DataFrame:
    return pd.concat([rows, attribution.targets(rows)], axis=1)
