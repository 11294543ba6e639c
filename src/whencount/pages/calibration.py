"""What the prefill shows of pages: frequencies, the scale of values, lengths, attention mass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from whencount.pages.prefill import LayerPrefix, Prefix, block_bytes
from whencount.pages.settings import PageSettings
from whencount.pages.summaries import (
    non_negative,
    page_extremes,
    page_lengths,
    shared_bounds,
    shared_products,
)


@dataclass(frozen=True)
class LayerCalibration:
    """Statistics of one layer over its complete pages at the calibration positions.

    A page exists at a position once it is complete and no longer the current one: the current page
    is kept whatever its score, so it is no candidate and counts neither in `existed` nor in
    `entered`; no more do sink pages.

    Attributes:
        existed: [pages] int64, positions at which the page exists (N).
        entered: by budget, [query heads, pages] int64, positions at which the page enters the
            top k of those that exist then, by Quest's bound (df).
        head_scale: [query heads] float64, median positive `softplus(bound)`.
        group_scale: [key-value heads] float64, the same over all query heads of a group.
        average_length: [key-value heads] float64, mean length of the complete pages.
        lengths: [key-value heads, pages] float64, norm of a page's concatenated extremes.
        exists: [positions, pages] bool, whether the page exists at the position.
        bounds: [positions, query heads, pages] float32, Quest's bound; of no meaning where the
            page does not exist, since it may then hold later tokens.
        mass: [positions, query heads, pages] float32, exact attention mass of each page before
            the current one; the rest to 1 lies on the current page.
    """

    existed: torch.Tensor
    entered: Mapping[int, torch.Tensor]
    head_scale: torch.Tensor
    group_scale: torch.Tensor
    average_length: torch.Tensor
    lengths: torch.Tensor
    exists: torch.Tensor
    bounds: torch.Tensor
    mass: torch.Tensor


@dataclass(frozen=True)
class Calibration:
    """The calibration of a prefilled context, by layer."""

    layers: tuple[LayerCalibration, ...]


def calibrate(prefix: Prefix, budgets: Sequence[int]) -> Calibration:
    """Statistics of the pages of a context at its calibration positions, causal in each of them.

    A query at a position is compared with pages that were complete before it, whose extremes no
    later token can change.

    Args:
        prefix: the context.
        budgets: in tokens; k follows from each.

    Raises:
        InputError: a budget that does not pay for the pages that are always kept.
    """
    choices = {budget: prefix.settings.choices_of(budget) for budget in budgets}
    return Calibration(
        tuple(
            _calibrate_layer(
                layer,
                prefix.positions.to(layer.keys.device),
                prefix.scaling,
                prefix.settings,
                choices,
            )
            for layer in prefix.layers
        )
    )


def _calibrate_layer(
    layer: LayerPrefix,
    positions: torch.Tensor,
    scaling: float,
    settings: PageSettings,
    choices: Mapping[int, int],
) -> LayerCalibration:
    groups, tokens, _ = layer.keys.shape
    pages = tokens // settings.page_tokens
    extremes = page_extremes(layer.keys[:, : pages * settings.page_tokens], settings.page_tokens)
    lengths = page_lengths(extremes)
    numbers = torch.arange(pages, device=positions.device)
    before = numbers < (positions // settings.page_tokens)[:, None]
    exists = before & (numbers >= settings.sink_pages)
    bounds = shared_bounds(layer.queries, extremes, scaling)
    head_scale, group_scale = _scales(bounds, exists, groups)
    return LayerCalibration(
        existed=exists.sum(0),
        entered={budget: _entered(bounds, exists, count) for budget, count in choices.items()},
        head_scale=head_scale,
        group_scale=group_scale,
        average_length=lengths.mean(-1) if pages else lengths.new_ones(groups),
        lengths=lengths,
        exists=exists,
        bounds=bounds,
        mass=_mass(layer, positions, scaling, settings.page_tokens) * before[:, None],
    )


def _entered(bounds: torch.Tensor, exists: torch.Tensor, count: int) -> torch.Tensor:
    """[query heads, pages] int64: positions at which a page is among the `count` best."""
    masked = bounds.masked_fill(~exists[:, None], -torch.inf)
    top = masked.topk(min(count, bounds.shape[-1]), dim=-1).indices
    inside = torch.zeros_like(bounds, dtype=torch.bool).scatter_(-1, top, True)
    return (inside & exists[:, None]).sum(0)


def _scales(
    bounds: torch.Tensor, exists: torch.Tensor, groups: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Median positive values by query head and by group; 1 where there is none."""
    values = non_negative(bounds).transpose(0, 1)[:, exists]
    values = values.masked_fill(values <= 0, torch.nan)
    if not values.shape[-1]:
        return values.new_ones(len(values)), values.new_ones(groups)
    found = (
        part.nanquantile(0.5, dim=-1, interpolation="midpoint").nan_to_num(1.0)
        for part in (values, values.reshape(groups, -1))
    )
    head, group = found
    return head, group


def _mass(
    layer: LayerPrefix, positions: torch.Tensor, scaling: float, page_tokens: int
) -> torch.Tensor:
    """Softmax of a position over the tokens up to it, summed by complete page; float32."""
    heads, tokens = layer.queries.shape[1], layer.keys.shape[1]
    pages = tokens // page_tokens
    keys = layer.keys.float()
    numbers = torch.arange(tokens, device=positions.device)
    step = max(1, block_bytes(keys.device) // (4 * heads * tokens))
    parts = []
    for chunk, own in zip(
        torch.split(layer.queries, step), torch.split(positions, step), strict=True
    ):
        logits = shared_products(chunk.float() * scaling, keys)
        logits.masked_fill_((numbers > own[:, None])[:, None], -torch.inf)
        shares = logits.softmax(-1)[..., : pages * page_tokens]
        parts.append(shares.reshape(len(chunk), heads, pages, page_tokens).sum(-1))
    return torch.cat(parts)
