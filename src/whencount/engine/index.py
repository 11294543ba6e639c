"""The index: postings in blocks of documents, one for all configurations and parameters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whencount.engine.compiled import kernel
from whencount.errors import InputError
from whencount.vectors import SparseVectors

Array = NDArray[Any]

USUAL_BLOCK = 4096
LARGEST_BLOCK = 16384
SMALLEST_BLOCK = 256
_POSTINGS_PER_BLOCK = 1 << 20


@kernel
def _fill_block(
    indptr: Array,
    features: Array,
    values: Array,
    bounds: Array,
    ids: Array,
    weights: Array,
    lengths: Array,
    peaks: Array,
) -> int:
    """Sort one block's pairs by feature; return the first row with a fault, or -1.

    `bounds` has one entry per feature and one more; `ids` and `weights` hold the block's postings.
    """
    documents = len(indptr) - 1
    vocabulary = len(bounds) - 1
    base = indptr[0]
    counts = np.zeros(vocabulary + 1, dtype=np.int64)
    for row in range(documents):
        total, peak = 0.0, np.float32(0.0)
        for place in range(indptr[row] - base, indptr[row + 1] - base):
            feature, value = features[place], values[place]
            if not (0 <= feature < vocabulary and value > 0.0 and value < np.inf):
                return row
            counts[feature + 1] += 1
            total += np.float64(value)
            peak = max(peak, value)
        lengths[row], peaks[row] = total, peak
    for feature in range(vocabulary):
        counts[feature + 1] += counts[feature]
        bounds[feature + 1] = counts[feature + 1]
    bounds[0] = 0
    for row in range(documents):
        for place in range(indptr[row] - base, indptr[row + 1] - base):
            feature = features[place]
            slot = counts[feature]
            if slot > np.int64(bounds[feature]) and ids[slot - 1] == row:
                return row
            ids[slot] = row
            weights[slot] = values[place]
            counts[feature] = slot + 1
    return -1


def _explain(block: SparseVectors, row: int) -> InputError:
    low, high = int(block.indptr[row]), int(block.indptr[row + 1])
    features, values = np.asarray(block.features[low:high]), np.asarray(block.values[low:high])
    name = f"document {block.ids[row]!r}"
    outside = (features < 0) | (features >= block.vocabulary_size)
    bad = ~(np.isfinite(values) & (values > 0))
    if outside.any():
        return InputError(
            f"{name} has feature {features[outside][0]}, outside"
            f" 0..{block.vocabulary_size - 1}, the declared vocabulary; encode it again or"
            " declare a larger vocabulary"
        )
    if bad.any():
        return InputError(
            f"{name}, feature {features[bad][0]}: weight {values[bad][0]}; weights must be"
            " positive and finite"
        )
    distinct, counts = np.unique(features, return_counts=True)
    return InputError(
        f"{name} has feature {distinct[counts > 1][0]} twice; sum its weights into one"
    )


def block_size(documents: int, nonzeros: int, vocabulary: int) -> int:
    """Documents per block: a power of two, 4,096 unless rows are long or the vocabulary large.

    Blocks of long rows shrink, to 256 at least, so that a block has about a million postings at
    most; blocks of short rows grow, to 16,384 at most, so that bounds stay small beside postings.
    """
    mean = max(1.0, nonzeros / max(1, documents))
    size = USUAL_BLOCK
    while size > SMALLEST_BLOCK and size * mean > _POSTINGS_PER_BLOCK:
        size //= 2
    while size < min(LARGEST_BLOCK, documents) and vocabulary > size * mean / 8:
        size *= 2
    return size


@dataclass(frozen=True)
class Index:
    """Postings of a collection in blocks of documents, each block sorted by feature.

    Attributes:
        block_documents: documents per block, at most 65,536.
        vocabulary_size: how many features there can be (V).
        block_starts: int64, (blocks + 1,): where each block's postings begin.
        bounds: uint32, (blocks, V + 1): where each feature's postings begin within the block.
        ids: uint16, (non-zeros,): document number within the block, rising within a feature.
        values: float32, (non-zeros,); or uint8, which of the `levels`.
        lengths: float64, (documents,): L_d.
        peaks: float32, (documents,): the largest value of each document, 0 where empty.
        document_frequency: int64, (V,).
        smallest: the smallest stored value; infinite where nothing is stored.
        levels: float32, (256,), rising; empty where values are float32.
    """

    block_documents: int
    vocabulary_size: int
    block_starts: NDArray[np.int64]
    bounds: NDArray[np.uint32]
    ids: NDArray[np.uint16]
    values: NDArray[np.float32] | NDArray[np.uint8]
    lengths: NDArray[np.float64]
    peaks: NDArray[np.float32]
    document_frequency: NDArray[np.int64]
    smallest: float
    levels: NDArray[np.float32] = field(default_factory=lambda: np.empty(0, dtype=np.float32))

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def nonzeros(self) -> int:
        """The number of postings."""
        return int(self.block_starts[-1])

    def nbytes(self) -> int:
        """Bytes of all arrays together."""
        return sum(value.nbytes for value in vars(self).values() if isinstance(value, np.ndarray))

    @classmethod
    def load(cls, path: str | Path, *, verify: bool = False) -> Index:
        """Open an index on disk, memory-mapped; see `whencount.engine.storage.open_index`."""
        from whencount.engine.storage import open_index

        return open_index(path, verify=verify)

    def save(self, path: str | Path) -> None:
        """Write this index as a folder that `load` reads; whole or not at all."""
        from whencount.engine.storage import save_index

        save_index(self, path)

    @classmethod
    def build(
        cls,
        documents: SparseVectors,
        block_documents: int | None = None,
        levels: NDArray[np.float32] | None = None,
    ) -> Index:
        """Index already capped vectors in memory.

        With `levels` (see `eight_bit_levels`) every value becomes the nearest of them before
        anything is computed: the search is exact for those values.

        Raises:
            InputError: a feature outside the vocabulary or twice in a document, or a weight that
                is not positive and finite.
        """
        size = block_documents or block_size(
            len(documents), documents.nonzeros, documents.vocabulary_size
        )
        if not 1 <= size <= 1 << 16:
            raise InputError(f"a block of {size} documents; choose 1 to 65,536")
        blocks = -(-len(documents) // size)
        values = np.empty(documents.nonzeros, dtype=np.float32)
        index = cls(
            block_documents=size,
            vocabulary_size=documents.vocabulary_size,
            block_starts=np.zeros(blocks + 1, dtype=np.int64),
            bounds=np.empty((blocks, documents.vocabulary_size + 1), dtype=np.uint32),
            ids=np.empty(documents.nonzeros, dtype=np.uint16),
            values=values,
            lengths=np.empty(len(documents), dtype=np.float64),
            peaks=np.empty(len(documents), dtype=np.float32),
            document_frequency=np.zeros(documents.vocabulary_size, dtype=np.int64),
            smallest=float(documents.values.min()) if documents.nonzeros else float("inf"),
        )
        for number, block in enumerate(_blocks(documents, size)):
            if levels is not None:
                block = rounded(block, levels)  # noqa: PLW2901
            start, row = int(index.block_starts[number]), number * size
            stop = start + block.nonzeros
            index.block_starts[number + 1] = stop
            fill_block(
                block,
                index.bounds[number],
                index.ids[start:stop],
                values[start:stop],
                index.lengths[row : row + len(block)],
                index.peaks[row : row + len(block)],
            )
            index.document_frequency[:] += np.diff(index.bounds[number].astype(np.int64))
        if levels is None:
            return index
        smallest = float(values.min()) if index.nonzeros else float("inf")
        codes = codes_of(values, levels)
        return replace(index, values=codes, levels=levels, smallest=smallest)

    def weights(self, start: int, stop: int) -> NDArray[np.float32]:
        """The values of postings start..stop-1 as float32, a copy."""
        if len(self.levels):
            return self.levels[self.values[start:stop]]
        return np.array(self.values[start:stop], dtype=np.float32)


def eight_bit_levels(smallest: float, largest: float) -> NDArray[np.float32]:
    """256 values from `smallest` to `largest` with equal ratios, for an index of 8-bit values.

    A stored value is then at most `(largest / smallest) ** (1 / 510)` times off.

    Raises:
        InputError: not `0 < smallest < largest`, or so close that levels fall together.
    """
    if 0 < smallest < largest < float("inf"):
        levels = np.geomspace(smallest, largest, 256).astype(np.float32)
        if (levels[1:] > levels[:-1]).all():
            return levels
    raise InputError(
        f"8-bit values need a range 0 < smallest < largest, not {smallest} to {largest}; store"
        " 32-bit values"
    )


def rounded(block: SparseVectors, levels: NDArray[np.float32]) -> SparseVectors:
    """The vectors with every value at the nearest level (by ratio)."""
    middles = np.sqrt(levels[1:].astype(np.float64) * levels[:-1])
    return replace(block, values=levels[np.searchsorted(middles, block.values)])


def codes_of(values: NDArray[Any], levels: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Which level each value is."""
    return np.searchsorted(levels, values).astype(np.uint8)


def fill_block(
    block: SparseVectors,
    bounds: NDArray[np.uint32],
    ids: NDArray[np.uint16],
    values: NDArray[np.float32],
    lengths: NDArray[np.float64],
    peaks: NDArray[np.float32],
) -> None:
    """Write one block's postings and document constants into the given arrays.

    Raises:
        InputError: as `Index.build`.
    """
    # A copy where the rows are memory-mapped: read-only arrays would compile a second kernel.
    own = [np.require(array, requirements="W") for array in (block.features, block.values)]
    fault = _fill_block(
        np.ascontiguousarray(block.indptr), own[0], own[1], bounds, ids, values, lengths, peaks
    )
    if fault >= 0:
        raise _explain(block, fault)


def _blocks(documents: SparseVectors, size: int) -> Iterator[SparseVectors]:
    for start in range(0, len(documents), size):
        yield documents.slice(start, min(start + size, len(documents)))
