"""The dense pass over a context: its keys and values, and queries at calibration positions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from whencount.errors import InputError
from whencount.pages.attention import attach
from whencount.pages.settings import PageSettings
from whencount.pages.summaries import shared_products


@dataclass(frozen=True)
class LayerPrefix:
    """One layer of a prefilled context, without padding.

    Attributes:
        keys, values: [key-value heads, tokens, head size], the model's precision.
        queries: [positions, query heads, head size], rotated, at the calibration positions.
        received: [query heads, tokens] float32, attention that each token received, summed over
            all queries of the prefill; None in dense layers or where it was not asked for.
    """

    keys: torch.Tensor
    values: torch.Tensor
    queries: torch.Tensor
    received: torch.Tensor | None


@dataclass(frozen=True)
class Prefix:
    """A prefilled context, batch 1.

    Attributes:
        tokens: how many, padding left out.
        positions: [positions] int64, calibration positions, rising, counted from the first token.
        layers: by layer.
        scaling: the factor of query times key.
        logits: [vocabulary] float32, what follows the last token.
        settings: those it was prefilled under.
    """

    tokens: int
    positions: torch.Tensor
    layers: tuple[LayerPrefix, ...]
    scaling: float
    logits: torch.Tensor
    settings: PageSettings


def calibration_positions(tokens: int, count: int) -> torch.Tensor:
    """`(i + 1) tokens // count - 1` for every i, each once, rising; int64, the last is the end."""
    positions = {(number + 1) * tokens // count - 1 for number in range(count)}
    return torch.tensor(sorted(positions - {-1}), dtype=torch.int64)


def prefill(
    model: Any,
    tokens: torch.Tensor,
    settings: PageSettings,
    *,
    attention_mask: torch.Tensor | None = None,
    received: bool = True,
) -> Prefix:
    """Read a context densely and keep what decoding and calibration need.

    Args:
        model: a causal language model of transformers; its attention is set to the hook.
        tokens: [tokens] int64.
        attention_mask: [tokens], 0 for padding at the left, which is then forgotten.
        received: also sum the attention each token receives (what `h2o` needs).

    Raises:
        InputError: an empty context, padding elsewhere, or logits that are not finite.
    """
    first = 0
    if attention_mask is not None:
        first = int((attention_mask == 0).sum())
        if not bool(attention_mask[first:].all()):
            raise InputError("padding inside or after a context; pad at the left only")
    if len(tokens) == first:
        raise InputError("a context without a token cannot be prefilled; give at least one")
    attach(model)
    positions = calibration_positions(len(tokens) - first, settings.calibration_positions)
    recorder = _Recorder(first, positions.to(tokens.device), settings.dense_layers, received)
    mask: dict[str, torch.Tensor] = {}
    if first:
        places = torch.arange(len(tokens), device=tokens.device) - first
        mask = {
            "attention_mask": (places >= 0).long()[None],
            "position_ids": places.clamp(min=0)[None],
        }
    with torch.no_grad():
        output = model(
            input_ids=tokens[None], use_cache=False, logits_to_keep=1, page_reader=recorder, **mask
        )
    logits = output.logits[0, -1].float()
    if not bool(torch.isfinite(logits).all()):
        raise InputError(
            f"the model gives logits that are not finite after {len(tokens) - first} tokens;"
            " load it in fp32, or fetch its weights again where it is"
        )
    return Prefix(
        tokens=len(tokens) - first,
        positions=positions,
        layers=tuple(recorder.layers),
        scaling=recorder.scaling,
        logits=logits,
        settings=settings,
    )


class _Recorder:
    """Keeps what passes by while transformers' own attention reads a context."""

    def __init__(
        self, first: int, positions: torch.Tensor, dense_layers: int, received: bool
    ) -> None:
        self.layers: list[LayerPrefix] = []
        self.scaling = 1.0
        self._first = first
        self._positions = positions + first
        self._dense_layers = dense_layers
        self._received = received

    def read(
        self,
        layer: int,
        queries: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
        scaling: float,
    ) -> None:
        self.scaling = scaling
        kept = keys[0, :, self._first :].contiguous()
        received = None
        if self._received and layer >= self._dense_layers:
            received = attention_received(queries[0, :, self._first :], kept, scaling)
        self.layers.append(
            LayerPrefix(
                keys=kept,
                values=values[0, :, self._first :].contiguous(),
                queries=queries[0, :, self._positions].transpose(0, 1).contiguous(),
                received=received,
            )
        )


def block_bytes(device: torch.device) -> int:
    """Attention logits that are held at once: as many as stay in a near cache of a CPU.

    Elsewhere 64 MB, since every block costs a launch.
    """
    return 1 << 21 if device.type == "cpu" else 1 << 26


def attention_received(queries: torch.Tensor, keys: torch.Tensor, scaling: float) -> torch.Tensor:
    """Causal attention that each token receives, summed over all queries (H2O's column sums).

    Zhang et al., 2023, arXiv:2306.14048. Sums are in float32 and in blocks of queries, so that no
    attention matrix is ever whole.

    Args:
        queries: [query heads, tokens, size].
        keys: [key-value heads, tokens, size].

    Returns:
        [query heads, tokens] float32.
    """
    heads, tokens, _ = queries.shape
    keys = keys.float()
    total = torch.zeros(heads, tokens, device=keys.device)
    step = max(1, block_bytes(keys.device) // (4 * heads * tokens))
    for start in range(0, tokens, step):
        stop = min(start + step, tokens)
        block = queries[:, start:stop].transpose(0, 1).float() * scaling
        logits = shared_products(block, keys[:, :stop])
        later = torch.ones(stop - start, stop - start, dtype=torch.bool, device=keys.device)
        logits[:, :, start:].masked_fill_(later.triu(1)[:, None], -torch.inf)
        total[:, :stop] += logits.softmax(-1).sum(0)
    return total
