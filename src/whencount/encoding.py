"""The encode pass: one run of the transformer over a collection writes every representation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from whencount.encoders import Encoder, Kind


def encode_collection(
    encoder: Encoder,
    texts: Iterable[tuple[str, str]],
    representations: Mapping[str, str | Path],
    out: Mapping[str, str | Path],
    *,
    kind: Kind,
    dense_out: str | Path | None = None,
    dense_dtype: str = "float32",
    maximum_stored: int | None = None,
    start: int = 0,
    stop: int | None = None,
    total: int | None = None,
    window: int = 4096,
) -> int:
    """Encode texts once and write the sparse vectors of every representation.

    Rows stand in the order of `texts`. Token states are never written; memory is bounded by one
    window of texts.

    Args:
        encoder: the encoder.
        texts: (id, text) pairs, read once, streaming.
        representations: name -> directory written by `whencount.fitting.fit_basis`.
        out: name -> directory of vectors to write (`SparseVectors.load` reads it).
        kind: "query" or "passage": which prefix.
        dense_out: where to write the L2-normalised pooled states, an .npy file of shape
            (rows, dimensions); a text without content tokens has the zero row.
        dense_dtype: "float32" or "float16".
        maximum_stored: keep at most this many values per row; None keeps all.
        start: the first row to encode.
        stop: the row after the last one; None encodes to the end.
        total: how many texts there are from `start` to `stop`, for the progress display.
        window: texts sorted by length together.

    Returns:
        How many rows were written.

    Raises:
        InputError: a representation does not fit the encoder, or a directory cannot be written.
    """
    raise NotImplementedError
