"""What rules know of a model: how often each expert is chosen, how long lengths are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from whencount.scoring import inverse_document_frequency

if TYPE_CHECKING:
    import pandas as pd

VARIANTS = ("token", "expert")
"""What a length is: the norm of a token's router logits, or of an expert's router weights."""

_LAYER_COLUMNS = (
    "logit_norm_mean",
    "logit_norm_sd",
    "logit_norm_log_sd",
    "value_mean",
    "value_sd",
    "peak_ratio",
    "top_share",
)


@dataclass(frozen=True)
class Calibration:
    """Routing of a model over its calibration tokens; layers are those with a router.

    Attributes:
        layers: their numbers in the model.
        tokens: N, how many tokens were routed in each layer.
        active: k, how many experts each was routed to.
        routed: int64, shape (layers, experts), df, the tokens routed to each expert.
        mass: float64, shape (layers, experts), summed router probability of those tokens.
        probability: float64, shape (layers, experts), mean router probability over all tokens.
        weight_norms: float64, shape (layers, experts), L2 norm of each row of router weights.
        logit_norm_mean, logit_norm_sd, logit_norm_log_sd: float64, shape (layers,), mean,
            population standard deviation, and that of the logarithm, of the L2 norms of the
            tokens' router logits.
        value_mean, value_sd: float64, shape (layers,), of the probabilities of routed experts.
        peak_ratio, top_share: float64, shape (layers,), mean over tokens of the largest
            probability over the mean, and over the sum, of the routed ones.
    """

    layers: tuple[int, ...]
    tokens: int
    active: int
    routed: NDArray[np.int64]
    mass: NDArray[np.float64]
    probability: NDArray[np.float64]
    weight_norms: NDArray[np.float64]
    logit_norm_mean: NDArray[np.float64]
    logit_norm_sd: NDArray[np.float64]
    logit_norm_log_sd: NDArray[np.float64]
    value_mean: NDArray[np.float64]
    value_sd: NDArray[np.float64]
    peak_ratio: NDArray[np.float64]
    top_share: NDArray[np.float64]

    @property
    def frequency(self) -> NDArray[np.float64]:
        """Share of tokens routed to each expert, float64, shape (layers, experts)."""
        return self.routed / self.tokens

    def inverse_document_frequency(self, index: int) -> NDArray[np.float64]:
        """IDF of each expert of the layer at place `index`, float64, shape (experts,)."""
        return inverse_document_frequency(self.routed[index], self.tokens)

    def average_length(self, variant: str, index: int) -> float:
        """avgL of the layer at place `index`: over tokens, or over experts."""
        if variant == "token":
            return float(self.logit_norm_mean[index])
        return float(self.weight_norms[index].mean())


def calibration_table(calibration: Calibration) -> pd.DataFrame:
    """A row per layer and expert; `calibration_of` reads it back."""
    import pandas as pd

    layers, experts = calibration.routed.shape
    columns: dict[str, Any] = {
        "layer": np.repeat(np.array(calibration.layers, dtype=np.int64), experts),
        "expert": np.tile(np.arange(experts, dtype=np.int64), layers),
        "tokens": np.full(layers * experts, calibration.tokens, dtype=np.int64),
        "active": np.full(layers * experts, calibration.active, dtype=np.int64),
        "routed": calibration.routed.reshape(-1),
        "mass": calibration.mass.reshape(-1),
        "probability": calibration.probability.reshape(-1),
        "weight_norm": calibration.weight_norms.reshape(-1),
    }
    for name in _LAYER_COLUMNS:
        columns[name] = np.repeat(getattr(calibration, name), experts)
    return pd.DataFrame(columns)


def calibration_of(table: pd.DataFrame) -> Calibration:
    """The calibration that `calibration_table` made a table of."""
    layers = tuple(int(layer) for layer in table["layer"].drop_duplicates())

    def grid(name: str) -> NDArray[Any]:
        return table[name].to_numpy().reshape(len(layers), -1)

    return Calibration(
        layers,
        int(table["tokens"].iloc[0]),
        int(table["active"].iloc[0]),
        grid("routed"),
        grid("mass"),
        grid("probability"),
        grid("weight_norm"),
        *(grid(name)[:, 0] for name in _LAYER_COLUMNS),
    )
