"""Two sets of learned sparse vectors compared at the same number of stored weights.

A regulariser that only drops weights makes an index cheaper in a plain way. Whether it also
spreads the weights that remain over more features (arXiv:2004.05665) shows only when both sets
are cut to the same mean number of weights.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from whencount.economics import Economics, economics
from whencount.errors import InputError
from whencount.vectors import SparseVectors


@dataclass(frozen=True)
class EqualNnz:
    """Costs of two sets of vectors with equally many stored weights.

    Attributes:
        first, second: costs after truncation.
    """

    first: Economics
    second: Economics

    @property
    def posting_work_ratio(self) -> float:
        """Posting work of the second over that of the first; NaN where the first has none."""
        work = self.first.posting_work
        return self.second.posting_work / work if work > 0 else float("nan")

    @property
    def support_ratio(self) -> float:
        """The same of the effective support of document activations."""
        return self.second.activation_support / self.first.activation_support

    @property
    def spreads(self) -> bool:
        """Whether the second works less and has a larger effective support."""
        return self.posting_work_ratio < 1.0 and self.support_ratio > 1.0


def truncate_to_total(vectors: SparseVectors, total: int) -> SparseVectors:
    """Keep `total` weights in all: the same number in each row, as far as rows have them.

    What that leaves over goes, one each, to the rows whose next weight is the largest (equal
    weights: the earlier row). Rows keep their largest weights.

    Raises:
        InputError: `total` is negative, or more than the weights that are stored.
    """
    if not 0 <= total <= vectors.nonzeros:
        raise InputError(
            f"{total} weights cannot be kept of {vectors.nonzeros}; choose from 0 to that number"
        )
    sizes = vectors.row_sizes()
    low, high = 0, int(sizes.max(initial=0))
    while low < high:
        middle = (low + high + 1) // 2
        if int(np.minimum(sizes, middle).sum()) <= total:
            low = middle
        else:
            high = middle - 1
    kept = np.minimum(sizes, low)
    longer = np.flatnonzero(sizes > low)
    following = vectors.values[vectors.indptr[longer] + low]
    kept[longer[np.argsort(-following, kind="stable")][: total - int(kept.sum())]] += 1
    indptr = np.zeros(len(vectors) + 1, dtype=np.int64)
    np.cumsum(kept, out=indptr[1:])
    source = np.arange(total) + np.repeat(vectors.indptr[:-1] - indptr[:-1], kept)
    return SparseVectors(
        vectors.ids,
        indptr,
        vectors.features[source],
        vectors.values[source],
        vectors.vocabulary_size,
    )


def compare_at_equal_nnz(
    first: tuple[SparseVectors, SparseVectors], second: tuple[SparseVectors, SparseVectors]
) -> EqualNnz:
    """Cut documents and queries of both sets to the weights of the smaller, and count costs.

    Args:
        first, second: documents and queries, of the same texts in both sets.

    Raises:
        InputError: the sets hold other texts or other vocabularies, or there is nothing of one.
    """
    sides = []
    for noun, one, other in zip(("documents", "queries"), first, second, strict=True):
        if not np.array_equal(one.ids, other.ids):
            raise InputError(f"the two sets hold other {noun}; encode the same texts with both")
        if one.vocabulary_size != other.vocabulary_size:
            raise InputError(
                f"the {noun} of the two sets have {one.vocabulary_size} and"
                f" {other.vocabulary_size} features; compare models of one vocabulary"
            )
        total = min(one.nonzeros, other.nonzeros)
        sides.append((truncate_to_total(one, total), truncate_to_total(other, total)))
    documents, queries = sides
    return EqualNnz(economics(documents[0], queries[0]), economics(documents[1], queries[1]))
