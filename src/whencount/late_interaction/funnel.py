"""A funnel like PLAID's (Santhanam et al., 2022, arXiv:2205.09707), and what survives each stage.

1. probe: documents with a token in one of the `probes` centroids nearest some query token;
2. pruned: of them, `kept` by centroid interaction (each token stands for its centroid), without
   tokens whose centroid no query token scores at least `threshold` with;
3. interaction: of them, a quarter by centroid interaction with all tokens;
4. decoded: of them, `rescored` by MaxSim over the decoded token vectors;
5. exact: those by MaxSim over the token vectors themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from whencount.errors import InputError
from whencount.late_interaction.maxsim import DocumentTokens, maxsim
from whencount.late_interaction.queries import QueryTokens
from whencount.late_interaction.residual import ResidualCodec

STAGES = ("probe", "pruned", "interaction", "decoded", "exact")


@dataclass(frozen=True)
class FunnelOptions:
    """How wide the stages are.

    Attributes:
        probes: centroids per query token.
        threshold: least product of a centroid with some query token, of stage 2.
        kept: documents that stage 2 leaves; stage 3 leaves a quarter of them.
        rescored: documents that stage 4 leaves.
    """

    probes: int = 2
    threshold: float = 0.4
    kept: int = 1024
    rescored: int = 128

    def __post_init__(self) -> None:
        if self.probes < 1 or self.kept < 4 or self.rescored < 1:
            raise InputError(
                "late interaction: a funnel probes at least 1 centroid, keeps 4 and rescores 1"
            )


@dataclass(frozen=True)
class CodedTokens:
    """The index: every token of every document as centroid and packed residual.

    Attributes:
        centroids: int32, shape (tokens,); may be memory-mapped.
        packed: uint8, shape (tokens, bytes); may be memory-mapped.
        offsets: int64, shape (documents + 1,).
        codec: what the codes mean.
    """

    centroids: NDArray[np.int32]
    packed: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    codec: ResidualCodec

    def tokens_of(
        self, documents: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Token positions of some documents one after another, and their offsets."""
        sizes = np.diff(self.offsets)[documents]
        bounds = np.zeros(len(documents) + 1, dtype=np.int64)
        np.cumsum(sizes, out=bounds[1:])
        places = np.arange(bounds[-1]) + np.repeat(self.offsets[documents] - bounds[:-1], sizes)
        return places, bounds

    def decoded(self, documents: NDArray[np.int64]) -> DocumentTokens:
        """Token vectors of some documents."""
        places, bounds = self.tokens_of(documents)
        ids, packed = np.asarray(self.centroids[places]), np.asarray(self.packed[places])
        return DocumentTokens(self.codec.decode_packed(ids, packed), bounds)


class Funnel:
    """The stages over one index."""

    def __init__(self, index: CodedTokens, options: FunnelOptions) -> None:
        self._index, self._options = index, options
        count = len(index.codec.centroids)
        documents = np.repeat(np.arange(len(index.offsets) - 1), np.diff(index.offsets))
        # A document once per centroid, lists of centroids one after another.
        keys = np.unique(index.centroids.astype(np.int64) * len(index.offsets) + documents)
        self._documents = (keys % len(index.offsets)).astype(np.int64)
        self._starts = np.searchsorted(keys // len(index.offsets), np.arange(count + 1))

    def stages(self, query: torch.Tensor, exact: NDArray[np.float32]) -> list[NDArray[np.int64]]:
        """Documents that each stage leaves, the last two best first.

        Args:
            query: float32, shape (places, d); empty places are 0 and probe nothing.
            exact: float32, shape (documents,): MaxSim over the token vectors themselves, of which
                the last stage looks at those of the documents left.
        """
        query = query[(query != 0).any(dim=1)]
        empty = np.empty(0, dtype=np.int64)
        if not len(query):
            return [empty] * len(STAGES)
        scores = query @ self._index.codec.centroids.T
        probes = min(self._options.probes, scores.shape[1])
        chosen = np.unique(torch.topk(scores, probes, dim=1).indices.numpy())
        found = np.unique(np.concatenate([self._listed(one) for one in chosen]))
        by_centroid = scores.T.numpy()
        far = by_centroid.max(axis=1) < self._options.threshold
        pruned = self._best(found, by_centroid, self._options.kept, far)
        left = self._best(pruned, by_centroid, self._options.kept // 4, None)
        decoded = self._decoded(left, query)[: self._options.rescored]
        sorted_ = np.sort(decoded)
        last = sorted_[np.argsort(-exact[sorted_], kind="stable")]
        return [found, pruned, left, decoded, last]

    def _listed(self, centroid: int) -> NDArray[np.int64]:
        return self._documents[self._starts[centroid] : self._starts[centroid + 1]]

    def _best(
        self,
        documents: NDArray[np.int64],
        by_centroid: NDArray[np.float32],
        kept: int,
        far: NDArray[np.bool_] | None,
    ) -> NDArray[np.int64]:
        """The `kept` documents of the largest centroid interaction; equals by position."""
        if not len(documents):
            return documents
        places, bounds = self._index.tokens_of(documents)
        ids = np.asarray(self._index.centroids[places])
        if far is not None:
            near = ~far[ids]
            sizes = np.add.reduceat(near, bounds[:-1])
            documents, sizes = documents[sizes > 0], sizes[sizes > 0]
            ids = ids[near]
            bounds = np.concatenate([[0], np.cumsum(sizes)])
            if not len(documents):
                return documents
        maxima = np.maximum.reduceat(by_centroid[ids], bounds[:-1], axis=0)
        order = np.argsort(-maxima.sum(axis=1), kind="stable")[:kept]
        return np.sort(documents[order])

    def _decoded(self, documents: NDArray[np.int64], query: torch.Tensor) -> NDArray[np.int64]:
        real = torch.ones((1, len(query)), dtype=torch.bool)
        scores = maxsim(QueryTokens(query[None], real), self._index.decoded(documents))[0]
        return documents[np.argsort(-scores, kind="stable")]


def survivors(
    stages: Sequence[NDArray[np.int64]], exhaustive: NDArray[np.int64], cutoffs: Sequence[int]
) -> list[tuple[str, int, int, int]]:
    """(stage, documents left, cutoff, how many of the exhaustive first `cutoff` are among them).

    Of the last stage, those among its own first `cutoff` too: what a person sees of them.
    """
    found = []
    for name, left in zip(STAGES, stages, strict=True):
        for cutoff in cutoffs:
            mine = left[:cutoff] if name == "exact" else left
            found.append((name, len(left), cutoff, int(np.isin(exhaustive[:cutoff], mine).sum())))
    return found
