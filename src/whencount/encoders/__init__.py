"""Frozen text encoders: text in, the states of its content tokens out."""

from whencount.encoders.loading import load_encoder
from whencount.encoders.model import Encoder, Kind, StateBatch, Tokens, segment_sum
from whencount.encoders.parallel import available_threads, windows
from whencount.encoders.settings import EncoderSettings, resolve_device

__all__ = [
    "Encoder",
    "EncoderSettings",
    "Kind",
    "StateBatch",
    "Tokens",
    "available_threads",
    "load_encoder",
    "resolve_device",
    "segment_sum",
    "windows",
]
