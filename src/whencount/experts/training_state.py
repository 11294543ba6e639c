"""How far the training of a model is: kept in a file, so that a killed one goes on.

The file holds every number that a later step depends on: weights, AdamW's moments, the counters and
the table so far. Draws need none: each epoch derives its own from the seed.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from whencount.files import atomic_file

if TYPE_CHECKING:
    import pandas as pd

_SECONDS_BETWEEN = 60.0
_MOMENTS = ("exp_avg", "exp_avg_sq")


class TrainingState:
    """Where the training is, between two steps.

    Args:
        weights: the live parameters by name; the training changes them in place.
        optimiser: the live AdamW over them.

    Attributes:
        step: how many steps are done.
    """

    def __init__(
        self, weights: Mapping[str, torch.Tensor], optimiser: torch.optim.Optimizer
    ) -> None:
        self._weights = dict(weights)
        self._optimiser = optimiser
        self.step = 0
        self._lines: list[list[float]] = []
        self._losses: list[float] = []
        self._balances: list[float] = []

    def add(self, loss: float, balance: float) -> None:
        """Note the losses of a step."""
        self._losses.append(loss)
        self._balances.append(balance)

    def tell(self, tokens_per_step: int, validation: float) -> None:
        """End a line of the table: the means since the last one, and the validation loss."""
        count = len(self._losses)
        means = [sum(values) / count for values in (self._losses, self._balances)]
        self._lines.append([self.step, self.step * tokens_per_step, *means, validation])
        self._losses, self._balances = [], []

    def table(self) -> pd.DataFrame:
        """The lines so far: step, tokens, loss, balance, validation."""
        import pandas as pd

        columns = ["step", "tokens", "loss", "balance", "validation"]
        frame = pd.DataFrame(self._lines, columns=columns)
        return frame.astype({"step": "int64", "tokens": "int64"})

    def _tensors(self) -> dict[str, torch.Tensor]:
        found = {f"weight.{name}": weight.detach() for name, weight in self._weights.items()}
        for name, weight in self._weights.items():
            held = self._optimiser.state.get(weight, {})
            found |= {f"{moment}.{name}": held[moment] for moment in _MOMENTS if moment in held}
        return found

    def save(self, path: Path) -> None:
        """Write everything to one safetensors file, whole or not at all.

        Raises:
            InputError: no space, or the place cannot be written.
        """
        from safetensors.torch import save_file

        numbers = {
            "step": self.step,
            "lines": self._lines,
            "losses": self._losses,
            "balances": self._balances,
        }
        tensors = {name: tensor.contiguous() for name, tensor in self._tensors().items()}
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
            for name in self._weights:
                for kind in ("weight", *_MOMENTS):
                    tensors[f"{kind}.{name}"]
        except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
            print(f"{path} is damaged ({error}); training begins anew", file=sys.stderr, flush=True)
            return False
        self.step = int(numbers["step"])
        self._lines = [list(line) for line in numbers["lines"]]
        self._losses, self._balances = list(numbers["losses"]), list(numbers["balances"])
        with torch.no_grad():
            for name, weight in self._weights.items():
                weight.copy_(tensors[f"weight.{name}"])
                self._optimiser.state[weight] = {
                    "step": torch.tensor(float(self.step)),
                    **{moment: tensors[f"{moment}.{name}"].clone() for moment in _MOMENTS},
                }
        return True


class Keeper:
    """Keeps a training state in a folder, at most once a minute, and takes up the one it finds.

    Args:
        state: what to keep; it takes on what the folder holds.
        folder: where; None keeps nothing.
    """

    def __init__(self, state: TrainingState, folder: Path | None) -> None:
        self._state = state
        self._path = None if folder is None else folder / "training.safetensors"
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
