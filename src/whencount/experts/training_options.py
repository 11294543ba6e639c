"""Sizes of a small OLMoE and how it is trained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from whencount.errors import InputError

HALVES = 2
"""Into how many parts a batch is cut, whatever the number of threads."""


@dataclass(frozen=True)
class TrainingOptions:
    """Sizes of the model and how it is trained.

    Attributes:
        vocabulary: tokens of the tokenizer.
        hidden, intermediate, layers, heads: sizes of the transformer; `intermediate` of an expert.
        experts, active: experts of a layer, and how many of them a token has.
        context: tokens of a training sequence, and the most the model takes.
        tokens: how many it is trained on in all.
        batch: sequences of a step, an even number.
        learning_rate: its peak, after `warmup` of the steps; half a cosine leads to 0.
        warmup: share of the steps.
        weight_decay: of matrices; norms have none.
        clip: largest norm of a step's gradient.
        balance: weight of the load balancing loss.
        deviation: standard deviation of the first weights.
        validations: how often the validation loss is measured.

    Raises:
        InputError: sizes that do not fit together.
    """

    vocabulary: int = 4096
    hidden: int = 128
    intermediate: int = 64
    layers: int = 3
    heads: int = 4
    experts: int = 64
    active: int = 8
    context: int = 256
    tokens: int = 3_000_000
    batch: int = 8
    learning_rate: float = 6e-3
    warmup: float = 0.05
    weight_decay: float = 0.1
    clip: float = 1.0
    balance: float = 0.01
    deviation: float = 0.09
    validations: int = 8

    def __post_init__(self) -> None:
        if self.hidden % (2 * self.heads):
            raise InputError(
                f"training: hidden is {self.hidden} with {self.heads} heads; each head needs an"
                " even number of dimensions"
            )
        if self.active > self.experts:
            raise InputError(
                f"training: {self.active} of {self.experts} experts cannot be active; lower active"
            )
        if self.batch % HALVES:
            raise InputError(f"training: batch is {self.batch}; it must be an even number")
        if self.vocabulary < 258:
            raise InputError(
                f"training: vocabulary is {self.vocabulary}; bytes alone need 258 tokens"
            )

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> TrainingOptions:
        """Those of a mapping, as in a configuration.

        Raises:
            InputError: an unknown key.
        """
        known = {field.name for field in fields(cls)}
        unknown = sorted(set(options) - known)
        if unknown:
            raise InputError(
                f"training: unknown key {unknown[0]!r}; the keys are {', '.join(sorted(known))}"
            )
        return cls(**options)

    @property
    def steps(self) -> int:
        """How many steps the tokens make."""
        return max(1, self.tokens // (self.batch * self.context))
