"""Queries as token vectors, with ColBERT's augmentation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from whencount.encoders import Encoder, StateBatch, Tokens
from whencount.errors import InputError


@dataclass(frozen=True)
class QueryTokens:
    """Token vectors of some queries, all of one number of places.

    Attributes:
        states: float32, shape (Q, places, d): rows of length 1; a place without a token is 0 and
            adds nothing to a score.
        real: bool, shape (Q, places): tokens of the query's own text. The others are [MASK]
            tokens, or nothing.
    """

    states: torch.Tensor
    real: torch.Tensor

    def __len__(self) -> int:
        return len(self.states)

    def pooled(self) -> torch.Tensor:
        """The mean of a query's own token vectors, made of length 1: float32, shape (Q, d)."""
        summed = (self.states * self.real[:, :, None]).sum(dim=1)
        return torch.nn.functional.normalize(summed, dim=1)

    def own(self) -> QueryTokens:
        """The queries without their [MASK] tokens, in as few places as the longest needs."""
        places = max(1, int(self.real.sum(dim=1).max())) if len(self) else 1
        real = self.real[:, :places]
        return QueryTokens(self.states[:, :places] * real[:, :, None], real)


def query_tokens(encoder: Encoder, texts: Sequence[str], places: int) -> QueryTokens:
    """Encode queries; those shorter than `places` are filled up with [MASK] tokens.

    The states of the [MASK] tokens join the query's: ColBERT's query augmentation (Khattab and
    Zaharia, 2020, arXiv:2004.12832). As in ColBERT's code they look at the query's own tokens, and
    none of these looks at them, so that the own states are those of the query alone. Content
    tokens beyond `places` are left out, as there. A tokenizer without a [MASK] leaves the places
    empty.

    Args:
        encoder: gives token states.
        texts: the queries.
        places: token vectors per query, 32 in ColBERT.

    Raises:
        InputError: `places` is below 1, or a state is not finite.
    """
    if places < 1:
        raise InputError(f"late interaction: {places} places for a query; give at least 1")
    tokens = encoder.tokenise(list(texts), "query")
    mask, room = encoder.mask_token, encoder.settings.max_tokens
    ids, content, attended = [], [], []
    for own, kept in zip(tokens.input_ids, tokens.content, strict=True):
        missing = 0 if mask is None else max(0, min(places - int(kept.sum()), room - len(own)))
        ids.append(np.concatenate([own, np.full(missing, mask or 0, dtype=np.int64)]))
        content.append(np.concatenate([kept, np.ones(missing, dtype=np.bool_)]))
        attended.append(np.arange(len(own) + missing) < len(own))
    counts = [min(int(kept.sum()), places) for kept in tokens.content]
    states = torch.zeros((len(texts), places, encoder.dimensions))
    real = torch.from_numpy(np.arange(places)[None, :] < np.asarray(counts)[:, None])

    def rows(batch: StateBatch) -> list[tuple[int, NDArray[Any]]]:
        found = batch.states.cpu().numpy()
        bounds = zip(batch.positions, batch.offsets[:-1], batch.offsets[1:], strict=True)
        return [(int(at), found[low:high][:places]) for at, low, high in bounds]

    for part in encoder.apply(Tokens(ids, content, attended), rows):
        for at, mine in part:
            if not np.isfinite(mine).all():
                raise InputError(
                    f"late interaction: a state of query {at + 1} is not finite; set the"
                    " encoder's precision to fp32"
                )
            states[at, : len(mine)] = torch.from_numpy(mine)
    return QueryTokens(torch.nn.functional.normalize(states, dim=2), real)
