"""Expert preservation: what the model cannot lose is kept whenever it is natively chosen."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from whencount.experts.routing import RoutedTokens

ExpertMask = NDArray[np.bool_]


class ScoringRule(Protocol):
    """A rule that takes the largest of some scores."""

    def scores(self, tokens: RoutedTokens) -> Tensor:
        """Shape (tokens, experts)."""


@dataclass(frozen=True)
class Preserved:
    """A scoring rule, except that preserved experts stay where the router chose them.

    Attributes:
        base: the rule that fills the remaining places.
        experts: bool, shape (layers, experts), those to preserve.
    """

    base: ScoringRule
    experts: ExpertMask = field(repr=False)
    name: str = "preserved"

    def choose(self, tokens: RoutedTokens, active: int) -> Tensor:
        """See `Rule`."""
        scores = self.base.scores(tokens)
        kept = torch.tensor(self.experts[tokens.index]).to(scores.device)
        chosen = torch.zeros_like(scores, dtype=torch.bool).scatter(1, tokens.first(active), True)
        return tokens.best(scores.masked_fill(chosen & kept, torch.inf), active)
