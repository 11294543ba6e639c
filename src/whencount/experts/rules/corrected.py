"""The switchable correction of the router probability (study, sections 1 and 10)."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from whencount.experts.calibration import Calibration
from whencount.experts.routing import RoutedTokens
from whencount.experts.rules.native import Native
from whencount.scoring import Configuration, Parameters, length_factor, term_weight


@dataclass(frozen=True)
class Corrected:
    """Experts by `w_e T(p, l)`: p the router probability, w the IDF of the expert's frequency.

    The length behind l is the L2 norm of the token's router logits (variant `token`) or of the
    expert's router weights (variant `expert`), relative to its mean over the calibration tokens
    or over the layer's experts. With all three switches off the native rule decides.
    """

    calibration: Calibration
    configuration: Configuration
    variant: str = "token"
    parameters: Parameters = field(default_factory=Parameters)

    @property
    def name(self) -> str:
        """The bits of the configuration."""
        return str(self.configuration)

    def choose(self, tokens: RoutedTokens, active: int) -> Tensor | None:
        """See `Rule`."""
        if self.name == "000":
            return Native().choose(tokens, active)
        return tokens.best(self.scores(tokens), active)

    def scores(self, tokens: RoutedTokens) -> Tensor:
        """The corrected scores, float64, shape (tokens, experts); 0 where the probability is 0."""
        values = tokens.probabilities.double()
        weights = term_weight(
            values, self._factor(tokens), self.configuration.saturation, self.parameters.k1
        )
        # 0 / 0 where a probability underflows and k1 or the length is 0.
        weights = torch.where(values == 0, 0.0, weights)
        if self.configuration.idf:
            idf = torch.tensor(self.calibration.inverse_document_frequency(tokens.index))
            weights = weights * idf.to(weights.device)
        return weights

    def _factor(self, tokens: RoutedTokens) -> Tensor:
        """Length factors, float64, broadcasting to (tokens, experts)."""
        device = tokens.logits.device
        if not self.configuration.length:
            return torch.ones((1, 1), dtype=torch.float64, device=device)
        if self.variant == "token":
            lengths: Tensor = tokens.logits.double().norm(dim=1, keepdim=True)
        else:
            norms = torch.tensor(self.calibration.weight_norms[tokens.index])
            lengths = norms.to(device)[None, :]
        average = self.calibration.average_length(self.variant, tokens.index)
        return length_factor(lengths, lengths.new_tensor(average), self.parameters.b)
