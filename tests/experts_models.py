"""Tiny random mixture-of-experts models, and the rules of selection written apart from the code."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from whencount.experts.calibration import Calibration
from whencount.experts.routers import Router
from whencount.experts.routing import Observer, RoutedTokens
from whencount.scoring import Configuration, Parameters

VOCABULARY, LAYERS, EXPERTS, ACTIVE = 61, 2, 8, 3
PAD = 1


def tiny_olmoe(
    dtype: torch.dtype = torch.float32,
    implementation: str = "eager",
    active: int = ACTIVE,
    normalised: bool = False,
) -> Any:
    """An OLMoE whose random weights are so large that routing is far from uniform."""
    from transformers import OlmoeConfig, OlmoeForCausalLM

    config = OlmoeConfig(
        vocab_size=VOCABULARY,
        hidden_size=32,
        intermediate_size=16,
        num_hidden_layers=LAYERS,
        num_attention_heads=4,
        num_key_value_heads=2,
        num_experts=EXPERTS,
        num_experts_per_tok=active,
        norm_topk_prob=normalised,
        max_position_embeddings=64,
        pad_token_id=PAD,
        bos_token_id=None,
        eos_token_id=2,
    )
    model: Any = OlmoeForCausalLM(config)
    model.set_experts_implementation(implementation)
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.25)
    return model.to(dtype).eval()


def documents(count: int = 5, tokens: int = 12, seed: int = 0) -> NDArray[np.int64]:
    """Random token ids without padding, int64, shape (count, tokens)."""
    return np.random.default_rng(seed).integers(3, VOCABULARY, (count, tokens))


def logits_of(model: Any, ids: NDArray[np.int64] | Tensor, mask: Tensor | None = None) -> Tensor:
    with torch.inference_mode():
        output: Tensor = model(input_ids=torch.as_tensor(ids), attention_mask=mask).logits
    return output


def recorder() -> tuple[dict[int, tuple[RoutedTokens, Tensor]], Observer]:
    """What the routers of the last forward pass saw and what was chosen, by place of the layer."""
    seen: dict[int, tuple[RoutedTokens, Tensor]] = {}

    def observe(_: Router, tokens: RoutedTokens, chosen: Tensor) -> None:
        seen[tokens.index] = (tokens, chosen)

    return seen, observe


class Picked:
    """A rule made of a function from what the router saw to scores of the experts."""

    def __init__(self, scores: Callable[[RoutedTokens], Tensor]) -> None:
        self.name = "picked"
        self._scores = scores

    def choose(self, tokens: RoutedTokens, active: int) -> Tensor:
        return tokens.best(self._scores(tokens), active)


def softmax(row: NDArray[Any]) -> NDArray[np.float64]:
    powers = np.exp(row.astype(np.float64) - float(row.max()))
    return np.asarray(powers / powers.sum())


def oracle_scores(
    row: NDArray[Any],
    calibration: Calibration,
    layer: int,
    configuration: Configuration,
    variant: str,
    parameters: Parameters,
) -> list[float]:
    """Section 10 of the study for one token, expert by expert, from its router logits."""
    probabilities = softmax(row)
    scores = []
    for expert, value in enumerate(probabilities):
        if variant == "token":
            length = math.sqrt(sum(float(logit) ** 2 for logit in row))
            average = float(calibration.logit_norm_mean[layer])
        else:
            length = float(calibration.weight_norms[layer][expert])
            average = sum(calibration.weight_norms[layer]) / len(row)
        k1, b = parameters.k1, parameters.b
        factor = 1 - b + b * length / average if configuration.length else 1.0
        weight = value / factor
        if configuration.saturation:
            weight = (k1 + 1) * value / (value + k1 * factor)
        if configuration.idf:
            frequency = int(calibration.routed[layer][expert])
            odds = (calibration.tokens - frequency + 0.5) / (frequency + 0.5)
            weight *= math.log(1 + odds)
        scores.append(weight)
    return scores


def oracle_choice(scores: list[float], row: NDArray[Any], active: int) -> list[int]:
    """The experts with the largest scores, the most probable one first."""
    best = sorted(range(len(scores)), key=lambda one: (-scores[one], -row[one], one))[:active]
    return sorted(best, key=lambda one: (-row[one], one))


def dense_mixture(block: nn.Module, hidden: Tensor) -> Tensor:
    """The softmax mixture over all experts of an OLMoE block, expert by expert, float64."""
    experts: Any = block.experts
    weight: Any = block.gate.weight  # type: ignore[union-attr]
    hidden = hidden.double()
    shares = torch.softmax(hidden @ weight.double().T, dim=-1)
    mixed = torch.zeros_like(hidden)
    for expert in range(len(weight)):
        gate, up = (hidden @ experts.gate_up_proj[expert].double().T).chunk(2, dim=-1)
        down = (torch.nn.functional.silu(gate) * up) @ experts.down_proj[expert].double().T
        mixed += shares[:, expert, None] * down
    return mixed
