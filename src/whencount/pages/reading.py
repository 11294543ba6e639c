"""Attention of one decode step: over every token, or over chosen pages only."""

from __future__ import annotations

import torch

from whencount.pages.kernels import attend_pages
from whencount.pages.selectors.base import LayerView
from whencount.pages.summaries import own_products, shared_products


def read_everything(view: LayerView) -> torch.Tensor:
    """Full attention of rows that share a context, [rows, query heads, size].

    The context's keys meet the queries of all rows in one product, so they are read once. Sums are
    in float32.
    """
    pages, slots = view.pages, view.slots
    shares = pages.logits(view.queries, slots, view.scaling).softmax(-1)
    known = pages.shared * pages.page_tokens
    whole = pages.whole(pages.values).float().transpose(1, 2)
    own = pages.own(pages.values, slots).float().transpose(2, 3)
    found = shared_products(shares[..., :known], whole) + own_products(shares[..., known:], own)
    return found.to(view.queries.dtype)


def pages_to_read(view: LayerView, chosen: torch.Tensor | None, by_group: bool) -> torch.Tensor:
    """Every page that rows read: sink pages, chosen ones, the current one.

    Args:
        view: the layer; the pages of its rows.
        chosen: [rows, units, n] int64, numbers of candidates; None where there are no more of
            them than are paid for, so that no selector was asked.
        by_group: units are key-value heads; else query heads.

    Returns:
        [rows, units, pages] int64, rising, so that equal choices are summed alike to the last bit.
    """
    device, complete = view.queries.device, view.pages.complete
    shape = (len(view.slots), view.pages.heads if by_group else view.queries.shape[1], -1)
    if chosen is None:
        return torch.arange(complete + 1, device=device).expand(shape)
    sinks = view.settings.sink_pages
    pages = [(chosen + sinks).sort(dim=-1).values]
    if sinks:
        pages.insert(0, torch.arange(sinks, device=device).expand(shape))
    pages.append(torch.full((1,), complete, device=device).expand(shape))
    return torch.cat(pages, dim=-1)


def read_pages(view: LayerView, chosen: torch.Tensor) -> torch.Tensor:
    """Attention over chosen pages, [rows, query heads, size].

    Args:
        view: the layer; the pages of its rows.
        chosen: [rows, units, n] int64, pages from the start of the context, the current one last.
            Where units are key-value heads, the query heads of a group share them.
    """
    pages = view.pages
    rows, units, count = chosen.shape
    places = pages.places(chosen, view.slots).view(rows * units, count)
    # Every page but the current one, which is last, is complete: a length in place of a mask.
    tokens = count * pages.page_tokens - (pages.complete + 1) * pages.page_tokens + pages.tokens
    queries = view.queries.reshape(rows * units, -1, view.queries.shape[-1])
    compiled = queries.device.type == "cpu" and queries.dtype == torch.float32
    read = _read_compiled if compiled else _read_gathered
    return read(view, queries.contiguous(), places, tokens).view(view.queries.shape)


def _read_compiled(
    view: LayerView, queries: torch.Tensor, places: torch.Tensor, tokens: int
) -> torch.Tensor:
    """Read pages where they lie: half the time of gathering them on a CPU."""
    stored = (view.pages.keys.numpy(), view.pages.values.numpy())
    threads = torch.get_num_threads()
    return torch.from_numpy(
        attend_pages(queries.numpy(), *stored, places.numpy(), tokens, view.scaling, threads)
    )


def _read_gathered(
    view: LayerView, queries: torch.Tensor, places: torch.Tensor, tokens: int
) -> torch.Tensor:
    """Gather the pages, then plain scaled-dot-product attention."""
    keys, values = (
        stored.index_select(0, places.flatten()).view(len(places), -1, stored.shape[-1])[
            :, None, :tokens
        ]
        for stored in (view.pages.keys, view.pages.values)
    )
    return torch.nn.functional.scaled_dot_product_attention(
        queries[:, None], keys, values, scale=view.scaling
    )
