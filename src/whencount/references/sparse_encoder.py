"""Sparse vectors by an encoder of others (SPLADE and its kin), through sentence-transformers."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from whencount.arrays import segment_order
from whencount.collections import read_texts
from whencount.errors import InputError
from whencount.files import atomic_directory
from whencount.progress import progress
from whencount.vectors import SparseVectors, VectorsWriter

Side = Literal["query", "passage"]
# Every token of a pass has a logit for every word of the vocabulary, so memory, not speed, bounds
# it: 4,096 tokens of 30,522 single-precision logits are 500 MB, held about twice.
_PASS_TOKENS = {"cpu": 4096, "cuda": 65_536}
_WINDOW = 1024


@dataclass(frozen=True)
class SparseEncoderSettings:
    """Which sparse encoder, and how it is run.

    Attributes:
        source: "hub" (a model repository at a pinned revision) or "folder" (a local directory).
        name: for "hub", the repository id.
        revision: for "hub", the commit hash.
        path: for "folder", the directory.
        max_tokens: texts are cut to this many tokens, or to what the model takes if that is less.
        batch: the most texts of one forward pass.
        device: "auto", "cpu" or "cuda".
        precision: "auto" (fp16 on a GPU, fp32 elsewhere), "fp32" or "fp16".
    """

    source: str
    name: str | None = None
    revision: str | None = None
    path: str | None = None
    max_tokens: int = 512
    batch: int = 32
    device: str = "auto"
    precision: str = "auto"

    def __post_init__(self) -> None:
        needs = {"hub": ("name", "revision"), "folder": ("path",)}
        if self.source not in needs:
            raise InputError(
                f"sparse encoder: source is {self.source!r}; choose one of {sorted(needs)}"
            )
        for name in needs[self.source]:
            if not getattr(self, name):
                raise InputError(f"sparse encoder: source {self.source!r} needs {name!r}; add it")
        if self.precision not in ("auto", "fp32", "fp16"):
            raise InputError(
                f"sparse encoder: precision is {self.precision!r}; choose auto, fp32 or fp16"
            )
        for name in ("max_tokens", "batch"):
            value = getattr(self, name)
            if not isinstance(value, int) or value < 1:
                raise InputError(
                    f"sparse encoder: {name} is {value!r}; it must be a whole number of at least 1"
                )


def encode_external(
    options: SparseEncoderSettings | Mapping[str, Any],
    collection: str | Path,
    side: Side,
    out: str | Path,
    *,
    representation: str,
    shard: int = 0,
    shards: int = 1,
    maximum_stored: int | None = None,
    threads: int = 1,
) -> int:
    """Encode a shard of a prepared collection and write its vectors as `out`/`representation`.

    Rows stand in the order of the collection. Queries are encoded by the model's `encode_query`,
    documents by `encode_document`. Memory holds the model, one window of texts and the logits of
    one pass. The bytes depend, by rounding, on `threads`.

    Args:
        options: a `SparseEncoderSettings`, or a mapping with its fields.
        collection: folder that `prepare` wrote.
        side: "query" or "passage".
        out: folder to write; it replaces what is there, whole or not at all.
        representation: name of the folder of vectors in it (`SparseVectors.load` reads it).
        shard: which shard, from 0.
        shards: how many there are.
        maximum_stored: keep at most this many weights per text; None keeps all.
        threads: of a CPU.

    Returns:
        How many rows were written.

    Raises:
        InputError: the options are wrong, the model is not there or is none for sparse vectors, the
            collection is not prepared, or a weight is negative or not finite.
    """
    texts = read_texts(
        Path(collection) / ("documents.parquet" if side == "passage" else "queries.parquet")
    )
    part = texts[len(texts) * shard // shards : len(texts) * (shard + 1) // shards]
    encoder = load_sparse_encoder(options)
    with (
        _torch_threads(threads),
        atomic_directory(out) as folder,
        VectorsWriter(folder / representation, encoder.vocabulary_size) as writer,
    ):
        weights: deque[int] = deque()
        steps = vector_windows(encoder, iter(part), side, maximum_stored, weights)
        noun = "document" if side == "passage" else "query"
        sizes = iter(weights.popleft, None)
        for block in progress(steps, len(part), "encoding", noun, weights=sizes):
            if block is not None:
                writer.append(block)
    return len(part)


class SparseTextEncoder:
    """A loaded sparse encoder; create one with `load_sparse_encoder`.

    Attributes:
        settings: how it was loaded.
        model: of sentence-transformers.
        vocabulary_size: how many features its vectors may have.
    """

    def __init__(self, settings: SparseEncoderSettings, model: Any) -> None:
        self.settings = settings
        self.model = model
        self._pass_tokens = _PASS_TOKENS[model.device.type]
        # Asked before its first pass, the library may answer with the width of a hidden state.
        self.vocabulary_size = int(self._encode([""], "passage").shape[1])

    def batches(self, texts: list[str]) -> Iterator[list[int]]:
        """Positions of texts by falling length, as many at once as one pass takes."""
        lengths = [len(text) for text in texts]
        order = sorted(range(len(texts)), key=lambda position: -lengths[position])
        start = 0
        while start < len(order):
            # A token has at least one character, special tokens have none.
            longest = min(self.settings.max_tokens, lengths[order[start]] + 4)
            size = max(1, min(self.settings.batch, self._pass_tokens // longest))
            yield order[start : start + size]
            start += size

    def vectors(
        self, ids: list[str], texts: list[str], side: Side, maximum_stored: int | None = None
    ) -> SparseVectors:
        """The vectors of a few texts, encoded in one pass.

        Raises:
            InputError: a weight is negative or not finite; the text is named.
        """
        dense = self._encode(texts, side)
        rows, features = np.nonzero(dense)
        values = dense[rows, features]
        if not np.isfinite(values).all():
            at = int(np.flatnonzero(~np.isfinite(values))[0])
            raise InputError(
                f"text {ids[int(rows[at])]!r}: the sparse encoder gives weights that are not"
                " finite; set its precision to fp32"
            )
        return SparseVectors.from_coo(ids, rows, features, values, dense.shape[1]).cap(
            maximum_stored
        )

    def _encode(self, texts: list[str], side: Side) -> NDArray[np.float32]:
        """All weights, zeros too, shape (texts, vocabulary)."""
        encode = self.model.encode_query if side == "query" else self.model.encode_document
        dense = encode(
            texts,
            batch_size=len(texts),
            show_progress_bar=False,
            convert_to_tensor=True,
            convert_to_sparse_tensor=False,
        )
        return np.asarray(dense.float().cpu().numpy())


def load_sparse_encoder(
    options: SparseEncoderSettings | Mapping[str, Any],
) -> SparseTextEncoder:
    """Load a sparse encoder; code of the model's repository is never run.

    Raises:
        InputError: wrong options, the model is not there or is none for sparse vectors, or the
            device is not there.
    """
    if not isinstance(options, SparseEncoderSettings):
        known = {field.name for field in fields(SparseEncoderSettings)}
        unknown = sorted(set(options) - known)
        if unknown or "source" not in options:
            what = f"unknown key {unknown[0]!r}" if unknown else "no 'source'"
            raise InputError(f"sparse encoder: {what}; the keys are {sorted(known)}")
        options = SparseEncoderSettings(**options)
    from whencount.encoders import resolve_device
    from whencount.encoders.quiet import quiet_transformers

    device = resolve_device(options.device)
    half = options.precision == "fp16" or (options.precision == "auto" and device == "cuda")
    location = str(options.name if options.source == "hub" else options.path)
    if options.source == "folder" and not (
        (Path(location) / "modules.json").is_file() or (Path(location) / "config.json").is_file()
    ):
        raise InputError(
            f"sparse encoder: {location} holds neither modules.json nor config.json, so no model is"
            " there; point 'path' at a folder that sentence-transformers saved"
        )
    try:
        with quiet_transformers():
            from sentence_transformers import SparseEncoder

            model: Any = SparseEncoder(
                location,
                device=device,
                revision=options.revision,
                trust_remote_code=False,
                local_files_only=options.source == "folder",
            )
            _require_trained(model, location, options)
    except (OSError, ValueError, KeyError, TypeError, ImportError, RuntimeError) as error:
        if isinstance(error, InputError):
            raise
        reason = " ".join(str(error).split())[:200]
        place = (
            f"{location} at revision {options.revision} is neither in the local cache nor reachable"
            if options.source == "hub"
            else f"{location} could not be loaded"
        )
        raise InputError(f"sparse encoder: {place} ({reason})") from error
    model = model.half() if half else model.float()
    model.max_seq_length = min(model.max_seq_length or options.max_tokens, options.max_tokens)
    return SparseTextEncoder(options, model.eval())


@contextmanager
def _torch_threads(count: int) -> Iterator[None]:
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _require_trained(model: Any, location: str, options: SparseEncoderSettings) -> None:
    """Refuse a dense model, to which the library adds a sparse layer of random weights."""
    from sentence_transformers.sparse_encoder.modules import SparseAutoEncoder
    from sentence_transformers.util import load_file_path

    if not any(isinstance(module, SparseAutoEncoder) for module in model.modules()):
        return
    listed = load_file_path(
        location,
        "modules.json",
        revision=options.revision,
        local_files_only=options.source == "folder",
    )
    if listed is None or "SparseAutoEncoder" not in Path(listed).read_text(encoding="utf-8"):
        raise InputError(
            f"sparse encoder: {location} is a model of dense vectors; choose one that"
            " sentence-transformers' SparseEncoder saved, or a masked language model trained as"
            " SPLADE"
        )


def vector_windows(
    encoder: SparseTextEncoder,
    texts: Iterator[tuple[str, str]],
    side: Side,
    maximum_stored: int | None,
    weights: deque[int],
) -> Iterator[SparseVectors | None]:
    """Yield None after each pass and the vectors of a window, in order, after its last."""
    while group := list(islice(texts, _WINDOW)):
        ids, contents = [name for name, _ in group], [text for _, text in group]
        parts: list[SparseVectors] = []
        positions: list[int] = []
        for batch in encoder.batches(contents):
            chosen = [ids[at] for at in batch], [contents[at] for at in batch]
            parts.append(encoder.vectors(*chosen, side, maximum_stored))
            positions += batch
            weights.append(len(batch))
            yield None
        weights.append(0)
        yield _in_order(SparseVectors.concatenate(parts), positions)


def _in_order(vectors: SparseVectors, positions: list[int]) -> SparseVectors:
    places = np.asarray(positions, dtype=np.int64)
    sizes = vectors.row_sizes()
    source = segment_order(places, sizes)
    order = np.argsort(places)
    indptr = np.zeros(len(vectors) + 1, dtype=np.int64)
    np.cumsum(sizes[order], out=indptr[1:])
    return SparseVectors(
        vectors.ids[order],
        indptr,
        vectors.features[source],
        vectors.values[source],
        vectors.vocabulary_size,
    )
