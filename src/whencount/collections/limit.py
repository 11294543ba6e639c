"""`limit`: people who like things, every pair of a small set of people being some query's answer.

The construction of LIMIT (Weller et al., 2025, arXiv:2508.21038), made anew from a seed: with n
relevant people and two answers per query all n (n - 1) / 2 pairs are asked for, so that a single
vector of few dimensions cannot hold all answers. Names and likes are our own.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np

from whencount.collections.limit_words import FAMILY_NAMES, FIRST_NAMES, LIKES, MODIFIERS
from whencount.collections.model import Collection, Document, Options, Qrels, Query
from whencount.errors import InputError

_PER_QUERY = 2


def open_limit(name: str, options: Mapping[str, Any]) -> Collection:
    """Generate the collection.

    A document is `NAME likes A, B and more.`, a query `Who likes A?`. Options: `relevant_documents`
    (default 32), the people whose pairs are asked for: n (n - 1) / 2 queries; `documents`
    (default 2,000), with the distractors, who like only what nobody asks for; `likes` (default
    50), how many things each person likes, raised to n - 1 where that is more; `other_likes`
    (default 380), the things nobody asks for; `seed` (default 0).

    Raises:
        InputError: an option is wrong, or asks for more names or likes than there are.
    """
    taken = Options(name, options)
    relevant = taken.positive("relevant_documents", 32)
    total = taken.positive("documents", 2000)
    likes = max(taken.positive("likes", 50), relevant - 1)
    others = taken.positive("other_likes", 380)
    seed = taken.take("seed", int, 0)
    taken.finish()
    pairs = list(combinations(range(relevant), _PER_QUERY))
    things = LIKES + two_words()
    _check(name, relevant, total, likes, others=others, queries=len(pairs), things=len(things))
    random = np.random.default_rng(seed)
    people = _people(random, total)
    # Single words first; two words only where there are too few.
    needed = len(pairs) + others
    chosen = random.permutation(max(needed, len(LIKES)))[:needed]
    asked = [things[number] for number in chosen[: len(pairs)]]
    unasked = np.array([things[number] for number in chosen[len(pairs) :]], dtype=object)
    liked: list[list[str]] = [[] for _ in range(total)]
    for (one, other), thing in zip(pairs, asked, strict=True):
        liked[one].append(thing)
        liked[other].append(thing)
    documents = []
    for person, own in zip(people, liked, strict=True):
        more = random.choice(unasked, size=min(likes - len(own), others), replace=False)
        everything = [*own, *more]
        order = random.permutation(len(everything))
        text = ", ".join(everything[number] for number in order)
        documents.append(Document(person.replace(" ", "_"), f"{person} likes {text}."))
    queries = [Query(f"query_{n}", f"Who likes {thing}?") for n, thing in enumerate(asked)]
    rows = [
        (query.id, documents[person].id, 1)
        for query, pair in zip(queries, pairs, strict=True)
        for person in pair
    ]
    # The people asked about stand anywhere in the collection.
    shuffled = [documents[number] for number in random.permutation(total)]
    query_order = random.permutation(len(queries))
    return Collection(
        name=name,
        documents=lambda: iter(shuffled),
        queries=[queries[number] for number in query_order],
        qrels=Qrels.from_rows(rows),
        description=f"{total:,} people and what they like; every pair of {relevant} is an answer",
        language="en",
        licence="Apache-2.0",
        document_total=total,
    )


def two_words() -> list[str]:
    """All pairs of a modifier and a like, every modifier and every like early and evenly."""
    return [
        f"{MODIFIERS[(number + turn) % len(MODIFIERS)]} {like}"
        for turn in range(len(MODIFIERS))
        for number, like in enumerate(LIKES)
    ]


def _people(random: np.random.Generator, total: int) -> list[str]:
    numbers = random.choice(len(FIRST_NAMES) * len(FAMILY_NAMES), size=total, replace=False)
    return [
        f"{FIRST_NAMES[number % len(FIRST_NAMES)]} {FAMILY_NAMES[number // len(FIRST_NAMES)]}"
        for number in numbers.tolist()
    ]


def _check(
    name: str, relevant: int, total: int, likes: int, *, others: int, queries: int, things: int
) -> None:
    names = len(FIRST_NAMES) * len(FAMILY_NAMES)
    if relevant < _PER_QUERY:
        raise InputError(
            f"collection {name!r}: option 'relevant_documents' is {relevant}; pairs need at least"
            f" {_PER_QUERY}"
        )
    if not relevant <= total <= names:
        raise InputError(
            f"collection {name!r}: option 'documents' is {total}; it must lie between"
            f" 'relevant_documents' ({relevant}) and {names:,}, the names there are"
        )
    if queries + others > things:
        raise InputError(
            f"collection {name!r}: {queries} queries and {others} other likes need"
            f" {queries + others:,} things, but there are {things:,}; lower"
            " 'relevant_documents' or 'other_likes'"
        )
    if others < likes:
        raise InputError(
            f"collection {name!r}: option 'other_likes' is {others}; it must be at least"
            f" {likes}, what a distractor likes"
        )
