"""Gaussian: a random projection, split-rectified."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from whencount.bases.base import Basis, Codes, TrainingStates
from whencount.bases.linear import split_rectified


@dataclass(frozen=True)
class GaussianOptions:
    """Options.

    Attributes:
        dimensions: how many random directions (n).
    """

    dimensions: int = 768


class Gaussian(Basis[GaussianOptions]):
    """Projection by a matrix of N(0, 1) / sqrt(n), split-rectified; drawn, not fitted."""

    name = "gaussian"
    options_type = GaussianOptions

    @classmethod
    def fit_tensors(
        cls, states: TrainingStates, seed: int, options: Any, device: str, threads: int
    ) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
        """Draw the projection, shape (n, dimensions)."""
        n = options.dimensions
        draws = np.random.default_rng(seed).standard_normal((n, states.dimensions))
        return {"projection": torch.from_numpy((draws / np.sqrt(n)).astype(np.float32))}, {}

    @property
    def vocabulary_size(self) -> int:
        """Two features per direction."""
        return 2 * self.options.dimensions

    def encode(self, states: torch.Tensor) -> Codes:
        """Dense codes, width 2 n."""
        return split_rectified(states @ self.tensors["projection"].T)
