"""PCA: centred principal components, split-rectified."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from whencount.bases.base import Basis, Codes, TrainingStates, thread_limit
from whencount.bases.linear import split_rectified
from whencount.errors import InputError


@dataclass(frozen=True)
class PcaOptions:
    """Options.

    Attributes:
        components: how many leading components.
    """

    components: int = 384


class Pca(Basis[PcaOptions]):
    """Centred PCA by the eigenvectors of the covariance; signs as scikit-learn fixes them."""

    name = "pca"
    options_type = PcaOptions

    @classmethod
    def fit_tensors(
        cls, states: TrainingStates, seed: int, options: Any, device: str, threads: int
    ) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
        """Fit mean, shape (dimensions,), and components, shape (components, dimensions)."""
        from sklearn.decomposition import PCA

        limit = min(states.dimensions, len(states.train))
        if options.components > limit:
            raise InputError(
                f"basis pca: {options.components} components asked of {len(states.train)} states of"
                f" {states.dimensions} dimensions; at most {limit} exist"
            )
        with thread_limit(threads):
            model = PCA(options.components, svd_solver="covariance_eigh", copy=False)
            model.fit(states.rows(states.train))
        return (
            {
                "mean": torch.from_numpy(model.mean_.astype(np.float32)),
                "components": torch.from_numpy(model.components_.astype(np.float32)),
            },
            {"explained_variance_share": float(model.explained_variance_ratio_.sum())},
        )

    @property
    def vocabulary_size(self) -> int:
        """Two features per component."""
        return 2 * self.options.components

    def encode(self, states: torch.Tensor) -> Codes:
        """Dense codes, width 2 x components."""
        return split_rectified((states - self.tensors["mean"]) @ self.tensors["components"].T)
