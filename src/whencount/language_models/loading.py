"""Find and load a language model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from whencount.language_models.model import LanguageModel
from whencount.language_models.settings import LanguageModelSettings


def load_language_model(
    options: LanguageModelSettings | Mapping[str, Any], *, threads: int
) -> LanguageModel:
    """Load a frozen causal language model.

    No code that comes with a model is run and weights are read from safetensors or GGUF only. On a
    CPU torch is held to `threads` threads from here on. On GPUs a model that one card cannot hold
    is spread over all that this process sees.

    Args:
        options: a `LanguageModelSettings`, or a mapping with its fields.
        threads: of a CPU.

    Raises:
        InputError: unknown or missing settings, the model is not there, damaged or without
            weights, it has no fast tokenizer or no chat template where one is asked for, or the
            device is not there or too small.
    """
    raise NotImplementedError
