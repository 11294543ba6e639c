"""Packed models decoded once: the result is kept as safetensors and tokenizer.json."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from whencount import model_cache
from whencount.encoders.packed_check import check_decoded
from whencount.encoders.packed_e5 import build_tokenizer, read_packed
from whencount.encoders.quiet import quiet_transformers
from whencount.environment import cache_folder
from whencount.errors import InputError

# Part of the cache's name: raise it whenever decoding gives anything else.
DECODER = "1"
PACKED_FILE = "e5-small-q4.bin"
_LIBRARY_PREFIX, _LIBRARY_SUFFIXES = "_engine", (".so", ".pyd", ".dylib", ".dll")
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Decoded:
    """A decoded encoder.

    Attributes:
        configuration: fields of `transformers.BertConfig`.
        tensors: weights under the names of `transformers.BertModel`, float32.
        tokenizer: the content of tokenizer.json.
        replacements: code point -> text that stands for it before the tokenizer sees it.
    """

    configuration: dict[str, Any]
    tensors: dict[str, torch.Tensor]
    tokenizer: str
    replacements: dict[int, str]

    def build(self, dtype: torch.dtype = torch.float32) -> tuple[Any, Any]:
        """A fast tokenizer and a `BertModel` without a pooling layer, on the CPU."""
        with quiet_transformers():
            from tokenizers import Tokenizer
            from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

            tokenizer = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
                tokenizer_object=Tokenizer.from_str(self.tokenizer)
            )
            model: Any = BertModel.from_pretrained(
                None,
                config=BertConfig(**self.configuration),
                state_dict=self.tensors,
                dtype=dtype,
                attn_implementation="sdpa",
                add_pooling_layer=False,
            )
        return tokenizer, model.eval()


def load_packed(package: str, files: Mapping[str, Path]) -> Decoded:
    """The decoded model of a package, out of the cache or decoded, checked and put there.

    The cache stands in `whencount.environment.cache_folder`, under a name made of the package, the
    SHA-256 of the packed file, and `DECODER`. A damaged cache is written again; where none can be
    written, the model is decoded in memory each time. Either is logged.

    Args:
        package: its name.
        files: of the package, name -> path.

    Raises:
        InputError: the packed file is damaged, or the decoded model is not what the package runs.
    """
    file = files[PACKED_FILE]
    try:
        sha256 = model_cache.sha256_of(file)
    except OSError as error:
        raise InputError(
            f"encoder: {file} cannot be read ({error.strerror}); install its package again"
        ) from error
    folder: Path | None = None
    try:
        folder = cache_folder() / "encoders" / f"{package}-{sha256[:16]}-{DECODER}"
        kept = _read(folder, sha256)
        if kept is not None:
            return kept
    except InputError as error:
        _LOG.warning("%s", error)
    decoded = _decode(file)
    checked = _check(decoded, file, sha256, files)
    if folder is not None:
        try:
            _write(decoded, folder, sha256, checked)
        except InputError as error:
            _LOG.warning("%s is decoded in memory, each time anew: %s", file.name, error)
    return decoded


def _decode(file: Path) -> Decoded:
    packed = read_packed(file)
    return Decoded(
        packed.configuration(),
        packed.tensors,
        build_tokenizer(packed.vocabulary).to_str(),
        packed.vocabulary.replacements,
    )


def _check(decoded: Decoded, file: Path, sha256: str, files: Mapping[str, Path]) -> str:
    libraries = sorted(
        path
        for name, path in files.items()
        if name.startswith(_LIBRARY_PREFIX) and name.endswith(_LIBRARY_SUFFIXES)
    )
    tokenizer, model = decoded.build()
    reason = check_decoded(
        tokenizer,
        model,
        decoded.replacements,
        file=file,
        sha256=sha256,
        library=libraries[0] if libraries else None,
    )
    if reason is None:
        return "vectors of the package"
    _LOG.warning(
        "%s: %s; the decoded model is not compared with the package's own vectors, but the file is"
        " known by its SHA-256",
        file.name,
        reason,
    )
    return "SHA-256 of the packed file"


def _write(decoded: Decoded, folder: Path, sha256: str, checked: str) -> None:
    from safetensors.torch import save_file

    def fill(temporary: Path) -> None:
        save_file(decoded.tensors, temporary / "model.safetensors", {"format": "pt"})
        texts = {
            "config.json": json.dumps({"model_type": "bert", **decoded.configuration}, indent=1),
            "tokenizer.json": decoded.tokenizer,
            "replacements.json": json.dumps(decoded.replacements, ensure_ascii=False),
        }
        for name, text in texts.items():
            (temporary / name).write_text(text, encoding="utf-8")

    about = {"decoder": DECODER, "packed_sha256": sha256, "checked_by": checked}
    model_cache.keep(folder, fill, about)


def _read(folder: Path, sha256: str) -> Decoded | None:
    """What `_write` wrote; None where nothing is there, or where it is damaged."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    if not model_cache.kept(folder, sha256):
        return None
    try:
        configuration = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        del configuration["model_type"]
        replacements = json.loads((folder / "replacements.json").read_text(encoding="utf-8"))
        return Decoded(
            configuration,
            load_file(folder / "model.safetensors"),
            (folder / "tokenizer.json").read_text(encoding="utf-8"),
            {int(code_point): text for code_point, text in replacements.items()},
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, SafetensorError) as error:
        model_cache.tell_damage(folder, error)
        return None
