"""Public peers, each ranking by one configuration: the inner product, 000."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from whencount.vectors import SparseVectors

Array = NDArray[Any]
Search = Callable[[], Any]


def matrix(vectors: SparseVectors) -> scipy.sparse.csr_matrix:
    """The vectors as scipy CSR, float32, features rising within a row."""
    result = scipy.sparse.csr_matrix(
        (vectors.values, vectors.features, vectors.indptr),
        shape=(len(vectors), vectors.vocabulary_size),
    )
    result.sort_indices()
    return result


def columns(documents: SparseVectors) -> dict[str, Any]:
    """Postings as bm25s and splade-index hold them: CSC, float32 and int32."""
    by_feature = matrix(documents).tocsc()
    return {
        "data": by_feature.data.astype(np.float32),
        "indices": by_feature.indices.astype(np.int32),
        "indptr": by_feature.indptr.astype(np.int64),
        "num_docs": len(documents),
    }


def _terms(queries: SparseVectors) -> tuple[list[Array], list[Array]]:
    edges = queries.indptr[1:-1]
    return np.split(queries.features, edges), np.split(queries.values, edges)


def splade_index(postings: dict[str, Any], queries: SparseVectors, depth: int) -> Search:
    """splade-index, numba backend: postings times query weights."""
    from splade_index.numba.retrieve_utils import _retrieve_numba_functional

    features, values = _terms(queries)
    return lambda: _retrieve_numba_functional(
        features, values, postings, k=depth, n_threads=1, show_progress=False
    )


def bm25s(postings: dict[str, Any], queries: SparseVectors, depth: int) -> Search:
    """bm25s, numba backend: postings summed, query weights impossible."""
    from bm25s.numba.retrieve_utils import _retrieve_numba_functional

    features, _ = _terms(queries)
    return lambda: _retrieve_numba_functional(
        features, postings, k=depth, n_threads=1, show_progress=False
    )


def scipy_product(documents: SparseVectors, queries: SparseVectors, depth: int) -> Search:
    """scipy: sparse queries times sparse documents, then the best of each row."""
    by_feature = matrix(documents).T.tocsr()
    wanted = matrix(queries)

    def run() -> list[Array]:
        product = wanted @ by_feature
        best = []
        for row in range(product.shape[0]):
            low, high = product.indptr[row], product.indptr[row + 1]
            scores = product.data[low:high]
            kept = np.argpartition(-scores, min(depth, len(scores)) - 1)[:depth]
            best.append(product.indices[low:high][kept[np.argsort(-scores[kept])]])
        return best

    return run
