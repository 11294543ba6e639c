"""Questions over documents, those that hold the answer among distractors."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from whencount.errors import InputError
from whencount.ruler.model import Draft, Draw, Question, Questions

_RULE = (
    "Answer the question based on the given documents. Only give me the answer and do not output"
    " any other words."
)
_LEAST_TOKENS = 10
"""A paragraph is taken to have at least so many, to bound how many distractors are drawn."""


@dataclass(frozen=True)
class Documents:
    """A question of a file, the paragraphs that it needs, then related ones, then any others.

    Attributes:
        task: whose questions they are, `qa_1` (SQuAD) or `qa_2` (HotpotQA).
    """

    task: str

    def sizes(self, draw: Draw) -> range:
        """From the paragraphs that the question needs to all of the file."""
        return range(len(self._question(draw).needed), len(self._questions(draw).paragraphs) + 1)

    def build(self, draw: Draw, size: int) -> Draft:
        """A question over `size` paragraphs in an order that is drawn.

        Raises:
            InputError: there are no questions of the task.
        """
        questions, question = self._questions(draw), self._question(draw)
        related = list(question.related)
        draw.stream("related").shuffle(related)
        chosen = [*question.needed, *related]
        if len(chosen) < size:
            chosen += _others(questions, set(chosen), draw, size)
        chosen = chosen[:size]
        draw.stream("order").shuffle(chosen)
        documents = "\n\n".join(
            f"Document {number}:\n{questions.paragraphs[place]}"
            for number, place in enumerate(chosen, 1)
        )
        return Draft(
            context=f"{_RULE}\n\nThe following are given documents.\n\n{documents}\n\n",
            question=f"{_RULE}\n\nQuestion: {question.text}",
            answer_prefix=" Answer:",
            references=question.answers,
        )

    def _questions(self, draw: Draw) -> Questions:
        if self.task not in draw.texts.questions:
            raise InputError(
                f"{self.task} has no questions; name a file at pages.questions.{self.task}.path of"
                " the configuration"
            )
        return draw.texts.questions[self.task]

    def _question(self, draw: Draw) -> Question:
        questions = self._questions(draw).questions
        order = list(range(len(questions)))
        # The same order for all examples, so that none is asked twice before all have been.
        Random(f"{self.task} {draw.study_seed}").shuffle(order)
        return questions[order[draw.number % len(order)]]


def _others(questions: Questions, taken: set[int], draw: Draw, size: int) -> list[int]:
    total = len(questions.paragraphs)
    wanted = min(total, max(size, draw.context // _LEAST_TOKENS) + len(taken))
    drawn = draw.stream("others").sample(range(total), wanted)
    return [place for place in drawn if place not in taken]
