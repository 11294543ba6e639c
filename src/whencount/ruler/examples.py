"""Examples of a task at a context length, each made when it is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

from whencount.collections.selection import priority
from whencount.errors import InputError
from whencount.ruler.lengths import largest_fitting
from whencount.ruler.model import Draft, Draw, Encode, Example, Frame, Texts
from whencount.ruler.registry import task_called


@dataclass(frozen=True)
class Examples(Sequence[Example]):
    """The examples of a task; each depends on the seed and its number alone.

    Attributes:
        task: name of the task.
        context: tokens of every example at most, those generated included.
        number: how many examples there are.
        encode: text to token ids, without special tokens of the tokenizer's own making.
        texts: prose and questions.
        frame: what the chat template puts around the words of the user.
        seed: of all examples.
    """

    task: str
    context: int
    number: int
    encode: Encode
    texts: Texts
    frame: Frame
    seed: int

    def __len__(self) -> int:
        return self.number

    @overload
    def __getitem__(self, index: int) -> Example: ...
    @overload
    def __getitem__(self, index: slice) -> list[Example]: ...

    def __getitem__(self, index: int | slice) -> Example | list[Example]:
        """Make an example.

        Raises:
            InputError: the context is too small for the task, or its data is absent.
        """
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(self.number))]
        place = range(self.number)[index]
        task = task_called(self.task)
        identifier = f"{self.task}-{self.context}-{place:04d}"
        draw = Draw(
            number=place,
            seed=priority(self.seed, identifier),
            study_seed=self.seed,
            context=self.context,
            texts=self.texts,
        )

        def tokens(draft: Draft) -> int:
            parts = self._parts(draft)
            return sum(len(self.encode(part)) for part in parts) + task.generated

        sizes = task.family.sizes(draw)
        size = largest_fitting(
            lambda size: tokens(task.family.build(draw, size)), sizes, self.context
        )
        if size is None:
            needed = tokens(task.family.build(draw, sizes[0]))
            raise InputError(
                f"{identifier}: the least example of this task takes {needed} tokens of the model's"
                f" tokenizer, and the context is {self.context}; take a larger one, or leave the"
                " task out"
            )
        draft = task.family.build(draw, size)
        context, question = self._parts(draft)
        return Example(
            id=identifier,
            task=self.task,
            context=context,
            question=question,
            references=draft.references,
            maximum_generated=task.generated,
            tokens=tokens(draft),
        )

    def _parts(self, draft: Draft) -> tuple[str, str]:
        return (
            self.frame.before + draft.context,
            draft.question + self.frame.after + draft.answer_prefix,
        )


def open_examples(
    task: str,
    *,
    context: int,
    number: int,
    encode: Encode,
    texts: Texts,
    frame: Frame | None = None,
    seed: int = 0,
) -> Examples:
    """The examples of a task at a context length.

    An example is made when it is asked for, from the seed and its number: the hundredth is the same
    whether or not the others were made. Unlike the published generator, which draws places and
    order from one fixed seed, every example has its own.

    Args:
        task: one of `TASKS`.
        context: tokens of an example at most, those generated included.
        number: how many examples.
        encode: text to token ids; without special tokens of its own making (the frame has them).
        texts: prose and questions.
        frame: what a chat template puts around the words of the user; nothing where left out.
        seed: of every random draw.

    Raises:
        InputError: there is no such task.
    """
    task_called(task)
    return Examples(task, context, number, encode, texts, frame or Frame(), seed)
