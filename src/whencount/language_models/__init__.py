"""Frozen causal language models of transformers: loaded without any code of their own."""

from whencount.language_models.attention import require_full_attention
from whencount.language_models.loading import load_language_model
from whencount.language_models.model import LanguageModel
from whencount.language_models.settings import LanguageModelSettings

__all__ = [
    "LanguageModel",
    "LanguageModelSettings",
    "load_language_model",
    "require_full_attention",
]
