"""Which models let a hook choose the keys that their attention reads."""

from __future__ import annotations

from typing import Any

from whencount.errors import InputError

FAMILIES = ("llama",)
"""Model types whose attention was compared with transformers' own, hook on and off."""

_ODD = {
    "sliding_window": "a sliding window",
    "attention_chunk_size": "attention in chunks",
    "attn_logit_softcapping": "capped attention scores",
    "kv_lora_rank": "compressed keys and values",
}


def require_full_attention(model: Any, name: str) -> None:
    """Refuse a model whose layers do not all attend to every earlier key through the hook.

    Args:
        model: of transformers.
        name: what it is called in messages.

    Raises:
        InputError: another family, or a kind of attention that cannot be hooked.
    """
    config = model.config.get_text_config()
    found = [words for key, words in _ODD.items() if getattr(config, key, None)]
    kinds = sorted(set(getattr(config, "layer_types", None) or ()) - {"full_attention"})
    found += [f"layers of the kind {kind}" for kind in kinds]
    if not getattr(model, "_supports_attention_backend", False):
        found.append("attention that takes no function from outside")
    if found:
        raise InputError(
            f"language model: {name} has {', '.join(found)}, so pages of its keys cannot be chosen;"
            " take a Llama model"
        )
    if config.model_type not in FAMILIES:
        raise InputError(
            f"language model: {name} is of the family {config.model_type!r}, for which choosing"
            f" pages was never compared with full attention; take one of {', '.join(FAMILIES)}"
        )
