"""Variable tracking: a chain of assignments scattered in noise."""

from __future__ import annotations

import string
from dataclasses import dataclass
from itertools import pairwise
from random import Random

from whencount.ruler.model import UNBOUNDED, Draft, Draw
from whencount.ruler.needles import NOISE

_EXAMPLE_LINES = 10
"""Lines of noise of the worked example: about 400 tokens, below the 500 of the paper's."""


@dataclass(frozen=True)
class Variables:
    """One chain `VAR A = 12345`, `VAR B = VAR A`, ... in its order, after a worked example.

    Attributes:
        hops: assignments after the first; one variable more is asked for.
    """

    hops: int = 4

    def sizes(self, draw: Draw) -> range:
        """From as many lines of noise as there are assignments."""
        return range(self.hops + 1, UNBOUNDED)

    def build(self, draw: Draw, size: int) -> Draft:
        """A chain in `size` lines of noise."""
        example = self._part(draw.stream("example"), _EXAMPLE_LINES, letters=3)
        part = self._part(draw.stream("chain"), size, letters=5)
        worked = f"{example.context}{example.question}{example.answer_prefix}"
        return Draft(
            context=f"{worked} {' '.join(example.references)}\n\n{part.context}",
            question=part.question,
            answer_prefix=part.answer_prefix,
            references=part.references,
        )

    def _part(self, stream: Random, size: int, letters: int) -> Draft:
        value = stream.randrange(10_000, 100_000)
        names: list[str] = []
        while len(names) <= self.hops:
            name = "".join(stream.choices(string.ascii_uppercase, k=letters))
            if name not in names:
                names.append(name)
        chain = [f"VAR {names[0]} = {value}"]
        chain += [f"VAR {b} = VAR {a}" for a, b in pairwise(names)]
        lines = [NOISE] * size
        depths = sorted((stream.random() for _ in chain), reverse=True)
        for depth, assignment in zip(depths, reversed(chain), strict=True):
            lines.insert(int(depth * size), assignment)
        text = "\n".join(lines)
        return Draft(
            context="Memorize and track the chain(s) of variable assignment hidden in the"
            f" following text.\n\n{text}\n",
            question=f"Question: Find all variables that are assigned the value {value} in the"
            " text above.",
            # The misspelling is the published one.
            answer_prefix=" Answer: According to the chain(s) of variable assignment in the text"
            f" above, {len(names)} variables are assgined the value {value}, they are:",
            references=tuple(names),
        )
