"""Token vectors as a centroid and a few bits per number (ColBERTv2, arXiv:2112.01488)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from whencount.errors import InputError
from whencount.late_interaction.kernels import decompress

_ROWS_AT_ONCE = 8192
_ITERATIONS = 20
_POINTS_PER_CENTROID = 256


def centroids_for(tokens: int) -> int:
    """How many centroids so many tokens get: the power of two nearest 16 sqrt(tokens), from below.

    The rule of ColBERTv2's index.
    """
    return int(2 ** np.floor(np.log2(max(1.0, 16 * np.sqrt(max(1, tokens))))))


def fit_centroids(
    sample: NDArray[np.float32], count: int, seed: int, threads: int = 1
) -> NDArray[np.float32]:
    """k-means centroids of length 1: float32, shape (count, d).

    Raises:
        InputError: there are fewer vectors than centroids.
    """
    import faiss

    from whencount.bases.base import thread_limit

    if len(sample) < count:
        raise InputError(
            f"late interaction: {len(sample):,} token vectors are fewer than {count:,} centroids;"
            " sample more documents or ask for fewer centroids"
        )
    with thread_limit(threads):
        model = faiss.Kmeans(
            sample.shape[1],
            count,
            niter=_ITERATIONS,
            seed=seed + 1,
            spherical=True,
            max_points_per_centroid=_POINTS_PER_CENTROID,
            min_points_per_centroid=1,
        )
        model.train(np.ascontiguousarray(sample))
    found: NDArray[np.float32] = np.ascontiguousarray(model.centroids, dtype=np.float32)
    return found


@dataclass(frozen=True)
class ResidualCodes:
    """Codes of some token vectors.

    Attributes:
        centroids: int32, shape (tokens,).
        buckets: uint8, shape (tokens, d): the bucket of each number, below 2^bits.
    """

    centroids: NDArray[np.int32]
    buckets: NDArray[np.uint8]

    def packed(self, bits: int) -> NDArray[np.uint8]:
        """The buckets as bits: uint8, shape (tokens, ceil(d bits / 8))."""
        places = np.arange(bits - 1, -1, -1, dtype=np.uint8)
        split = (self.buckets[:, :, None] >> places) & 1
        return np.packbits(split.reshape(len(split), split.shape[1] * bits), axis=1)


def unpacked(packed: NDArray[np.uint8], width: int, bits: int) -> NDArray[np.uint8]:
    """The inverse of `ResidualCodes.packed`: uint8, shape (tokens, width)."""
    split = np.unpackbits(packed, axis=1, count=width * bits).reshape(len(packed), width, bits)
    places = np.arange(bits - 1, -1, -1, dtype=np.uint8)
    found: NDArray[np.uint8] = (split << places).sum(axis=2, dtype=np.uint8)
    return found


@dataclass(frozen=True)
class ResidualCodec:
    """Centroids, and the buckets of what is left.

    Attributes:
        centroids: float32, shape (C, d).
        cutoffs: float32, shape (2^bits - 1, d): between the buckets of each dimension, quantiles
            of its residuals.
        values: float32, shape (2^bits, d): what a bucket stands for, the quantile at its middle.
    """

    centroids: torch.Tensor
    cutoffs: torch.Tensor
    values: torch.Tensor

    @property
    def bits(self) -> int:
        """Bits per number."""
        return len(self.values).bit_length() - 1

    @classmethod
    def fit(
        cls, sample: NDArray[np.float32], centroids: NDArray[np.float32], bits: int
    ) -> ResidualCodec:
        """Buckets of equal counts over the residuals of the sample, those of each dimension.

        Raises:
            InputError: bits outside 1..8.
        """
        if not 1 <= bits <= 8:
            raise InputError(f"late interaction: {bits} bits per number; give 1 to 8")
        book = torch.from_numpy(centroids)
        states = torch.from_numpy(np.ascontiguousarray(sample))
        numbers = (states - book[nearest(states, book).long()]).numpy()
        buckets = 2**bits
        cutoffs = np.quantile(numbers, np.arange(1, buckets) / buckets, axis=0)
        values = np.quantile(numbers, (np.arange(buckets) + 0.5) / buckets, axis=0)
        return cls(
            book,
            torch.from_numpy(cutoffs.astype(np.float32)),
            torch.from_numpy(values.astype(np.float32)),
        )

    def encode(self, states: torch.Tensor) -> ResidualCodes:
        """Codes of token vectors, shape (tokens, d)."""
        book = self.centroids.to(states.device)
        ids = nearest(states, book)
        cutoffs = self.cutoffs.to(states.device)
        buckets = np.empty(tuple(states.shape), dtype=np.uint8)
        for low in range(0, len(states), _ROWS_AT_ONCE):
            rows = slice(low, low + _ROWS_AT_ONCE)
            left = states[rows] - book[ids[rows].long()]
            found = torch.zeros(left.shape, dtype=torch.uint8, device=left.device)
            for cutoff in cutoffs:
                found += left >= cutoff
            buckets[rows] = found.cpu().numpy()
        return ResidualCodes(ids.cpu().numpy().astype(np.int32), buckets)

    def decode(self, codes: ResidualCodes) -> torch.Tensor:
        """Token vectors of length 1 again: float32, shape (tokens, d)."""
        left = torch.gather(self.values, 0, torch.from_numpy(codes.buckets).long())
        found = self.centroids[torch.from_numpy(codes.centroids).long()] + left
        return torch.nn.functional.normalize(found, dim=1)

    def decode_packed(
        self, centroids: NDArray[np.int32], packed: NDArray[np.uint8]
    ) -> torch.Tensor:
        """The same of packed codes, in one pass without a larger copy of them.

        Args:
            centroids: int32, shape (tokens,).
            packed: uint8, shape (tokens, ceil(d bits / 8)).
        """
        width = self.centroids.shape[1]
        if 8 % self.bits:
            return self.decode(ResidualCodes(centroids, unpacked(packed, width, self.bits)))
        found = np.empty((len(centroids), width), dtype=np.float32)
        decompress(
            np.ascontiguousarray(centroids),
            np.ascontiguousarray(packed),
            self.centroids.numpy(),
            self.values.numpy(),
            self.bits,
            found,
        )
        return torch.from_numpy(found)


def nearest(states: torch.Tensor, centroids: torch.Tensor) -> torch.Tensor:
    """The centroid of the largest inner product: int64, shape (tokens,); the first of equals."""
    parts = [
        (states[low : low + _ROWS_AT_ONCE] @ centroids.T).argmax(dim=1)
        for low in range(0, len(states), _ROWS_AT_ONCE)
    ]
    return torch.cat(parts) if parts else torch.empty(0, dtype=torch.int64, device=states.device)
