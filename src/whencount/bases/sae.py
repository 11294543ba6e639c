"""Top-K sparse autoencoder: a learned dictionary."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from whencount.bases.base import Basis, Codes, TrainingStates, require_states
from whencount.bases.selection import top_k
from whencount.errors import InputError

# States of one product: enough for the product to run at full speed, few enough to hold the
# scores (8,192 features: 64 MiB for each thread).
ROWS_AT_ONCE = 2048
_WIDTH_ABOVE = 4
_kept = threading.local()


@dataclass(frozen=True)
class SaeOptions:
    """Options.

    Attributes:
        features: size of the dictionary.
        active: how many features a state may have (k).
        epochs: passes over the training states.
        batch: states per step.
        learning_rate: the peak.
        warmup: share of the steps in which the rate rises.
        weight_decay: AdamW's.
        clip: the greatest norm of a step's gradient.
    """

    features: int = 8192
    active: int = 32
    epochs: int = 3
    batch: int = 4096
    learning_rate: float = 1e-3
    warmup: float = 0.05
    weight_decay: float = 0.01
    clip: float = 1.0


class Sae(Basis[SaeOptions]):
    """ReLU, then the k largest (Makhzani & Frey 2014; Gao et al. 2024).

    Inputs are centred at the mean of the training states and divided by one number, so that a
    coordinate has mean square 1. Encoder and decoder are untied; the decoder's columns have norm 1.
    How it is trained: `whencount.bases.sae_training`.
    """

    name = "sae"
    options_type = SaeOptions
    resumable = True

    @classmethod
    def fit_tensors(
        cls,
        states: TrainingStates,
        seed: int,
        options: Any,
        device: str,
        threads: int,
        checkpoints: Path | None = None,
    ) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
        """Train; tensors mean (d,), spread (1,), encoder and decoder (features, d), bias."""
        from whencount.bases.sae_training import train

        if options.active > options.features:
            raise InputError(
                f"basis sae: active is {options.active}; it must lie in 1..{options.features},"
                " the number of features"
            )
        if options.warmup > 1:
            raise InputError(f"basis sae: warmup is {options.warmup}; it is a share, at most 1")
        require_states(states, 2, "sae", "states")
        return train(states, seed, options, device, threads, checkpoints)

    @property
    def vocabulary_size(self) -> int:
        """One feature per entry of the dictionary."""
        return int(self.options.features)

    def encode(self, states: torch.Tensor) -> Codes:
        """Sparse codes, width k; fewer are positive where ReLU leaves fewer.

        With a tensor `threshold` (features,), all activations above it count, up to 4 k of a state
        (`whencount.latent_terms.steppers`).
        """
        return self.codes_of((states - self.tensors["mean"]) / self.tensors["spread"])

    def codes_of(self, inputs: torch.Tensor) -> Codes:
        """Codes of states that are centred and scaled already."""
        encoder, bias = self.tensors["encoder"], self.tensors["bias"]
        threshold, k = self.tensors.get("threshold"), int(self.options.active)
        width = k if threshold is None else min(_WIDTH_ABOVE * k, self.vocabulary_size)
        values, features = encode_inputs(inputs, encoder, bias, width, threshold)
        return Codes(values, features, self.vocabulary_size)


def encode_inputs(
    inputs: torch.Tensor,
    encoder: torch.Tensor,
    bias: torch.Tensor,
    k: int,
    threshold: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Values float32 and features int32, shape (n, k), of the k largest of `ReLU(W x + b)`.

    With a threshold, shape (features,), only of those above it.
    """
    step = ROWS_AT_ONCE if inputs.device.type == "cpu" else 8192
    values = torch.empty((len(inputs), k), device=inputs.device)
    features = torch.empty((len(inputs), k), dtype=torch.int32, device=inputs.device)
    room = _room(step, len(encoder), inputs.device)
    for start in range(0, len(inputs), step):
        block = inputs[start : start + step]
        scores = torch.addmm(bias, block, encoder.T, out=room[: len(block)])
        if threshold is not None:
            scores.mul_(scores > threshold)
        values[start : start + step], features[start : start + step] = top_k(scores, k, 0.0)
    return values, features


def _room(rows: int, width: int, device: torch.device) -> torch.Tensor:
    # Kept by each thread: fresh memory for every product costs more than the selection.
    room: torch.Tensor | None = getattr(_kept, "room", None)
    if room is None or room.shape != (rows, width) or room.device != device:
        room = _kept.room = torch.empty((rows, width), device=device)
    return room
