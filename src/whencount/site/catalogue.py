"""The reports that a folder holds: what each answers, and the figure that its page puts first."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path

from whencount.errors import InputError

QUESTIONS = {
    "retrieval": "When do IDF, saturation and length normalisation help a sparse, non-negative"
    " scorer, and can that be told without labels?",
    "hypotheses": "Which of the hypotheses fixed beforehand hold in these rows?",
    "pages": "Which pages of a decoder's key-value cache should it read?",
    "experts": "Which experts of a mixture-of-experts model should a token be routed to?",
    "transfer": "Do predictors frozen in retrieval tell what the switches bring elsewhere?",
    "fusion": "When should lexical evidence override a dense ranking, and by which rule?",
    "economics": "What does an index of each representation cost, in work, bytes and time?",
    "latent_terms": "How well do sparse codes of token states serve as the terms of an index?",
    "features": "What does each latent term stand for? Read its passages and label it.",
    "reversal": "Does BM25 beat the inner product on latent terms, and lose on SPLADE-like"
    " vectors?",
    "learned_sparse": "What does FLOPS regularisation in training do to a sparse index?",
    "late_interaction": "How much of late interaction's quality survives each approximation?",
}
"""What each page of a study answers, by the stem of its file, in the order of the list."""

FOLDERS = ("representations", "collections")
"""Folders with a page per part of the study."""
FIGURES = 3
"""Key numbers shown of a page."""
_VOID = frozenset({"meta", "link", "br", "hr", "img", "input"})
_LONGEST = 260


@dataclass(frozen=True)
class Report:
    """A page that exists.

    Attributes:
        address: relative to the folder, with slashes.
        title: its heading.
        question: the sentence of what it answers; empty for a page that is not known.
        figures: (value, what it is) of its first key numbers; at most FIGURES.
        answer: the first sentence of its answer; empty where it has none.
    """

    address: str
    title: str
    question: str
    figures: tuple[tuple[str, str], ...]
    answer: str


def find_reports(folder: str | Path) -> list[Report]:
    """The pages in a folder of reports, known ones first, others by name; not its index.html.

    Raises:
        InputError: a page cannot be read.
    """
    there = {path.stem: path for path in sorted(Path(folder).glob("*.html")) if path.is_file()}
    there.pop("index", None)
    order = [name for name in QUESTIONS if name in there]
    order += [name for name in there if name not in QUESTIONS]
    return [_report(there[name], QUESTIONS.get(name, "")) for name in order]


def find_parts(folder: str | Path) -> dict[str, list[tuple[str, str]]]:
    """{`representations` say: [(address, title), ...]} of the pages per part of the study."""
    found = {}
    for name in FOLDERS:
        pages = sorted((Path(folder) / name).glob("*.html"))
        if pages:
            found[name] = [(f"{name}/{path.name}", _report(path, "").title) for path in pages]
    return found


def _report(path: Path, question: str) -> Report:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read ({error}); make it again, or remove it") from error
    shown = _Shown()
    shown.feed(text)
    title = shown.text("h1") or shown.text("title") or path.stem
    figures = tuple(zip(shown.values, shown.labels, strict=False))[:FIGURES]
    return Report(path.name, title, question, figures, _first_sentence(shown.text("answer")))


def _first_sentence(text: str) -> str:
    first = re.split(r"(?<=[.!?])\s+(?=[A-Z])", text, maxsplit=1)[0]
    return first if len(first) <= _LONGEST else f"{first[:_LONGEST].rsplit(' ', 1)[0]} …"


class _Shown(HTMLParser):
    """Heading, key numbers and answer of a page of ours; the first of each counts."""

    def __init__(self) -> None:
        super().__init__()
        self.values: list[str] = []
        self.labels: list[str] = []
        self._texts: dict[str, str] = {}
        self._open: list[tuple[str, str]] = []  # tag, and what its text is
        self._in_tiles = 0

    def text(self, name: str) -> str:
        """What stands in the first element of that name, white space folded."""
        return " ".join(self._texts.get(name, "").split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _VOID:
            return
        classes = (dict(attrs).get("class") or "").split()
        self._in_tiles += "tiles" in classes
        role = ""
        if tag in ("h1", "title") and tag not in self._texts:
            role = tag
        elif tag == "p" and "answer" in classes and "answer" not in self._texts:
            role = "answer"
        elif self._in_tiles and tag in ("b", "span"):
            role = "value" if tag == "b" else "label"
            (self.values if tag == "b" else self.labels).append("")
        if role in ("h1", "title", "answer"):
            self._texts[role] = ""
        self._open.append((tag, "tiles" if "tiles" in classes else role))

    def handle_endtag(self, tag: str) -> None:
        while self._open and any(one == tag for one, _ in self._open):
            closed, role = self._open.pop()
            self._in_tiles -= role == "tiles"
            if closed == tag:
                return

    def handle_data(self, data: str) -> None:
        for _, role in self._open:
            if role == "value":
                self.values[-1] += data
            elif role == "label":
                self.labels[-1] += data
            elif role in ("h1", "title", "answer"):
                self._texts[role] += data
