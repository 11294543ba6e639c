"""Put a rule in charge of which experts run, on forward hooks of the routers.

A rule sees what the router of a layer sees and names the experts that run; the hook mixes them with
their original gate weights, in the router's own order and precision. Whatever a rule leaves alone
is the native forward, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol
from weakref import WeakSet

import torch
from torch import Tensor, nn

from whencount.errors import InputError
from whencount.experts.routers import Router, find_routers, probabilities_of

_IN_CHARGE: WeakSet[nn.Module] = WeakSet()


@dataclass(frozen=True)
class Passage:
    """The tokens of one forward pass, rows and positions flattened as routers see them.

    Attributes:
        token_ids: int64, shape (tokens,), 0 where the model was given embeddings.
        positions: int64, shape (tokens,), place among the row's tokens that are not padding.
        real: bool, shape (tokens,), False for padding.
    """

    token_ids: Tensor
    positions: Tensor
    real: Tensor


@dataclass(frozen=True)
class RoutedTokens:
    """What the router of one layer sees in one forward pass.

    Attributes:
        index: place of the layer among the routed ones, from 0.
        hidden: shape (tokens, size), the router's input.
        logits: shape (tokens, experts).
        native: int64, shape (tokens, native active), the router's own choice in its own order.
        weight_dtype: of the router's gate weights.
        passage: the tokens.
    """

    index: int
    hidden: Tensor
    logits: Tensor
    native: Tensor
    weight_dtype: torch.dtype
    passage: Passage

    @cached_property
    def probabilities(self) -> Tensor:
        """The router's softmax over all experts, float32, shape (tokens, experts)."""
        return probabilities_of(self.logits)

    @cached_property
    def order(self) -> Tensor:
        """All experts as the router prefers them, int64, shape (tokens, experts).

        Its own choice in its own order, then by falling probability; equal ones: the smaller
        number.
        """
        others = self.probabilities.scatter(1, self.native, -1.0)
        count = others.shape[1] - self.native.shape[1]
        rest = others.argsort(dim=-1, descending=True, stable=True)[:, :count]
        return torch.cat([self.native, rest], dim=-1)

    def first(self, active: int) -> Tensor:
        """The experts that the router itself prefers, int64, shape (tokens, active)."""
        return self.order[:, :active]

    def best(self, scores: Tensor, active: int) -> Tensor:
        """The experts with the largest scores, in the router's own order.

        Equal scores fall to the expert that the router prefers, so that a score that never reverses
        the probabilities leaves the choice and its order alone.

        Args:
            scores: shape (tokens, experts), any ordered dtype.
            active: how many to take.

        Returns:
            int64, shape (tokens, active).

        Raises:
            InputError: a score is NaN.
        """
        if scores.is_floating_point() and bool(scores.isnan().any()):
            raise InputError(
                f"routed layer {self.index}: a score of an expert is not a number; the model's"
                " hidden states overflow, so run it with `precision: fp32`"
            )
        ranked = scores.gather(1, self.order).argsort(dim=-1, descending=True, stable=True)
        return self.order.gather(1, ranked[:, :active].sort(dim=-1).values)


class Rule(Protocol):
    """Chooses the experts of every token of a layer."""

    @property
    def name(self) -> str:
        """What tables call it."""

    def choose(self, tokens: RoutedTokens, active: int) -> Tensor | None:
        """The experts that run, int64, shape (tokens, how many), in the order of `tokens.order`.

        None leaves the native forward alone. `active` is how many experts a token may use.
        """


Observer = Callable[[Router, RoutedTokens, Tensor], None]
"""Called with the router, what it saw, and the experts that run, shape (tokens, how many)."""


class RoutedModel:
    """A model whose routers obey a rule between `install` and `remove`.

    Args:
        model: any causal model of transformers whose routers are recognised, in evaluation mode;
            batches, padding on either side, any device map.
        rule: which experts run.
        active: how many of them per token; the router's own number where None.
        observer: called after every choice.

    Raises:
        InputError: the routers are not recognised, or `active` is not 1 ... experts.
    """

    def __init__(
        self,
        model: nn.Module,
        rule: Rule,
        active: int | None = None,
        observer: Observer | None = None,
    ) -> None:
        self.model = model
        self.rule = rule
        self.routers = find_routers(model)
        self.active = checked_active(self.routers, active)
        self._observer = observer
        self._passage: Passage | None = None
        self._handles: list[Any] = []

    def install(self) -> None:
        """Register the hooks.

        Raises:
            ValueError: another rule is in charge of this model.
        """
        if self.model in _IN_CHARGE:
            raise ValueError("another rule is in charge of this model; remove it first")
        _IN_CHARGE.add(self.model)
        body = getattr(self.model, "base_model", self.model)
        self._handles.append(body.register_forward_pre_hook(self._enter, with_kwargs=True))
        for index, router in enumerate(self.routers):
            self._handles.append(
                router.module.register_forward_hook(self._hook(index, router), with_kwargs=True)
            )

    def remove(self) -> None:
        """Take every hook away; the model is native again."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        self._passage = None
        _IN_CHARGE.discard(self.model)

    def __enter__(self) -> RoutedModel:
        self.install()
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def _enter(self, _: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._passage = _passage_of(args, kwargs)

    def _hook(self, index: int, router: Router) -> Callable[..., Any]:
        def hook(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Any:
            hidden = args[0] if args else kwargs["hidden_states"]
            hidden = hidden.reshape(-1, hidden.shape[-1])
            first, scores, native = out
            if self._passage is None or len(self._passage.real) != len(native):
                raise ValueError("the router saw other tokens than the model was given")
            logits = router.gating.logits(module, hidden)
            tokens = RoutedTokens(index, hidden, logits, native, scores.dtype, self._passage)
            chosen = self.rule.choose(tokens, self.active)
            if self._observer is not None:
                self._observer(router, tokens, native if chosen is None else chosen)
            if chosen is None:
                return None
            weights = router.gating.weights(logits, tokens.probabilities, chosen, scores.dtype)
            return first, weights, chosen.contiguous()

        return hook


@contextmanager
def routed(
    model: nn.Module, rule: Rule, active: int | None = None, observer: Observer | None = None
) -> Iterator[RoutedModel]:
    """Let a rule choose the experts of a model within a `with` block; see `RoutedModel`."""
    with RoutedModel(model, rule, active, observer) as patched:
        yield patched


def checked_active(routers: tuple[Router, ...], active: int | None) -> int:
    """The number of experts per token, the routers' own where None.

    Raises:
        InputError: it is not between 1 and the number of experts.
    """
    if active is None:
        return routers[0].active
    if not 1 <= active <= routers[0].experts:
        raise InputError(
            f"active is {active}; it must lie between 1 and the {routers[0].experts} experts"
            " of the model"
        )
    return active


def _passage_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Passage:
    ids = args[0] if args else kwargs.get("input_ids")
    if ids is None:
        embeddings = kwargs["inputs_embeds"]
        ids = torch.zeros(embeddings.shape[:2], dtype=torch.int64, device=embeddings.device)
    count = ids.shape[1]
    mask = args[1] if len(args) > 1 else kwargs.get("attention_mask")
    if isinstance(mask, Tensor) and mask.ndim == 2:
        # With a cache the mask is longer than the tokens of this pass.
        real = mask.to(device=ids.device, dtype=torch.bool)
        positions = (real.long().cumsum(dim=-1) - 1).clamp(min=0)[:, -count:]
        real = real[:, -count:]
    else:
        # The name of the argument differs among versions of transformers.
        cache = kwargs.get("cache", kwargs.get("past_key_values"))
        past = 0 if cache is None else int(cache.get_seq_length())
        real = torch.ones_like(ids, dtype=torch.bool)
        positions = torch.arange(past, past + count, device=ids.device).expand(ids.shape)
    return Passage(ids.reshape(-1), positions.reshape(-1), real.reshape(-1))
