"""Files of questions with their paragraphs: SQuAD and HotpotQA, as published."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from whencount.errors import InputError
from whencount.files import open_binary
from whencount.ruler.model import Question, Questions


def read_squad(path: str | Path) -> Questions:
    """Read the questions of SQuAD 1.1 or 2.0 (Rajpurkar et al. 2016, 2018) that have an answer.

    A question needs its paragraph; the other paragraphs of its article are related. An answer given
    several times counts once.

    Raises:
        InputError: the file is missing or malformed; names the place inside it.
    """
    file = _File(Path(path), "SQuAD")
    places: dict[str, int] = {}
    found: list[Question] = []
    for article, where in file.items(file.take(file.content, "data", list, ""), "data"):
        paragraphs = []
        for paragraph, inner in file.items(
            file.take(article, "paragraphs", list, where), f"{where}.paragraphs"
        ):
            text = file.take(paragraph, "context", str, inner)
            paragraphs.append((places.setdefault(text, len(places)), paragraph, inner))
        related = tuple(dict.fromkeys(place for place, _, _ in paragraphs))
        for place, paragraph, inner in paragraphs:
            for entry, at in file.items(file.take(paragraph, "qas", list, inner), f"{inner}.qas"):
                answers = [
                    file.take(answer, "text", str, spot)
                    for answer, spot in file.items(
                        file.take(entry, "answers", list, at), f"{at}.answers"
                    )
                ]
                # A blank one would be found in whatever a model says.
                answers = [answer for answer in answers if answer.strip()]
                if entry.get("is_impossible") or not answers:
                    continue
                found.append(
                    Question(
                        id=file.take(entry, "id", str, at),
                        text=file.take(entry, "question", str, at).strip(),
                        answers=tuple(dict.fromkeys(answers)),
                        needed=(place,),
                        related=tuple(other for other in related if other != place),
                    )
                )
    return file.finished(places, found)


def read_hotpotqa(path: str | Path) -> Questions:
    """Read the questions of HotpotQA (Yang et al. 2018) in the distractor setting.

    A question needs the paragraphs of its supporting facts; the other paragraphs given with it are
    related.

    Raises:
        InputError: the file is missing or malformed; names the place inside it.
    """
    file = _File(Path(path), "HotpotQA")
    places: dict[str, int] = {}
    found: list[Question] = []
    if not isinstance(file.content, list):
        raise file.fault("the top level", "it is no list of questions")
    for entry, where in file.items(file.content, ""):
        given: dict[str, int] = {}
        for number, pair in enumerate(file.take(entry, "context", list, where)):
            spot = f"{where}.context[{number}]"
            if not (
                isinstance(pair, list)
                and len(pair) == 2
                and isinstance(pair[0], str)
                and isinstance(pair[1], list)
                and all(isinstance(sentence, str) for sentence in pair[1])
            ):
                raise file.fault(spot, "it is no pair of a title and a list of sentences")
            text = f"{pair[0]}\n{''.join(pair[1])}"
            given[pair[0]] = places.setdefault(text, len(places))
        needed: dict[int, None] = {}
        for number, fact in enumerate(file.take(entry, "supporting_facts", list, where)):
            if not (
                isinstance(fact, list) and fact and isinstance(fact[0], str) and fact[0] in given
            ):
                raise file.fault(
                    f"{where}.supporting_facts[{number}]", "it names no paragraph of the question"
                )
            needed[given[fact[0]]] = None
        if not needed:
            raise file.fault(f"{where}.supporting_facts", "it is empty")
        answer = file.take(entry, "answer", str, where)
        if not answer.strip():
            raise file.fault(f"{where}.answer", "it is blank")
        found.append(
            Question(
                id=file.take(entry, "_id", str, where),
                text=file.take(entry, "question", str, where).strip(),
                answers=(answer,),
                needed=tuple(needed),
                related=tuple(
                    place for place in dict.fromkeys(given.values()) if place not in needed
                ),
            )
        )
    return file.finished(places, found)


READERS: dict[str, Callable[[str | Path], Questions]] = {"qa_1": read_squad, "qa_2": read_hotpotqa}
"""Who reads the questions of a task."""


def read_questions(task: str, path: str | Path) -> Questions:
    """Read the file of questions of a task, `qa_1` or `qa_2`.

    Raises:
        InputError: the file is missing or malformed, or the task has no questions.
    """
    if task not in READERS:
        raise InputError(f"{task} asks no questions of a file; {', '.join(READERS)} do")
    return READERS[task](path)


class _File:
    """A file of JSON whose parts are taken by name, so that a fault can say where it is."""

    def __init__(self, path: Path, kind: str) -> None:
        self.path, self.kind = path, kind
        try:
            with open_binary(path) as stream:
                self.content: Any = orjson.loads(stream.read())
        except (orjson.JSONDecodeError, EOFError, OSError) as error:
            raise InputError(
                f"{path} is no JSON ({error}); get {kind} anew, or name another file"
            ) from error

    def fault(self, where: str, what: str) -> InputError:
        return InputError(
            f"{self.path}, {where or 'the top level'}: {what}; it is not the published form of"
            f" {self.kind}: get the file anew"
        )

    def take(self, value: Any, key: str, kind: type, where: str) -> Any:
        if not isinstance(value, Mapping) or not isinstance(value.get(key), kind):
            raise self.fault(where, f"there is no {key!r} of type {kind.__name__}")
        return value[key]

    def items(self, values: list[Any], where: str) -> Iterator[tuple[Any, str]]:
        for number, value in enumerate(values):
            yield value, f"{where}[{number}]"

    def finished(self, places: Mapping[str, int], found: list[Question]) -> Questions:
        if not found:
            raise InputError(f"{self.path} has no question with an answer; get {self.kind} anew")
        return Questions(self.path.name, tuple(places), tuple(found))
