"""Attention of one decode step: over every token, or over chosen pages only."""

from __future__ import annotations

import torch

from whencount.pages.selectors.base import LayerView


def read_everything(view: LayerView) -> torch.Tensor:
    """Full attention of rows that share a context, [rows, query heads, size].

    The context's keys meet the queries of all rows in one product, so they are read once. Sums are
    in float32.
    """
    pages, slots = view.pages, view.slots
    shares = pages.logits(view.queries, slots, view.scaling).softmax(-1)
    rows, heads, _ = shares.shape
    known = pages.shared * pages.page_tokens
    folded = shares[..., :known].reshape(rows, pages.heads, -1, known).transpose(0, 1)
    shared = torch.bmm(folded.reshape(pages.heads, -1, known), pages.whole(pages.values).float())
    own = torch.matmul(
        shares[..., known:].reshape(rows, pages.heads, -1, shares.shape[-1] - known),
        pages.own(pages.values, slots).float(),
    )
    found = shared.view(pages.heads, rows, -1, own.shape[-1]).transpose(0, 1) + own
    return found.reshape(rows, heads, -1).to(view.queries.dtype)


def read_pages(view: LayerView, chosen: torch.Tensor) -> torch.Tensor:
    """Attention over chosen pages, [rows, query heads, size].

    Args:
        view: the layer; the pages of its rows.
        chosen: [rows, units, n] int64, pages from the start of the context, the current one last.
            Where units are key-value heads, the query heads of a group share them.
    """
    pages = view.pages
    rows, units, count = chosen.shape
    places = pages.places(chosen, view.slots).flatten()
    # Every page but the current one, which is last, is complete: a slice in place of a mask.
    tokens = count * pages.page_tokens - (pages.complete + 1) * pages.page_tokens + pages.tokens
    keys, values = (
        stored.index_select(0, places).view(rows, units, -1, stored.shape[-1])[:, :, :tokens]
        for stored in (pages.keys, pages.values)
    )
    queries = view.queries.reshape(rows, units, -1, view.queries.shape[-1])
    found = torch.nn.functional.scaled_dot_product_attention(
        queries, keys, values, scale=view.scaling
    )
    return found.reshape(view.queries.shape)
