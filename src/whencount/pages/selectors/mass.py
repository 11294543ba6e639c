"""The oracle of exact attention: the pages that really hold the most of a head's attention."""

from __future__ import annotations

import torch

from whencount.pages.selectors.base import LayerView, Stateless, best


class AttentionMass(Stateless):
    """Each query head takes the pages with its largest attention mass; reads every key."""

    def choose(self, view: LayerView, count: int) -> torch.Tensor:
        """See `Selector.choose`."""
        return best(view.logits().logsumexp(-1), count)
