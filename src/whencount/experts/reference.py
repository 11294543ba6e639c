"""How near a rule comes to the dense softmax mixture over all experts: the label-free reference.

The dense mixture runs every expert and weights them by the router probability: what the router says
before anything is left out. Nearness is measured at the output, as the divergence of the next-token
distributions, and per layer, as the distance of the layer's outputs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from whencount.errors import InputError
from whencount.experts.documents import Documents, document_batches, on_input_device, run_body
from whencount.experts.routers import Router, find_routers
from whencount.experts.routing import RoutedTokens, Rule, checked_active, routed
from whencount.experts.rules.dense import Dense
from whencount.experts.rules.native import Native

_POSITIONS_PER_BLOCK = 256


def output_agreement(
    model: nn.Module,
    documents: Documents,
    rules: Sequence[Rule],
    active: int | None = None,
    batch: int = 1,
) -> NDArray[np.float64]:
    """Minus the divergence of each rule's next-token distribution from the dense mixture's.

    `-KL(dense || rule)`, in nats, the mean over all positions of the documents: 0 where they agree,
    negative elsewhere. Higher is nearer, as for the pseudo-labels of retrieval.

    Args:
        model: a causal model; see `whencount.experts.routing.RoutedModel`.
        documents: int64, shape (documents, tokens), without padding. Logits of `batch` documents
            are held twice, in the model's precision.
        rules: any.
        active: experts per token for the rules; the model's own number where None.
        batch: documents per forward pass.

    Returns:
        float64, shape (rules,).

    Raises:
        InputError: a divergence is not finite.
    """
    total = np.zeros(len(rules))
    with torch.inference_mode():
        for block in document_batches(documents, batch, "compare with the dense mixture"):
            ids = on_input_device(model, block)
            with routed(model, Dense()):
                dense = model(input_ids=ids, use_cache=False).logits
            for number, rule in enumerate(rules):
                with routed(model, rule, active):
                    logits = model(input_ids=ids, use_cache=False).logits
                total[number] -= float(divergences(dense, logits).sum())
    if not np.isfinite(total).all():
        raise InputError(
            "the divergence from the dense mixture is not a finite number; run the model with"
            " `precision: fp32`"
        )
    return total / documents.size


def divergences(reference: Tensor, logits: Tensor) -> Tensor:
    """`KL(reference || other)` of next-token distributions at every position.

    Args:
        reference, logits: shape (rows, tokens, vocabulary), any floating precision.

    Returns:
        float64, shape (rows * tokens,), nats, computed in float32, block by block.
    """
    first = torch.split(reference.flatten(0, -2), _POSITIONS_PER_BLOCK)
    second = torch.split(logits.flatten(0, -2), _POSITIONS_PER_BLOCK)
    blocks = []
    for expected, found in zip(first, second, strict=True):
        wanted = torch.log_softmax(expected.float(), dim=-1)
        given = torch.log_softmax(found.float().to(wanted.device), dim=-1)
        # In float64, for the terms nearly cancel where the two agree.
        terms = wanted.double().exp() * (wanted.double() - given.double())
        blocks.append(terms.sum(dim=-1))
    return torch.cat(blocks)


def layer_agreement(
    model: nn.Module,
    documents: Documents,
    rules: Sequence[Rule],
    active: int | None = None,
    batch: int = 1,
) -> NDArray[np.float64]:
    """Minus the squared distance of each layer's mixture from the dense one, relative to its norm.

    `-|y - y*|^2 / |y*|^2`, the mean over tokens, where y mixes the rule's experts and y* all, both
    for the hidden state that reaches the layer under the router's own choice.

    Args:
        As `output_agreement`.

    Returns:
        float64, shape (rules, layers).
    """
    routers = find_routers(model)
    active = checked_active(routers, active)
    total = np.zeros((len(rules), len(routers)))

    def mixture(router: Router, tokens: RoutedTokens, chosen: Tensor) -> Tensor:
        weights = router.gating.weights(
            tokens.logits, tokens.probabilities, chosen, tokens.weight_dtype
        )
        mixed: Tensor = router.experts_module(tokens.hidden, chosen, weights)
        return mixed.double()

    def observe(router: Router, tokens: RoutedTokens, native: Tensor) -> None:
        dense = mixture(router, tokens, tokens.order)
        size = dense.square().sum(dim=1)
        for number, rule in enumerate(rules):
            chosen = rule.choose(tokens, active)
            mixed = mixture(router, tokens, native if chosen is None else chosen)
            distance = (mixed - dense).square().sum(dim=1) / size
            total[number, tokens.index] -= float(distance.sum())

    with routed(model, Native(), active, observe), torch.inference_mode():
        for block in document_batches(documents, batch, "compare layers with the dense mixture"):
            run_body(model, block)
    return total / documents.size
