"""How far the training of an autoencoder is: kept in a file, so that a killed one goes on.

The file holds every number that a later step depends on: parameters, AdamW's moments, the epoch
kept so far, and the counters. Draws need none: each epoch derives its own from the seed.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from whencount.files import atomic_file

_SECONDS_BETWEEN = 60.0
_NUMBERS = (
    "best",
    "step",
    "loss",
    "revived",
    "training_curve",
    "validation_curve",
    "dead_counts",
)
_NAMES = ("encoder", "decoder", "bias")


@dataclass
class Parameters:
    """What training changes: float32 tensors encoder and decoder (features, d), bias (features,).

    A decoder row is the column of the published matrix.
    """

    encoder: torch.Tensor
    decoder: torch.Tensor
    bias: torch.Tensor

    def tensors(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Encoder, decoder and bias."""
        return self.encoder, self.decoder, self.bias

    def copy(self) -> Parameters:
        """An independent copy."""
        return Parameters(*(tensor.clone() for tensor in self.tensors()))


class Moments(Protocol):
    """What has AdamW's moments."""

    first: Parameters
    second: Parameters


@dataclass
class TrainingState:
    """Where the training is, between two steps.

    Attributes:
        parameters: the live tensors; the training changes them in place.
        first, second: the live moments of AdamW.
        kept: the parameters of the best epoch so far.
        best: that epoch, -1 before the first has ended.
        step: how many steps are done.
        loss: the summed loss of the current epoch.
        fired: int64, shape (features,), how often each fired in the current epoch.
        revived: how many features were revived.
        training_curve, validation_curve, dead_counts: one number per epoch that has ended.
    """

    parameters: Parameters
    first: Parameters
    second: Parameters
    kept: Parameters
    fired: NDArray[np.int64]
    best: int = -1
    step: int = 0
    loss: float = 0.0
    revived: int = 0
    training_curve: list[float] = field(default_factory=list)
    validation_curve: list[float] = field(default_factory=list)
    dead_counts: list[int] = field(default_factory=list)

    @classmethod
    def start(cls, parameters: Parameters, moments: Moments, features: int) -> TrainingState:
        """The state before the first step."""
        fired = np.zeros(features, dtype=np.int64)
        return cls(parameters, moments.first, moments.second, parameters, fired)

    def _tensors(self) -> dict[str, torch.Tensor]:
        groups = {"parameters": self.parameters, "first": self.first, "second": self.second}
        if self.best >= 0:
            groups["kept"] = self.kept
        return {
            f"{group}.{name}": tensor
            for group, members in groups.items()
            for name, tensor in zip(_NAMES, members.tensors(), strict=True)
        } | {"fired": torch.from_numpy(self.fired)}

    def save(self, path: Path) -> None:
        """Write everything to one safetensors file, whole or not at all.

        Raises:
            InputError: no space, or the place cannot be written.
        """
        from safetensors.torch import save_file

        numbers = {name: getattr(self, name) for name in _NUMBERS}
        tensors = {
            name: tensor.detach().cpu().contiguous() for name, tensor in self._tensors().items()
        }
        with atomic_file(path) as temporary:
            # JSON writes a float so that reading it gives the same one.
            save_file(tensors, temporary, metadata={"numbers": json.dumps(numbers)})

    def restore(self, path: Path) -> bool:
        """Take on the state in a file; False, and nothing changed, where it cannot be read."""
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(path, framework="pt") as stored:
                numbers: Mapping[str, Any] = json.loads(stored.metadata()["numbers"])
                tensors = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118
        except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
            print(f"{path} is damaged ({error}); training begins anew", file=sys.stderr, flush=True)
            return False
        for name, value in numbers.items():
            setattr(self, name, value)
        if self.best >= 0:
            self.kept = self.parameters.copy()
        for name, tensor in self._tensors().items():
            if name != "fired":
                tensor.copy_(tensors[name])
        self.fired = tensors["fired"].numpy().copy()
        return True


class Keeper:
    """Keeps a training state in a folder, at most once a minute, and takes up the one it finds.

    Args:
        state: what to keep; it takes on what the folder holds.
        folder: where; None keeps nothing.
    """

    def __init__(self, state: TrainingState, folder: Path | None) -> None:
        self._state = state
        self._path = None if folder is None else folder / "sae.safetensors"
        self._last = time.monotonic()
        if self._path is not None and self._path.is_file() and state.restore(self._path):
            print(f"going on after step {state.step:,}", file=sys.stderr, flush=True)

    def keep(self) -> None:
        """Write the state now."""
        if self._path is not None:
            self._state.save(self._path)
            self._last = time.monotonic()

    def keep_now_and_then(self) -> None:
        """Write the state where the last time is long enough ago."""
        if time.monotonic() - self._last >= _SECONDS_BETWEEN:
            self.keep()
