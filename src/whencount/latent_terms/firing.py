"""Where in a text a feature fires: the tokens whose codes have it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from whencount.encoders import Encoder, Kind
from whencount.progress import progress
from whencount.representations import Representation, aggregate

_TEXTS_AT_ONCE = 256

Spans = list[tuple[int, int]]


def firing_spans(
    encoder: Encoder,
    dictionary: Representation,
    kind: Kind,
    texts: Sequence[str],
    numbers: NDArray[np.int64],
    features: NDArray[np.int64],
) -> list[Spans]:
    """The stretches of characters in which features fire, for pairs of a text and a feature.

    Tokens that touch are one stretch. Texts are encoded once, a few hundred at a time; of their
    codes only those of the pairs are kept.

    Args:
        encoder: the frozen backbone.
        dictionary: of the codes.
        kind: which prefix the texts get.
        texts: each once.
        numbers: int64, shape (pairs,), which text.
        features: int64, shape (pairs,), which feature.

    Returns:
        One list per pair, of [start, end), rising.
    """
    size = dictionary.basis.vocabulary_size
    keys = numbers * size + features
    wanted, pair_of = np.unique(keys, return_inverse=True)
    found: list[Spans] = [[] for _ in wanted]
    starts = range(0, len(texts), _TEXTS_AT_ONCE)
    sizes = [min(_TEXTS_AT_ONCE, len(texts) - start) for start in starts]
    for start in progress(starts, len(texts), "finding tokens", "text", sizes):
        block = list(texts[start : start + _TEXTS_AT_ONCE])
        spans = encoder.content_spans(block, kind)
        for batch in encoder.states(block, kind):
            tokens, fired, _ = aggregate(
                dictionary.basis.encode(batch.states), np.arange(len(batch.states) + 1)
            )
            text = np.searchsorted(batch.offsets, tokens, side="right") - 1
            key = (batch.positions[text] + start) * size + fired
            place = np.minimum(np.searchsorted(wanted, key), len(wanted) - 1)
            for one in np.flatnonzero(wanted[place] == key):
                row = int(tokens[one] - batch.offsets[text[one]])
                low, high = spans[batch.positions[text[one]]][row]
                found[place[one]].append((int(low), int(high)))
    return [_merged(found[one]) for one in pair_of]


def _merged(spans: Spans) -> Spans:
    """Rising stretches; those that touch are one, empty ones are left out."""
    merged: Spans = []
    for low, high in sorted(spans):
        if low >= high:
            continue
        if merged and low <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return merged
