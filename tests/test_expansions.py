"""Predicted text behind the text of documents."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from whencount.collections.expansions import read_expansions
from whencount.collections.registry import open_collection
from whencount.errors import InputError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "qrels").mkdir()
    (tmp_path / "corpus.jsonl").write_text(
        "".join(json.dumps({"_id": f"d{n}", "text": f"text {n}"}) + "\n" for n in range(3))
    )
    (tmp_path / "queries.jsonl").write_text('{"_id": "q", "text": "what"}\n')
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\td1\t1\n")
    return tmp_path


def test_a_document_has_its_expansion_behind_its_text(folder: Path) -> None:
    path = folder / "predicted.jsonl"
    path.write_text(
        '{"id": "d1", "expansion": "what is one"}\n{"id": "d2", "queries": ["a b", "c"]}\n'
        '{"_id": "d1", "predicted_queries": ["again"]}\n'
    )
    options = {"source": "beir", "path": str(folder), "expansions": str(path)}
    collection = open_collection("mine", options)
    texts = {document.id: document.text for document in collection.documents()}
    assert texts == {"d0": "text 0", "d1": "text 1 what is one again", "d2": "text 2 a b c"}
    assert path in collection.files()
    plain = open_collection("mine", {"source": "beir", "path": str(folder)})
    assert [document.text for document in plain.documents()] == ["text 0", "text 1", "text 2"]


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ('{"id": "d1"}', "line 1: no expansion"),
        ('{"id": "d1", "expansion": 3}', "line 1: no expansion"),
        ('{"expansion": "x"}', "line 1: no expansion"),
        ("", "is empty"),
    ],
)
def test_malformed_lines_are_named(folder: Path, line: str, sentence: str) -> None:
    path = folder / "predicted.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(InputError, match=sentence):
        read_expansions(path)


def test_expansions_of_other_documents_are_refused(folder: Path) -> None:
    path = folder / "predicted.jsonl"
    path.write_text('{"id": "elsewhere", "expansion": "x"}\n')
    options = {"source": "beir", "path": str(folder), "expansions": str(path)}
    with pytest.raises(InputError, match="ids are the same"):
        list(open_collection("mine", options).documents())
    with pytest.raises(InputError, match="absent"):
        list(
            open_collection(
                "mine", {**options, "expansions": str(folder / "absent.jsonl")}
            ).documents()
        )
