"""Residual quantisation: one code per stage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from whencount.bases.base import Basis, Codes, TrainingStates, require_states, thread_limit


@dataclass(frozen=True)
class RqOptions:
    """Options.

    Attributes:
        stages: how many, each quantising what the ones before left over.
        bits: of a code; 2 ** bits codes per stage.
        iterations: of Lloyd's algorithm in each stage.
        states_per_code: the fit draws at most this many training states per code.
    """

    stages: int = 8
    bits: int = 8
    iterations: int = 25
    states_per_code: int = 256


class Rq(Basis[RqOptions]):
    """Weight 1 for the nearest code of each stage, chosen greedily (beam 1).

    Fitted stage by stage on states drawn with the seed.
    """

    name = "rq"
    options_type = RqOptions

    @classmethod
    def fit_tensors(
        cls, states: TrainingStates, seed: int, options: Any, device: str, threads: int
    ) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
        """Fit centroids, shape (stages, codes, dimensions)."""
        import faiss

        codes = 1 << options.bits
        require_states(states, codes, "rq", "codes")
        sample = states.sample(options.states_per_code * codes, seed)
        with thread_limit(threads):
            model = faiss.ResidualQuantizer(states.dimensions, options.stages, options.bits)
            model.train_type = faiss.ResidualQuantizer.Train_default
            model.max_beam_size = 1
            model.cp.seed = seed + 1
            model.cp.niter = options.iterations
            model.cp.min_points_per_centroid = 1
            model.cp.max_points_per_centroid = options.states_per_code
            model.train(sample)
            centroids = faiss.vector_to_array(model.codebooks)
        shape = (options.stages, codes, states.dimensions)
        return (
            {"centroids": torch.from_numpy(centroids.reshape(shape))},
            {"fitted_states": len(sample)},
        )

    @property
    def vocabulary_size(self) -> int:
        """One feature per stage and code."""
        return int(self.options.stages) << int(self.options.bits)

    def encode(self, states: torch.Tensor) -> Codes:
        """Sparse codes: feature `stage * codes + code`, all values 1."""
        centroids = self.tensors["centroids"]
        stages, codes, _ = centroids.shape
        norms = (centroids * centroids).sum(2)
        residual = states.clone()
        features = torch.empty((len(states), stages), dtype=torch.int32, device=states.device)
        for stage in range(stages):
            table = centroids[stage]
            chosen = torch.addmm(norms[stage], residual, table.T, beta=-1, alpha=2).argmax(dim=1)
            features[:, stage] = chosen + stage * codes
            residual -= table[chosen]
        return Codes(torch.ones_like(features, dtype=torch.float32), features, stages * codes)
