"""The dense pass over a context: its keys and values, and queries at calibration positions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from whencount.pages.settings import PageSettings


@dataclass(frozen=True)
class LayerPrefix:
    """One layer of a prefilled context, without padding.

    Attributes:
        keys, values: [key-value heads, tokens, head size], the model's precision.
        queries: [positions, query heads, head size], rotated, at the calibration positions.
        received: [query heads, tokens] float32, attention that each token received, summed over
            all queries of the prefill; None where it was not asked for.
    """

    keys: torch.Tensor
    values: torch.Tensor
    queries: torch.Tensor
    received: torch.Tensor | None


@dataclass(frozen=True)
class Prefix:
    """A prefilled context, batch 1.

    Attributes:
        tokens: how many, padding left out.
        positions: [positions] int64, calibration positions, rising, counted from the first token.
        layers: by layer.
        scaling: the factor of query times key.
        logits: [vocabulary] float32, what follows the last token.
        settings: those it was prefilled under.
    """

    tokens: int
    positions: torch.Tensor
    layers: tuple[LayerPrefix, ...]
    scaling: float
    logits: torch.Tensor
    settings: PageSettings


def calibration_positions(tokens: int, count: int) -> torch.Tensor:
    """`(i + 1) tokens // count - 1` for every i, each once, rising; int64, the last is the end."""
    raise NotImplementedError


def prefill(
    model: Any,
    tokens: torch.Tensor,
    settings: PageSettings,
    *,
    attention_mask: torch.Tensor | None = None,
    received: bool = True,
) -> Prefix:
    """Read a context densely and keep what decoding and calibration need.

    Args:
        model: a causal language model of transformers; its attention is set to the hook.
        tokens: [tokens] int64.
        attention_mask: [tokens], 0 for padding at the left, which is then forgotten.
        received: also sum the attention each token receives (what `h2o` needs).

    Raises:
        InputError: an empty context, padding elsewhere, or logits that are not finite.
    """
    raise NotImplementedError
