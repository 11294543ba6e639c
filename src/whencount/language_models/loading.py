"""Find and load a language model."""

from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from whencount.encoders.quiet import quiet_transformers
from whencount.encoders.settings import resolve_device
from whencount.errors import InputError
from whencount.language_models.gguf import Decoded, decode_once
from whencount.language_models.model import LanguageModel
from whencount.language_models.settings import LanguageModelSettings

# Of a card's free memory, what weights may take; the rest is for keys, values and activations.
_SHARE_FOR_WEIGHTS = 0.85
_TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt")


def load_language_model(
    options: LanguageModelSettings | Mapping[str, Any], *, threads: int
) -> LanguageModel:
    """Load a frozen causal language model.

    No code that comes with a model is run, and weights are read from safetensors or GGUF only. On a
    CPU torch is held to `threads` threads from here on. On GPUs, a model that one card cannot hold
    is spread over all that this process sees.

    Args:
        options: a `LanguageModelSettings`, or a mapping with its fields.
        threads: of a CPU.

    Raises:
        InputError: unknown or missing settings, the model is not there, damaged or without
            weights, it has no fast tokenizer or no chat template where one is asked for, or the
            device is not there or too small.
    """
    settings = (
        options if isinstance(options, LanguageModelSettings) else LanguageModelSettings.of(options)
    )
    device = resolve_device(settings.device)
    half = settings.precision == "fp16" or (settings.precision == "auto" and device == "cuda")
    dtype = torch.float16 if half else torch.float32
    if device == "cpu":
        torch.set_num_threads(threads)
    place, revision = _locate(settings)
    if isinstance(place, Decoded):
        tokenizer, model = place.tokenizer, place.model.to(device=device, dtype=dtype)
    else:
        tokenizer, model = _load(settings, place, revision, dtype, device)
    loaded = LanguageModel(
        name=settings.label,
        model=model.eval().requires_grad_(False),
        tokenizer=tokenizer,
        device=model.get_input_embeddings().weight.device,
        dtype=dtype,
        chat_template=settings.chat_template,
        context_limit=_context_limit(model, settings),
        description={
            "source": settings.source,
            "model": settings.label if settings.source != "folder" else Path(settings.label).name,
            "revision": _version(settings),
            "family": model.config.model_type,
            "precision": str(dtype).removeprefix("torch."),
            "chat_template": settings.chat_template,
        },
    )
    loaded.frame()
    return loaded


def _version(settings: LanguageModelSettings) -> str | None:
    if settings.source == "packaged":
        return importlib.metadata.version(str(settings.package))
    return settings.revision


def _locate(settings: LanguageModelSettings) -> tuple[str | Decoded, str | None]:
    """What `from_pretrained` takes, or the model itself; and the revision of a hub's."""
    if settings.source == "hub":
        return str(settings.name), settings.revision
    if settings.source == "folder":
        return _checked_folder(Path(str(settings.path))), None
    try:
        entries = importlib.metadata.files(str(settings.package)) or []
    except importlib.metadata.PackageNotFoundError:
        raise InputError(
            f"language model: the package {settings.package!r} is not installed; install it"
            " (without its dependencies) or choose another model"
        ) from None
    packed = sorted(Path(str(one.locate())) for one in entries if one.name.endswith(".gguf"))
    if len(packed) != 1:
        raise InputError(
            f"language model: the package {settings.package!r} carries {len(packed)} GGUF files and"
            " must carry one; choose another package, or unpack its model and use source 'folder'"
        )
    found = decode_once(str(settings.package), packed[0])
    return (found if isinstance(found, Decoded) else str(found)), None


def _checked_folder(folder: Path) -> str:
    remedy = "point 'path' at a folder with config.json, a tokenizer and model.safetensors"
    if not (folder / "config.json").is_file():
        raise InputError(f"language model: {folder} holds no config.json; {remedy}")
    # Without them transformers makes an empty tokenizer up, for some families.
    if not any((folder / name).is_file() for name in _TOKENIZERS):
        raise InputError(f"language model: {folder} holds no tokenizer; {remedy}")
    index = folder / "model.safetensors.index.json"
    names = {"model.safetensors"}
    if index.is_file():
        try:
            names = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
        except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
            raise InputError(
                f"language model: {index} cannot be read ({error}); copy the model again"
            ) from error
    missing = sorted(name for name in names if not (folder / name).is_file())
    if missing:
        raise InputError(
            f"language model: {folder} holds no weights ({missing[0]} is missing); {remedy}"
        )
    return str(folder)


def _load(
    settings: LanguageModelSettings,
    place: str,
    revision: str | None,
    dtype: torch.dtype,
    device: str,
) -> tuple[Any, Any]:
    options: dict[str, Any] = {"trust_remote_code": False}
    options |= {"revision": revision} if revision else {"local_files_only": True}
    try:
        with quiet_transformers():
            from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

            config = AutoConfig.from_pretrained(place, **options)
            tokenizer = AutoTokenizer.from_pretrained(place, use_fast=True, **options)
            loaded: Any = AutoModelForCausalLM.from_pretrained(
                place,
                config=config,
                dtype=dtype,
                use_safetensors=True,
                weights_only=True,
                attn_implementation="sdpa",
                device_map=_device_map(config, dtype, device, settings.label),
                output_loading_info=True,
                **options,
            )
    except InputError:
        raise
    # Damaged weights raise errors of safetensors; a foreign config, whatever its fields are.
    except Exception as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        where = (
            f"{settings.name} at revision {settings.revision} is neither in the local cache nor"
            " reachable, or no causal language model"
            if settings.source == "hub"
            else f"{place} could not be loaded"
        )
        raise InputError(f"language model: {where} ({reason})") from error
    model, report = loaded
    if report["missing_keys"] or report["mismatched_keys"]:
        lost = sorted(map(str, [*report["missing_keys"], *report["mismatched_keys"]]))
        raise InputError(
            f"language model: the weights of {settings.label} lack {len(lost)} tensors that its"
            f" configuration asks for, {lost[0]} among them; fetch or copy the model again"
        )
    if not tokenizer.is_fast:
        raise InputError(
            f"language model: {settings.label} has no fast tokenizer; choose a model with a"
            " tokenizer.json"
        )
    return tokenizer, model


def _device_map(config: Any, dtype: torch.dtype, device: str, name: str) -> str:
    """Where weights go: one device, or `auto` over the cards where one cannot hold them.

    Raises:
        InputError: the cards together cannot hold them.
    """
    if device == "cpu":
        return "cpu"
    from transformers import AutoModelForCausalLM

    with torch.device("meta"):
        empty: Any = AutoModelForCausalLM.from_config(config)  # type: ignore[no-untyped-call]
    needed = sum(one.numel() for one in empty.parameters()) * dtype.itemsize
    free = [torch.cuda.mem_get_info(card)[0] for card in range(torch.cuda.device_count())]
    if needed <= _SHARE_FOR_WEIGHTS * free[0]:
        return "cuda"
    if needed <= _SHARE_FOR_WEIGHTS * sum(free):
        return "auto"
    raise InputError(
        f"language model: the weights of {name} take {needed / 2**30:.1f} GiB and the"
        f" {len(free)} visible cards have {sum(free) / 2**30:.1f} GiB free; give more cards, or set"
        " precision to fp16, or device to cpu"
    )


def _context_limit(model: Any, settings: LanguageModelSettings) -> int:
    limit = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    if not limit:
        raise InputError(
            f"language model: {settings.label} does not say how many positions it takes"
            " (max_position_embeddings in its configuration); choose another model"
        )
    return int(limit)
