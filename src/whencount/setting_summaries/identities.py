"""Identities between configurations that follow from what a selector scores, checked on tables.

A page with one feature, or an expert with one probability, is ranked by one number `T(f, l)`. With
`l` fixed both forms of `T` grow with `f / l`, so saturation alone changes no ranking: 010 = 000 and
011 = 001 (the study, section 9). Where all experts of a token share one length, dividing by it
changes none either: 001 = 010 = 011 = 000 and 101 = 100 (section 10).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from whencount.attribution import QUALITY_COLUMNS

if TYPE_CHECKING:
    import pandas as pd

_ONE_FEATURE = (("010", "000"), ("011", "001"))
EQUAL: dict[str, tuple[tuple[str, str], ...]] = {
    "head": _ONE_FEATURE,
    "group": (),
    "token": (("001", "000"), ("010", "000"), ("011", "000"), ("101", "100")),
    "expert": _ONE_FEATURE,
}
"""For each variant, the pairs of configurations that must agree exactly where k1 is above 0."""

ROUNDING = 1e-12
"""Two sums of the same qualities, added up in another order, differ by no more."""


@dataclass(frozen=True)
class Identity:
    """One identity on the rows that it is about.

    Attributes:
        variant: the variant whose rows were looked at.
        statement: `010 = 000`, or an equation of targets.
        expected: False for a pair that may differ in this variant, shown for comparison.
        checked: how many rows (or outputs) were looked at.
        broken: in how many it does not hold.
        largest: the largest absolute difference, or of outputs the share that differs; NaN where
            nothing was looked at.
        what: what was compared, `row` or `output`.
    """

    variant: str
    statement: str
    expected: bool
    checked: int
    broken: int
    largest: float
    what: str = "row"

    @property
    def holds(self) -> bool:
        """Whether it was looked at and held everywhere."""
        return self.checked > 0 and self.broken == 0


def identities(rows: pd.DataFrame) -> list[Identity]:
    """Check every identity of the variants present, and what follows from them for the targets.

    Args:
        rows: with columns variant, k1, q000..q111 and the targets of `attribution.targets`.

    Returns:
        Per variant, in the order of EQUAL: its equal pairs (exact; rows with k1 = 0, where
        saturation is constant, are left out), then `G = Q111 - Q000` and
        `phi_sat = (Q110 - Q100)/6 + (Q111 - Q101)/3` where 010 = 000 and 011 = 001 are among its
        consequences, and last the efficiency of Shapley values, their sum being the gain.
    """
    found = []
    for variant, pairs in EQUAL.items():
        lines = rows[rows["variant"] == variant]
        if len(lines) == 0:
            continue
        tested = lines[lines["k1"] > 0]
        expected = bool(pairs)
        for one, other in pairs or _ONE_FEATURE:
            apart = tested[f"q{one}"] - tested[f"q{other}"]
            found.append(_identity(variant, f"{one} = {other}", apart, 0.0, expected=expected))
        if pairs:
            known = {name: tested[name] for name in QUALITY_COLUMNS}
            apart = tested["collection_gain"] - (known["q111"] - known["q000"])
            found.append(_identity(variant, "G = Q111 − Q000", apart, ROUNDING))
            follows = (known["q110"] - known["q100"]) / 6 + (known["q111"] - known["q101"]) / 3
            statement = "φ of saturation = (Q110 − Q100)/6 + (Q111 − Q101)/3"
            apart = tested["shapley_saturation"] - follows
            found.append(_identity(variant, statement, apart, ROUNDING))
        total = lines[["shapley_idf", "shapley_saturation", "shapley_length"]].sum(
            axis=1, skipna=False
        )
        statement = "the three Shapley values add up to Q111 − Q000"
        found.append(_identity(variant, statement, total - lines["gain"], ROUNDING))
    return found


def output_identities(
    outputs: pd.DataFrame,
    keys: Sequence[str],
    rule: str,
    values: Sequence[str],
    natives: Mapping[str, str],
) -> list[Identity]:
    """Check the equal pairs of each variant on single outputs: predictions, or documents.

    The first pair of a variant is 000 and what it calls, the native selector.

    Args:
        outputs: a line per output, with columns variant, `rule` (the configuration), `keys` and
            `values`.
        keys: what names an output within a variant.
        rule: the column that holds the configuration.
        values: what must be the same, numbers or texts; an output differs if any of them does.
        natives: for a variant, the rule without a variant that 000 must equal.
    """
    found = []
    for variant, pairs in EQUAL.items():
        lines = outputs[outputs["variant"] == variant]
        if len(lines) == 0:
            continue
        native = outputs[outputs[rule] == natives.get(variant)]
        compared = [(one, other, lines, bool(pairs)) for one, other in pairs or _ONE_FEATURE]
        if len(native):
            compared.insert(0, ("000", natives[variant], native, True))
        for one, other, others, expected in compared:
            both = lines[lines[rule] == one].merge(
                others[others[rule] == other], on=list(keys), suffixes=("", "_other")
            )
            apart = np.zeros(len(both), dtype=bool)
            for value in values:
                apart |= (both[value] != both[f"{value}_other"]).to_numpy(dtype=bool)
            share = float(apart.mean()) if len(both) else float("nan")
            found.append(
                Identity(
                    variant,
                    f"{one} = {other}",
                    expected,
                    len(both),
                    int(apart.sum()),
                    share,
                    "output",
                )
            )
    return found


def _identity(
    variant: str, statement: str, apart: pd.Series, tolerance: float, *, expected: bool = True
) -> Identity:
    size = apart.abs()
    # A missing quality is no agreement.
    broken = int((~(size <= tolerance)).sum())
    largest = float(size.max()) if len(size) else float("nan")
    return Identity(variant, statement, expected, len(size), broken, largest)
