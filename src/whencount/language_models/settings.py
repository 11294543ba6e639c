"""Which language model, and how it is run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from whencount.errors import InputError

_COMMIT = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True)
class LanguageModelSettings:
    """Which language model, and how it is run.

    Attributes:
        source: "packaged" (a GGUF file inside an installed wheel), "hub" (a model repository at a
            pinned revision) or "folder" (a local directory).
        package: for "packaged", the distribution's name.
        name: for "hub", the repository id.
        revision: for "hub", the commit, 40 hexadecimal digits.
        path: for "folder", the directory.
        device: "auto", "cpu" or "cuda".
        precision: "auto" (fp16 on a GPU, fp32 elsewhere), "fp32" or "fp16".
        chat_template: whether prompts go through the model's chat template.

    Raises:
        InputError: an unknown word, or what the source needs is missing.
    """

    source: str
    package: str | None = None
    name: str | None = None
    revision: str | None = None
    path: str | None = None
    device: str = "auto"
    precision: str = "auto"
    chat_template: bool = False

    def __post_init__(self) -> None:
        allowed = {
            "source": ("packaged", "hub", "folder"),
            "device": ("auto", "cpu", "cuda"),
            "precision": ("auto", "fp32", "fp16"),
            "chat_template": (True, False),
        }
        for name, choices in allowed.items():
            if getattr(self, name) not in choices:
                raise InputError(
                    f"language model: {name} is {getattr(self, name)!r};"
                    f" choose one of {list(choices)}"
                )
        needs = {"packaged": ("package",), "hub": ("name", "revision"), "folder": ("path",)}
        for name in needs[self.source]:
            if not getattr(self, name):
                raise InputError(f"language model: source {self.source!r} needs {name!r}; add it")
        if self.source == "hub" and not _COMMIT.fullmatch(str(self.revision)):
            raise InputError(
                f"language model: revision {self.revision!r} of {self.name} can move; give the"
                " commit, 40 hexadecimal digits"
            )

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> LanguageModelSettings:
        """Those of a mapping, as in a configuration.

        Raises:
            InputError: an unknown key, or none called `source`.
        """
        known = {field.name for field in fields(cls)}
        unknown = sorted(set(options) - known)
        if unknown or "source" not in options:
            what = f"unknown key {unknown[0]!r}" if unknown else "no 'source'"
            raise InputError(f"language model: {what}; the keys are {sorted(known)}")
        return cls(**options)

    @property
    def label(self) -> str:
        """What the model is called where it comes from: package, repository or folder."""
        return str(self.package or self.name or self.path)
