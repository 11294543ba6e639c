"""What the three switches bring in a setting: gains and shares, per variant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from whencount import attribution, summaries
from whencount.attribution import TARGET_COLUMNS
from whencount.scoring import CONFIGURATIONS, SWITCHES
from whencount.setting_summaries.identities import EQUAL
from whencount.summaries import Share, Signs

if TYPE_CHECKING:
    import pandas as pd

CONFIGURATION_NAMES = tuple(str(one) for one in CONFIGURATIONS)


@dataclass(frozen=True)
class Effects:
    """The gain of all three switches over none, and who carries it, in one variant.

    Attributes:
        variant: its name.
        rows: how many rows have a gain.
        gain: of `Q111 - Q000` over them.
        switches: the Shapley values, by switch.
        shares: of the summed gain, in the order of SWITCHES; NaN where that gain is 0.
        groups: how many groups the interval of a share resamples.
    """

    variant: str
    rows: int
    gain: Signs
    switches: dict[str, Signs]
    shares: tuple[Share, ...]
    groups: int


def effects(rows: pd.DataFrame, group: str, *, draws: int = 2_000, seed: int = 0) -> list[Effects]:
    """Gains, Shapley values and shares of every variant that has rows, in the order of EQUAL.

    Args:
        rows: with columns variant, `group` and the targets of `attribution.targets`.
        group: the column whose values are resampled whole for the intervals of shares.
        draws: resamples.
        seed: of the resampling.
    """
    found = []
    for variant in variants_in_order(rows["variant"]):
        lines = rows[rows["variant"] == variant]
        lines = lines.dropna(subset=[name for name in TARGET_COLUMNS if name != "margin"])
        if len(lines) == 0:
            continue
        table = attribution.shares(lines, draws=draws, seed=seed, group=group)
        found.append(
            Effects(
                variant,
                len(lines),
                summaries.signs(lines["gain"]),
                {switch: summaries.signs(lines[f"shapley_{switch}"]) for switch in SWITCHES},
                tuple(
                    Share(switch, *table.loc[switch, list(_SHARE_KEYS)].astype(float))
                    for switch in SWITCHES
                ),
                int(lines[group].nunique()),
            )
        )
    return found


_SHARE_KEYS = ("share", "low", "high")


def variants_in_order(variants: pd.Series | Sequence[str]) -> list[str]:
    """Distinct variants: those of the study in its order, then others by name; '' is none."""
    known = list(EQUAL)
    return sorted(
        {str(one) for one in variants if one},
        key=lambda one: (known.index(one) if one in known else len(known), one),
    )
