"""Which experts a model cannot lose: those whose removal raises its calibration loss most.

Removing one expert and measuring again costs a forward pass for each. All experts are removed in
turn over a short screening text; only the finalists are measured again over more. Several copies of
a document, each without another expert, share a forward pass.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from whencount.errors import InputError
from whencount.experts.documents import Documents
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
    """

    layers: tuple[int, ...]
    screened: NDArray[np.float64]
    measured: NDArray[np.float64]

    def preserved(self, share: float = 0.05) -> NDArray[np.bool_]:
        """The experts to preserve: `ceil(share * all)` finalists with the largest rise.

        Equal rises: the earlier layer, then the smaller number. An expert whose removal does not
        raise the loss is never one.

        Returns:
            bool, shape (layers, experts).

        Raises:
            InputError: `share` is not between 0 and 1.
        """
        if not 0 <= share <= 1:
            raise InputError(f"share of preserved experts is {share}; it must lie between 0 and 1")
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
    return RemovalEffects(tuple(router.layer for router in routers), screened, measured)


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
def without_experts(router: Router, removed: Tensor) -> Iterator[None]:
    """Leave experts of one layer out within a `with` block: their gate weights become 0.

    Args:
        router: of the layer.
        removed: int64, shape (rows,), the expert that each row of the batch goes without, -1 for
            none.
    """

    def hook(_: nn.Module, args: Any, out: tuple[Tensor, Tensor, Tensor]) -> tuple[Tensor, ...]:
        del args
        first, scores, chosen = out
        per_token = removed.to(chosen.device).repeat_interleave(len(chosen) // len(removed))
        return first, scores.masked_fill(chosen == per_token[:, None], 0.0), chosen

    handle = router.module.register_forward_hook(hook)
    try:
        yield
    finally:
        handle.remove()


def _routed_experts(model: nn.Module, documents: Documents) -> NDArray[np.bool_]:
    """Which experts any token of the documents is routed to, shape (layers, experts)."""
    found: dict[int, Tensor] = {}

    def observe(router: Router, tokens: RoutedTokens, chosen: Tensor) -> None:
        counts = torch.bincount(chosen.reshape(-1), minlength=router.experts).cpu()
        found[tokens.index] = found.get(tokens.index, torch.zeros_like(counts)) + counts

    with routed(model, Native(), None, observe), torch.inference_mode():
        for document in documents:
            document_likelihoods(model, document[None])
    return np.stack([found[index].numpy() > 0 for index in sorted(found)])


def _rises(
    model: nn.Module,
    routers: tuple[Router, ...],
    documents: Documents,
    experts: NDArray[np.int64],
    tokens_per_pass: int,
    description: str,
) -> NDArray[np.float64]:
    """Mean rise of the loss over documents, nats per token, float64, shape (experts,)."""
    rows = max(1, tokens_per_pass // documents.shape[1])
    totals = np.zeros(len(experts))
    work = [
        (document, layer, part)
        for document in range(len(documents))
        for layer in np.unique(experts[:, 0])
        for part in _parts(np.flatnonzero(experts[:, 0] == layer), rows)
    ]
    intact: dict[int, float] = {}
    with torch.inference_mode():
        for document, layer, part in progress(
            work,
            sum(len(part) for *_, part in work),
            description,
            "expert",
            [len(part) for *_, part in work],
        ):
            text = documents[document]
            if document not in intact:
                intact[document] = float(document_likelihoods(model, text[None])[0])
            block = np.repeat(text[None], len(part), axis=0)
            with without_experts(routers[layer], torch.from_numpy(experts[part, 1])):
                losses = document_likelihoods(model, block).numpy()
            totals[part] += losses - intact[document]
    if not np.isfinite(totals).all():
        raise InputError(
            "the loss without an expert is not a finite number; run the model with"
            " `precision: fp32`"
        )
    return totals / len(documents)


def _parts(places: NDArray[np.int64], rows: int) -> list[NDArray[np.int64]]:
    return [places[start : start + rows] for start in range(0, len(places), rows)]
