"""Texts, questions and a plain tokenizer for tests of RULER."""

from __future__ import annotations

import re
from pathlib import Path

import orjson

from whencount.ruler import Texts, read_hotpotqa, read_squad

_PIECES = re.compile(r"\w{1,4}|\s?[^\w\s]|\n")

PROSE = tuple(
    f"The {n}th keeper of the lighthouse wrote down that the wind came from {side}."
    for n, side in enumerate(["the north", "the open sea", "nowhere"] * 40, 4)
)


def encode(text: str) -> list[int]:
    """Pieces of at most four letters; the ids mean nothing, only their number counts."""
    return [hash(piece) for piece in _PIECES.findall(text)]


def squad(articles: int = 6, paragraphs: int = 5) -> dict[str, object]:
    """A file as SQuAD 2.0 publishes it: a question of each paragraph, and one without an answer."""
    return {
        "version": "v2.0",
        "data": [
            {
                "title": f"Town {a}",
                "paragraphs": [
                    {
                        "context": f"In town {a} the mill of street {p} grinds {a * 10 + p} tons.",
                        "qas": [
                            {
                                "id": f"q{a}-{p}",
                                "question": f"How much does the mill of street {p} in {a} grind?",
                                "is_impossible": False,
                                "answers": [
                                    {"text": f"{a * 10 + p} tons", "answer_start": 1},
                                    {"text": f"{a * 10 + p} tons", "answer_start": 1},
                                ],
                            },
                            {
                                "id": f"n{a}-{p}",
                                "question": "Who built it?",
                                "is_impossible": True,
                                "answers": [],
                            },
                        ],
                    }
                    for p in range(paragraphs)
                ],
            }
            for a in range(articles)
        ],
    }


def hotpotqa(questions: int = 8) -> list[dict[str, object]]:
    """A file as HotpotQA publishes it: ten paragraphs a question, two of them needed."""
    return [
        {
            "_id": f"h{q}",
            "question": f"Where was the founder of company {q} born?",
            "answer": f"Port {q}",
            "supporting_facts": [[f"Company {q}", 0], [f"Founder {q}", 1]],
            "context": [
                [f"Company {q}", [f"Company {q} was founded by founder {q}.", " It sells rope."]],
                *[[f"Other {q} {o}", [f"Thing {o} of {q} is another thing."]] for o in range(8)],
                [f"Founder {q}", ["A sailor.", f" Founder {q} was born in Port {q}."]],
            ],
        }
        for q in range(questions)
    ]


def question_files(folder: Path) -> dict[str, Path]:
    """Both files, written into a folder."""
    files = {"qa_1": folder / "squad.json", "qa_2": folder / "hotpot.json"}
    files["qa_1"].write_bytes(orjson.dumps(squad()))
    files["qa_2"].write_bytes(orjson.dumps(hotpotqa()))
    return files


def texts(folder: Path) -> Texts:
    """Prose and both kinds of questions."""
    files = question_files(folder)
    return Texts(PROSE, {"qa_1": read_squad(files["qa_1"]), "qa_2": read_hotpotqa(files["qa_2"])})
