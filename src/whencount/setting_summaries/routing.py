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
        model, active, rule, variant: which; active is 0 where the table does not tell.
        layers, experts: int64, shape (n,): the experts, all layers one after the other.
        native, share: float64, shape (n,): share of tokens natively and under the rule.
        entered, left: float64, shape (n,): share of tokens that the rule sends to the expert and
            the router did not, and the other way round.
        moved: the share of choices that went to another expert.
    """

    model: str
    active: int
    rule: str
    variant: str
    layers: NDArray[np.int64]
    experts: NDArray[np.int64]
    native: NDArray[np.float64]
    share: NDArray[np.float64]
    entered: NDArray[np.float64]
    left: NDArray[np.float64]
    moved: float

    @property
    def same(self) -> bool:
        """Whether the rule chooses as the router does, everywhere."""
        return not (self.entered.any() or self.left.any())

    @property
    def gained(self) -> int:
        """How many experts have at least a tenth more tokens than natively."""
        return int((self.share - self.native >= _NOTICED * self.native + _ROUNDING).sum())

    @property
    def lost(self) -> int:
        """How many experts have at least a tenth fewer."""
        return int((self.native - self.share >= _NOTICED * self.native + _ROUNDING).sum())


_NOTICED, _ROUNDING = 0.1, 1e-12
_NO_CHOICE = ("native", "dense")


def shifts(routing: pd.DataFrame) -> list[Shift]:
    """Every rule of routing.parquet that chooses experts, in the order of the report.

    Native routing itself is left out, and the dense mixture, which uses all experts.

    Args:
        routing: with columns model, layer, expert, frequency (native share of tokens), rule,
            variant, share, entered, left; and active, where numbers of active experts were varied.
    """
    found = []
    table = routing if "active" in routing.columns else routing.assign(active=0)
    for (model, active), part in table.groupby(["model", "active"], sort=True):
        ruled = part[~part["rule"].fillna("").isin(_NO_CHOICE)]
        distinct = in_order_of_rules(ruled[["rule", "variant"]].drop_duplicates())
        for rule, variant in distinct.itertuples(index=False, name=None):
            lines = ruled[(ruled["rule"] == rule) & (ruled["variant"] == variant)]
            lines = lines.sort_values(["layer", "expert"])
            native, share, entered, left = (
                lines[name].to_numpy(dtype=np.float64)
                for name in ("frequency", "share", "entered", "left")
            )
            found.append(
                Shift(
                    str(model),
                    int(str(active)),
                    str(rule),
                    str(variant),
                    lines["layer"].to_numpy(dtype=np.int64),
                    lines["expert"].to_numpy(dtype=np.int64),
                    native,
                    share,
                    entered,
                    left,
                    float(entered.sum() / share.sum()) if share.sum() else 0.0,
                )
            )
    return found
