"""Log-likelihood of whole documents by rolling windows, as the standard harness defines it.

Every token is predicted exactly once. The first window begins with the token that ends a text
before this one; each later window has one token of context at least, and the last one is filled up
with more. Source: `loglikelihood_rolling` of lm-evaluation-harness 0.4.13, context length 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from whencount.errors import InputError
from whencount.experts.documents import on_input_device
from whencount.experts.likelihood import token_likelihoods
from whencount.progress import progress


@dataclass(frozen=True)
class Window:
    """A piece of a document that one row of a forward pass reads.

    Attributes:
        document: which document.
        ids: context and predicted tokens, at most the model's context and one more.
        predicted: how many at the end are predicted.
    """

    document: int
    ids: tuple[int, ...]
    predicted: int


def rolling_windows(
    token_ids: Sequence[int], prefix: int, context: int, document: int = 0
) -> list[Window]:
    """The windows of a document.

    Args:
        token_ids: of the document, without special tokens.
        prefix: what stands before it.
        context: the most tokens that the model reads at once.
        document: its number, for the windows.

    Returns:
        None for an empty document.
    """
    count = len(token_ids)
    if count == 0:
        return []
    first = min(context, count)
    windows = [Window(document, (prefix, *token_ids[:first]), first)]
    done = first
    while done < count:
        predicted = min(count - done, context)
        end = done + predicted
        # All before the predicted tokens is context: one token, but for the last window.
        windows.append(Window(document, tuple(token_ids[end - context - 1 : end]), predicted))
        done = end
    return windows


def rolling_likelihoods(
    model: Any,
    documents: Sequence[Sequence[int]],
    prefix: int,
    context: int,
    tokens_per_pass: int = 4096,
    description: str = "measure the likelihood",
) -> NDArray[np.float64]:
    """Summed negative log-likelihood of each document, in nats.

    Windows of one length share forward passes, the longest first, so that nothing is padded.

    Args:
        model: a causal model of transformers.
        documents: token ids, without special tokens.
        prefix: the token that stands before each.
        context: the most tokens that the model reads at once.
        tokens_per_pass: of all windows of a forward pass, at most (one window at least).
        description: what is being done, for a person.

    Returns:
        float64, shape (documents,); 0 for an empty document.

    Raises:
        InputError: a likelihood is not finite.
    """
    windows = [
        window
        for number, ids in enumerate(documents)
        for window in rolling_windows(ids, prefix, context, number)
    ]
    order = sorted(range(len(windows)), key=lambda place: -len(windows[place].ids))
    batches: list[list[Window]] = []
    for place in order:
        window = windows[place]
        size = len(window.ids)
        full = batches and (len(batches[-1]) + 1) * (size - 1) > tokens_per_pass
        if not batches or full or len(batches[-1][0].ids) != size:
            batches.append([])
        batches[-1].append(window)
    totals = np.zeros(len(documents))
    sizes = [sum(window.predicted for window in batch) for batch in batches]
    with torch.inference_mode():
        for batch in progress(batches, sum(sizes), description, "token", weights=sizes):
            ids = on_input_device(model, np.array([window.ids for window in batch]))
            logits = model(input_ids=ids[:, :-1], use_cache=False).logits
            losses = token_likelihoods(logits, ids).cpu().numpy()
            for window, row in zip(batch, losses, strict=True):
                totals[window.document] += row[-window.predicted :].sum()
    if not np.isfinite(totals).all():
        raise InputError(
            "the likelihood of a document is not a finite number; run the model with"
            " `precision: fp32`"
        )
    return totals
