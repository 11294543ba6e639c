"""Loss-free balancing at inference: overloaded experts are scored down."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from whencount.experts.calibration import Calibration
from whencount.experts.routing import RoutedTokens


@dataclass(frozen=True)
class Balanced:
    """Experts by `p + strength (k / E - frequency)`.

    The inference-time analogue of loss-free balancing (Wang et al., 2024, arXiv:2408.15664), with
    the calibrated frequency in place of a bias that training updates; k is the number of active
    experts, E of all. Study, section 10.
    """

    calibration: Calibration
    strength: float = 0.1
    name: str = "balanced"

    def choose(self, tokens: RoutedTokens, active: int) -> Tensor:
        """See `Rule`."""
        return tokens.best(self.scores(tokens), active)

    def scores(self, tokens: RoutedTokens) -> Tensor:
        """float64, shape (tokens, experts)."""
        frequency = self.calibration.frequency[tokens.index]
        bias = self.strength * (self.calibration.active / len(frequency) - frequency)
        return tokens.probabilities.double() + torch.from_numpy(bias).to(tokens.logits.device)
