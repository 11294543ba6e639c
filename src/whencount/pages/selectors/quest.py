"""Quest: the pages with the highest bound (Tang et al., 2024, arXiv:2406.10774)."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from whencount.pages.selectors.base import LayerView, Stateless, best


def by_group(values: torch.Tensor, groups: int) -> torch.Tensor:
    """Sums over query heads that share a key-value head, [rows, groups, n]."""
    rows, heads, pages = values.shape
    return values.reshape(rows, groups, heads // groups, pages).sum(2)


@dataclass(frozen=True)
class Quest(Stateless):
    """Each query head takes the pages with its highest bounds.

    The registered second form takes, for a whole group of query heads, the pages with the largest
    sum of `softplus(bound)` over its heads: the inner product of non-negative features that the
    switches of `corrected` start from. One scale for all heads of a group changes no ranking, so
    neither form needs calibration.
    """

    group: bool = False

    def choose(self, view: LayerView, count: int) -> torch.Tensor:
        """See `Selector.choose`."""
        if self.group:
            return best(by_group(view.values(), view.pages.heads), count)
        return best(view.bounds(), count)
