"""Find and load an encoder."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import torch

from whencount.encoders.model import Encoder
from whencount.encoders.packed_cache import PACKED_FILE, load_packed
from whencount.encoders.quiet import quiet_transformers
from whencount.encoders.settings import EncoderSettings, resolve_device
from whencount.errors import InputError


def load_encoder(
    settings: EncoderSettings | Mapping[str, Any], threads: int | None = None
) -> Encoder:
    """Load a frozen encoder.

    Args:
        settings: an `EncoderSettings`, or a mapping with its fields.
        threads: workers on a CPU; None takes every core this process may use.

    Raises:
        InputError: unknown or missing settings, the encoder is not there, it has no fast
            tokenizer, or the device is not there.
    """
    if not isinstance(settings, EncoderSettings):
        known = {field.name for field in fields(EncoderSettings)}
        unknown = sorted(set(settings) - known)
        if unknown or "source" not in settings:
            what = f"unknown key {unknown[0]!r}" if unknown else "no 'source'"
            raise InputError(f"encoder: {what}; the keys are {sorted(known)}")
        settings = EncoderSettings(**settings)
    device = resolve_device(settings.device)
    half = settings.precision == "fp16" or (settings.precision == "auto" and device == "cuda")
    dtype = torch.float16 if half else torch.float32
    replacements: dict[int, str] = {}
    files = _packaged_files(settings) if settings.source == "packaged" else {}
    if PACKED_FILE in files:
        decoded = load_packed(str(settings.package), files)
        tokenizer, model = decoded.build(dtype)
        replacements = decoded.replacements
    else:
        location, options = _locate(settings, files)
        tokenizer, model = _load(settings, location, {**options, "trust_remote_code": False}, dtype)
    _check_length(settings, tokenizer, model)
    model = model.to(device).eval().requires_grad_(False)
    return Encoder(settings, tokenizer, model, threads, replacements)


def _check_length(settings: EncoderSettings, tokenizer: Any, model: Any) -> None:
    """Refuse a `max_tokens` that leaves no room for text, or that the model has no positions for.

    Raises:
        InputError: either.
    """
    least = tokenizer.num_special_tokens_to_add() + 1
    most = getattr(model.config, "max_position_embeddings", None) or settings.max_tokens
    if not least <= settings.max_tokens <= most:
        raise InputError(
            f"encoder: max_tokens is {settings.max_tokens}, but this model takes {least} to {most}"
            " tokens; choose a number between"
        )


def _packaged_files(settings: EncoderSettings) -> dict[str, Path]:
    """The files of an installed package, by name; its code is never imported."""
    try:
        entries = importlib.metadata.files(str(settings.package)) or []
    except importlib.metadata.PackageNotFoundError:
        raise InputError(
            f"encoder: the package {settings.package!r} is not installed; install it"
            " (without its dependencies) or choose another encoder"
        ) from None
    found: dict[str, Path] = {}
    for entry in entries:
        path = Path(str(entry.locate()))
        # Of several of one name, a model's own stand beside each other.
        if entry.name not in found or (path.parent / "tokenizer.json").is_file():
            found[entry.name] = path
    return found


def _locate(settings: EncoderSettings, files: Mapping[str, Path]) -> tuple[str, dict[str, Any]]:
    if settings.source == "hub":
        return str(settings.name), {"revision": settings.revision}
    if settings.source == "folder":
        folder = Path(str(settings.path))
        if not (folder / "config.json").is_file():
            raise InputError(
                f"encoder: {folder} holds no config.json, so no model is there; point 'path' at a"
                " folder with config.json, a tokenizer and model.safetensors"
            )
        return str(folder), {"local_files_only": True}
    if "config.json" in files and (files["config.json"].parent / "tokenizer.json").is_file():
        return str(files["config.json"].parent), {"local_files_only": True}
    raise InputError(
        f"encoder: the package {settings.package!r} carries neither a config.json beside a"
        f" tokenizer.json nor {PACKED_FILE}; choose a package with model files inside"
    )


def _load(
    settings: EncoderSettings, location: str, options: dict[str, Any], dtype: torch.dtype
) -> tuple[Any, Any]:
    try:
        with quiet_transformers():
            from transformers import AutoModel, AutoTokenizer

            tokenizer = AutoTokenizer.from_pretrained(location, use_fast=True, **options)
            model = AutoModel.from_pretrained(
                location, dtype=dtype, weights_only=True, attn_implementation="sdpa", **options
            )
    except (OSError, ValueError, ImportError, RuntimeError) as error:
        reason = " ".join(str(error).split())[:200]
        place = (
            f"{settings.name} at revision {settings.revision} is neither in the local cache nor"
            " reachable"
            if settings.source == "hub"
            else f"{location} could not be loaded"
        )
        raise InputError(f"encoder: {place} ({reason})") from error
    if not tokenizer.is_fast:
        raise InputError(
            f"encoder: {location} has no fast tokenizer, which is needed to tell content tokens"
            " apart; choose an encoder with a tokenizer.json"
        )
    return tokenizer, model
