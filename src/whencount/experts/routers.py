"""Find the routers of a mixture-of-experts model and learn how each makes gate weights of logits.

No class of a model family is named here. A router is a module with a weight of one row per expert
and a number of active experts whose forward returns (logits, gate weights, chosen experts), as the
routers of transformers 5 do. How it weights the chosen experts is recognised on random hidden
states: a weighting is accepted only if it gives the router's own output bit for bit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional
from torch import Tensor, nn

from whencount.errors import InputError

WEIGHTINGS = ("probability", "renormalised", "softmax")
_PROBED_TOKENS = 512


@dataclass(frozen=True)
class Gating:
    """How a router turns hidden states into gate weights.

    Attributes:
        precise: the logits are computed in float32, whatever the model's precision.
        weighting: `probability`: the softmax over all experts, taken at the chosen ones;
            `renormalised`: the same, divided by its sum over the chosen; `softmax`: a softmax over
            the logits of the chosen alone.
        scale: a constant that multiplies the weights.
    """

    precise: bool
    weighting: str
    scale: float

    def logits(self, module: nn.Module, hidden: Tensor) -> Tensor:
        """Router logits, shape (tokens, experts), of hidden states (..., size), as in forward."""
        with router_weights(module) as (weight, bias):
            flat = hidden.reshape(-1, weight.shape[1])
            if not self.precise:
                return torch.nn.functional.linear(flat, weight, bias)
            shift = None if bias is None else bias.float()
            return torch.nn.functional.linear(flat.float(), weight.float(), shift)

    def weights(
        self, logits: Tensor, probabilities: Tensor, chosen: Tensor, dtype: torch.dtype
    ) -> Tensor:
        """Gate weights of the chosen experts.

        Args:
            logits, probabilities: shape (tokens, experts); probabilities float32.
            chosen: int64, shape (tokens, active).
            dtype: of the result.

        Returns:
            Shape (tokens, active).
        """
        if self.weighting == "softmax":
            gathered = logits.gather(1, chosen)
            values = torch.softmax(gathered, dim=-1, dtype=torch.float32)
        else:
            values = probabilities.gather(1, chosen)
            if self.weighting == "renormalised":
                values = values / values.sum(dim=-1, keepdim=True)
        if self.scale != 1:
            values = values * self.scale
        return values.to(dtype)


@dataclass(frozen=True)
class Router:
    """One router of a model.

    Attributes:
        name: of the module within the model.
        layer: number of the transformer layer it belongs to.
        module: the router itself.
        experts_module: the module beside it that runs the chosen experts.
        experts: how many experts it chooses from.
        active: how many it chooses natively.
        gating: how it weights them.
    """

    name: str
    layer: int
    module: nn.Module
    experts_module: nn.Module
    experts: int
    active: int
    gating: Gating

    def weight_norms(self) -> Tensor:
        """L2 norm of each expert's row of router weights, float64 on the CPU, shape (experts,)."""
        with router_weights(self.module) as (weight, _):
            norms: Tensor = weight.detach().double().norm(dim=1)
            return norms.cpu()


def probabilities_of(logits: Tensor) -> Tensor:
    """The router's softmax over all experts, float32, the shape of `logits`."""
    return torch.softmax(logits, dim=-1, dtype=torch.float32)


@contextmanager
def router_weights(module: nn.Module) -> Iterator[tuple[Tensor, Tensor | None]]:
    """Weight and bias of a router, brought to its device where a device map keeps them away."""
    weight = module.weight
    if not isinstance(weight, Tensor):
        raise ValueError("the router's weight is no tensor")
    if weight.device.type == "meta":
        from accelerate.utils import align_module_device

        with align_module_device(module):
            yield module.weight, getattr(module, "bias", None)  # type: ignore[misc]
    else:
        yield weight, getattr(module, "bias", None)


def find_routers(model: nn.Module) -> tuple[Router, ...]:
    """All routers of a model in the order of its layers.

    Raises:
        InputError: the model has no router that can be recognised, or routers that differ in their
            number of experts or of active ones; the message names what was found.
    """
    if model.training:
        raise ValueError("call model.eval() first: routers may add noise while training")
    kind = type(model).__name__
    routers: list[Router] = []
    refused: list[tuple[str, str]] = []
    for name, module in model.named_modules():
        found = _shape(module)
        if found is None:
            if "experts" in dict(module.named_children()) and not _has_router(module):
                refused.append((name, "its router does not expose its weight and active experts"))
            continue
        parent = model.get_submodule(name.rpartition(".")[0])
        block = getattr(parent, "experts", None)
        if not isinstance(block, nn.Module):
            refused.append((name, "no module of experts stands beside it"))
            continue
        gating = _recognise(model, module)
        if isinstance(gating, str):
            refused.append((name, gating))
            continue
        layer = _layer_number(name, len(routers))
        routers.append(Router(name, layer, module, block, *found, gating))
    if refused:
        name, reason = refused[0]
        raise InputError(
            f"{kind} cannot be routed by a rule: {name} ({reason});"
            " choose a model whose routers take the largest softmax probabilities, such as OLMoE"
        )
    if not routers:
        raise InputError(f"{kind} has no router of experts; choose a mixture-of-experts model")
    shapes = sorted({(router.experts, router.active) for router in routers})
    if len(shapes) > 1:
        raise InputError(
            f"{kind} has routers of different sizes (experts, active: {shapes});"
            " choose a model with the same number in every layer"
        )
    return tuple(routers)


def _shape(module: nn.Module) -> tuple[int, int] | None:
    """(experts, active) of a module that looks like a router."""
    weight, active = getattr(module, "weight", None), getattr(module, "top_k", None)
    if not isinstance(weight, nn.Parameter) or weight.ndim != 2 or not isinstance(active, int):
        return None
    return (weight.shape[0], active) if 1 <= active <= weight.shape[0] else None


def _has_router(module: nn.Module) -> bool:
    return any(_shape(child) is not None for child in module.children())


def _layer_number(name: str, position: int) -> int:
    found = re.search(r"(?:^|\.)(?:layers|h|blocks)\.(\d+)\.", name)
    return int(found[1]) if found else position


def _recognise(model: nn.Module, module: nn.Module) -> Gating | str:
    """The gating that reproduces a router on random hidden states, or why there is none."""
    experts, active = _shape(module) or (0, 0)
    extra = [
        name
        for name, tensor in (*module.named_parameters(), *module.named_buffers())
        if name not in {"weight", "bias"} and tensor.numel() == experts
    ]
    if extra:
        return f"{extra[0]} shifts its choice away from the router probability"
    with router_weights(module) as (weight, _):
        if not bool(weight.detach().isfinite().all()):
            return "its weights are not all finite numbers: the model is damaged"
    hidden = _probe(model, module)
    scale = float(getattr(module, "routed_scaling_factor", None) or 1.0)
    with torch.inference_mode():
        try:
            outputs = (_bare_output(module, hidden.float()), _bare_output(module, hidden))
        except (TypeError, ValueError, RuntimeError):
            return "it needs more than hidden states"
        for output in outputs:
            reason = _unusable(output, active)
            if reason:
                return reason
        # Weightings that are equal in exact arithmetic differ in float32 somewhere among the
        # probed tokens, but may round to the same numbers in half precision.
        weightings = _weightings(module, hidden, scale, *outputs[0][1:])
        # A router kept in float32 within a model of half precision computes in float32.
        precisions = (False, True) if _dtype(module) == hidden.dtype else (True,)
        for weighting in weightings:
            for precise in precisions:
                gating = Gating(precise, weighting, scale)
                if _reproduces(gating, module, hidden, *outputs[1][1:]):
                    return gating
    return "its choice or its gate weights do not follow from a softmax over its logits"


def _dtype(module: nn.Module) -> torch.dtype:
    with router_weights(module) as (weight, _):
        return weight.dtype


def _bare_output(module: nn.Module, hidden: Tensor) -> Any:
    """What a router itself returns, without hooks; all of it in float32 where `hidden` is."""
    with router_weights(module) as (weight, bias):
        tensors = {"router.weight": weight}
        if bias is not None:
            tensors["router.bias"] = bias
        if hidden.dtype == torch.float32:
            tensors = {name: tensor.float() for name, tensor in tensors.items()}
        return torch.func.functional_call(_Bare(module), tensors, (hidden,))


class _Bare(nn.Module):
    """A router whose forward is that of its class."""

    def __init__(self, router: nn.Module) -> None:
        super().__init__()
        self.router = router

    def forward(self, hidden: Tensor) -> Any:
        return type(self.router).forward(self.router, hidden)


def _unusable(output: Any, active: int) -> str:
    """Why a router's output cannot be used; empty where it can."""
    if not (isinstance(output, tuple) and len(output) == 3):
        return "it does not return logits, gate weights and chosen experts"
    _, scores, chosen = output
    shape = (_PROBED_TOKENS, active)
    if chosen.is_floating_point() or chosen.shape != shape or scores.shape != shape:
        return "it does not return gate weights and chosen experts of each token"
    return ""


def _weightings(
    module: nn.Module, hidden: Tensor, scale: float, scores: Tensor, chosen: Tensor
) -> list[str]:
    """The weightings that give the gate weights of a router in float32."""
    return [
        weighting
        for weighting in WEIGHTINGS
        if _reproduces(Gating(True, weighting, scale), module, hidden, scores, chosen)
    ]


def _reproduces(
    gating: Gating, module: nn.Module, hidden: Tensor, scores: Tensor, chosen: Tensor
) -> bool:
    """Whether a gating gives the choice and the gate weights of a router, bit for bit."""
    logits = gating.logits(module, hidden)
    probabilities = probabilities_of(logits)
    made = gating.weights(logits, probabilities, chosen, scores.dtype)
    return _takes_largest(probabilities, chosen) and torch.equal(made, scores)


def _probe(model: nn.Module, module: nn.Module) -> Tensor:
    """Random hidden states for a router, the same every time."""
    generator = torch.Generator().manual_seed(0)
    with router_weights(module) as (weight, _):
        size, device, dtype = weight.shape[1], weight.device, weight.dtype
    hidden = torch.randn(_PROBED_TOKENS, size, generator=generator)
    return hidden.to(device=device, dtype=getattr(model, "dtype", dtype))


def _takes_largest(probabilities: Tensor, chosen: Tensor) -> bool:
    """Whether no expert left out has a larger probability than a chosen one."""
    smallest = probabilities.gather(1, chosen).min(dim=-1).values
    others = probabilities.scatter(1, chosen, -1.0).max(dim=-1).values
    distinct = chosen.sort(dim=-1).values.diff(dim=-1)
    return bool((smallest >= others).all()) and bool((distinct > 0).all())
