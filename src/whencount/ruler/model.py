"""What an example of RULER is, and what the tasks are made from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Protocol

Encode = Callable[[str], Sequence[int]]
"""Text to token ids: of a tokenizer, without special tokens of its own making."""


@dataclass(frozen=True)
class Example:
    """A prompt in two parts, and what a right answer holds.

    Attributes:
        id: task, context and number; the same in every run of one seed.
        task: its name, as in `TASKS`.
        context: the first part of the prompt, prefilled densely: what stands before the user's
            words, the instruction, worked examples, the haystack. The parts are encoded one by one.
        question: the second part, decoded token by token: the question and the beginning of the
            answer that the model goes on from.
        references: what shall be found in the answer.
        maximum_generated: tokens that the model may generate.
        tokens: of both parts, plus `maximum_generated`: never above the context asked for.
    """

    id: str
    task: str
    context: str
    question: str
    references: tuple[str, ...]
    maximum_generated: int
    tokens: int


@dataclass(frozen=True)
class Frame:
    """The text of a model's chat template around the words of the user.

    Attributes:
        before: what stands before them, the start token included where the model wants one.
        after: what stands between them and the answer.
    """

    before: str = ""
    after: str = ""


@dataclass(frozen=True)
class Question:
    """A question with the paragraphs that belong to it.

    Attributes:
        id: as in the file.
        text: the question.
        answers: any of them is right.
        needed: positions, in the paragraphs of its `Questions`, of those that hold the answer.
        related: positions of those taken next, of the same article say.
    """

    id: str
    text: str
    answers: tuple[str, ...]
    needed: tuple[int, ...]
    related: tuple[int, ...]


@dataclass(frozen=True)
class Questions:
    """All questions of a file and all its paragraphs, from which distractors are drawn.

    Attributes:
        name: of the file, for messages.
        paragraphs: distinct, a title on the first line where they have one.
        questions: in the order of the file.
    """

    name: str
    paragraphs: tuple[str, ...]
    questions: tuple[Question, ...]


@dataclass(frozen=True)
class Texts:
    """What tasks are made from beyond random words.

    Attributes:
        prose: sentences of the haystack, in reading order; empty where there are none.
        questions: by task, `qa_1` and `qa_2`.
    """

    prose: tuple[str, ...] = ()
    questions: Mapping[str, Questions] = field(default_factory=dict)


@dataclass(frozen=True)
class Draft:
    """A prompt of some size whose length nobody has measured yet.

    Attributes:
        context: the instruction, worked examples and the haystack.
        question: what the user asks at the end.
        answer_prefix: how the answer begins.
        references: what shall be found in the answer.
    """

    context: str
    question: str
    answer_prefix: str
    references: tuple[str, ...]


@dataclass(frozen=True)
class Draw:
    """What a draft is made from, apart from its size.

    Attributes:
        number: of the example, from 0.
        seed: of the example; every stream of random numbers is named after it.
        study_seed: of all examples, for what they share.
        context: tokens of the whole example.
        texts: prose and questions.
    """

    number: int
    seed: int
    study_seed: int
    context: int
    texts: Texts

    def stream(self, purpose: str) -> Random:
        """Random numbers for one purpose, the same at every size and call."""
        return Random(f"{self.seed} {purpose}")


UNBOUNDED = 10**9
"""A size beyond any context: of what is generated without end."""


class Family(Protocol):
    """Makes the drafts of a task."""

    def sizes(self, draw: Draw) -> range:
        """The sizes allowed: the least one holds what the question is about."""

    def build(self, draw: Draw, size: int) -> Draft:
        """The draft of a size; a greater one has more haystack and all else alike."""
