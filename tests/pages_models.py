"""A tiny random Llama with grouped heads, and what its native attention gives."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch

from whencount.pages.settings import PageSettings

VOCABULARY = 89
LAYERS = 3
HEADS, GROUPS, SIZE = 4, 2, 16
SETTINGS = PageSettings(dense_layers=1, calibration_positions=12)


@cache
def tiny_llama(dtype: torch.dtype = torch.float32) -> Any:
    """Three layers, four query heads on two key-value heads; weights large enough to disagree."""
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        hidden_size=HEADS * SIZE,
        intermediate_size=96,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=GROUPS,
        head_dim=SIZE,
        vocab_size=VOCABULARY,
        max_position_embeddings=2048,
        initializer_range=0.3 if dtype == torch.float32 else 0.1,
        eos_token_id=None,
        bos_token_id=None,
    )
    model: Any = LlamaForCausalLM(config)
    return model.eval().requires_grad_(False).to(dtype)


def tokens(count: int, seed: int = 0) -> torch.Tensor:
    """Random token ids."""
    return torch.randint(VOCABULARY, (count,), generator=torch.Generator().manual_seed(seed))


def native_logits(model: Any, ids: torch.Tensor) -> torch.Tensor:
    """Logits of transformers' own attention at every position, [tokens, vocabulary]."""
    model.set_attn_implementation("sdpa")
    found: torch.Tensor = model(ids[None], use_cache=False).logits[0].float()
    return found


def native_attention(model: Any, ids: torch.Tensor) -> list[torch.Tensor]:
    """Attention probabilities by layer, [query heads, tokens, tokens], by the eager code."""
    model.set_attn_implementation("eager")
    output = model(ids[None], use_cache=False, output_attentions=True)
    model.set_attn_implementation("sdpa")
    return [layer[0] for layer in output.attentions]
