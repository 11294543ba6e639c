"""Pairs of a query and a passage out of passages alone: the inverse cloze task.

A sentence of a passage is its query, the rest the passage that should be found (Lee et al., 2019,
arXiv:1906.00300). No query and no judgement of a collection is used.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

_END = re.compile(r"(?<=[.!?;:])\s+")
_KEPT = 0.1


@dataclass(frozen=True)
class Pair:
    """A query and the passage that it is to find."""

    query: str
    passage: str


def cloze_pairs(
    passages: Iterable[tuple[str, str]], seed: int, *, shortest: int = 4, longest: int = 24
) -> Iterator[Pair]:
    """One pair for every passage that has a sentence and something else.

    Args:
        passages: (id, text) pairs.
        seed: of the choice of sentences.
        shortest, longest: words of a query; a longer sentence is cut to its beginning.

    In one case of ten the sentence stays in its passage, so that equal words are seen to match.
    """
    random = np.random.default_rng([seed, 7])
    for _, text in passages:
        sentences = [one for one in _END.split(text) if one.strip()]
        usable = [at for at, one in enumerate(sentences) if len(one.split()) >= shortest]
        chosen, keep = random.random(), random.random() < _KEPT
        if len(sentences) < 2 or not usable:
            continue
        at = usable[int(chosen * len(usable))]
        rest = text if keep else " ".join(sentences[:at] + sentences[at + 1 :])
        yield Pair(" ".join(sentences[at].split()[:longest]), rest)
