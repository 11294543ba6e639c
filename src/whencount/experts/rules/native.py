"""All off: the router's own choice."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from whencount.experts.routing import RoutedTokens


@dataclass(frozen=True)
class Native:
    """The experts with the largest probabilities; the native forward at the native number."""

    name: str = "native"

    def choose(self, tokens: RoutedTokens, active: int) -> Tensor | None:
        """None where `active` is the router's own number."""
        return None if active == tokens.native.shape[1] else tokens.first(active)
