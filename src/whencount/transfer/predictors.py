"""Which predictors are put to the test on other settings, and what they see of a row.

Two are declared: the registered one, and the pseudo-label one of the study's cumulative tiers
(section 7), both fitted in retrieval. A column of those tiers may have no meaning in another
setting; there the pseudo-labels alone stand in for the tiers. The unfitted estimate is beside them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from whencount.diagnostics import PRIMARY, TIER_1, TIER_2
from whencount.errors import InputError
from whencount.prediction.features import pseudo_targets
from whencount.prediction.models import Ridge
from whencount.prediction.targets import TARGETS
from whencount.ranking_diagnostics import TIER_3, pseudo_columns
from whencount.scoring import SWITCHES

if TYPE_CHECKING:
    import pandas as pd

SETTING_REFERENCES: Mapping[str, str] = {"pages": "mass", "experts": "dense"}
"""Each setting's own label-free reference, as its columns `pseudo_REFERENCE_000` name it: the mass
of exact attention, and the dense mixture of all experts (study, sections 9 and 10)."""

PSEUDO = tuple(
    f"pseudo_{name}"
    for name in (*(f"shapley_{switch}" for switch in SWITCHES), "collection_gain", "q000", "q111")
)
"""What the pseudo-labels of whichever reference give, by names without that of the reference."""

SEEN = (*TIER_1, *TIER_2, *TIER_3, *PSEUDO)
"""Every column that a predictor may see."""


@dataclass(frozen=True)
class Kind:
    """A kind of predictor.

    Attributes:
        columns: of SEEN, what a ridge is fitted on; empty for the estimate that needs no fit.
        declared: whether a verdict on transfer is about it.
    """

    columns: tuple[str, ...]
    declared: bool


KINDS: Mapping[str, Kind] = {
    "registered": Kind(PRIMARY, True),
    "pseudo": Kind(SEEN, True),
    "pseudo_alone": Kind(PSEUDO, False),
    "unfitted": Kind((), False),
}
STAND_INS: Mapping[str, str] = {"pseudo": "pseudo_alone"}
"""Who answers for a declared predictor where it is not applicable."""


@dataclass(frozen=True)
class Predictor:
    """One predictor of one target, with what it has to reach.

    Attributes:
        target: of `whencount.prediction.TARGETS`.
        kind: of KINDS.
        columns: of SEEN, in the order of the coefficients.
        ridge: the fitted model; None for the unfitted estimate, which is its one column.
        lowest, highest: range of each column in the rows fitted on, shape (columns,); NaN for a
            column without a value there.
        rows: how many rows it was fitted on, or, unfitted, its error was found on.
        rmse: root of the mean squared error in retrieval with corpora held out.
        majority_sign: the commonest sign of the target in those rows: 1, -1 or 0.
    """

    target: str
    kind: str
    columns: tuple[str, ...]
    ridge: Ridge | None
    lowest: NDArray[np.float64]
    highest: NDArray[np.float64]
    rows: int
    rmse: float
    majority_sign: float

    def predict(self, seen: pd.DataFrame) -> NDArray[np.float64]:
        """Predictions of rows, NaN where a column has no value.

        Args:
            seen: of `seen_of`, n rows.

        Returns:
            float64, shape (n,).
        """
        matrix = seen[list(self.columns)].to_numpy(dtype=np.float64)
        predicted = matrix[:, 0].copy() if self.ridge is None else self.ridge.predict(matrix)
        predicted[np.isnan(matrix).any(axis=1)] = np.nan
        return np.asarray(predicted)

    def outside(self, seen: pd.DataFrame) -> NDArray[np.bool_]:
        """Rows with a column beyond its range in the rows fitted on, shape (n,)."""
        matrix = seen[list(self.columns)].to_numpy(dtype=np.float64)
        return np.asarray(((matrix < self.lowest) | (matrix > self.highest)).any(axis=1))


def columns_of(kind: str, target: str) -> tuple[str, ...] | None:
    """The columns that a predictor of a kind sees; None where it has nothing to say of a target.

    The unfitted estimate of a target is the same target on pseudo-labels. The study gives none of
    the margin.
    """
    if KINDS[kind].columns:
        return KINDS[kind].columns
    column = f"pseudo_{TARGETS[target]}"
    return (column,) if column in PSEUDO else None


def seen_of(rows: pd.DataFrame, reference: str) -> pd.DataFrame:
    """What predictors see of rows: the columns SEEN, float64, never an outcome.

    Args:
        rows: of any setting. A column that they have not is NaN throughout.
        reference: the one whose pseudo-labels count.

    Raises:
        InputError: a column holds something else than numbers, or an infinite one.
    """
    import pandas as pd

    plain = [name for name in SEEN if name not in PSEUDO]
    pseudo = list(pseudo_columns(reference))
    wanted = [name for name in (*plain, *pseudo) if name in rows.columns]
    frame = pd.DataFrame(index=rows.index)
    for name in wanted:
        try:
            frame[name] = rows[name].astype(np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(
                f"the column {name} of the rows holds something else than numbers ({error}); make"
                " the rows again"
            ) from None
        if np.isinf(frame[name]).any():
            raise InputError(
                f"{int(np.isinf(frame[name]).sum())} of {len(rows)} rows have an infinite {name};"
                " make the rows again"
            )
    if set(pseudo) <= set(wanted):
        frame = frame.join(pseudo_targets(frame, reference).add_prefix("pseudo_"))
    return frame.reindex(columns=list(SEEN)).astype(np.float64)
