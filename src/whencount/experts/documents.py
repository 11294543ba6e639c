"""Documents of one fixed length in tokens, and a model run over them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from whencount.errors import InputError
from whencount.progress import progress

Documents = NDArray[np.int64]
"""Token ids, shape (documents, tokens)."""


def fixed_documents(
    texts: Iterable[str], encode: Callable[[str], Sequence[int]], tokens: int, documents: int
) -> Documents:
    """Token ids of documents of one fixed length: the texts in a row, cut every `tokens` tokens.

    Args:
        texts: read until there is enough.
        encode: a text to its token ids, without special tokens.
        tokens: of each document.
        documents: how many at most.

    Returns:
        int64, shape (documents, tokens); fewer documents where the texts end before.

    Raises:
        InputError: the texts do not fill one document.
    """
    wanted = tokens * documents
    ids: list[int] = []
    for text in texts:
        ids.extend(encode(text))
        if len(ids) >= wanted:
            break
    whole = min(len(ids) // tokens, documents)
    if whole == 0:
        raise InputError(
            f"the calibration text has {len(ids)} tokens, fewer than one document of {tokens};"
            " give more text or set a smaller number of tokens"
        )
    return np.array(ids[: whole * tokens], dtype=np.int64).reshape(whole, tokens)


def document_batches(documents: Documents, batch: int, description: str) -> Iterable[Documents]:
    """Blocks of documents, shape (at most batch, tokens), with progress."""
    blocks = [documents[start : start + batch] for start in range(0, len(documents), batch)]
    return progress(
        blocks, len(documents), description, "document", weights=[len(block) for block in blocks]
    )


def run_body(model: nn.Module, block: Documents) -> Any:
    """Run a model without its output layer over documents; returns its output."""
    body = getattr(model, "base_model", model)
    return body(input_ids=on_input_device(model, block), use_cache=False)


def on_input_device(model: nn.Module, block: Documents) -> Tensor:
    """Token ids where the model wants them."""
    ids = torch.from_numpy(np.ascontiguousarray(block))
    device = next(model.parameters()).device
    # A device map that keeps weights away moves the ids itself.
    return ids if device.type == "meta" else ids.to(device)
