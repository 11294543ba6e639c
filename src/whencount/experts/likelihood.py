"""Negative log-likelihood of documents, in nats, with bounded memory."""

from __future__ import annotations

import torch
import torch.nn.functional
from torch import Tensor, nn

from whencount.experts.documents import Documents, on_input_device

_POSITIONS_PER_BLOCK = 256


def document_likelihoods(model: nn.Module, block: Documents) -> Tensor:
    """Mean negative log-likelihood of each document's tokens but its first.

    Args:
        model: a causal model of transformers.
        block: int64, shape (documents, at least 2 tokens).

    Returns:
        float64 on the CPU, shape (documents,), nats per token.
    """
    ids = on_input_device(model, block)
    logits = model(input_ids=ids, use_cache=False).logits
    return token_likelihoods(logits, ids).mean(dim=1).cpu()


def token_likelihoods(logits: Tensor, token_ids: Tensor) -> Tensor:
    """Negative log-likelihood of every token but the first of each row.

    Args:
        logits: shape (rows, tokens, vocabulary), any floating precision.
        token_ids: int64, shape (rows, tokens).

    Returns:
        float64, shape (rows, tokens - 1), nats, computed in float32, block by block.
    """
    targets = token_ids[:, 1:].to(logits.device)
    blocks = []
    for start in range(0, targets.shape[1], _POSITIONS_PER_BLOCK):
        part = logits[:, start : start + _POSITIONS_PER_BLOCK][:, : targets.shape[1] - start]
        wanted = targets[:, start : start + _POSITIONS_PER_BLOCK]
        losses = torch.nn.functional.cross_entropy(
            part.float().transpose(1, 2), wanted, reduction="none"
        )
        blocks.append(losses.double())
    return torch.cat(blocks, dim=1)
