"""SPLADE vectors of a masked language model: pooling by choice, and queries without a model."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from whencount.errors import InputError
from whencount.references.sparse_encoder import (
    Side,
    SparseEncoderSettings,
    SparseTextEncoder,
    load_sparse_encoder,
    vector_windows,
)
from whencount.vectors import SparseVectors

Pooling = Literal["max", "sum"]
Queries = Literal["model", "tokens", "idf"]


class SpladeEncoder(SparseTextEncoder):
    """A SPLADE encoder; create one with `load_splade`."""

    def __init__(self, settings: SparseEncoderSettings, model: Any, static: Any) -> None:
        self._static = static
        super().__init__(settings, model)

    def _encode(self, texts: list[str], side: Side) -> NDArray[np.float32]:
        if side == "passage" or self._static is None:
            return super()._encode(texts, side)
        import torch

        with torch.inference_mode():
            # The tokenizer gives floats without ids where no text has a token.
            tokens = self._static.preprocess(texts)
            tokens["input_ids"] = tokens["input_ids"].long()
            tokens["attention_mask"] = tokens["attention_mask"].long()
            weights = self._static(tokens)["sentence_embedding"]
        found = np.asarray(weights.float().numpy())
        dense = np.zeros((len(texts), self.vocabulary_size), dtype=np.float32)
        dense[:, : found.shape[1]] = found
        return dense


def load_splade(
    options: SparseEncoderSettings | Mapping[str, Any],
    *,
    pooling: Pooling | None = None,
    queries: Queries = "model",
) -> SpladeEncoder:
    """Load a masked language model, or a folder that `SparseEncoder` saved, as SPLADE.

    Args:
        options: which model; see `SparseEncoderSettings`. Code of its repository is never run.
        pooling: of `ln(1 + relu(logit))` over tokens: "max" (arXiv:2109.10086) or "sum"
            (arXiv:2107.05720); None takes what the checkpoint says, "max" where it says nothing.
        queries: "model" encodes them as the checkpoint does; SPLADE-doc has their distinct tokens,
            without special ones, weigh 1 ("tokens") or what the checkpoint's idf.json says ("idf").

    Raises:
        InputError: as `load_sparse_encoder`; a wrong choice; no SPLADE pooling in the model; no
            idf.json beside it; or a tokenizer with more tokens than the model has logits.
    """
    if pooling not in (None, "max", "sum"):
        raise InputError(f"splade: pooling is {pooling!r}; choose max or sum")
    if queries not in ("model", "tokens", "idf"):
        raise InputError(f"splade: queries are {queries!r}; choose model, tokens or idf")
    loaded = load_sparse_encoder(options)
    from sentence_transformers.sparse_encoder.modules import SpladePooling

    model, settings = loaded.model, loaded.settings
    poolings = [module for module in model.modules() if isinstance(module, SpladePooling)]
    if not poolings:
        raise InputError(
            f"splade: {settings.name or settings.path} has no SPLADE pooling; choose a masked"
            " language model"
        )
    for module in poolings:
        module.pooling_strategy = pooling or module.pooling_strategy
    static = None if queries == "model" else _static_queries(loaded, queries)
    return SpladeEncoder(settings, model, static)


def splade_vectors(
    encoder: SpladeEncoder,
    texts: Iterable[tuple[str, str]],
    side: Side,
    maximum_stored: int | None = None,
) -> Iterator[SparseVectors]:
    """Vectors of (id, text) pairs in their order, a window at a time.

    Memory holds one window and the logits of one pass, however many texts there are.

    Args:
        maximum_stored: keep the largest weights of a text only, so many; None keeps all.

    Raises:
        InputError: a weight is negative or not finite; the text is named.
    """
    done: deque[int] = deque(maxlen=1)
    for block in vector_windows(encoder, iter(texts), side, maximum_stored, done):
        if block is not None:
            yield block


def _static_queries(loaded: SparseTextEncoder, queries: Queries) -> Any:
    """The library's module of static weights on the CPU: a look-up needs no GPU."""
    from sentence_transformers.sparse_encoder.modules import SparseStaticEmbedding
    from sentence_transformers.util import load_file_path

    settings, tokenizer = loaded.settings, loaded.model.tokenizer
    location = str(settings.name if settings.source == "hub" else settings.path)
    if len(tokenizer) > loaded.vocabulary_size:
        raise InputError(
            f"splade: the tokenizer of {location} has {len(tokenizer)} tokens, its model"
            f" {loaded.vocabulary_size} logits; use the tokenizer that the model was trained with"
        )
    if queries == "tokens":
        static = SparseStaticEmbedding(tokenizer, frozen=True)
    else:
        path = load_file_path(
            location,
            "idf.json",
            revision=settings.revision,
            local_files_only=settings.source == "folder",
        )
        if path is None:
            raise InputError(
                f"splade: there is no idf.json in {location}; choose queries 'tokens' or 'model'"
            )
        try:
            static = SparseStaticEmbedding.from_json(str(path), tokenizer, frozen=True)
        except (ValueError, TypeError, AttributeError, RuntimeError) as error:
            raise InputError(
                f"splade: {path} does not map tokens to weights; take it from the checkpoint again"
            ) from error
    return static.eval()
