"""Identity: the state's own coordinates, split-rectified."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from whencount.bases.base import Basis, Codes, TrainingStates
from whencount.bases.linear import split_rectified


@dataclass(frozen=True)
class IdentityOptions:
    """The identity basis has no options."""


class Identity(Basis[IdentityOptions]):
    """`[max(x, 0), max(-x, 0)]`; nothing is fitted."""

    name = "identity"
    options_type = IdentityOptions

    @classmethod
    def fit_tensors(
        cls, states: TrainingStates, seed: int, options: Any, device: str, threads: int
    ) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
        """Nothing is learned."""
        return {}, {}

    @property
    def vocabulary_size(self) -> int:
        """Two features per coordinate."""
        return 2 * self.dimensions

    def encode(self, states: torch.Tensor) -> Codes:
        """Dense codes, width 2 x dimensions."""
        return split_rectified(states)
