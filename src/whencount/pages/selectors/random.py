"""Random pages: the floor."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from whencount.pages.selectors.base import LayerView, Stateless, best


@dataclass(frozen=True)
class RandomPages(Stateless):
    """Each query head draws anew at every step; the draw follows from seed, layer and position."""

    seed: int

    def choose(self, view: LayerView, count: int) -> torch.Tensor:
        """See `Selector.choose`."""
        rows, heads = view.queries.shape[:2]
        draws = np.random.default_rng([self.seed, view.layer, view.pages.tokens])
        scores = torch.from_numpy(draws.random((heads, view.candidates)))
        return best(scores.to(view.queries.device), count).expand(rows, -1, -1)
