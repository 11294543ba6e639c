"""Late interaction on one collection: a pass over its documents, then the funnel over codes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from whencount.arrays import segment_order
from whencount.collections.prepared import PreparedCollection, Texts
from whencount.encoders import Encoder, StateBatch
from whencount.encoding import encode_windows
from whencount.errors import InputError
from whencount.late_interaction.bounds import BoundCheck, document_errors
from whencount.late_interaction.funnel import CodedTokens, Funnel, FunnelOptions, survivors
from whencount.late_interaction.index import IDS, IndexWriter, packed_name, write_queries
from whencount.late_interaction.maxsim import DocumentTokens, exact_scores, maxsim
from whencount.late_interaction.pools import Best, PairScores
from whencount.late_interaction.queries import QueryTokens, query_tokens
from whencount.late_interaction.residual import (
    ResidualCodec,
    centroids_for,
    fit_centroids,
)
from whencount.measures import Judgements, ndcg, recall
from whencount.progress import progress

if TYPE_CHECKING:
    import pandas as pd

BITS = (1, 2)
CUTOFFS = (10, 100)
_CENTROID_BYTES = 4
_WINDOW = 512


@dataclass(frozen=True)
class LateOptions:
    """Options of the study.

    Attributes:
        queries: at most so many of a collection's judged queries, drawn by the seed; 0 takes all.
        places: token vectors of a query, [MASK] tokens included.
        augmented: whether [MASK] tokens take part in every score but the one that is compared; for
            encoders that were trained with them.
        depth: of the rankings.
        sample: documents that centroids and buckets are fitted on.
        centroids: how many; 0 takes ColBERTv2's rule, at most a fortieth of the sample's tokens.
        funnel: fields of `FunnelOptions`.
    """

    queries: int = 100
    places: int = 32
    augmented: bool = False
    depth: int = 100
    sample: int = 1000
    centroids: int = 0
    funnel: Mapping[str, Any] = field(default_factory=dict)


def late_tables(
    encoder: Encoder,
    collection: PreparedCollection,
    documents: Texts,
    options: LateOptions,
    seed: int,
    threads: int = 1,
    scratch: Path | None = None,
    index: Path | None = None,
) -> dict[str, pd.DataFrame]:
    """Everything of one collection; docs/tables.md has the columns.

    Memory holds the token vectors of a window of documents, those of the queries, and the codes'
    centroids; packed residuals and the scores of all pairs lie in a temporary folder.

    Args:
        encoder: gives token states.
        collection: its queries and judgements.
        documents: of the collection.
        options: of the study.
        seed: of every draw.
        threads: of k-means.
        scratch: where the temporary folder lies.
        index: an existing folder that gets token vectors, codes and all queries
            (`whencount.late_interaction.index`); None keeps none.

    Returns:
        `rows`, `per_query`, `funnel`, `codes`.

    Raises:
        InputError: there is no judged query or no token.
    """
    if options.depth < max(CUTOFFS):
        raise InputError(
            f"late interaction: depth is {options.depth}; give at least {max(CUTOFFS)}"
        )
    asked = _asked(collection, options.queries, seed)
    tokens = query_tokens(encoder, [collection.queries[at].text for at in asked], options.places)
    used = tokens if options.augmented else tokens.own()
    sampled, counted = _sample(encoder, documents, options.sample, seed)
    count = options.centroids or min(centroids_for(counted), max(1, len(sampled) // 40))
    book = fit_centroids(sampled, count, seed, threads)
    codecs = {bits: ResidualCodec.fit(sampled, book, bits) for bits in BITS}
    del sampled
    judgements = Judgements.from_qrels(
        collection.qrels, collection.query_ids[asked], collection.document_ids
    )
    with TemporaryDirectory(dir=scratch) as folder:
        writer = IndexWriter(index or Path(folder), encoder.dimensions, codecs, index is not None)
        scores = PairScores(Path(folder), ("maxsim", *map(str, BITS)), len(asked), len(documents))
        done = _pass(encoder, documents, tokens, used, codecs, options, writer, scores)
        _hold_orders(done, used, scores)
        funnel = _funnel(done, used, codecs, options, index or Path(folder), scores)
    if index is not None:
        every = query_tokens(encoder, [one.text for one in collection.queries], options.places)
        write_queries(every if options.augmented else every.own(), index)
    return {
        **_qualities(done, judgements, collection, asked, len(book), encoder.dimensions),
        "funnel": funnel.assign(collection=collection.name),
        "codes": _codes(done, collection.name, len(book)),
    }


def _asked(collection: PreparedCollection, most: int, seed: int) -> NDArray[np.int64]:
    """Positions of the queries that are run: judged ones, drawn, in the order of the collection."""
    judged = Judgements.from_qrels(
        collection.qrels, collection.query_ids, collection.document_ids
    ).evaluated
    known = np.flatnonzero(judged)
    if not len(known):
        raise InputError("late interaction: no query has a relevant document; give other qrels")
    if most and len(known) > most:
        known = np.sort(np.random.default_rng([seed, 11]).choice(known, most, replace=False))
    return known


def _windows(encoder: Encoder, texts: Texts, noun: str) -> Iterator[tuple[int, DocumentTokens]]:
    """Token vectors of length 1, a window of documents at a time, in order."""

    def keep(batch: StateBatch, ids: Sequence[str], first: int) -> tuple[Any, ...]:
        unit = torch.nn.functional.normalize(batch.states, dim=1)
        return batch.positions, np.diff(batch.offsets), unit.cpu().numpy()

    done = 0
    windows = encode_windows(
        encoder, texts, "passage", keep, window=_WINDOW, total=len(texts), noun=noun
    )
    for ids, parts in windows:
        places, sizes, states = (np.concatenate(column) for column in zip(*parts, strict=True))
        ordered = states[segment_order(places, sizes)]
        offsets = np.zeros(len(ids) + 1, dtype=np.int64)
        np.cumsum(sizes[np.argsort(places)], out=offsets[1:])
        yield done, DocumentTokens(torch.from_numpy(ordered), offsets)
        done += len(ids)


def _sample(
    encoder: Encoder, documents: Texts, most: int, seed: int
) -> tuple[NDArray[np.float32], int]:
    """Token vectors of drawn documents, and how many tokens all documents come to."""
    count = min(most, len(documents))
    chosen = np.sort(np.random.default_rng([seed, 12]).choice(len(documents), count, replace=False))
    wanted = set(chosen.tolist())
    drawn = [pair for at, pair in enumerate(documents) if at in wanted]
    parts = [block.states.numpy() for _, block in _windows(encoder, drawn, "document")]  # type: ignore[arg-type]
    states = np.concatenate(parts) if parts else np.empty((0, encoder.dimensions), np.float32)
    if not len(states):
        raise InputError("late interaction: the documents have no token; give documents with text")
    return states, round(len(states) / count * len(documents))


@dataclass
class _Pass:
    """What one pass over the documents leaves."""

    best: dict[str, Best]
    checks: dict[int, BoundCheck]
    offsets: NDArray[np.int64]
    errors: dict[int, float]
    furthest: dict[int, NDArray[np.float32]]


def _pass(
    encoder: Encoder,
    documents: Texts,
    queries: QueryTokens,
    used: QueryTokens,
    codecs: Mapping[int, ResidualCodec],
    options: LateOptions,
    writer: IndexWriter,
    pairs: PairScores,
) -> _Pass:
    best: dict[str, Best] = {}
    checks = {bits: BoundCheck() for bits in codecs}
    squared = dict.fromkeys(codecs, 0.0)
    places = _places(used)
    furthest: dict[int, list[NDArray[np.float32]]] = {bits: [] for bits in codecs}
    for first, block in _windows(encoder, documents, "document"):
        scores = exact_scores(queries, block, options.augmented)
        pairs.put("maxsim", first, scores["maxsim"])
        coded = {}
        for bits, codec in codecs.items():
            codes = codec.encode(block.states)
            again = codec.decode(codes)
            errors = document_errors(block.states, again, block.offsets)
            squared[bits] += float(((block.states - again).double() ** 2).sum())
            found = maxsim(used, DocumentTokens(again, block.offsets))
            checks[bits].see_scores(scores["maxsim"], found, errors, places)
            furthest[bits].append(errors)
            scores[f"residual_{bits}"] = found
            pairs.put(str(bits), first, found)
            coded[bits] = codes
        writer.append(block, coded)
        for name, block_scores in scores.items():
            pool = best.setdefault(name, Best(len(queries), options.depth))
            pool.offer(block_scores, first)
    offsets = writer.close()
    total = max(1, int(offsets[-1]))
    return _Pass(
        best,
        checks,
        offsets,
        {bits: one / total for bits, one in squared.items()},
        {bits: np.concatenate(parts) for bits, parts in furthest.items()},
    )


def _places(queries: QueryTokens) -> NDArray[np.int64]:
    """Tokens that each query has: int64, shape (Q,)."""
    found: NDArray[np.int64] = (queries.states != 0).any(dim=2).sum(dim=1).numpy()
    return found


def _hold_orders(done: _Pass, used: QueryTokens, pairs: PairScores) -> None:
    """Hold the bound against every pair of documents of every query."""
    places = _places(used)
    exact = pairs.read("maxsim")
    for bits, check in done.checks.items():
        coded = pairs.read(str(bits))
        rows = range(len(used))
        for row in progress(rows, len(used), f"pairs against the bound at {bits} bits", "query"):
            check.see_orders(exact[row], coded[row], done.furthest[bits], int(places[row]))


def _funnel(
    done: _Pass,
    queries: QueryTokens,
    codecs: Mapping[int, ResidualCodec],
    options: LateOptions,
    folder: Path,
    pairs: PairScores,
) -> pd.DataFrame:
    """Means over the queries: bits, stage, cutoff, documents left, survivors, queries."""
    import pandas as pd

    settings = FunnelOptions(**options.funnel)
    centroids = np.load(folder / IDS, mmap_mode="r")[:, 0]
    exact = pairs.read("maxsim")
    lines = []
    for bits, codec in codecs.items():
        packed = np.load(folder / packed_name(bits), mmap_mode="r")
        funnel = Funnel(CodedTokens(centroids, packed, done.offsets, codec), settings)
        rows = range(len(queries))
        for row in progress(rows, len(queries), f"the funnel at {bits} bits", "query"):
            stages = funnel.stages(queries.states[row], exact[row])
            exhaustive = done.best["maxsim"].positions[row].astype(np.int64)
            for stage, left, cutoff, kept in survivors(stages, exhaustive, CUTOFFS):
                first = min(cutoff, len(exhaustive))
                lines.append((bits, stage, cutoff, left, kept, kept / first))
    columns = ["bits", "stage", "cutoff", "documents", "survivors", "share"]
    table = pd.DataFrame(lines, columns=columns)
    grouped = table.groupby(["bits", "stage", "cutoff"], sort=False)
    return grouped.mean().reset_index().assign(queries=len(queries))


def _qualities(
    done: _Pass,
    judgements: Judgements,
    collection: PreparedCollection,
    asked: NDArray[np.int64],
    centroids: int,
    width: int,
) -> dict[str, pd.DataFrame]:
    """Quality per arm, and per query."""
    import pandas as pd

    tokens, documents = int(done.offsets[-1]), len(done.offsets) - 1
    book = centroids * width * 2
    exact = tokens * width * 2
    payloads = {
        "one_vector": documents * width * 2,
        "mean_for_max": documents * width * 2,
        **{
            f"residual_{bits}": tokens * (_CENTROID_BYTES + -(-width * bits // 8)) + book
            for bits in done.checks
        },
    }
    exhaustive = done.best["maxsim"].positions
    rows, details = [], []
    for arm in _in_order(done.best):
        pool = done.best[arm]
        counts = np.full(len(pool.positions), pool.positions.shape[1], dtype=np.int32)
        quality = ndcg(pool.positions, counts, judgements)
        found = recall(pool.positions, counts, judgements, 100)
        same = [
            len(np.intersect1d(mine[:10], theirs[:10])) / min(10, len(theirs))
            for mine, theirs in zip(pool.positions, exhaustive, strict=True)
        ]
        rows.append(
            {
                "collection": collection.name,
                "arm": arm,
                "queries": len(quality),
                "documents": documents,
                "tokens": tokens,
                "ndcg_10": float(quality.mean()),
                "recall_100": float(found.mean()),
                "overlap_10": float(np.mean(same)),
                "payload_bytes": payloads.get(arm, exact),
            }
        )
        details.append(
            pd.DataFrame(
                {
                    "collection": collection.name,
                    "arm": arm,
                    "query_id": collection.query_ids[asked],
                    "ndcg_10": quality,
                    "recall_100": found,
                }
            )
        )
    return {"rows": pd.DataFrame(rows), "per_query": pd.concat(details, ignore_index=True)}


def _in_order(arms: Mapping[str, Any]) -> list[str]:
    """MaxSim, its ablations, then its codes from the finest."""
    return sorted(arms, key=lambda arm: (arm != "maxsim", arm.startswith("residual"), arm))


def _codes(done: _Pass, collection: str, centroids: int) -> pd.DataFrame:
    """What residual codes lose, and the bound held against scores and orders: a line per bits."""
    import pandas as pd

    lines = [
        {
            "collection": collection,
            "bits": bits,
            "centroids": centroids,
            "mean_squared_error": done.errors[bits],
            **{name: getattr(check, name) for name in BoundCheck.__dataclass_fields__},
        }
        for bits, check in done.checks.items()
    ]
    return pd.DataFrame(lines)
