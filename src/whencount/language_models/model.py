"""A loaded language model, its tokenizer, and the text around the words of a user."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from whencount.errors import InputError

# Some templates print the day; a prompt must not depend on when it is made.
_DATE = "26 Jul 2024"
_TODAY = "{% macro strftime_now(format) %}" + _DATE + "{% endmacro %}"
_MARK = "\N{SECTION SIGN}words of the user\N{SECTION SIGN}"


@dataclass(frozen=True)
class LanguageModel:
    """A frozen causal language model; create one with `load_language_model`.

    Attributes:
        name: of the package, the repository or the folder.
        model: a `PreTrainedModel` of transformers in evaluation mode, without gradients.
        tokenizer: its fast tokenizer.
        device: where token ids go.
        dtype: of the weights, float32 or float16.
        chat_template: whether `frame` is that of the model's chat template.
        context_limit: the most tokens of a text, positions of the model.
        description: what identifies the model, for a manifest.
    """

    name: str
    model: Any
    tokenizer: Any
    device: torch.device
    dtype: torch.dtype
    chat_template: bool
    context_limit: int
    description: Mapping[str, Any]

    def encode(self, text: str) -> list[int]:
        """Token ids of a text, without special tokens of the tokenizer's own making."""
        ids: list[int] = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """The text of token ids, special tokens left out."""
        text: str = self.tokenizer.decode(
            list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
        return text

    @property
    def start(self) -> str:
        """The start token that the model expects before a plain text; empty where it has none."""
        token = self.tokenizer.bos_token
        first = self.tokenizer("a")["input_ids"][:1]
        return str(token) if token and first == [self.tokenizer.bos_token_id] else ""

    @property
    def end_ids(self) -> tuple[int, ...]:
        """Ids of the tokens that end an answer, sorted."""
        found = {self.tokenizer.eos_token_id}
        for holder in (self.model.generation_config, self.model.config):
            value = getattr(holder, "eos_token_id", None)
            found |= set(value) if isinstance(value, list | tuple) else {value}
        return tuple(sorted(one for one in found if one is not None))

    def frame(self) -> tuple[str, str]:
        """The text before and after the words of a user, up to the beginning of the answer.

        Encode `before + words + after` with `encode`: it has exactly one start token where the
        model expects one (a chat template may or may not bring it). Without the chat template
        `before` is that token alone and `after` is empty.

        Raises:
            InputError: the tokenizer has no chat template, or one that changes what a user says.
        """
        if not self.chat_template:
            return self.start, ""
        text = self.chat(_MARK)
        if text.count(_MARK) != 1:
            raise InputError(
                f"language model: the chat template of {self.name} does not repeat what a user says"
                " as it is; set chat_template to false"
            )
        before, after = text.split(_MARK)
        return before, after

    def chat(self, words: str) -> str:
        """What the chat template makes of the words of a user, with exactly one start token.

        Raises:
            InputError: the tokenizer has no chat template, or it fails.
        """
        from jinja2 import TemplateError

        if not self.tokenizer.chat_template:
            raise InputError(
                f"language model: the tokenizer of {self.name} has no chat template; set"
                " chat_template to false"
            )
        try:
            text: str = self.tokenizer.apply_chat_template(
                [{"role": "user", "content": words}],
                tokenize=False,
                add_generation_prompt=True,
                chat_template=_TODAY + self.tokenizer.chat_template,
                date_string=_DATE,
            )
        except (TemplateError, TypeError, ValueError) as error:
            raise InputError(
                f"language model: the chat template of {self.name} fails ({error}); set"
                " chat_template to false"
            ) from error
        start = str(self.tokenizer.bos_token or "")
        if not start:
            return text
        body = text
        while body.startswith(start):
            body = body.removeprefix(start)
        brought = body != text
        return start + body if brought or self.start else text
