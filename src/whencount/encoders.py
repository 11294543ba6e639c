"""Frozen text encoders: text in, the states of its content tokens out."""

from __future__ import annotations

import importlib.metadata
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, fields
from itertools import islice
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from whencount.errors import InputError

Kind = Literal["query", "passage"]
Result = TypeVar("Result")
Item = TypeVar("Item")

# Activations of about 2,000 tokens stay in a core's cache; a GPU wants far more work at once.
_BATCH_TOKENS = {"cpu": 2048, "cuda": 65_536}


@dataclass(frozen=True)
class EncoderSettings:
    """Which encoder, and how it is run.

    Attributes:
        source: "packaged" (model files inside an installed wheel), "hub" (a model repository at a
            pinned revision) or "folder" (a local directory).
        package: for "packaged", the distribution's name.
        name: for "hub", the repository id.
        revision: for "hub", the commit hash; required there.
        path: for "folder", the directory.
        max_tokens: texts are cut to this many tokens, prefix and special tokens included.
        query_prefix: put before every query.
        passage_prefix: put before every passage.
        batch_tokens: the most tokens of one forward pass, padding included; None chooses by
            device.
        device: "auto", "cpu" or "cuda".
        precision: "auto" (fp16 on a GPU, fp32 elsewhere), "fp32" or "fp16".
    """

    source: str
    package: str | None = None
    name: str | None = None
    revision: str | None = None
    path: str | None = None
    max_tokens: int = 512
    query_prefix: str = ""
    passage_prefix: str = ""
    batch_tokens: int | None = None
    device: str = "auto"
    precision: str = "auto"

    def __post_init__(self) -> None:
        allowed = {
            "source": ("packaged", "hub", "folder"),
            "device": ("auto", "cpu", "cuda"),
            "precision": ("auto", "fp32", "fp16"),
        }
        for name, choices in allowed.items():
            if getattr(self, name) not in choices:
                raise InputError(
                    f"encoder: {name} is {getattr(self, name)!r}; choose one of {list(choices)}"
                )
        needs = {"packaged": ("package",), "hub": ("name", "revision"), "folder": ("path",)}
        for name in needs[self.source]:
            if not getattr(self, name):
                raise InputError(f"encoder: source {self.source!r} needs {name!r}; add it")
        for name in ("max_tokens", "batch_tokens"):
            if not isinstance(getattr(self, name), int | None):
                raise InputError(
                    f"encoder: {name} is {getattr(self, name)!r}; it must be a whole number"
                )
        if self.max_tokens < 1 or (self.batch_tokens is not None and self.batch_tokens < 1):
            raise InputError("encoder: max_tokens and batch_tokens must be at least 1")


@dataclass(frozen=True)
class Tokens:
    """Tokenised texts.

    Attributes:
        input_ids: one int64 array per text, special tokens and prefix included.
        content: one boolean array per text, true at the content tokens.
    """

    input_ids: list[NDArray[np.int64]]
    content: list[NDArray[np.bool_]]

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
        self, settings: EncoderSettings, tokenizer: Any, model: Any, threads: int | None = None
    ) -> None:
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
        self._model = model
        self._workers = 1 if self.device.type == "cuda" else (threads or available_threads())
        self._batch_tokens = settings.batch_tokens or _BATCH_TOKENS[self.device.type]

    def tokenise(self, texts: Sequence[str], kind: Kind) -> Tokens:
        """Tokenise texts with the prefix of their kind.

        Content tokens are those of the text itself: neither special tokens nor tokens that lie
        wholly within the prefix. A token that joins the prefix's end to the text counts as content.
        """
        prefix = self.settings.query_prefix if kind == "query" else self.settings.passage_prefix
        if not texts:
            return Tokens([], [])
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
        content = [np.asarray(mask) == 0 for mask in encoded["special_tokens_mask"]]
        if prefix:
            ends = [np.asarray(pairs, dtype=np.int64)[:, 1] for pairs in encoded["offset_mapping"]]
            content = [mask & (end > len(prefix)) for mask, end in zip(content, ends, strict=True)]
        return Tokens([np.asarray(ids, dtype=np.int64) for ids in encoded["input_ids"]], content)

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
            with _one_thread(self.device.type == "cpu"):
                yield from map(work, batches)
            return
        with ThreadPoolExecutor(
            self._workers, initializer=torch.set_num_threads, initargs=(1,)
        ) as pool:
            yield from _bounded_map(pool, work, batches, 2 * self._workers)

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
        if int(lengths.min()) != longest:
            mask = torch.from_numpy(np.arange(longest) < lengths[:, None]).to(self.device)
            mask = mask.to(torch.int64)
        hidden = self._model(
            input_ids=torch.from_numpy(ids).to(self.device), attention_mask=mask
        ).last_hidden_state
        kept = torch.from_numpy(np.flatnonzero(content)).to(self.device)
        states = hidden.reshape(-1, hidden.shape[-1])[kept].float()
        offsets = np.zeros(len(batch) + 1, dtype=np.int64)
        np.cumsum(content.sum(axis=1), out=offsets[1:])
        return StateBatch(batch, offsets, states)


def load_encoder(
    settings: EncoderSettings | Mapping[str, Any], threads: int | None = None
) -> Encoder:
    """Load a frozen encoder.

    Args:
        settings: an `EncoderSettings`, or a mapping with its fields.
        threads: workers on a CPU; None takes every core this process may use.

    Raises:
        InputError: unknown or missing settings, the encoder is not there, it has no fast
            tokenizer, or the device is not there.
    """
    if not isinstance(settings, EncoderSettings):
        known = {field.name for field in fields(EncoderSettings)}
        unknown = sorted(set(settings) - known)
        if unknown or "source" not in settings:
            what = f"unknown key {unknown[0]!r}" if unknown else "no 'source'"
            raise InputError(f"encoder: {what}; the keys are {sorted(known)}")
        settings = EncoderSettings(**settings)
    device = resolve_device(settings.device)
    half = settings.precision == "fp16" or (settings.precision == "auto" and device == "cuda")
    location, options = _locate(settings)
    tokenizer, model = _load(
        settings,
        location,
        {**options, "trust_remote_code": False},
        torch.float16 if half else torch.float32,
    )
    _check_length(settings, tokenizer, model)
    model = model.to(device).eval().requires_grad_(False)
    return Encoder(settings, tokenizer, model, threads)


def _check_length(settings: EncoderSettings, tokenizer: Any, model: Any) -> None:
    """Refuse a `max_tokens` that leaves no room for text, or that the model has no positions for.

    Raises:
        InputError: either.
    """
    least = tokenizer.num_special_tokens_to_add() + 1
    most = getattr(model.config, "max_position_embeddings", None) or settings.max_tokens
    if not least <= settings.max_tokens <= most:
        raise InputError(
            f"encoder: max_tokens is {settings.max_tokens}, but this model takes {least} to {most}"
            " tokens; choose a number between"
        )


def resolve_device(device: str) -> str:
    """ "cpu" or "cuda" for "auto", "cpu" or "cuda".

    Raises:
        InputError: "cuda" without a GPU, or another word.
    """
    if device not in ("auto", "cpu", "cuda"):
        raise InputError(f"device {device!r} is unknown; choose auto, cpu or cuda")
    if device == "cuda" and not torch.cuda.is_available():
        raise InputError("device 'cuda' was asked for but no GPU is there; use 'auto'")
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    return device


def _locate(settings: EncoderSettings) -> tuple[str, dict[str, Any]]:
    if settings.source == "hub":
        return str(settings.name), {"revision": settings.revision}
    if settings.source == "folder":
        folder = Path(str(settings.path))
        if not (folder / "config.json").is_file():
            raise InputError(
                f"encoder: {folder} holds no config.json, so no model is there; point 'path' at a"
                " folder with config.json, a tokenizer and model.safetensors"
            )
        return str(folder), {"local_files_only": True}
    try:
        files = importlib.metadata.files(str(settings.package)) or []
    except importlib.metadata.PackageNotFoundError:
        raise InputError(
            f"encoder: the package {settings.package!r} is not installed; install it"
            " (without its dependencies) or choose another encoder"
        ) from None
    # Only the files are used: the package's own code is never imported.
    for file in files:
        if (
            file.name == "config.json"
            and (Path(str(file.locate())).parent / "tokenizer.json").is_file()
        ):
            return str(Path(str(file.locate())).parent), {"local_files_only": True}
    raise InputError(
        f"encoder: the package {settings.package!r} carries no config.json beside a tokenizer.json;"
        " choose a package with model files inside"
    )


def _load(
    settings: EncoderSettings, location: str, options: dict[str, Any], dtype: torch.dtype
) -> tuple[Any, Any]:
    # Read at the first import of transformers; a bar per loaded tensor is noise in a log.
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    from transformers import AutoModel, AutoTokenizer
    from transformers.utils import logging

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        tokenizer = AutoTokenizer.from_pretrained(location, use_fast=True, **options)
        model = AutoModel.from_pretrained(
            location, dtype=dtype, weights_only=True, attn_implementation="sdpa", **options
        )
    except (OSError, ValueError, ImportError, RuntimeError) as error:
        reason = " ".join(str(error).split())[:200]
        place = (
            f"{settings.name} at revision {settings.revision} is neither in the local cache nor"
            " reachable"
            if settings.source == "hub"
            else f"{location} could not be loaded"
        )
        raise InputError(f"encoder: {place} ({reason})") from error
    finally:
        logging.enable_progress_bar()  # type: ignore[no-untyped-call]
    if not tokenizer.is_fast:
        raise InputError(
            f"encoder: {location} has no fast tokenizer, which is needed to tell content tokens"
            " apart; choose an encoder with a tokenizer.json"
        )
    return tokenizer, model


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


def available_threads() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _one_thread:  # noqa: N801 - reads as a statement at its only use
    def __init__(self, active: bool) -> None:
        self._active = active

    def __enter__(self) -> None:
        self._before = torch.get_num_threads()
        if self._active:
            torch.set_num_threads(1)

    def __exit__(self, *_: object) -> None:
        torch.set_num_threads(self._before)


def _bounded_map(
    pool: ThreadPoolExecutor, function: Callable[[Item], Result], items: Iterable[Item], ahead: int
) -> Iterator[Result]:
    """`pool.map` that holds at most `ahead` results which nobody has taken yet."""
    pending: deque[Future[Result]] = deque()
    iterator = iter(items)
    try:
        for item in islice(iterator, ahead):
            pending.append(pool.submit(function, item))
        while pending:
            result = pending.popleft().result()
            for item in islice(iterator, 1):
                pending.append(pool.submit(function, item))
            yield result
    finally:
        for future in pending:
            future.cancel()


def windows(
    items: Iterable[Item], size: int, prepare: Callable[[list[Item]], Result]
) -> Iterator[tuple[list[Item], Result]]:
    """Yield (items, prepare(items)) of consecutive groups; the next group is prepared meanwhile.

    Used to tokenise one group of texts while the transformer works on the one before.
    """
    iterator = iter(items)
    with ThreadPoolExecutor(1) as pool:

        def submit() -> tuple[list[Item], Future[Result]] | None:
            group = list(islice(iterator, size))
            return (group, pool.submit(prepare, group)) if group else None

        following = submit()
        while following is not None:
            group, future = following
            prepared = future.result()
            following = submit()
            yield group, prepared
