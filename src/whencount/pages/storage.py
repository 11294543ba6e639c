"""Pages of keys and values of one layer: those of the context once, those of each row apart."""

from __future__ import annotations

import torch

from whencount.pages.prefill import LayerPrefix
from whencount.pages.summaries import (
    no_extremes,
    own_products,
    page_extremes,
    shared_products,
    with_key,
)


class LayerPages:
    """Keys and values of one layer, a page in one piece, and the extremes of its keys.

    Complete pages of the context are shared by all rows. What follows them, from the context's last
    partial page on, each row holds itself, since it goes on writing there. Both lie in one array
    of pages, so that reading any pages of any rows is one gather.

    Attributes:
        tokens: how many each row has; every row has as many.
        shared: complete pages of the context.
        page_tokens: tokens of a page.
        heads: key-value heads.
        keys, values: [pages, page tokens, size]: shared pages by head, then own ones by row and
            head; their order is that of `places`.
        shared_extremes: [heads, shared, 2 * size] float32.
        own_extremes: [rows, heads, own pages, 2 * size] float32.
    """

    def __init__(self, prefix: LayerPrefix, rows: int, room: int, page_tokens: int) -> None:
        self.heads, self.tokens, size = prefix.keys.shape
        self.page_tokens = page_tokens
        self.shared = self.tokens // page_tokens
        whole = self.shared * page_tokens
        self._own = -(-(self.tokens - whole + room) // page_tokens)
        self._bottom = self.heads * self.shared
        pages = self._bottom + rows * self.heads * self._own
        device = prefix.keys.device
        self.keys = prefix.keys.new_zeros(pages, page_tokens, size)
        self.values = torch.zeros_like(self.keys)
        for target, source in ((self.keys, prefix.keys), (self.values, prefix.values)):
            shared = target[: self._bottom].view(self.heads, whole, size)
            shared.copy_(source[:, :whole])
            own = target[self._bottom :].view(rows, self.heads, -1, size)
            own[:, :, : self.tokens - whole] = source[:, whole:]
        self.shared_extremes = page_extremes(prefix.keys[:, :whole], page_tokens)
        self.own_extremes = no_extremes(rows, self.heads, self._own, 2 * size, device=device)
        if whole < self.tokens:
            self.own_extremes[:, :, :1] = page_extremes(prefix.keys[:, whole:], page_tokens)
        self._head = torch.arange(self.heads, device=device)

    @property
    def complete(self) -> int:
        """Pages before the current one, which is the last that has a token."""
        return (self.tokens - 1) // self.page_tokens

    def append(self, slots: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> None:
        """Write one token per row: slots [rows], keys and values [rows, heads, size]."""
        page, place = divmod(self.tokens - self.shared * self.page_tokens, self.page_tokens)
        base = (slots[:, None] * self.heads + self._head) * self._own + self._bottom + page
        self.keys[base, place] = keys
        self.values[base, place] = values
        self.own_extremes[slots, :, page] = with_key(self.own_extremes[slots, :, page], keys)
        self.tokens += 1

    def places(self, pages: torch.Tensor, slots: torch.Tensor) -> torch.Tensor:
        """Where pages of rows lie in `keys` and `values`.

        Args:
            pages: [rows, units, n] int64, page numbers from the start of the context; a unit is a
                key-value head or a query head (an equal number per key-value head, in order).
            slots: [rows] int64, rows of this storage.
        """
        units = pages.shape[1]
        heads = self._head.repeat_interleave(units // self.heads)[None, :, None]
        own = (slots[:, None, None] * self.heads + heads) * self._own + self._bottom - self.shared
        return pages + torch.where(pages < self.shared, heads * self.shared, own)

    def own(self, stored: torch.Tensor, slots: torch.Tensor) -> torch.Tensor:
        """Own keys or values of rows, [rows, heads, tokens, size]."""
        size = stored.shape[-1]
        own = stored[self._bottom :].view(-1, self.heads, self._own * self.page_tokens, size)
        return own[slots, :, : self.tokens - self.shared * self.page_tokens]

    def whole(self, stored: torch.Tensor) -> torch.Tensor:
        """Shared keys or values, [heads, tokens, size]."""
        tokens = self.shared * self.page_tokens
        return stored[: self._bottom].view(self.heads, tokens, stored.shape[-1])

    def logits(self, queries: torch.Tensor, slots: torch.Tensor, scaling: float) -> torch.Tensor:
        """Query times key of every token: [rows, query heads, size] to [..., tokens] float32."""
        queries = queries.float() * scaling
        shared = shared_products(queries, self.whole(self.keys).float())
        own = own_products(queries, self.own(self.keys, slots).float())
        return torch.cat((shared, own), dim=-1)
