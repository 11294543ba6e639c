"""Which encoder, and how it is run."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from whencount.errors import InputError


@dataclass(frozen=True)
class EncoderSettings:
    """Which encoder, and how it is run.

    Attributes:
        source: "packaged" (model files inside an installed wheel), "hub" (a model repository at a
            pinned revision) or "folder" (a local directory).
        package: for "packaged", the distribution's name.
        name: for "hub", the repository id.
        revision: for "hub", the commit hash; required there.
        path: for "folder", the directory.
        max_tokens: texts are cut to this many tokens, prefix and special tokens included.
        query_prefix: put before every query.
        passage_prefix: put before every passage.
        batch_tokens: the most tokens of one forward pass, padding included; None chooses by
            device.
        device: "auto", "cpu" or "cuda".
        precision: "auto" (fp16 on a GPU, fp32 elsewhere), "fp32" or "fp16".
    """

    source: str
    package: str | None = None
    name: str | None = None
    revision: str | None = None
    path: str | None = None
    max_tokens: int = 512
    query_prefix: str = ""
    passage_prefix: str = ""
    batch_tokens: int | None = None
    device: str = "auto"
    precision: str = "auto"

    def __post_init__(self) -> None:
        allowed = {
            "source": ("packaged", "hub", "folder"),
            "device": ("auto", "cpu", "cuda"),
            "precision": ("auto", "fp32", "fp16"),
        }
        for name, choices in allowed.items():
            if getattr(self, name) not in choices:
                raise InputError(
                    f"encoder: {name} is {getattr(self, name)!r}; choose one of {list(choices)}"
                )
        needs = {"packaged": ("package",), "hub": ("name", "revision"), "folder": ("path",)}
        for name in needs[self.source]:
            if not getattr(self, name):
                raise InputError(f"encoder: source {self.source!r} needs {name!r}; add it")
        for name in ("max_tokens", "batch_tokens"):
            if not isinstance(getattr(self, name), int | None):
                raise InputError(
                    f"encoder: {name} is {getattr(self, name)!r}; it must be a whole number"
                )
        if self.max_tokens < 1 or (self.batch_tokens is not None and self.batch_tokens < 1):
            raise InputError("encoder: max_tokens and batch_tokens must be at least 1")


def resolve_device(device: str) -> str:
    """ "cpu" or "cuda" for "auto", "cpu" or "cuda".

    Raises:
        InputError: "cuda" without a GPU, or another word.
    """
    if device not in ("auto", "cpu", "cuda"):
        raise InputError(f"device {device!r} is unknown; choose auto, cpu or cuda")
    if device == "cuda" and not torch.cuda.is_available():
        raise InputError("device 'cuda' was asked for but no GPU is there; use 'auto'")
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    return device
