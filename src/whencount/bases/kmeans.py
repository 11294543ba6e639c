"""k-means: soft assignment to the nearest centroids."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from whencount.bases.base import Basis, Codes, TrainingStates, require_states, thread_limit
from whencount.bases.selection import top_k
from whencount.errors import InputError

_TEMPERATURE_STATES = 4096


@dataclass(frozen=True)
class KmeansOptions:
    """Options.

    Attributes:
        centroids: how many.
        nearest: how many of them a state is assigned to.
        iterations: of Lloyd's algorithm.
        states_per_centroid: the fit draws at most this many training states per centroid.
    """

    centroids: int = 4096
    nearest: int = 4
    iterations: int = 25
    states_per_centroid: int = 256


class Kmeans(Basis[KmeansOptions]):
    """The nearest centroids, weighted by a softmax of `-d^2 / temperature`.

    The temperature is the median of the positive squared distances from the first 4,096 training
    states to their nearest centroids (as many of them as are assigned). The
    states that the centroids are fitted on are drawn with the seed.
    """

    name = "kmeans"
    options_type = KmeansOptions

    @classmethod
    def fit_tensors(
        cls, states: TrainingStates, seed: int, options: Any, device: str, threads: int
    ) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
        """Fit centroids, shape (centroids, dimensions), and the temperature, shape (1,)."""
        import faiss

        if not 1 <= options.nearest <= options.centroids:
            raise InputError(
                f"basis kmeans: nearest is {options.nearest}; it must lie in"
                f" 1..{options.centroids}, the number of centroids"
            )
        require_states(states, options.centroids, "kmeans", "centroids")
        sample = states.sample(options.states_per_centroid * options.centroids, seed)
        with thread_limit(threads):
            model = faiss.Kmeans(
                states.dimensions,
                options.centroids,
                niter=options.iterations,
                seed=seed + 1,
                # Sampled above; faiss neither samples again nor warns about few points.
                max_points_per_centroid=options.states_per_centroid,
                min_points_per_centroid=1,
            )
            model.train(sample)
        centroids = torch.from_numpy(np.ascontiguousarray(model.centroids))
        first = torch.from_numpy(states.rows(states.train[:_TEMPERATURE_STATES]))
        distances, _ = nearest_centroids(first, centroids, options.nearest)
        positive = distances[distances > 0].double()
        temperature = float(np.median(positive.numpy())) if len(positive) else 1.0
        return (
            {"centroids": centroids, "temperature": torch.tensor([temperature])},
            {"fitted_states": len(sample), "temperature": temperature},
        )

    @property
    def vocabulary_size(self) -> int:
        """One feature per centroid."""
        return int(self.options.centroids)

    def encode(self, states: torch.Tensor) -> Codes:
        """Sparse codes; the values of a state sum to 1."""
        distances, features = nearest_centroids(
            states, self.tensors["centroids"], self.options.nearest
        )
        values = torch.softmax(-distances / self.tensors["temperature"], dim=1)
        return Codes(values, features, self.vocabulary_size)


def nearest_centroids(
    states: torch.Tensor, centroids: torch.Tensor, count: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Squared distances, float32, and ids, int32, of the nearest centroids, shape (n, count)."""
    scores = torch.addmm((centroids * centroids).sum(1), states, centroids.T, beta=-1, alpha=2)
    _, features = top_k(scores, count)
    # Taken anew from the differences: |x|^2 - 2 x.c + |c|^2 cancels when a state is near.
    chosen = centroids[features.long()]
    return ((states[:, None, :] - chosen) ** 2).sum(2), features
