"""A language model out of a GGUF file, decoded once and kept as safetensors and tokenizer.json."""

from __future__ import annotations

import contextlib
import io
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from whencount import model_cache
from whencount.encoders.quiet import quiet_transformers
from whencount.environment import cache_folder
from whencount.errors import InputError

# Part of the cache's name: raise it whenever decoding gives anything else.
DECODER = "1"
MOST_NATS = 4.5
"""A model that needs more nats per token for plain English was not decoded right."""
_LOG = logging.getLogger(__name__)
_ENGLISH = (
    "The library opens at nine in the morning and closes at six in the evening. On Saturdays it is"
    " open until noon. Visitors may borrow up to five books at a time, for three weeks. If you"
    " want to keep a book longer, you can ask for it again, unless somebody else is waiting for"
    " it. Children are welcome, and there is a small room on the second floor where stories are"
    " read to them every Wednesday afternoon."
)


@dataclass(frozen=True)
class Decoded:
    """A decoded model in memory: on the CPU, float32, with a fast tokenizer."""

    model: Any
    tokenizer: Any


def decode_once(package: str, file: Path) -> Path | Decoded:
    """The folder of the decoded copy of a GGUF file, made, checked and kept where there is none.

    The copy stands in `whencount.environment.cache_folder`, under a name made of the package, the
    SHA-256 of the file, and `DECODER`. A damaged copy is written again.

    Args:
        package: its name.
        file: the GGUF file.

    Returns:
        The folder, for `from_pretrained`; the decoded model itself where no copy can be written
        (which is logged).

    Raises:
        InputError: the file is missing or damaged, its model is of a kind that transformers does
            not read from GGUF, or the decoded model does not read English.
    """
    try:
        sha256 = model_cache.sha256_of(file)
    except OSError as error:
        raise InputError(
            f"language model: {file} cannot be read ({error.strerror}); install its package again"
        ) from error
    folder: Path | None = None
    try:
        folder = cache_folder() / "language-models" / f"{package}-{sha256[:16]}-{DECODER}"
        if model_cache.kept(folder, sha256):
            return folder
    except InputError as error:
        _LOG.warning("%s", error)
    decoded = decode(file)
    _require_english(decoded, file)
    if folder is not None:
        try:
            _keep(decoded, folder, sha256)
        except InputError as error:
            _LOG.warning("%s is decoded in memory, each time anew: %s", file.name, error)
        else:
            return folder
    return decoded


def decode(file: Path) -> Decoded:
    """Read a GGUF file: weights to float32, configuration and tokenizer.

    Raises:
        InputError: it is damaged, or no model that transformers reads.
    """
    place = {"gguf_file": file.name, "local_files_only": True, "trust_remote_code": False}
    try:
        # A bar per tensor goes to standard error, whatever transformers is told.
        with quiet_transformers(), contextlib.redirect_stderr(io.StringIO()):
            from transformers import AutoModelForCausalLM, AutoTokenizer

            tokenizer = AutoTokenizer.from_pretrained(file.parent, **place)
            model: Any = AutoModelForCausalLM.from_pretrained(
                file.parent, dtype=torch.float32, attn_implementation="sdpa", **place
            )
            kind = _pre_tokenizer(file)
    # A damaged file makes the reader fail in any way that reading numbers out of bytes can.
    except Exception as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise InputError(
            f"language model: {file} is no readable GGUF file of a causal language model"
            f" ({reason}); install its package again, or choose another"
        ) from error
    # That of every GGUF tokenizer in transformers is GPT-2's; this family cuts numbers first.
    if kind == "smollm":
        _cut_digits(tokenizer)
    model.config = _clean(model.config)
    return Decoded(model.eval().requires_grad_(False), tokenizer)


def _pre_tokenizer(file: Path) -> str:
    """What llama.cpp calls the way in which the file's tokenizer cuts text first."""
    from gguf import GGUFReader

    field = GGUFReader(file).get_field("tokenizer.ggml.pre")
    return "" if field is None else str(field.contents())


def _cut_digits(tokenizer: Any) -> None:
    from tokenizers import pre_tokenizers

    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
        ]
    )


def _clean(config: Any) -> Any:
    """The configuration without what says that the weights are still packed."""
    fields: Mapping[str, Any] = config.to_dict()
    dropped = {"quantization_config", "_model_name_or_path", "transformers_version", "dtype"}
    return type(config)(**{key: value for key, value in fields.items() if key not in dropped})


def _keep(decoded: Decoded, folder: Path, sha256: str) -> None:
    from safetensors.torch import save_file

    def fill(temporary: Path) -> None:
        tied = set(getattr(decoded.model, "_tied_weights_keys", None) or ())
        shared = decoded.model.config.tie_word_embeddings
        tensors = {
            name: tensor.contiguous()
            for name, tensor in decoded.model.state_dict().items()
            if not (shared and name in tied)
        }
        save_file(tensors, temporary / "model.safetensors", {"format": "pt"})
        decoded.model.config.architectures = [type(decoded.model).__name__]
        decoded.model.config.save_pretrained(temporary)
        decoded.model.generation_config.save_pretrained(temporary)
        decoded.tokenizer.save_pretrained(temporary)
        _require_same(decoded, temporary)

    about = {
        "decoder": DECODER,
        "packed_sha256": sha256,
        "checked_by": f"at most {MOST_NATS} nats per token of English, and a copy that is the same",
    }
    model_cache.keep(folder, fill, about)


def _require_same(decoded: Decoded, folder: Path) -> None:
    """Refuse a copy that does not load to the very model that was written."""
    with quiet_transformers():
        from transformers import AutoModelForCausalLM, AutoTokenizer

        model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
        tokenizer = AutoTokenizer.from_pretrained(folder)
    first, second = decoded.model.state_dict(), model.state_dict()
    same = first.keys() == second.keys() and all(
        torch.equal(first[name], second[name]) for name in first
    )
    texts = [decoded.tokenizer(_ENGLISH)["input_ids"], tokenizer(_ENGLISH)["input_ids"]]
    if not same or texts[0] != texts[1]:
        raise InputError(f"{folder}: the copy does not load to the model that was written")


def _require_english(decoded: Decoded, file: Path) -> None:
    """Refuse a model that was decoded wrong, which makes English as unlikely as noise.

    Raises:
        InputError: mean negative log-likelihood of a fixed text above `MOST_NATS` per token.
    """
    nats = english_nats(decoded.model, decoded.tokenizer)
    if not nats <= MOST_NATS:
        raise InputError(
            f"language model: the model decoded from {file} needs {nats:.2f} nats per token of"
            f" plain English, and at most {MOST_NATS} are let through; install the version that"
            " requirements.lock pins"
        )


@torch.inference_mode()
def english_nats(model: Any, tokenizer: Any) -> float:
    """Mean negative log-likelihood of a fixed English text, in nats per token after the first."""
    ids = torch.tensor([tokenizer(_ENGLISH, add_special_tokens=False)["input_ids"]])
    logits = model(input_ids=ids.to(model.device)).logits[0, :-1].float()
    return float(torch.nn.functional.cross_entropy(logits, ids[0, 1:].to(logits.device)))
