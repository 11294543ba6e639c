"""StreamingLLM: the first page and the most recent ones (Xiao et al., 2024, arXiv:2309.17453)."""

from __future__ import annotations

import torch

from whencount.pages.selectors.base import LayerView, Stateless


class Streaming(Stateless):
    """The same pages in every head. Keys keep the positions at which they were written.

    Where the study keeps sink pages for all selectors, the first page is one of them already.
    """

    def choose(self, view: LayerView, count: int) -> torch.Tensor:
        """See `Selector.choose`."""
        stop = view.candidates
        pages = torch.arange(stop - count, stop, device=view.queries.device)
        if view.settings.sink_pages == 0:
            pages[0] = 0
        rows, heads = view.queries.shape[:2]
        return pages.expand(rows, heads, -1)
