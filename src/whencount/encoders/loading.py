"""Find and load an encoder."""

from __future__ import annotations

import importlib.metadata
import os
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import torch

from whencount.encoders.model import Encoder
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
    location, options = _locate(settings)
    tokenizer, model = _load(
        settings,
        location,
        {**options, "trust_remote_code": False},
        torch.float16 if half else torch.float32,
    )
    _check_length(settings, tokenizer, model)
    model = model.to(device).eval().requires_grad_(False)
    return Encoder(settings, tokenizer, model, threads)


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


def _locate(settings: EncoderSettings) -> tuple[str, dict[str, Any]]:
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
    try:
        files = importlib.metadata.files(str(settings.package)) or []
    except importlib.metadata.PackageNotFoundError:
        raise InputError(
            f"encoder: the package {settings.package!r} is not installed; install it"
            " (without its dependencies) or choose another encoder"
        ) from None
    # Only the files are used: the package's own code is never imported.
    for file in files:
        if (
            file.name == "config.json"
            and (Path(str(file.locate())).parent / "tokenizer.json").is_file()
        ):
            return str(Path(str(file.locate())).parent), {"local_files_only": True}
    raise InputError(
        f"encoder: the package {settings.package!r} carries no config.json beside a tokenizer.json;"
        " choose a package with model files inside"
    )


def _load(
    settings: EncoderSettings, location: str, options: dict[str, Any], dtype: torch.dtype
) -> tuple[Any, Any]:
    # Read at the first import of transformers; a bar per loaded tensor is noise in a log.
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    from transformers import AutoModel, AutoTokenizer
    from transformers.utils import logging

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
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
    finally:
        logging.enable_progress_bar()  # type: ignore[no-untyped-call]
    if not tokenizer.is_fast:
        raise InputError(
            f"encoder: {location} has no fast tokenizer, which is needed to tell content tokens"
            " apart; choose an encoder with a tokenizer.json"
        )
    return tokenizer, model
