"""The hook into transformers: who reads keys and values in place of plain attention.

A forward call that passes `page_reader=...` hands the queries, keys and values of every layer to
it; any other call is transformers' own attention (`sdpa`), bit for bit.
"""

from __future__ import annotations

from typing import Any, Protocol

import torch
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

NAME = "whencount_pages"


class PageReader(Protocol):
    """What a forward call may pass as `page_reader`."""

    def read(
        self,
        layer: int,
        queries: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
        scaling: float,
    ) -> torch.Tensor | None:
        """Attention of one layer over the tokens of this call.

        Args:
            layer: from 0.
            queries: [rows, query heads, tokens, size], rotated.
            keys, values: [rows, key-value heads, tokens, size].
            scaling: the factor of query times key.

        Returns:
            [rows, query heads, tokens, size], or None for plain causal attention.
        """


def attach(model: Any) -> None:
    """Let the attention of a model go through the hook from now on."""
    if model.config._attn_implementation != NAME:
        AttentionInterface.register(NAME, _attention)
        # Without one of its own name a hook gets no mask at all, not even for padding.
        AttentionMaskInterface.register(NAME, sdpa_mask)
        model.set_attn_implementation(NAME)


def _attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    *,
    page_reader: PageReader | None = None,
    **options: Any,
) -> tuple[torch.Tensor, None]:
    if page_reader is not None:
        layer: Any = module.layer_idx
        output = page_reader.read(layer, query, key, value, options["scaling"])
        if output is not None:
            return output.transpose(1, 2), None
    plain: tuple[torch.Tensor, None] = sdpa_attention_forward(
        module, query, key, value, attention_mask, **options
    )
    return plain
