"""How RULER scores an answer: references found in it, whatever the case of letters."""

from __future__ import annotations

import re
from collections.abc import Sequence

from whencount.ruler.registry import task_called

_CONTROL = re.compile(r"[\x00-\x1f]")


def string_match_all(prediction: str, references: Sequence[str]) -> float:
    """The share of the references that stand in the prediction, 0 to 1 (arXiv:2404.06654)."""
    text = _readable(prediction)
    return sum(reference.lower() in text for reference in references) / len(references)


def string_match_part(prediction: str, references: Sequence[str]) -> float:
    """1 where any of the references stands in the prediction, else 0 (arXiv:2404.06654)."""
    text = _readable(prediction)
    return float(any(reference.lower() in text for reference in references))


def score(task: str, prediction: str, references: Sequence[str]) -> float:
    """The score of one answer, 0 to 1, higher is better, as the task is scored.

    Raises:
        InputError: there is no such task.
    """
    metric = string_match_all if task_called(task).metric == "all" else string_match_part
    return metric(prediction, references)


def _readable(prediction: str) -> str:
    return _CONTROL.sub("\n", prediction).strip().lower()
