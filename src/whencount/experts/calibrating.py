"""Measure the routing of a model over documents that nothing is evaluated on later.

One pass under the router's own choice. Only sums are kept: memory does not grow with the number of
documents.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from whencount.errors import InputError
from whencount.experts.calibration import Calibration
from whencount.experts.documents import Documents, document_batches, run_body
from whencount.experts.routers import Router, find_routers
from whencount.experts.routing import RoutedTokens, checked_active, routed
from whencount.experts.rules.native import Native


def calibrate(
    model: nn.Module, documents: Documents, active: int | None = None, batch: int = 1
) -> Calibration:
    """Measure the routing of a model over documents, under its own choice.

    Args:
        model: see `whencount.experts.routing.RoutedModel`.
        documents: int64, shape (documents, tokens), without padding.
        active: experts per token; the model's own number where None.
        batch: documents per forward pass.

    Raises:
        InputError: no documents, or hidden states that overflow.
    """
    if documents.size == 0:
        raise InputError("there is no calibration text: no document is as long as asked for")
    routers = find_routers(model)
    active = checked_active(routers, active)
    sums = [_LayerSums(router.experts) for router in routers]

    def observe(router: Router, tokens: RoutedTokens, chosen: Tensor) -> None:
        del router
        sums[tokens.index].add(tokens, chosen)

    with routed(model, Native(), active, observe), torch.inference_mode():
        for block in document_batches(documents, batch, "calibrate the routing"):
            run_body(model, block)
    count = documents.size
    return Calibration(
        layers=tuple(router.layer for router in routers),
        tokens=count,
        active=active,
        routed=np.stack([layer.routed for layer in sums]),
        mass=np.stack([layer.mass for layer in sums]),
        probability=np.stack([layer.probability / count for layer in sums]),
        weight_norms=np.stack([router.weight_norms().numpy() for router in routers]),
        logit_norm_mean=np.array([layer.norms.mean for layer in sums]),
        logit_norm_sd=np.array([layer.norms.sd for layer in sums]),
        logit_norm_log_sd=np.array([layer.log_norms.sd for layer in sums]),
        value_mean=np.array([layer.values.mean for layer in sums]),
        value_sd=np.array([layer.values.sd for layer in sums]),
        peak_ratio=np.array([layer.peak_ratios.mean for layer in sums]),
        top_share=np.array([layer.top_shares.mean for layer in sums]),
    )


class _Moments:
    """Mean and population standard deviation of values that come in blocks."""

    def __init__(self) -> None:
        self.count, self.mean, self._squares = 0, 0.0, 0.0

    def add(self, values: Tensor) -> None:
        count = values.numel()
        if count == 0:
            return
        mean = float(values.mean())
        squares = float((values - mean).square().sum())
        total, shift = self.count + count, mean - self.mean
        # Chan et al. (1983): sums of squares of two samples, combined without cancellation.
        self._squares += squares + shift * shift * self.count * count / total
        self.mean += shift * count / total
        self.count = total

    @property
    def sd(self) -> float:
        return float(np.sqrt(self._squares / self.count)) if self.count else float("nan")


class _LayerSums:
    """Sums over the tokens of one layer."""

    def __init__(self, experts: int) -> None:
        self.routed = np.zeros(experts, dtype=np.int64)
        self.mass, self.probability = np.zeros(experts), np.zeros(experts)
        self.norms, self.log_norms, self.values = _Moments(), _Moments(), _Moments()
        self.peak_ratios, self.top_shares = _Moments(), _Moments()

    def add(self, tokens: RoutedTokens, chosen: Tensor) -> None:
        probabilities = tokens.probabilities.double()
        if not bool(probabilities.isfinite().all()):
            raise InputError(
                f"routed layer {tokens.index}: a router logit is not a finite number; the model's"
                " hidden states overflow, so run it with `precision: fp32`"
            )
        mask = torch.zeros_like(probabilities, dtype=torch.bool).scatter(1, chosen, True)
        self.routed += mask.sum(dim=0).cpu().numpy()
        self.mass += (probabilities * mask).sum(dim=0).cpu().numpy()
        self.probability += probabilities.sum(dim=0).cpu().numpy()
        norms = tokens.logits.double().norm(dim=1)
        self.norms.add(norms)
        self.log_norms.add(norms[norms > 0].log())
        values = probabilities.gather(1, chosen)
        self.values.add(values)
        peaks = values.max(dim=1).values / values.sum(dim=1)
        self.top_shares.add(peaks)
        self.peak_ratios.add(peaks * values.shape[1])
