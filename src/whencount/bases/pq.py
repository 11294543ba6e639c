"""Product quantisation: one code per sub-space."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from whencount.bases.base import Basis, Codes, TrainingStates, require_states, thread_limit
from whencount.errors import InputError


@dataclass(frozen=True)
class PqOptions:
    """Options.

    Attributes:
        subspaces: how many equal parts the coordinates are cut into.
        bits: of a code; 2 ** bits codes per sub-space.
        iterations: of Lloyd's algorithm in each sub-space.
        states_per_code: the fit draws at most this many training states per code.
    """

    subspaces: int = 8
    bits: int = 8
    iterations: int = 25
    states_per_code: int = 256


class Pq(Basis[PqOptions]):
    """Weight 1 for the nearest code of each sub-space (Jegou, Douze & Schmid 2011).

    The states of the fit are drawn with the seed.
    """

    name = "pq"
    options_type = PqOptions

    @classmethod
    def fit_tensors(
        cls, states: TrainingStates, seed: int, options: Any, device: str, threads: int
    ) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
        """Fit centroids, shape (sub-spaces, codes, dimensions / sub-spaces)."""
        if states.dimensions % options.subspaces:
            raise InputError(
                f"basis pq: {states.dimensions} dimensions cannot be cut into"
                f" {options.subspaces} equal sub-spaces; choose a divisor"
            )
        import faiss

        codes = 1 << options.bits
        require_states(states, codes, "pq", "codes")
        sample = states.sample(options.states_per_code * codes, seed)
        with thread_limit(threads):
            model = faiss.ProductQuantizer(states.dimensions, options.subspaces, options.bits)
            model.cp.seed = seed + 1
            model.cp.niter = options.iterations
            model.cp.min_points_per_centroid = 1
            model.cp.max_points_per_centroid = options.states_per_code
            model.train(sample)
            centroids = faiss.vector_to_array(model.centroids)
        shape = (options.subspaces, codes, states.dimensions // options.subspaces)
        return (
            {"centroids": torch.from_numpy(centroids.reshape(shape))},
            {"fitted_states": len(sample)},
        )

    @property
    def vocabulary_size(self) -> int:
        """One feature per sub-space and code."""
        return int(self.options.subspaces) << int(self.options.bits)

    def encode(self, states: torch.Tensor) -> Codes:
        """Sparse codes: feature `sub-space * codes + code`, all values 1."""
        centroids = self.tensors["centroids"]
        subspaces, codes, width = centroids.shape
        parts = states.reshape(len(states), subspaces, width).transpose(0, 1)
        scores = torch.baddbmm(
            (centroids * centroids).sum(2)[:, None, :], parts, centroids.mT, beta=-1, alpha=2
        )
        chosen = scores.argmax(dim=2).T
        first = torch.arange(subspaces, device=states.device) * codes
        features = (chosen + first).to(torch.int32).contiguous()
        return Codes(torch.ones_like(features, dtype=torch.float32), features, subspaces * codes)
