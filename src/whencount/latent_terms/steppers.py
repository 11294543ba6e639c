"""Steps of the three autoencoders of latent terms.

TopK is the retrieval study's (`whencount.bases.sae_training`). Of the two others:

* BatchTopK (Bussmann et al., 2024, arXiv:2412.06410) keeps the `n k` largest activations of a
  batch of n states, so that states may have more or fewer than k; at inference an activation
  counts above a threshold, the running mean of the smallest one kept.
* JumpReLU (Rajamanoharan et al., 2024, arXiv:2407.14435) keeps what exceeds a threshold of its
  own for each feature. The thresholds are learned through the straight-through estimators of the
  paper (rectangle kernel); the penalty is quadratic around k active features, as its section on a
  target sparsity has it. They begin where the first batch has k active features in the mean.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from whencount.bases.sae import SaeOptions
from whencount.bases.sae_state import Parameters
from whencount.bases.sae_training import DenseStepper

ACTIVATIONS = ("topk", "batch_topk", "jump_relu")
_DECAY = 0.99
_BANDWIDTH = 0.05
_PENALTY = 0.05


class Thresholded(Protocol):
    """A stepper whose features count above thresholds."""

    def threshold(self) -> torch.Tensor:
        """float32, shape (features,)."""

    def further(self) -> dict[str, torch.Tensor]:
        """What it has beyond parameters and moments; changed in place by a restore."""


class BatchTopKStepper(DenseStepper):
    """BatchTopK with dense products, any device."""

    def __init__(self, parameters: Parameters, options: SaeOptions) -> None:
        super().__init__(parameters, options)
        self._smallest = torch.zeros(1, device=parameters.bias.device)

    def threshold(self) -> torch.Tensor:
        """One number for all features."""
        return self._smallest.expand(len(self.parameters.bias)).contiguous()

    def further(self) -> dict[str, torch.Tensor]:
        """The running mean of the smallest activation kept."""
        return {"smallest": self._smallest}

    def codes(self, inputs: torch.Tensor) -> torch.Tensor:
        """Codes of a batch, float32, shape (n, features): the `n k` largest, and their equals."""
        encoder, _, bias = self.parameters.tensors()
        scores = torch.addmm(bias, inputs, encoder.T).clamp_(min=0)
        count = min(len(inputs) * self.options.active, scores.numel())
        # The order of equal activations is that of a sort, so that a step repeats.
        border = torch.topk(scores.flatten(), count).values[-1]
        kept = scores * (scores >= border)
        positive = kept[kept > 0]
        if len(positive):
            smallest = positive.min()
            first = self._smallest == 0
            self._smallest.copy_(
                torch.where(first, smallest, _DECAY * self._smallest + (1 - _DECAY) * smallest)
            )
        return kept

    def differentiate(self, inputs: torch.Tensor) -> tuple[float, NDArray[np.int64]]:
        """Fill `gradients`; return the loss and how often each feature fired."""
        return self._gradients(inputs, self.codes(inputs))


class JumpReluStepper(DenseStepper):
    """JumpReLU with dense products, any device; logarithms of thresholds have moments too."""

    def __init__(self, parameters: Parameters, options: SaeOptions) -> None:
        super().__init__(parameters, options)
        like = parameters.bias
        self._logarithm = torch.full_like(like, -torch.inf)
        self._moment, self._square = torch.zeros_like(like), torch.zeros_like(like)
        self._slope = torch.zeros_like(like)

    def threshold(self) -> torch.Tensor:
        """One per feature."""
        return self._logarithm.exp()

    def further(self) -> dict[str, torch.Tensor]:
        """Logarithms of the thresholds and their moments."""
        return {
            "logarithm": self._logarithm,
            "moment": self._moment,
            "square": self._square,
        }

    def differentiate(self, inputs: torch.Tensor) -> tuple[float, NDArray[np.int64]]:
        """Fill `gradients` and the slope of the thresholds; loss and counts as ever.

        The loss that is returned is the error of reconstruction, without the penalty.
        """
        encoder, decoder, bias = self.parameters.tensors()
        scores = torch.addmm(bias, inputs, encoder.T)
        if bool(torch.isneginf(self._logarithm[0])):
            count = min(len(inputs) * self.options.active, scores.numel())
            border = torch.topk(scores.flatten(), count).values[-1]
            self._logarithm.fill_(float(border.clamp(min=1e-3).log()))
        threshold = self.threshold()
        codes = scores * (scores > threshold)
        active = float((codes > 0).sum()) / len(inputs)
        loss, fired = self._gradients(inputs, codes)
        errors = (codes @ decoder - inputs) * (2.0 / inputs.numel())
        window = ((scores - threshold).abs() < _BANDWIDTH / 2).to(scores.dtype) / _BANDWIDTH
        k = self.options.active
        # d/d(active features of a state) of penalty (active / k - 1)^2.
        press = 2 * _PENALTY * (active / k - 1) / (k * len(inputs))
        by_threshold = -((errors @ decoder.T) * threshold * window).sum(0) - press * window.sum(0)
        self._slope = by_threshold * threshold
        return loss, fired

    def update(self, rate: float, number: int) -> None:
        """Take AdamW step `number`, and an Adam step of the logarithms."""
        super().update(rate, number)
        self._moment.mul_(0.9).add_(self._slope, alpha=0.1)
        self._square.mul_(0.999).addcmul_(self._slope, self._slope, value=0.001)
        root = (self._square / (1 - 0.999**number)).sqrt_().add_(1e-8)
        self._logarithm.addcdiv_(self._moment, root, value=-rate / (1 - 0.9**number))


def further_of(stepper: Any) -> dict[str, torch.Tensor]:
    """What a stepper has beyond parameters and moments; nothing for TopK."""
    return stepper.further() if hasattr(stepper, "further") else {}
