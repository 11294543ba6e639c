"""Which experts a model cannot lose: those whose removal raises its calibration loss most.

Removing one expert and measuring again costs a forward pass for each. All experts are removed in
turn over a short screening text; only the finalists are measured again over more. Several copies of
a document, each without another expert, share a forward pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from whencount.errors import InputError
from whencount.experts.documents import Documents, run_body
from whencount.experts.likelihood import document_likelihoods
from whencount.experts.routers import Router, find_routers
from whencount.experts.routing import RoutedTokens, routed
from whencount.experts.rules.native import Native
from whencount.progress import progress

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class RemovalEffects:
    """How much the calibration loss rises when an expert's output is left out.

    Attributes:
        layers: numbers of the layers with a router.
        screened: float64, shape (layers, experts), nats per token over the screening documents;
            exactly 0 for an expert that none of their tokens was routed to.
        measured: the same over all documents, NaN but for the finalists.
        finalists: share of all experts that could be one.
    """

    layers: tuple[int, ...]
    screened: NDArray[np.float64]
    measured: NDArray[np.float64]
    finalists: float

    def preserved(self, share: float = 0.05) -> NDArray[np.bool_]:
        """The experts to preserve: `ceil(share * all)` finalists with the largest rise.

        Equal rises: the earlier layer, then the smaller number. An expert whose removal does not
        raise the loss is never one.

        Returns:
            bool, shape (layers, experts).

        Raises:
            InputError: `share` is not between 0 and the share of finalists.
        """
        if not 0 <= share <= self.finalists:
            raise InputError(
                f"share of preserved experts is {share}; it must lie between 0 and"
                f" {self.finalists}, the share that was measured"
            )
        rise = np.nan_to_num(self.measured, nan=-np.inf).reshape(-1)
        first = np.argsort(-rise, kind="stable")[: math.ceil(share * rise.size)]
        mask = np.zeros(rise.size, dtype=np.bool_)
        mask[first[rise[first] > 0]] = True
        return mask.reshape(self.measured.shape)


def removal_effects(
    model: nn.Module,
    documents: Documents,
    screening: int = 1,
    finalists: float = 0.1,
    tokens_per_pass: int = 4096,
) -> RemovalEffects:
    """Measure how much the loss rises without each expert, its routed tokens losing its output.

    The other chosen experts keep their gate weights and no other expert steps in. Costs
    `layers * experts * screening + finalists * layers * experts * documents` document passes.

    Args:
        model: a causal model whose routers are recognised, in evaluation mode.
        documents: int64, shape (documents, at least 2 tokens), without padding.
        screening: how many documents every expert is tried on, the first ones.
        finalists: share of all experts that is measured over all documents.
        tokens_per_pass: how many tokens a forward pass has at most (one document at least).

    Raises:
        InputError: no documents, or a loss that is not finite.
    """
    if documents.size == 0 or documents.shape[1] < 2:
        raise InputError("preserving experts needs calibration documents of at least two tokens")
    routers = find_routers(model)
    shape = (len(routers), routers[0].experts)
    screened, measured = np.zeros(shape), np.full(shape, np.nan)
    first = documents[:screening]
    everyone = np.argwhere(_routed_experts(model, first))
    screened[tuple(everyone.T)] = _rises(
        model, routers, first, everyone, tokens_per_pass, "try the model without each expert"
    )
    count = math.ceil(finalists * screened.size)
    order = np.argsort(-screened[tuple(everyone.T)], kind="stable")[:count]
    best = everyone[np.sort(order)]
    measured[tuple(best.T)] = _rises(
        model, routers, documents, best, tokens_per_pass, "measure the experts that matter most"
    )
    return RemovalEffects(tuple(router.layer for router in routers), screened, measured, finalists)


def effects_table(effects: RemovalEffects, share: float = 0.05) -> pd.DataFrame:
    """A row per layer and expert: its effects and whether it is preserved."""
    import pandas as pd

    layers, experts = effects.screened.shape
    return pd.DataFrame(
        {
            "layer": np.repeat(np.array(effects.layers, dtype=np.int64), experts),
            "expert": np.tile(np.arange(experts, dtype=np.int64), layers),
            "screened_rise": effects.screened.reshape(-1),
            "measured_rise": effects.measured.reshape(-1),
            "preserved": effects.preserved(share).reshape(-1),
        }
    )


@contextmanager
def without_experts(routers: Sequence[Router], removed: NDArray[np.int64]) -> Iterator[None]:
    """Leave one expert out of each row of the batch within a `with` block: its weight becomes 0.

    Args:
        routers: of the model.
        removed: int64, shape (rows, 2), the place of the layer among `routers` and the expert.
    """

    def hook_of(experts: Tensor) -> Callable[..., tuple[Tensor, ...]]:
        def hook(_: nn.Module, args: Any, out: tuple[Tensor, Tensor, Tensor]) -> tuple[Tensor, ...]:
            del args
            first, scores, chosen = out
            each = experts.to(chosen.device).repeat_interleave(len(chosen) // len(experts))
            return first, scores.masked_fill(chosen == each[:, None], 0.0), chosen

        return hook

    handles = []
    try:
        for layer in np.unique(removed[:, 0]):
            experts = np.where(removed[:, 0] == layer, removed[:, 1], -1)
            hook = hook_of(torch.from_numpy(experts))
            handles.append(routers[layer].module.register_forward_hook(hook))
        yield
    finally:
        for handle in handles:
            handle.remove()


def _routed_experts(model: nn.Module, documents: Documents) -> NDArray[np.bool_]:
    """Which experts any token of the documents is routed to, shape (layers, experts)."""
    found: dict[int, Tensor] = {}

    def observe(router: Router, tokens: RoutedTokens, chosen: Tensor) -> None:
        counts = torch.bincount(chosen.reshape(-1), minlength=router.experts).cpu()
        found[tokens.index] = found.get(tokens.index, torch.zeros_like(counts)) + counts

    with routed(model, Native(), None, observe), torch.inference_mode():
        for document in documents:
            run_body(model, document[None])
    return np.stack([found[index].numpy() > 0 for index in sorted(found)])


def _rises(
    model: nn.Module,
    routers: tuple[Router, ...],
    documents: Documents,
    removed: NDArray[np.int64],
    tokens_per_pass: int,
    description: str,
) -> NDArray[np.float64]:
    """Mean rise of the loss over documents, nats per token, float64, shape (removed,)."""
    rows = max(1, tokens_per_pass // documents.shape[1])
    totals = np.zeros(len(removed))
    work = [
        (document, slice(start, min(start + rows, len(removed))))
        for document in range(len(documents))
        for start in range(0, len(removed), rows)
    ]
    sizes = [part.stop - part.start for _, part in work]
    # In half precision a loss depends on the size of the batch: the intact model runs in the same.
    intact: dict[tuple[int, int], NDArray[np.float64]] = {}
    with torch.inference_mode():
        for (document, part), size in zip(
            progress(work, sum(sizes), description, "expert", sizes), sizes, strict=True
        ):
            block = np.repeat(documents[document][None], size, axis=0)
            if (document, size) not in intact:
                intact[document, size] = document_likelihoods(model, block).numpy()
            with without_experts(routers, removed[part]):
                losses = document_likelihoods(model, block).numpy()
            totals[part] += losses - intact[document, size]
    if not np.isfinite(totals).all():
        raise InputError(
            "the loss without an expert is not a finite number; run the model with"
            " `precision: fp32`"
        )
    return totals / len(documents)
