"""H2O, heavy hitters beside recent pages (Zhang et al., 2023, arXiv:2306.14048), by whole pages."""

from __future__ import annotations

import torch

from whencount.pages.selectors.base import LayerView, first_of_best


class HeavyHitters:
    """Half of the pages are the most recent ones, half those that received the most attention.

    What a page received is the sum over its tokens of the softmax column sums of the prefill, by
    query head; attention while decoding is not added, so a page written then has its share of the
    context's tokens or nothing. The current page counts as a recent one. A page that is once left
    out is gone for good.
    """

    def __init__(self) -> None:
        self._held: dict[int, tuple[int, torch.Tensor]] = {}

    def choose(self, view: LayerView, count: int) -> torch.Tensor:
        """See `Selector.choose`."""
        rows, heads = view.queries.shape[:2]
        seen, held = self._held.get(view.layer, (0, view.slots.new_empty(rows, heads, 0)))
        if seen < view.candidates:
            fresh = torch.arange(seen, view.candidates, device=held.device)
            held = torch.cat((held, fresh.expand(rows, heads, -1)), dim=-1)
            kept = first_of_best(self._scores(view, count, held), count)
            held = held.gather(-1, kept.sort(dim=-1).values)
            self._held[view.layer] = (view.candidates, held)
        return held

    def keep(self, rows: torch.Tensor) -> None:
        """See `Selector.keep`."""
        self._held = {layer: (seen, held[rows]) for layer, (seen, held) in self._held.items()}

    def _scores(self, view: LayerView, count: int, held: torch.Tensor) -> torch.Tensor:
        received = view.prefix.received
        if received is None:
            raise ValueError("the prefill did not sum the attention that tokens receive")
        size, sinks = view.settings.page_tokens, view.settings.sink_pages
        room = (view.candidates + sinks) * size - received.shape[1]
        padded = torch.nn.functional.pad(received, (0, room))
        by_page = padded.reshape(len(received), -1, size).sum(-1)[:, sinks:]
        scores: torch.Tensor = by_page.expand(len(held), -1, -1).gather(-1, held)
        # Many sink pages may leave less than half for the others: then the latest of all.
        recent = min(count, (count + 1 + sinks) // 2 - 1)
        return scores.masked_fill(held >= view.candidates - recent, torch.inf)
