"""MaxSim and its three ablations over a block of documents.

    MaxSim(q, d) = sum over the tokens i of q of max over the tokens t of d of q_i . d_t

with token vectors of length 1 (Khattab and Zaharia, 2020, arXiv:2004.12832, section 3.3).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from whencount.late_interaction.queries import QueryTokens

_TOKENS_AT_ONCE = 4096
_NUMBERS_AT_ONCE = 64_000_000


@dataclass(frozen=True)
class DocumentTokens:
    """Token vectors of consecutive documents.

    Attributes:
        states: float32, shape (tokens, d), rows of length 1.
        offsets: int64, shape (documents + 1,).
    """

    states: torch.Tensor
    offsets: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def pooled(self) -> torch.Tensor:
        """The mean token vector of each document, float32, shape (documents, d); 0 without any."""
        bounds = torch.from_numpy(self.offsets).to(self.states.device)
        summed = torch.segment_reduce(self.states, "sum", offsets=bounds, axis=0, initial=0.0)
        counts = (bounds[1:] - bounds[:-1]).clamp(min=1)
        return summed / counts[:, None]

    def pieces(self, tokens: int) -> Iterator[tuple[int, int]]:
        """Ranges of documents of at most so many tokens; a single document may have more."""
        start = 0
        while start < len(self):
            stop = int(np.searchsorted(self.offsets, self.offsets[start] + tokens, "right")) - 1
            stop = max(stop, start + 1)
            yield start, stop
            start = stop


def token_maxima(queries: QueryTokens, documents: DocumentTokens) -> Iterator[torch.Tensor]:
    """max over the tokens t of d of q_i . d_t, for all queries, a few documents at a time.

    Yields:
        float32, shape (documents, Q, places). A document without tokens has -1, the least cosine,
        where a query has a token; an empty place has 0.
    """
    count, places, width = queries.states.shape
    flat = queries.states.reshape(count * places, width).to(documents.states.device)
    empty = (flat == 0).all(dim=1)
    tokens = max(1, min(_TOKENS_AT_ONCE, _NUMBERS_AT_ONCE // max(1, len(flat))))
    for start, stop in documents.pieces(tokens):
        low, high = int(documents.offsets[start]), int(documents.offsets[stop])
        products = documents.states[low:high] @ flat.T
        bounds = documents.offsets[start : stop + 1] - low
        yield _segment_maxima(products, bounds, empty).view(stop - start, count, places)


def _segment_maxima(
    products: torch.Tensor, bounds: NDArray[np.int64], empty: torch.Tensor
) -> torch.Tensor:
    """Maxima over consecutive rows: shape (segments, columns)."""
    filled = np.flatnonzero(np.diff(bounds))
    found = torch.full((len(bounds) - 1, products.shape[1]), -1.0, device=products.device)
    if len(filled):
        if products.device.type == "cpu":
            reduced = np.maximum.reduceat(products.numpy(), bounds[filled], axis=0)
            found[torch.from_numpy(filled)] = torch.from_numpy(reduced)
        else:
            edges = torch.from_numpy(np.append(bounds[filled], bounds[-1])).to(products.device)
            found[torch.from_numpy(filled).to(products.device)] = torch.segment_reduce(
                products, "max", offsets=edges, axis=0
            )
    found[:, empty] = 0.0
    return found


def maxsim(queries: QueryTokens, documents: DocumentTokens) -> NDArray[np.float32]:
    """MaxSim over all places: float32, shape (Q, documents)."""
    parts = [maxima.sum(dim=2).T.cpu().numpy() for maxima in token_maxima(queries, documents)]
    return _joined(parts, len(queries))


def exact_scores(
    queries: QueryTokens, documents: DocumentTokens, augmented: bool = True
) -> dict[str, NDArray[np.float32]]:
    """MaxSim and its ablations, each float32, shape (Q, documents).

    * `maxsim`: all places; the query's own tokens alone where it is not augmented;
    * `no_augmentation`: the query's own tokens alone, where it is augmented;
    * `augmentation`: all places, where it is not;
    * `mean_for_max`: the mean over the tokens of d in the place of the maximum, places as `maxsim`;
    * `one_vector`: the cosine of the mean token vectors, the query's own tokens alone.

    Args:
        queries: with their [MASK] tokens.
        documents: of the block.
        augmented: whether [MASK] tokens take part in `maxsim`, for encoders trained with them.
    """
    real = queries.real.to(documents.states.device)
    whole, own = [], []
    for maxima in token_maxima(queries, documents):
        whole.append(maxima.sum(dim=2).T.cpu().numpy())
        own.append((maxima * real[None]).sum(dim=2).T.cpu().numpy())
    means = documents.pooled()
    device = means.device
    used = queries if augmented else queries.own()
    summed = used.states.sum(dim=1).to(device)
    pooled = queries.pooled().to(device)
    return {
        "maxsim": _joined(whole if augmented else own, len(queries)),
        "no_augmentation" if augmented else "augmentation": _joined(
            own if augmented else whole, len(queries)
        ),
        "mean_for_max": (summed @ means.T).cpu().numpy(),
        "one_vector": (pooled @ torch.nn.functional.normalize(means, dim=1).T).cpu().numpy(),
    }


def _joined(parts: list[NDArray[np.float32]], rows: int) -> NDArray[np.float32]:
    return np.concatenate(parts, axis=1) if parts else np.zeros((rows, 0), dtype=np.float32)
