"""Aggregation: which words are the most common, in a list and in a coded text."""

from __future__ import annotations

import math
import string
from dataclasses import dataclass
from random import Random

from whencount.ruler.model import UNBOUNDED, Draft, Draw
from whencount.ruler.words import all_words

_LONG = 4096
"""Below this context words are repeated less often, so that enough different ones fit."""

_QUESTION = "Question: What are the 10 most common words in the above list?"
_ANSWER = " Answer: The top 10 words that appear most often in the list are:"


@dataclass(frozen=True)
class CommonWords:
    """A numbered list in which ten words are more common than all others, after a worked example.

    The common ones stand 30 times in it and the others 3 times; 6 times and once where the context
    is below 4,096 tokens. The worked example has 30 other words, 10 times and 3 times (10 other
    words, 3 times and once).
    """

    common: int = 10

    def sizes(self, draw: Draw) -> range:
        """From one word that is not common to all words there are."""
        return range(1, len(all_words()) - self.common + 1)

    def build(self, draw: Draw, size: int) -> Draft:
        """A list with `size` words that are not common."""
        long = draw.context >= _LONG
        shown, named = self._list(draw.stream("example"), *((30, 10, 3) if long else (10, 3, 1)))
        listed, common = self._list(draw.stream("list"), size, *((30, 3) if long else (6, 1)))
        worked = f"{shown}{_QUESTION}{_ANSWER} {_numbered(named)}\n"
        return Draft(f"{worked}{listed}", _QUESTION, _ANSWER, tuple(common))

    def _list(self, stream: Random, others: int, often: int, seldom: int) -> tuple[str, list[str]]:
        words = list(all_words())
        stream.shuffle(words)
        common = words[: self.common]
        listed = common * often + words[self.common : self.common + others] * seldom
        stream.shuffle(listed)
        text = (
            "Below is a numbered list of words. In these words, some appear more often than others."
            f" Memorize the ones that appear most often.\n{_numbered(listed)}\n"
        )
        return text, common


@dataclass(frozen=True)
class CodedWords:
    """Words of random letters whose counts follow a zeta distribution of exponent 2.

    The most frequent one is dots that nobody asks for.

    Attributes:
        letters: of a word.
        asked: how many of the most frequent are asked for.
    """

    letters: int = 6
    asked: int = 3

    def sizes(self, draw: Draw) -> range:
        """From so many words that the counts of the first five ranks differ, rounded down too."""
        return range(80, UNBOUNDED)

    def build(self, draw: Draw, size: int) -> Draft:
        """A text of `size` words in expectation; what rounds to no occurrence is left out."""
        stream = draw.stream("words")
        vocabulary = ["..."]
        known = set(vocabulary)
        # The paper's: one word for every 50 tokens of context.
        while len(vocabulary) < max(draw.context // 50, self.asked + 1):
            word = "".join(stream.choices(string.ascii_lowercase, k=self.letters))
            if word not in known:
                known.add(word)
                vocabulary.append(word)
        # zeta(2) = pi^2 / 6
        counts = [int(size / rank**2 / (math.pi**2 / 6)) for rank in range(1, len(vocabulary) + 1)]
        text = [word for word, count in zip(vocabulary, counts, strict=True) for _ in range(count)]
        draw.stream("order").shuffle(text)
        return Draft(
            context="Read the following coded text and track the frequency of each coded word. Find"
            f" the three most frequently appeared coded words. {' '.join(text)}\n",
            question="Question: Do not provide any explanation. Please ignore the dots '....'. What"
            " are the three most frequently appeared words in the above coded text?",
            answer_prefix=" Answer: According to the coded text above, the three most frequently"
            " appeared words are:",
            references=tuple(vocabulary[1 : 1 + self.asked]),
        )


def _numbered(words: list[str]) -> str:
    return " ".join(f"{number}. {word}" for number, word in enumerate(words, 1))
