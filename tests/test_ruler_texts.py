"""Prose of haystacks and files of questions: read, kept, refused with the place of the fault."""

from __future__ import annotations

import copy
import gzip
from pathlib import Path
from typing import Any

import orjson
import pytest
from ruler_texts import PROSE, encode, hotpotqa, question_files, squad

from whencount import ruler
from whencount.errors import InputError
from whencount.ruler.prose import sentences


def test_sentences_end_at_marks_and_not_at_abbreviations() -> None:
    text = (
        'Dr. J. B. Watt lived here, e.g. in winter. He said: "It is 3.5 m." Then he left! Why?'
        "\n\nA new\n paragraph. (It ends.)"
    )
    assert list(sentences(text)) == [
        "Dr. J. B. Watt lived here, e.g. in winter.",
        'He said: "It is 3.5 m."',
        "Then he left!",
        "Why?",
        "A new paragraph.",
        "(It ends.)",
    ]


@pytest.mark.parametrize("mark", ["<|eot_id|>", "</s>", "[/INST]", "<<SYS>>"])
def test_sentences_with_marks_of_a_language_model_are_left_out(mark: str) -> None:
    assert list(sentences(f"One is kept. Two has {mark} in it. Three too is kept.")) == [
        "One is kept.",
        "Three too is kept.",
    ]


def test_prose_of_a_file_comes_back_from_its_table(tmp_path: Path) -> None:
    file = tmp_path / "essay.txt.gz"
    file.write_bytes(gzip.compress("Was weiß man? Nichts.\n\nEnde.".encode()))
    haystack = {"source": "file", "path": str(file)}
    ruler.write_prose(ruler.open_prose(haystack), tmp_path / "prose.parquet", "essay")
    assert ruler.read_prose(tmp_path / "prose.parquet") == ("Was weiß man?", "Nichts.", "Ende.")


def test_prose_comes_from_a_built_in_collection_and_from_packages() -> None:
    built_in = list(ruler.open_prose({"source": "collection", "name": "wiki-sections"}))
    assert len(built_in) > 10_000
    packages = {"source": "packages", "packages": ["networkx"], "passages": 20}
    assert list(ruler.open_prose(packages)) == list(ruler.open_prose(packages))


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    file = tmp_path / "photo.txt"
    file.write_bytes(b"ab\xff\xfe")
    with pytest.raises(InputError, match=r"photo\.txt: byte 2 is no UTF-8"):
        list(ruler.open_prose({"source": "file", "path": str(file)}))


def test_a_haystack_without_a_sentence_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="haystack empty has no sentence"):
        ruler.write_prose([], tmp_path / "prose.parquet", "empty")


def test_a_needle_in_prose_without_prose_is_refused() -> None:
    found = ruler.open_examples(
        "niah_single_2", context=1024, number=1, encode=encode, texts=ruler.Texts()
    )
    with pytest.raises(InputError, match="name a text"):
        found[0]


def test_prose_that_is_too_short_begins_anew() -> None:
    short = ruler.Texts(("First of two.", "Second of two."))
    found = ruler.open_examples("niah_single_2", context=1024, number=1, encode=encode, texts=short)
    assert found[0].context.count("First of two. Second of two.") > 20


def test_squad_keeps_questions_with_an_answer_and_their_article(tmp_path: Path) -> None:
    read = ruler.read_squad(question_files(tmp_path)["qa_1"])
    assert len(read.questions) == 30
    assert len(read.paragraphs) == 30
    question = read.questions[7]
    assert question.id == "q1-2"
    assert question.answers == ("12 tons",)
    assert [read.paragraphs[place][:9] for place in question.related] == ["In town 1"] * 4
    assert question.needed[0] not in question.related


def test_hotpotqa_knows_which_paragraphs_are_needed(tmp_path: Path) -> None:
    read = ruler.read_hotpotqa(question_files(tmp_path)["qa_2"])
    assert len(read.questions) == 8
    question = read.questions[3]
    assert [read.paragraphs[place].split("\n")[0] for place in question.needed] == [
        "Company 3",
        "Founder 3",
    ]
    assert len(question.related) == 8


def _without(content: Any, *path: Any) -> Any:
    changed = copy.deepcopy(content)
    at = changed
    for step in path[:-1]:
        at = at[step]
    del at[path[-1]]
    return changed


_BLANK = {"id": "1", "question": "What?", "answers": [{"text": " "}]}
BROKEN: dict[str, tuple[str, Any, str]] = {
    "no data": ("qa_1", {"version": "1"}, "the top level: there is no 'data' of type list"),
    "no context": (
        "qa_1",
        _without(squad(), "data", 2, "paragraphs", 1, "context"),
        r"data\[2\]\.paragraphs\[1\]: there is no 'context' of type str",
    ),
    "no answers": (
        "qa_1",
        _without(squad(), "data", 0, "paragraphs", 0, "qas", 1, "answers"),
        r"data\[0\]\.paragraphs\[0\]\.qas\[1\]: there is no 'answers' of type list",
    ),
    "nothing asked": ("qa_1", {"data": []}, "has no question with an answer"),
    "a mapping": ("qa_2", {"data": []}, "the top level: it is no list of questions"),
    "no answer": ("qa_2", _without(hotpotqa(), 4, "answer"), r"\[4\]: there is no 'answer'"),
    "no sentences": (
        "qa_2",
        [{**hotpotqa()[0], "context": [["Title", "a text"]]}],
        r"\[0\]\.context\[0\]: it is no pair",
    ),
    "unknown fact": (
        "qa_2",
        [{**hotpotqa()[0], "supporting_facts": [["Nowhere", 0]]}],
        r"\[0\]\.supporting_facts\[0\]: it names no paragraph",
    ),
    "a list for a title": (
        "qa_2",
        [{**hotpotqa()[0], "supporting_facts": [[["Title"], 0]]}],
        r"\[0\]\.supporting_facts\[0\]: it names no paragraph",
    ),
    "no facts": (
        "qa_2",
        [{**hotpotqa()[0], "supporting_facts": []}],
        r"\[0\]\.supporting_facts: it is empty",
    ),
    "a blank answer": ("qa_2", [{**hotpotqa()[0], "answer": " "}], r"\[0\]\.answer: it is blank"),
    "blank answers": (
        "qa_1",
        {"data": [{"paragraphs": [{"context": "A.", "qas": [_BLANK]}]}]},
        "has no question with an answer",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_malformed_file_of_questions_is_named_with_the_place(case: str, tmp_path: Path) -> None:
    task, content, message = BROKEN[case]
    file = tmp_path / "questions.json"
    file.write_bytes(orjson.dumps(content))
    with pytest.raises(InputError, match=rf"questions\.json.*{message}"):
        ruler.read_questions(task, file)


@pytest.mark.parametrize("content", [b"", b"{", b"\x1f\x8b broken"])
def test_a_file_that_is_no_json_is_named(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "questions.json.gz"
    file.write_bytes(content if content.startswith(b"\x1f") else gzip.compress(content))
    with pytest.raises(InputError, match=r"questions\.json\.gz is no JSON"):
        ruler.read_questions("qa_1", file)


def test_tasks_without_their_data_are_told_with_a_remedy(tmp_path: Path) -> None:
    files = question_files(tmp_path)
    haystack = {"source": "file", "path": str(tmp_path / "none.txt")}
    found = ruler.unavailable(
        ["vt", "niah_single_1", "niah_single_2", "qa_1", "qa_2"],
        haystack,
        {"qa_2": {"path": str(files["qa_2"])}},
    )
    assert [one.task for one in found] == ["niah_single_2", "qa_1"]
    assert "none.txt is not there" in found[0].reason
    assert "pages.questions.qa_1.path" in found[1].remedy
    (tmp_path / "none.txt").write_text(PROSE[0])
    gone = {"qa_1": {"path": str(tmp_path / "gone.json")}}
    assert [one.reason for one in ruler.unavailable(["qa_1", "niah_single_2"], haystack, gone)] == [
        f"{tmp_path / 'gone.json'} is not there"
    ]
    assert ruler.unavailable(ruler.TASKS, {"source": "packages", "packages": ["nosuch"]}, {})[
        0
    ].reason.startswith("the package 'nosuch'")
