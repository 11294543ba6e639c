"""The float32 pass in torch, for graphics cards: the same candidates, rescored alike.

A chunk of documents becomes one sparse matrix per transform; a product with the dense query
weights gives all estimates, and the best of each chunk are merged. Sums in any order obey the
error bound of `whencount.engine.kernels`, so the thresholds are the same. Memory on the device:
about `64 n + 24 d B` bytes for a chunk of d documents with n postings and a batch of B queries,
and `8 V B` for the query weights; chunks and batches are chosen to stay within `MEMORY_BYTES`.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from whencount.engine.index import Index
from whencount.engine.lanes import SMALLEST
from whencount.engine.plan import References
from whencount.errors import InputError

if TYPE_CHECKING:
    import torch

MEMORY_BYTES = 6 << 30
"""Device memory that a search may use; leaves room on cards of 11 GB."""

SLACK = 64
"""Candidates kept per ranking beyond the depth; more near ties than that are left to float64."""

_BATCH = 256


@dataclass(frozen=True)
class Batch:
    """Queries of one float32 pass.

    Attributes:
        starts: int64, (queries + 1,).
        features: int32, (terms,).
        weights: float32, (terms, 8): scaled, IDF off in column 0, on in column 4.
        relative, absolute: float64, (queries,): the error bound.
    """

    starts: NDArray[np.int64]
    features: NDArray[np.int32]
    weights: NDArray[np.float32]
    relative: NDArray[np.float64]
    absolute: NDArray[np.float64]


def open_device(name: str) -> torch.device:
    """The torch device called `name`.

    Raises:
        InputError: torch is not installed, or there is no such device.
    """
    try:
        import torch
    except ImportError as error:
        raise InputError(f"device {name!r} needs torch, which is not installed") from error
    try:
        device = torch.device(name.removeprefix("torch:"))
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise InputError(f"device {name!r} cannot be used ({error}); choose cpu") from error
    return device


def collect(
    index: Index,
    batch: Batch,
    reference: References,
    average_length: float,
    needed: NDArray[np.bool_],
    depth: int,
    device: torch.device,
    memory_bytes: int | None = None,
) -> tuple[NDArray[np.bool_], tuple[NDArray[Any], ...]]:
    """Candidates of every query: which queries overflowed, and the lists of the others.

    Returns:
        left: bool, (queries,).
        lists: starts (queries + 1,), positions, estimates (candidates, lanes), and thresholds
            (queries, lanes), as `whencount.engine.exact.rescore` takes them.
    """
    import torch

    budget = memory_bytes or MEMORY_BYTES
    queries = len(batch.starts) - 1
    kept = min(depth + SLACK, len(index))
    values = np.zeros((queries, len(needed), kept), dtype=np.float32)
    positions = np.zeros((queries, len(needed), kept), dtype=np.int64)
    size = max(1, min(_BATCH, budget // 4 // max(1, 8 * index.vocabulary_size)))
    chunks = _chunks(index, size, budget // 2)
    edges = [(low, min(low + size, queries)) for low in range(0, queries, size)]
    dense = [_dense(index, batch, low, high, device) for low, high in edges[:1]]
    for first, last in chunks:
        matrices = _matrices(index, first, last, reference, average_length, device)
        start = first * index.block_documents
        for number, (low, high) in enumerate(edges):
            weights = (
                dense[number] if number < len(dense) else _dense(index, batch, low, high, device)
            )
            for transform, matrix in enumerate(matrices):
                lanes = [transform // 4 * 8 + 4 * half + transform % 4 for half in (0, 1)]
                if not needed[lanes].any():
                    continue
                scores = torch.sparse.mm(matrix, weights).T.contiguous()
                count = min(kept, scores.shape[1])
                best, place = torch.topk(scores, count, dim=1)
                for half, lane in enumerate(lanes):
                    rows = slice(half * (high - low), (half + 1) * (high - low))
                    _merge(
                        values[low:high, lane],
                        positions[low:high, lane],
                        best[rows].cpu().numpy(),
                        place[rows].cpu().numpy() + start,
                    )
        del matrices
    return _lists(values, positions, batch, needed, depth, len(index))


def _chunks(index: Index, batch: int, budget: int) -> list[tuple[int, int]]:
    sizes = np.diff(index.block_starts) * 64 + 24 * index.block_documents * batch
    chunks, first, total = [], 0, 0
    for block, size in enumerate(sizes.tolist()):
        if block > first and total + size > budget:
            chunks.append((first, block))
            first, total = block, 0
        total += size
    if len(sizes):
        chunks.append((first, len(sizes)))
    return chunks


def _dense(index: Index, batch: Batch, low: int, high: int, device: torch.device) -> torch.Tensor:
    """Query weights, (V, 2 queries): IDF off, then on."""
    import torch

    own = slice(int(batch.starts[low]), int(batch.starts[high]))
    rows = np.repeat(np.arange(high - low), np.diff(batch.starts[low : high + 1]))
    dense = np.zeros((index.vocabulary_size, 2 * (high - low)), dtype=np.float32)
    dense[batch.features[own], rows] = batch.weights[own, 0]
    dense[batch.features[own], rows + high - low] = batch.weights[own, 4]
    return torch.from_numpy(dense).to(device)


def _matrices(
    index: Index,
    first: int,
    last: int,
    reference: References,
    average_length: float,
    device: torch.device,
) -> list[torch.Tensor]:
    """The transforms of blocks first..last-1 as CSR matrices, (documents, V)."""
    import torch

    low, high = int(index.block_starts[first]), int(index.block_starts[last])
    start = first * index.block_documents
    stop = min(last * index.block_documents, len(index))
    counts = torch.from_numpy(np.diff(index.bounds[first:last].astype(np.int64), axis=1)).to(device)
    per_block = torch.from_numpy(np.diff(index.block_starts[first : last + 1])).to(device)
    vocabulary = torch.arange(index.vocabulary_size, device=device)
    features = torch.repeat_interleave(vocabulary.repeat(last - first), counts.flatten())
    offsets = torch.arange(last - first, device=device) * index.block_documents
    rows = torch.from_numpy(index.ids[low:high].astype(np.int32)).to(device)
    rows = rows.long() + torch.repeat_interleave(offsets, per_block)
    order = torch.argsort(rows, stable=True)
    rows, features = rows[order], features[order].to(torch.int32)
    values = torch.from_numpy(index.weights(low, high)).to(device)[order]
    pointers = torch.zeros(stop - start + 1, dtype=torch.int64, device=device)
    torch.cumsum(torch.bincount(rows, minlength=stop - start), 0, out=pointers[1:])
    lengths = torch.from_numpy(np.array(index.lengths[start:stop])).to(device)
    matrices = []
    for number, slope in enumerate(reference.slope.tolist()):
        k1, b, peak = (
            float(array[number]) for array in (reference.k1, reference.b, reference.peak)
        )
        factor = torch.ones_like(lengths)
        if average_length != 0:
            factor = 1.0 - b + b * lengths / average_length
        if slope:
            below = (k1 * factor).to(torch.float32)[rows]
            result = values / (values + below) / peak
        else:
            below = (factor * (peak / float(reference.length[number]))).to(torch.float32)[rows]
            result = values / below
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
            matrix = torch.sparse_csr_tensor(
                pointers.to(torch.int32),
                features,
                result.clamp_min(SMALLEST),
                size=(stop - start, index.vocabulary_size),
                check_invariants=False,
            )
        matrices.append(matrix)
    return matrices


def _merge(
    values: NDArray[np.float32],
    positions: NDArray[np.int64],
    new_values: NDArray[np.float32],
    new_positions: NDArray[np.int64],
) -> None:
    """Keep the best of both, in place, falling; shapes (queries, kept)."""
    both = np.concatenate([values, new_values], axis=1)
    places = np.concatenate([positions, new_positions], axis=1)
    order = np.argsort(-both, axis=1, kind="stable")[:, : values.shape[1]]
    values[:] = np.take_along_axis(both, order, axis=1)
    positions[:] = np.take_along_axis(places, order, axis=1)


def _lists(
    values: NDArray[np.float32],
    positions: NDArray[np.int64],
    batch: Batch,
    needed: NDArray[np.bool_],
    depth: int,
    documents: int,
) -> tuple[NDArray[np.bool_], tuple[NDArray[Any], ...]]:
    queries, lanes, kept = values.shape
    level = (
        values[:, :, depth - 1].astype(np.float64) if kept >= depth else np.zeros((queries, lanes))
    )
    bound = level * (1.0 - 3.0 * batch.relative[:, None]) - 4.0 * batch.absolute[:, None]
    thresholds = np.maximum(bound, 0.0).astype(np.float32)
    thresholds[:, ~needed] = np.inf
    # All documents fit a list of that length: nothing can have been cut off.
    full = values[:, :, -1] > thresholds if kept < documents else np.zeros((queries, lanes), bool)
    left: NDArray[np.bool_] = np.any(full, axis=1)
    hits = (values > thresholds[:, :, None]) & ~left[:, None, None]
    query, lane, entry = np.nonzero(hits)
    keys = query * documents + positions[query, lane, entry]
    distinct, where = np.unique(keys, return_inverse=True)
    estimates = np.zeros((len(distinct), lanes), dtype=np.float32)
    estimates[where, lane] = values[query, lane, entry]
    starts = np.searchsorted(distinct, np.arange(queries + 1) * documents)
    candidates = (distinct % max(1, documents)).astype(np.int32)
    return left, (starts.astype(np.int64), candidates, estimates, thresholds)
