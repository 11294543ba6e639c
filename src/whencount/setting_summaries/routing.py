"""Which experts a rule sends more or fewer tokens to than native routing does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from whencount.setting_summaries.experts import in_order_of_rules

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Shift:
    """The share of tokens per expert under one rule, beside native routing.

    Attributes:
        model, rule, variant: which.
        layers, experts: int64, shape (n,): the experts, all layers one after the other.
        native, share: float64, shape (n,): share of tokens natively and under the rule.
        same: whether the two are equal everywhere.
        moved: mean over layers of half the sum of absolute differences, over the number of experts
            a token has: the share of choices that went to another expert, at least.
        entered, left: how many experts gained, lost at least a tenth of their native share.
    """

    model: str
    rule: str
    variant: str
    layers: NDArray[np.int64]
    experts: NDArray[np.int64]
    native: NDArray[np.float64]
    share: NDArray[np.float64]
    same: bool
    moved: float
    entered: int
    left: int


_NOTICED = 0.1


def shifts(routing: pd.DataFrame) -> list[Shift]:
    """Every rule of routing.parquet but native routing itself, in the order of the report.

    Args:
        routing: with columns model, layer, expert, frequency (native share of tokens), rule,
            variant, share.
    """
    found = []
    for model, part in routing.groupby("model", sort=True):
        ruled = part[part["rule"].fillna("") != "native"]
        distinct = in_order_of_rules(ruled[["rule", "variant"]].drop_duplicates())
        for rule, variant in distinct.itertuples(index=False, name=None):
            lines = ruled[(ruled["rule"] == rule) & (ruled["variant"] == variant)]
            lines = lines.sort_values(["layer", "expert"])
            native = lines["frequency"].to_numpy(dtype=np.float64)
            share = lines["share"].to_numpy(dtype=np.float64)
            apart = np.abs(share - native)
            active = native.sum() / max(int(lines["layer"].nunique()), 1)
            found.append(
                Shift(
                    str(model),
                    str(rule),
                    str(variant),
                    lines["layer"].to_numpy(dtype=np.int64),
                    lines["expert"].to_numpy(dtype=np.int64),
                    native,
                    share,
                    bool((apart == 0).all()),
                    float(apart.sum() / 2 / max(int(lines["layer"].nunique()), 1) / active),
                    int((share - native >= _NOTICED * native + 1e-12).sum()),
                    int((native - share >= _NOTICED * native + 1e-12).sum()),
                )
            )
    return found
