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

from whencount.arrays import ArrayWriter, segment_order
from whencount.collections.prepared import PreparedCollection, Texts
from whencount.encoders import Encoder, StateBatch
from whencount.encoding import encode_windows
from whencount.errors import InputError
from whencount.late_interaction.bounds import BoundCheck, document_errors
from whencount.late_interaction.funnel import CodedTokens, Funnel, FunnelOptions, survivors
from whencount.late_interaction.maxsim import DocumentTokens, exact_scores, maxsim
from whencount.late_interaction.pools import Best
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

ABLATIONS = ("maxsim", "no_augmentation", "mean_for_max", "one_vector")
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
        depth: of the rankings, and of the pairs that the bound is held against.
        sample: documents that centroids and buckets are fitted on.
        centroids: how many; 0 takes ColBERTv2's rule, at most a fortieth of the sample's tokens.
        funnel: fields of `FunnelOptions`.
    """

    queries: int = 100
    places: int = 32
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
) -> dict[str, pd.DataFrame]:
    """Everything of one collection; docs/tables.md has the columns.

    Memory holds the token vectors of a window of documents, those of the queries, and the codes'
    centroids; packed residuals lie in a temporary folder.

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
    sampled, counted = _sample(encoder, documents, options.sample, seed)
    count = options.centroids or min(centroids_for(counted), max(1, len(sampled) // 40))
    book = fit_centroids(sampled, count, seed, threads)
    codecs = {bits: ResidualCodec.fit(sampled, book, bits) for bits in BITS}
    del sampled
    judgements = Judgements.from_qrels(
        collection.qrels, collection.query_ids[asked], collection.document_ids
    )
    with TemporaryDirectory() as scratch:
        done = _pass(encoder, documents, tokens, codecs, options, Path(scratch))
        funnel = _funnel(done, tokens, codecs, options, Path(scratch))
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


def _pass(
    encoder: Encoder,
    documents: Texts,
    queries: QueryTokens,
    codecs: Mapping[int, ResidualCodec],
    options: LateOptions,
    scratch: Path,
) -> _Pass:
    extra = tuple(f"{what}{bits}" for bits in codecs for what in ("score", "error"))
    names = (*ABLATIONS, *(f"residual_{bits}" for bits in codecs))
    best = {
        name: Best(len(queries), options.depth, extra if name == "maxsim" else ()) for name in names
    }
    checks = {bits: BoundCheck() for bits in codecs}
    squared = dict.fromkeys(codecs, 0.0)
    places = (queries.states != 0).any(dim=2).sum(dim=1).numpy()
    sizes: list[NDArray[np.int64]] = []
    writers = {
        "centroids": ArrayWriter(scratch / "centroids.npy", "int32", 1),
        **{
            f"packed{bits}": ArrayWriter(
                scratch / f"packed{bits}.npy", "uint8", -(-encoder.dimensions * bits // 8)
            )
            for bits in codecs
        },
    }
    for first, block in _windows(encoder, documents, "document"):
        scores = exact_scores(queries, block)
        others = {}
        for bits, codec in codecs.items():
            codes = codec.encode(block.states)
            again = codec.decode(codes)
            errors = document_errors(block.states, again, block.offsets)
            squared[bits] += float(((block.states - again).double() ** 2).sum())
            found = maxsim(queries, DocumentTokens(again, block.offsets))
            checks[bits].see_scores(scores["maxsim"], found, errors, places)
            scores[f"residual_{bits}"] = found
            others[f"score{bits}"] = found
            others[f"error{bits}"] = np.broadcast_to(errors, found.shape)
            writers[f"packed{bits}"].append(codes.packed(bits))
            chosen = codes.centroids
        writers["centroids"].append(chosen[:, None])
        for name, pool in best.items():
            pool.offer(scores[name], first, others if name == "maxsim" else None)
        sizes.append(np.diff(block.offsets))
    for writer in writers.values():
        writer.close()
    offsets = np.concatenate([[0], np.cumsum(np.concatenate(sizes))]).astype(np.int64)
    pool = best["maxsim"]
    for bits, check in checks.items():
        for row in range(len(queries)):
            check.see_orders(
                pool.scores[row],
                pool.others[f"score{bits}"][row],
                pool.others[f"error{bits}"][row],
                int(places[row]),
            )
    total = max(1, int(offsets[-1]))
    return _Pass(best, checks, offsets, {bits: one / total for bits, one in squared.items()})


def _funnel(
    done: _Pass,
    queries: QueryTokens,
    codecs: Mapping[int, ResidualCodec],
    options: LateOptions,
    scratch: Path,
) -> pd.DataFrame:
    """Means over the queries: bits, stage, cutoff, documents left, survivors, queries."""
    import pandas as pd

    settings = FunnelOptions(**options.funnel)
    centroids = np.load(scratch / "centroids.npy", mmap_mode="r")[:, 0]
    lines = []
    for bits, codec in codecs.items():
        packed = np.load(scratch / f"packed{bits}.npy", mmap_mode="r")
        width = queries.states.shape[2]
        funnel = Funnel(CodedTokens(centroids, packed, done.offsets, codec, width), settings)
        rows = range(len(queries))
        for row in progress(rows, len(queries), f"the funnel at {bits} bits", "query"):
            stages = funnel.stages(queries.states[row])
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
    for arm, pool in done.best.items():
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
