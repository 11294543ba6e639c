"""The index of a collection for late interaction on disk, searched exhaustively.

Layout of the folder: `vectors.npy` (float16, shape (tokens, d): token vectors of length 1, document
after document), `offsets.npy` (int64, (documents + 1,)), `means.npy` (float16, (documents, d): the
mean token vector of each, of length 1), `ids.npy` (int32, (tokens, 1): centroids), `packedB.npy`
(uint8, (tokens, ceil(d B / 8)): residuals in B bits), `cutoffsB.npy`, `valuesB.npy` and
`centroids.npy` (the codec), `queries.npy` (float32, (Q, places, d)) and `query_means.npy`
(float32, (Q, d)).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from whencount.arrays import ArrayWriter
from whencount.errors import InputError
from whencount.late_interaction.maxsim import DocumentTokens, maxsim
from whencount.late_interaction.pools import Best
from whencount.late_interaction.queries import QueryTokens
from whencount.late_interaction.residual import ResidualCodec, ResidualCodes

VECTORS, OFFSETS, MEANS, IDS = "vectors.npy", "offsets.npy", "means.npy", "ids.npy"
QUERIES, QUERY_MEANS, CENTROIDS = "queries.npy", "query_means.npy", "centroids.npy"
_TOKENS_AT_ONCE = 32_768


def packed_name(bits: int) -> str:
    """The file of residuals in so many bits."""
    return f"packed{bits}.npy"


class IndexWriter:
    """Write an index block by block.

    Args:
        folder: an existing folder.
        width: numbers of a token vector.
        codecs: by bits.
        whole: also the token vectors themselves, their means and the codecs; codes alone where
            false.
    """

    def __init__(
        self, folder: Path, width: int, codecs: Mapping[int, ResidualCodec], whole: bool
    ) -> None:
        self._folder, self._codecs, self._whole = folder, codecs, whole
        self._sizes: list[NDArray[np.int64]] = [np.zeros(1, dtype=np.int64)]
        self._writers = {
            IDS: ArrayWriter(folder / IDS, "int32", 1),
            **{
                packed_name(bits): ArrayWriter(
                    folder / packed_name(bits), "uint8", -(-width * bits // 8)
                )
                for bits in codecs
            },
        }
        if whole:
            self._writers |= {
                name: ArrayWriter(folder / name, "float16", width) for name in (VECTORS, MEANS)
            }

    def append(self, block: DocumentTokens, codes: Mapping[int, ResidualCodes]) -> None:
        """Add the documents of a block, with their codes by bits."""
        for bits, one in codes.items():
            self._writers[packed_name(bits)].append(one.packed(bits))
            ids = one.centroids
        self._writers[IDS].append(ids[:, None])
        self._sizes.append(np.diff(block.offsets))
        if self._whole:
            means = torch.nn.functional.normalize(block.pooled(), dim=1)
            self._writers[VECTORS].append(block.states.numpy())
            self._writers[MEANS].append(means.numpy())

    def close(self) -> NDArray[np.int64]:
        """Finish the files; return the offsets of the documents, int64, shape (documents + 1,)."""
        for writer in self._writers.values():
            writer.close()
        offsets = np.cumsum(np.concatenate(self._sizes))
        if self._whole:
            np.save(self._folder / OFFSETS, offsets)
            for bits, codec in self._codecs.items():
                np.save(self._folder / CENTROIDS, codec.centroids.numpy())
                np.save(self._folder / f"cutoffs{bits}.npy", codec.cutoffs.numpy())
                np.save(self._folder / f"values{bits}.npy", codec.values.numpy())
        return offsets


def write_queries(queries: QueryTokens, folder: Path) -> None:
    """Add the queries to an index."""
    np.save(folder / QUERIES, queries.states.numpy())
    np.save(folder / QUERY_MEANS, queries.pooled().numpy())


class LateIndex:
    """An index that is searched exhaustively.

    Args:
        folder: of the index.
        part: what is searched: `vectors.npy`, `means.npy` or `packedB.npy`.

    Raises:
        InputError: something is missing or damaged.
    """

    def __init__(self, folder: str | Path, part: str) -> None:
        place = Path(folder)
        try:
            self.stored = np.load(place / part, mmap_mode="r")
            self.offsets: NDArray[np.int64] = np.load(place / OFFSETS)
            self.queries: NDArray[np.float32] = np.load(place / QUERIES)
            self._means: NDArray[np.float32] = np.load(place / QUERY_MEANS)
            self.codec, self._ids = None, None
            if part.startswith("packed"):
                names = (
                    CENTROIDS,
                    part.replace("packed", "cutoffs"),
                    part.replace("packed", "values"),
                )
                self.codec = ResidualCodec(*(torch.from_numpy(np.load(place / n)) for n in names))
                self._ids = np.load(place / IDS, mmap_mode="r")
        except (OSError, ValueError, EOFError) as error:
            raise InputError(
                f"{folder} is no whole index of late interaction ({error}); make it again"
            ) from error
        self.part = part
        self.width = int(self.queries.shape[2])

    @property
    def documents(self) -> int:
        """How many there are."""
        return len(self.offsets) - 1

    @property
    def vectors(self) -> int:
        """How many vectors are compared: of tokens, or one per document."""
        return len(self.stored)

    @property
    def payload_bytes(self) -> int:
        """Stored vectors; of codes, packed residuals, four bytes per centroid, the book in fp16."""
        found = int(self.stored.nbytes)
        if self.codec is not None:
            found += 4 * len(self.stored) + 2 * self.codec.centroids.numel()
        return found

    @property
    def bytes(self) -> int:
        """The payload and where each document begins."""
        return self.payload_bytes + (0 if self.part == MEANS else int(self.offsets.nbytes))

    def query_vectors(self, low: int, high: int) -> NDArray[np.float32]:
        """What is compared of some queries: float32, shape (queries, places, d)."""
        if self.part == MEANS:
            return self._means[low:high, None]
        return self.queries[low:high]

    def blocks(self) -> Iterator[tuple[int, DocumentTokens]]:
        """The first document and the vectors of some documents at a time."""
        bounds = self.offsets
        if self.part == MEANS:
            bounds = np.arange(self.documents + 1)
        start = 0
        while start < self.documents:
            stop = int(np.searchsorted(bounds, bounds[start] + _TOKENS_AT_ONCE, "right")) - 1
            stop = min(max(stop, start + 1), self.documents)
            rows = slice(int(bounds[start]), int(bounds[stop]))
            yield start, DocumentTokens(self._read(rows), bounds[start : stop + 1] - rows.start)
            start = stop

    def _read(self, rows: slice) -> torch.Tensor:
        if self.codec is None or self._ids is None:
            return torch.from_numpy(np.asarray(self.stored[rows], dtype=np.float32))
        return self.codec.decode_packed(
            np.asarray(self._ids[rows, 0]), np.asarray(self.stored[rows])
        )

    def search(self, low: int, high: int, depth: int) -> tuple[NDArray[np.int32], NDArray[Any]]:
        """Positions (high - low, depth) and scores of the best documents of some queries."""
        states = torch.from_numpy(np.ascontiguousarray(self.query_vectors(low, high)))
        queries = QueryTokens(states, (states != 0).any(dim=2))
        best = Best(high - low, depth)
        for first, block in self.blocks():
            best.offer(maxsim(queries, block), first)
        return best.positions, best.scores
