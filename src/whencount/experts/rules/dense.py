"""The dense softmax mixture: the label-free reference."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from whencount.experts.routing import RoutedTokens


@dataclass(frozen=True)
class Dense:
    """All experts, mixed by the router probability, whatever the number of active ones."""

    name: str = "dense"

    def choose(self, tokens: RoutedTokens, active: int) -> Tensor:
        """See `Rule`."""
        del active
        return tokens.order
