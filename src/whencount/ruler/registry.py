"""The 13 tasks by name, with the parameters of the paper (arXiv:2404.06654, appendix B)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from whencount.collections.model import nearest
from whencount.collections.packages import installed
from whencount.errors import InputError
from whencount.ruler.documents import Documents
from whencount.ruler.model import Family
from whencount.ruler.needles import Needles
from whencount.ruler.variables import Variables
from whencount.ruler.word_counts import CodedWords, CommonWords
from whencount.ruler.words import PACKAGE as WORD_LIST

Data = Literal["words", "prose", "questions"]


@dataclass(frozen=True)
class Task:
    """A task of RULER.

    Attributes:
        family: makes its drafts.
        generated: tokens that the model may generate.
        metric: `all`, the share of the references found; `part`, whether any is.
        needs: data from outside.
    """

    family: Family
    generated: int
    metric: Literal["all", "part"] = "all"
    needs: tuple[Data, ...] = ()


@dataclass(frozen=True)
class Unavailable:
    """A task that cannot be run: what is missing, and what to do about it."""

    task: str
    reason: str
    remedy: str


_NEEDLE_TOKENS = 128

TASKS: dict[str, Task] = {
    "niah_single_1": Task(Needles("noise", "words", "numbers"), _NEEDLE_TOKENS, needs=("words",)),
    "niah_single_2": Task(
        Needles("prose", "words", "numbers"), _NEEDLE_TOKENS, needs=("words", "prose")
    ),
    "niah_single_3": Task(
        Needles("prose", "words", "uuids"), _NEEDLE_TOKENS, needs=("words", "prose")
    ),
    "niah_multikey_1": Task(
        Needles("prose", "words", "numbers", number_of_keys=4),
        _NEEDLE_TOKENS,
        needs=("words", "prose"),
    ),
    "niah_multikey_2": Task(
        Needles("needles", "words", "numbers"), _NEEDLE_TOKENS, needs=("words",)
    ),
    "niah_multikey_3": Task(Needles("needles", "uuids", "uuids"), _NEEDLE_TOKENS),
    "niah_multivalue": Task(
        Needles("prose", "words", "numbers", values_per_key=4),
        _NEEDLE_TOKENS,
        needs=("words", "prose"),
    ),
    "niah_multiquery": Task(
        Needles("prose", "words", "numbers", number_of_keys=4, queried=4),
        _NEEDLE_TOKENS,
        needs=("words", "prose"),
    ),
    "vt": Task(Variables(hops=4), 30),
    "cwe": Task(CommonWords(), 120, needs=("words",)),
    "fwe": Task(CodedWords(), 50),
    "qa_1": Task(Documents("qa_1"), 32, "part", needs=("questions",)),
    "qa_2": Task(Documents("qa_2"), 32, "part", needs=("questions",)),
}
"""Every task; a new one is a line here, and its name in the schema of the configuration."""

_FILES = {"qa_1": "SQuAD (dev-v2.0.json)", "qa_2": "HotpotQA (hotpot_dev_distractor_v1.json)"}


def task_called(name: str) -> Task:
    """The task of a name.

    Raises:
        InputError: there is none; it suggests the nearest.
    """
    if name not in TASKS:
        raise InputError(f"no task of RULER is called {name!r}; {nearest(name, TASKS)}")
    return TASKS[name]


def unavailable(
    tasks: Iterable[str], haystack: Mapping[str, Any], questions: Mapping[str, Mapping[str, Any]]
) -> list[Unavailable]:
    """Which of the tasks lack their data, in the order asked for; reads no file, only looks.

    Args:
        tasks: names of tasks.
        haystack: where prose comes from, `pages.haystack` of the configuration.
        questions: files of questions by task, `pages.questions` of the configuration.

    Raises:
        InputError: there is no such task.
    """
    found = []
    for name in tasks:
        for need in task_called(name).needs:
            missing = _missing(need, name, haystack, questions)
            if missing is not None:
                found.append(Unavailable(name, *missing))
                break
    return found


def _missing(
    need: Data, task: str, haystack: Mapping[str, Any], questions: Mapping[str, Mapping[str, Any]]
) -> tuple[str, str] | None:
    if need == "words":
        return _without([WORD_LIST])
    if need == "questions":
        path = questions.get(task, {}).get("path")
        if path is None:
            return (
                "no file of questions is named",
                f"get {_FILES[task]} and name it at pages.questions.{task}.path",
            )
        if not Path(path).is_file():
            return (
                f"{path} is not there",
                f"put {_FILES[task]} there, or correct pages.questions.{task}.path",
            )
        return None
    if haystack.get("source") == "file" and not Path(haystack["path"]).is_file():
        return (f"{haystack['path']} is not there", "put it there, or correct pages.haystack.path")
    if haystack.get("source") == "packages":
        return _without(haystack.get("packages", []))
    return None


def _without(packages: Iterable[str]) -> tuple[str, str] | None:
    for package in packages:
        try:
            installed(package)
        except InputError:
            return f"the package {package!r} is not installed", "install requirements.lock"
    return None
