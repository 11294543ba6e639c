"""Token states of a corpus of passages as a stream of chunks that fit in a buffer.

The passages are dealt out once, by the study's seed: some are held back for validation, the others
stand in a shuffled order and are cut into chunks of at most so many states. A chunk is encoded when
its turn comes and forgotten afterwards, so memory holds one chunk, whatever the corpus; every pass
encodes anew. Where one chunk holds all, it is encoded once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from whencount.arrays import segment_order
from whencount.collections.prepared import Texts
from whencount.encoders import Encoder, StateBatch
from whencount.encoding import encode_windows
from whencount.errors import InputError
from whencount.progress import progress

_TEXTS_AT_ONCE = 4096


@dataclass(frozen=True)
class StateStream:
    """Chunks of token states.

    Attributes:
        encoder: the frozen backbone.
        texts: all passages, Arrow strings.
        chunks: passages of each chunk, positions in `texts`.
        sizes: states of each chunk, int64, shape (chunks,).
        held_back: passages for validation.
    """

    encoder: Encoder
    texts: pa.ChunkedArray
    chunks: tuple[NDArray[np.int64], ...]
    sizes: NDArray[np.int64]
    held_back: NDArray[np.int64]

    @classmethod
    def deal(
        cls, encoder: Encoder, passages: Texts, *, buffer: int, held_back: int, seed: int
    ) -> StateStream:
        """Count every passage's content tokens and deal the passages out.

        Args:
            encoder: the frozen backbone.
            passages: (id, text) pairs.
            buffer: most states of a chunk; a single passage may have more.
            held_back: passages for validation, at most a tenth of all.
            seed: of the shuffling.

        Raises:
            InputError: fewer than two passages have content.
        """
        texts, counts = _counted(encoder, passages)
        known = np.flatnonzero(counts)
        if len(known) < 2:
            raise InputError(
                f"{len(known)} passages have content; latent terms need at least 2 to train on"
            )
        order = np.random.default_rng(seed).permutation(known)
        back = max(1, min(held_back, len(order) // 10))
        mine = order[back:]
        chunks, start, total = [], 0, 0
        for place, count in enumerate(counts[mine].tolist()):
            if total and total + count > buffer:
                chunks.append(mine[start:place])
                start, total = place, 0
            total += count
        chunks.append(mine[start:])
        sizes = np.array([int(counts[chunk].sum()) for chunk in chunks], dtype=np.int64)
        return cls(encoder, texts, tuple(chunks), sizes, np.sort(order[:back]))

    def chunk(self, number: int) -> NDArray[np.float32]:
        """The states of a chunk, float32, shape (states, d), passage by passage."""
        return self.encode(self.chunks[number])

    def validation(self) -> NDArray[np.float32]:
        """The states of the passages held back."""
        return self.encode(self.held_back)

    def encode(self, positions: NDArray[np.int64]) -> NDArray[np.float32]:
        """The content-token states of some passages, in the order given."""
        texts = self.texts.take(pa.array(positions)).to_pylist()

        def keep(
            batch: StateBatch, ids: Sequence[str], first: int
        ) -> tuple[NDArray[np.int64], ...]:
            return batch.positions + first, np.diff(batch.offsets), batch.states.cpu().numpy()

        pairs = ((str(n), text) for n, text in enumerate(texts))
        parts = [
            part
            for _, window in encode_windows(
                self.encoder, pairs, "passage", keep, total=len(texts), noun="passage"
            )
            for part in window
        ]
        places, sizes, states = (np.concatenate(column) for column in zip(*parts, strict=True))
        found: NDArray[np.float32] = states[segment_order(places, sizes)]
        return found


def _counted(encoder: Encoder, passages: Texts) -> tuple[pa.ChunkedArray, NDArray[np.int64]]:
    """All texts, and how many content tokens each has."""
    blocks: list[pa.Array] = []
    counts: list[NDArray[np.int64]] = []
    starts = range(0, len(passages), _TEXTS_AT_ONCE)
    sizes = [min(_TEXTS_AT_ONCE, len(passages) - start) for start in starts]
    for start in progress(starts, len(passages), "counting tokens", "passage", sizes):
        texts = [text for _, text in passages[start : start + _TEXTS_AT_ONCE]]
        tokens = encoder.tokenise(texts, "passage")
        counts.append(np.array([int(mask.sum()) for mask in tokens.content], dtype=np.int64))
        blocks.append(pa.array(texts, type=pa.large_string()))
    found = np.concatenate(counts) if counts else np.empty(0, dtype=np.int64)
    return pa.chunked_array(blocks, type=pa.large_string()), found
