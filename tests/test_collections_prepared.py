"""What stands on disk after `prepare`, and that it comes back the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whencount.collections import (
    Collection,
    Document,
    Qrels,
    Query,
    load_prepared,
    open_fit_passages,
    prepare,
    prepare_passages,
    read_texts,
)
from whencount.collections.preparation import clean
from whencount.errors import InputError


def collection(texts: list[str], **changes: object) -> Collection:
    values: dict[str, object] = {
        "name": "small",
        "documents": lambda: (Document(f"d{n}", text) for n, text in enumerate(texts)),
        "queries": [Query("q0", "one"), Query("q1", "two")],
        "qrels": Qrels.from_rows([("q0", "d0", 1), ("q1", "d0", 0), ("q1", "gone", -1)]),
        "description": "a test",
        "language": "en",
        "licence": "CC0-1.0",
    }
    return Collection(**(values | changes))  # type: ignore[arg-type]


@given(st.lists(st.text(max_size=20), min_size=1, max_size=12))
@settings(max_examples=40, deadline=None)
def test_any_text_comes_back_as_cleaned(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str]
) -> None:
    prepared = prepare(collection(texts), tmp_path_factory.mktemp("prepared") / "small")
    assert [document.text for document in prepared.documents()] == [clean(text) for text in texts]
    assert prepared.document_ids.tolist() == [f"d{n}" for n in range(len(texts))]


def test_nul_and_half_surrogates_are_made_harmless() -> None:
    assert clean("a\0b") == "a b"
    assert clean("a\ud83db") == "a�b"
    assert clean("\ud83d\ude00") == "\U0001f600"
    assert clean("नमस्ते") == "नमस्ते"


def test_half_surrogates_in_json_do_not_stop_reading(tmp_path: Path) -> None:
    from whencount.collections.jsonl import json_documents

    path = tmp_path / "corpus.jsonl"
    path.write_text('{"_id": "a", "text": "cut \\ud83d off"}\n')
    assert [clean(document.text) for document in json_documents(path)] == ["cut � off"]


def test_counts_tell_what_a_person_should_know(tmp_path: Path) -> None:
    prepared = prepare(collection(["x", " ", ""]), tmp_path / "small")
    counts = prepared.counts
    assert (counts.documents, counts.empty_documents) == (3, 2)
    assert (counts.queries, counts.queries_with_positive) == (2, 1)
    assert (counts.judgements, counts.unknown_documents) == (3, 1)
    assert prepared.qrels.relevance.tolist() == [1, 0, -1]
    assert len(prepared.warnings) == 3


def test_what_was_prepared_loads_the_same(tmp_path: Path) -> None:
    written = prepare(collection(["x", "y"]), tmp_path / "small")
    loaded = load_prepared(tmp_path / "small")
    assert loaded.counts == written.counts
    assert loaded.queries == (Query("q0", "one"), Query("q1", "two"))
    assert loaded.query_ids.tolist() == ["q0", "q1"]
    assert (loaded.language, loaded.licence) == ("en", "CC0-1.0")


def test_two_runs_write_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        prepare(collection([f"text {n}" for n in range(100)]), tmp_path / name)
    for entry in (tmp_path / "one").iterdir():
        assert entry.read_bytes() == (tmp_path / "two" / entry.name).read_bytes()


def test_batches_and_slices_cross_row_groups(tmp_path: Path) -> None:
    texts = [f"text {n}" for n in range(20000)]
    prepared = prepare(collection(texts), tmp_path / "small")
    assert [len(batch) for batch in prepared.document_batches(9000)] == [9000, 9000, 2000]
    table = read_texts(tmp_path / "small")
    assert len(table) == 20000
    part = table[8000:17000][100:-1]
    assert len(part) == 8899
    assert [text for _, text in part] == texts[8100:16999]
    assert list(table[5:5]) == []
    assert list(read_texts(tmp_path / "small" / "queries.parquet")) == [
        ("q0", "one"),
        ("q1", "two"),
    ]


def test_a_corpus_is_shared_and_not_read_again(tmp_path: Path) -> None:
    prepare(collection(["x", "y"]), tmp_path / "corpus")

    def unread() -> None:
        raise AssertionError("the documents were read again")

    second = collection(
        [], name="second", documents=unread, qrels=Qrels.from_rows([("q1", "d1", 3)])
    )
    prepared = prepare(second, tmp_path / "second", corpus=tmp_path / "corpus")
    assert [document.text for document in prepared.documents()] == ["x", "y"]
    assert prepared.document_positions.tolist() == [1]
    assert prepared.counts.documents == 2


def test_a_corpus_of_another_size_is_refused(tmp_path: Path) -> None:
    prepare(collection(["x", "y"]), tmp_path / "corpus")
    with pytest.raises(InputError, match="has 3 documents, but the corpus"):
        prepare(collection([], document_total=3), tmp_path / "second", corpus=tmp_path / "corpus")


@pytest.mark.parametrize("identifier", ["", "a\nb", "a\0b", "tab\there"])
def test_an_id_that_no_file_could_carry_is_refused(tmp_path: Path, identifier: str) -> None:
    bad = collection([], documents=lambda: iter([Document(identifier, "x")]))
    with pytest.raises(InputError, match=r"document 1: .*an id must be"):
        prepare(bad, tmp_path / "small")


def test_ids_in_any_script_are_welcome(tmp_path: Path) -> None:
    ids = ["क्‍ष", "a b", "ü/1#2"]
    good = collection([], documents=lambda: (Document(name, "x") for name in ids))
    assert prepare(good, tmp_path / "small").document_ids.tolist() == ids


def test_a_collection_without_documents_or_judged_queries_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no document"):
        prepare(collection([]), tmp_path / "small")
    with pytest.raises(InputError, match="judge none"):
        prepare(collection(["x"], qrels=Qrels.from_rows([("z", "d0", 1)])), tmp_path / "small")
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a complete prepared collection"):
        load_prepared(tmp_path / "missing")
    prepare(collection(["x", "y"]), tmp_path / "small")
    about = tmp_path / "small" / "collection.json"
    changed = json.loads(about.read_text())
    changed["counts"]["documents"] = 7
    about.write_text(json.dumps(changed))
    with pytest.raises(InputError, match="do not have the sizes"):
        load_prepared(tmp_path / "small")
    (tmp_path / "small" / "documents.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError, match="prepare the collection again"):
        read_texts(tmp_path / "small")


def test_fit_passages_are_prepared_without_those_that_overlap(tmp_path: Path) -> None:
    path = tmp_path / "passages.tsv"
    path.write_text("a\tone two three four five six seven eight\nb\tsomething else\n")
    passages = open_fit_passages({"source": "file", "documents": str(path)}, 0)
    whole = prepare_passages(passages, tmp_path / "whole")
    assert whole.document_ids.tolist() == ["a", "b"]
    assert (len(whole.queries), len(whole.qrels)) == (0, 0)
    exclude = ["zero one two three four five six seven eight nine"]
    part = prepare_passages(passages, tmp_path / "part", exclude=exclude)
    assert part.document_ids.tolist() == ["b"]
