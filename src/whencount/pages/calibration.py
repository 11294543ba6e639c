"""What the prefill shows of pages: frequencies, the scale of values, lengths, attention mass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from whencount.pages.prefill import Prefix


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
        mass: [positions, query heads, pages] float32, exact attention mass of each page; the rest
            to 1 lies on the current page.
    """

    existed: torch.Tensor
    entered: Mapping[int, torch.Tensor]
    head_scale: torch.Tensor
    group_scale: torch.Tensor
    average_length: torch.Tensor
    lengths: torch.Tensor
    mass: torch.Tensor


@dataclass(frozen=True)
class Calibration:
    """The calibration of a prefilled context, by layer."""

    layers: tuple[LayerCalibration, ...]


def calibrate(prefix: Prefix, budgets: Sequence[int]) -> Calibration:
    """Statistics of the pages of a context at its calibration positions, causal in each of them."""
    raise NotImplementedError
