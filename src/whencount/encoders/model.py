"""Text in, the states of its content tokens out."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from whencount.encoders.parallel import available_threads, bounded_map, one_thread
from whencount.encoders.settings import EncoderSettings

Kind = Literal["query", "passage"]
Result = TypeVar("Result")

# Activations of about 2,000 tokens stay in a core's cache; a GPU wants far more work at once.
_BATCH_TOKENS = {"cpu": 2048, "cuda": 65_536}


@dataclass(frozen=True)
class Tokens:
    """Tokenised texts.

    Attributes:
        input_ids: one int64 array per text, special tokens and prefix included.
        content: one boolean array per text, true at the content tokens.
        attended: one boolean array per text, false at tokens that no other token looks at; None
            where all are looked at.
    """

    input_ids: list[NDArray[np.int64]]
    content: list[NDArray[np.bool_]]
    attended: list[NDArray[np.bool_]] | None = None

    def __len__(self) -> int:
        return len(self.input_ids)


@dataclass(frozen=True)
class StateBatch:
    """Content-token states of some texts, packed one after another.

    Attributes:
        positions: int64, shape (texts,): where each text stood in the input.
        offsets: int64, shape (texts + 1,): text i owns rows offsets[i]..offsets[i + 1] - 1.
        states: float32 tensor, shape (content tokens, dimensions), on the encoder's device.
    """

    positions: NDArray[np.int64]
    offsets: NDArray[np.int64]
    states: torch.Tensor

    def pooled(self) -> torch.Tensor:
        """The mean content-token state of each text, float32, shape (texts, dimensions).

        A text without content tokens has the zero vector.
        """
        counts = torch.from_numpy(np.diff(self.offsets)).to(self.states.device)
        return segment_sum(self.states, self.offsets) / counts.clamp(min=1)[:, None]


def segment_sum(rows: torch.Tensor, offsets: NDArray[np.int64]) -> torch.Tensor:
    """Sums of consecutive rows: float32, shape (len(offsets) - 1, width); empty segments are 0."""
    bounds = torch.from_numpy(np.asarray(offsets, dtype=np.int64)).to(rows.device)
    return torch.segment_reduce(rows, "sum", offsets=bounds, axis=0, initial=0.0)


class Encoder:
    """A frozen transformer; create one with `load_encoder`.

    Attributes:
        settings: how it was loaded.
        dimensions: width of a state.
        device: where it computes.
        description: what identifies the model, for a manifest.
    """

    def __init__(
        self,
        settings: EncoderSettings,
        tokenizer: Any,
        model: Any,
        threads: int | None = None,
        replacements: Mapping[int, str] | None = None,
    ) -> None:
        """Wrap a loaded model; `replacements` (code point -> text) come before the tokenizer."""
        self.settings = settings
        self.device = next(model.parameters()).device
        self.dimensions = int(model.config.hidden_size)
        self.description = {
            "source": settings.source,
            "model": settings.package or settings.name or Path(settings.path or "").name,
            "revision": _revision(settings),
            "max_tokens": settings.max_tokens,
            "query_prefix": settings.query_prefix,
            "passage_prefix": settings.passage_prefix,
            "precision": str(next(model.parameters()).dtype).removeprefix("torch."),
        }
        self._tokenizer = tokenizer
        self._replacements = dict(replacements or {})
        self._model = model
        self._workers = 1 if self.device.type == "cuda" else (threads or available_threads())
        self._batch_tokens = settings.batch_tokens or _BATCH_TOKENS[self.device.type]

    @property
    def mask_token(self) -> int | None:
        """The id of the tokenizer's [MASK]; None where it has none."""
        found = getattr(self._tokenizer, "mask_token_id", None)
        return None if found is None else int(found)

    def tokenise(self, texts: Sequence[str], kind: Kind) -> Tokens:
        """Tokenise texts with the prefix of their kind.

        Content tokens are those of the text itself: neither special tokens nor tokens that lie
        wholly within the prefix. A token that joins the prefix's end to the text counts as content.
        A text of white space alone has no content.
        """
        prefix = self.settings.query_prefix if kind == "query" else self.settings.passage_prefix
        if not texts:
            return Tokens([], [])
        if self._replacements:
            prefix = prefix.translate(self._replacements)
            texts = [text.translate(self._replacements) for text in texts]
        encoded = self._tokenizer(
            [prefix + text for text in texts],
            truncation=True,
            padding=False,
            max_length=self.settings.max_tokens,
            return_attention_mask=False,
            return_token_type_ids=False,
            return_special_tokens_mask=True,
            return_offsets_mapping=bool(prefix),
        )
        content = [
            (np.asarray(mask) == 0) & bool(text.strip())
            for mask, text in zip(encoded["special_tokens_mask"], texts, strict=True)
        ]
        if prefix:
            ends = [np.asarray(pairs, dtype=np.int64)[:, 1] for pairs in encoded["offset_mapping"]]
            content = [mask & (end > len(prefix)) for mask, end in zip(content, ends, strict=True)]
        return Tokens([np.asarray(ids, dtype=np.int64) for ids in encoded["input_ids"]], content)

    def content_spans(self, texts: Sequence[str], kind: Kind) -> list[NDArray[np.int64]]:
        """Where the content tokens of each text stand in it: [start, end) in characters.

        Returns:
            One array per text, int64, shape (content tokens, 2), in the order of its states. Where
            characters are replaced before the tokenizer, so that places in the text are lost, all
            are [0, 0).
        """
        prefix = self.settings.query_prefix if kind == "query" else self.settings.passage_prefix
        plain = [text.translate(self._replacements) for text in texts]
        encoded = self._tokenizer(
            [prefix.translate(self._replacements) + text for text in plain],
            truncation=True,
            padding=False,
            max_length=self.settings.max_tokens,
            return_offsets_mapping=True,
        )
        start = len(prefix.translate(self._replacements))
        found = []
        content = self.tokenise(texts, kind).content
        for pairs, mask, text, one in zip(
            encoded["offset_mapping"], content, texts, plain, strict=True
        ):
            spans = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)[mask] - start
            found.append(np.maximum(spans, 0) if text == one else np.zeros_like(spans))
        return found

    def states(self, texts: Sequence[str], kind: Kind) -> Iterator[StateBatch]:
        """Yield the content-token states of every text, in batches of like length.

        Every text occurs in exactly one batch; the order is that of the batches' lengths.
        """
        return self.apply(self.tokenise(texts, kind), lambda batch: batch)

    def apply(self, tokens: Tokens, function: Callable[[StateBatch], Result]) -> Iterator[Result]:
        """Run the transformer over tokenised texts and yield `function(batch)` of each batch.

        On a CPU every batch is computed whole by one of `threads` workers, `function` included, so
        neither the bytes of a result nor the order of the results depends on the thread count.
        `function` must be safe to call from several threads.
        """
        batches = _batches(tokens, self._batch_tokens)

        def work(batch: NDArray[np.int64]) -> Result:
            return function(self._forward(tokens, batch))

        if self._workers == 1:
            with one_thread(self.device.type == "cpu"):
                yield from map(work, batches)
            return
        with ThreadPoolExecutor(
            self._workers, initializer=torch.set_num_threads, initargs=(1,)
        ) as pool:
            yield from bounded_map(pool, work, batches, 2 * self._workers)

    @torch.inference_mode()
    def _forward(self, tokens: Tokens, batch: NDArray[np.int64]) -> StateBatch:
        lengths = np.asarray([len(tokens.input_ids[position]) for position in batch])
        longest = int(lengths.max())
        ids = np.full((len(batch), longest), self._tokenizer.pad_token_id or 0, dtype=np.int64)
        content = np.zeros((len(batch), longest), dtype=np.bool_)
        for row, position in enumerate(batch):
            ids[row, : lengths[row]] = tokens.input_ids[position]
            content[row, : lengths[row]] = tokens.content[position]
        # Without padding no mask is needed, and attention takes its fastest path.
        mask = None
        if tokens.attended is not None or int(lengths.min()) != longest:
            attended = np.arange(longest) < lengths[:, None]
            if tokens.attended is not None:
                for row, position in enumerate(batch):
                    attended[row, : lengths[row]] = tokens.attended[position]
            mask = torch.from_numpy(attended).to(self.device).to(torch.int64)
        hidden = self._model(
            input_ids=torch.from_numpy(ids).to(self.device), attention_mask=mask
        ).last_hidden_state
        kept = torch.from_numpy(np.flatnonzero(content)).to(self.device)
        states = hidden.reshape(-1, hidden.shape[-1])[kept].float()
        offsets = np.zeros(len(batch) + 1, dtype=np.int64)
        np.cumsum(content.sum(axis=1), out=offsets[1:])
        return StateBatch(batch, offsets, states)


def _revision(settings: EncoderSettings) -> str | None:
    if settings.source == "packaged":
        return importlib.metadata.version(str(settings.package))
    return settings.revision


def _batches(tokens: Tokens, budget: int) -> list[NDArray[np.int64]]:
    """Positions by falling length, cut where length x texts would pass the token budget.

    The longest come first: a batch too large for memory fails at once, and no worker is left
    alone with the longest batch at the end.
    """
    lengths = np.asarray([len(ids) for ids in tokens.input_ids], dtype=np.int64)
    order = np.argsort(-lengths, kind="stable")
    batches: list[NDArray[np.int64]] = []
    start = 0
    while start < len(order):
        stop = start + max(1, budget // max(1, int(lengths[order[start]])))
        batches.append(order[start:stop])
        start = stop
    return batches
