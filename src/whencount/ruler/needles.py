"""Needles in a haystack: eight tasks that ask for values once said of a key."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Literal

from whencount.errors import InputError
from whencount.ruler.model import UNBOUNDED, Draft, Draw
from whencount.ruler.words import word_list

NOISE = "The grass is green. The sky is blue. The sun is yellow. Here we go. There and back again."
"""The noise of the paper; a line of the haystack."""

_NEEDLE = "One of the special magic {kind} for {key} is: {value}."
_DIGITS = 7
_DEPTHS = 40
"""Needles stand in prose at some of this many evenly spaced depths, 0 and 100 % among them."""


@dataclass(frozen=True)
class Needles:
    """Key-value sentences hidden in noise, in prose, or among others of their kind.

    Attributes:
        haystack: `noise` repeats a line, `prose` takes sentences of a text from a place drawn for
            every example on, `needles` is key-value sentences that nobody asks for.
        keys: `words` (adjective-noun) or `uuids`.
        values: `numbers` (seven digits) or `uuids`.
        number_of_keys: needles of different keys.
        values_per_key: needles of the same key.
        queried: how many of the keys are asked for.
    """

    haystack: Literal["noise", "prose", "needles"]
    keys: Literal["words", "uuids"]
    values: Literal["numbers", "uuids"]
    number_of_keys: int = 1
    values_per_key: int = 1
    queried: int = 1

    def sizes(self, draw: Draw) -> range:
        """From as many sentences of haystack as there are needles."""
        return range(self.number_of_keys * self.values_per_key, UNBOUNDED)

    def build(self, draw: Draw, size: int) -> Draft:
        """A haystack of `size` sentences around the needles.

        Raises:
            InputError: prose is wanted and there is none.
        """
        # All keys come from one stream, so that no sentence of the haystack repeats one.
        keys = _distinct(self.keys, draw.stream("keys"))
        values = _distinct(self.values, draw.stream("values"))
        asked = [
            (next(keys), [next(values) for _ in range(self.values_per_key)])
            for _ in range(self.number_of_keys)
        ]
        needles = [self._needle(key, value) for key, said in asked for value in said]
        draw.stream("order").shuffle(needles)
        if self.haystack == "prose":
            text = " ".join(_among_prose(draw, _prose(draw, size), needles))
        else:
            lines = [NOISE] * size
            if self.haystack == "needles":
                lines = [self._needle(next(keys), next(values)) for _ in range(size)]
            text = "\n".join(_at_random(draw, lines, needles))
        queried = draw.stream("queries").sample(asked, self.queried)
        return self._prompt(text, queried)

    def _needle(self, key: str, value: str) -> str:
        return _NEEDLE.format(kind=self.values, key=key, value=value)

    def _prompt(self, text: str, queried: list[tuple[str, list[str]]]) -> Draft:
        names = [key for key, _ in queried]
        query = ", ".join(names[:-1]) + ", and " + names[-1] if len(names) > 1 else names[0]
        references = tuple(value for _, said in queried for value in said)
        if len(references) == 1:
            kind, some, are, what = self.values[:-1], "A special magic", "is", "What is the"
        else:
            kind, some, are, what = self.values, "Some special magic", "are", "What are all the"
        return Draft(
            context=f"{some} {kind} {are} hidden within the following text. Make sure to memorize"
            f" it. I will quiz you about the {kind} afterwards.\n{text}\n",
            question=f"{what} special magic {kind} for {query} mentioned in the provided text?",
            answer_prefix=f" The special magic {kind} for {query} mentioned in the provided text"
            f" {are}",
            references=references,
        )


def _distinct(kind: str, stream: Random) -> Iterator[str]:
    seen: set[str] = set()
    while True:
        drawn = _drawn(kind, stream)
        if drawn not in seen:
            seen.add(drawn)
            yield drawn


def _drawn(kind: str, stream: Random) -> str:
    if kind == "numbers":
        return str(stream.randrange(10 ** (_DIGITS - 1), 10**_DIGITS))
    if kind == "uuids":
        return str(uuid.UUID(int=stream.getrandbits(128), version=4))
    return f"{stream.choice(word_list('adjective'))}-{stream.choice(word_list('noun'))}"


def _prose(draw: Draw, size: int) -> list[str]:
    prose = draw.texts.prose
    if not prose:
        raise InputError(
            "the haystack has no prose; name a text that has some at pages.haystack of the"
            " configuration"
        )
    start = draw.stream("start").randrange(len(prose))
    # A text that is too short begins anew.
    return [prose[(start + place) % len(prose)] for place in range(size)]


def _among_prose(draw: Draw, sentences: list[str], needles: list[str]) -> Iterator[str]:
    depths = sorted(draw.stream("depths").sample(range(_DEPTHS), len(needles)))
    last = 0
    for depth, needle in zip(depths, needles, strict=True):
        place = len(sentences) * round(100 * depth / (_DEPTHS - 1)) // 100
        yield from sentences[last:place]
        yield needle
        last = place
    yield from sentences[last:]


def _at_random(draw: Draw, lines: list[str], needles: list[str]) -> Iterator[str]:
    # Shares of the haystack rather than places, so that a needle keeps its depth at every size.
    stream = draw.stream("depths")
    places = sorted(int(stream.random() * len(lines)) for _ in needles)
    last = 0
    for place, needle in zip(places, needles, strict=True):
        yield from lines[last:place]
        yield needle
        last = place
    yield from lines[last:]
