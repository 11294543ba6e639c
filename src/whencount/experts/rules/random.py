"""Random experts: the floor."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from whencount.experts.routing import RoutedTokens

# The multipliers of SplitMix64 (Steele et al., 2014) as signed numbers; products wrap around.
_GOLDEN = -7046029254386353131
_FIRST = -4658895280553007687
_SECOND = -7723592293110705685


@dataclass(frozen=True)
class RandomExperts:
    """Experts drawn without replacement, all sets equally likely.

    The draw depends on the seed, the layer, the token and its position alone, so that neither
    batching nor padding nor the device changes it.
    """

    seed: int = 0
    name: str = "random"

    def choose(self, tokens: RoutedTokens, active: int) -> Tensor:
        """See `Rule`."""
        device, experts = tokens.logits.device, tokens.logits.shape[1]
        passage = tokens.passage
        state = torch.full((1,), self.seed, dtype=torch.int64, device=device)
        for part in (
            torch.full((1,), tokens.index, dtype=torch.int64, device=device),
            passage.positions.to(device),
            passage.token_ids.to(device),
        ):
            state = _mixed(state + part * _GOLDEN)
        keys = _mixed(state[:, None] + torch.arange(1, experts + 1, device=device) * _GOLDEN)
        return tokens.best(keys, active)


def _mixed(values: Tensor) -> Tensor:
    """The finaliser of SplitMix64, on int64."""
    values = (values ^ _shifted(values, 30)) * _FIRST
    values = (values ^ _shifted(values, 27)) * _SECOND
    return values ^ _shifted(values, 31)


def _shifted(values: Tensor, bits: int) -> Tensor:
    """Logical shift to the right: int64 tensors shift arithmetically."""
    return (values >> bits) & ((1 << (64 - bits)) - 1)
