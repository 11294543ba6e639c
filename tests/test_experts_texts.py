"""Texts of the study of experts: documents in parts, pages of WikiText, questions of MMLU."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from whencount.errors import InputError
from whencount.experts.mmlu import read_questions
from whencount.experts.texts import PARTS, part_of, prepare_text
from whencount.experts.wikitext import detokenized, read_pages

SHARES = {"train": 0.5, "validation": 0.1, "calibration": 0.2, "evaluation": 0.2}
RAW = """
 = First Article =

 The first , with " quotes " and a 3 @.@ 5 m ( wide ) thing .

 = = Early years = =

 More text 's here ; it ends .

 = Second Article =

 Short .
"""


def lines_file(path: Path, count: int = 400) -> Path:
    path.write_text(
        "".join(json.dumps({"id": f"n{n}", "text": f"word {n}"}) + "\n" for n in range(count))
    )
    return path


def test_parts_share_no_document_and_have_their_shares(tmp_path: Path) -> None:
    source = {"source": "file", "path": str(lines_file(tmp_path / "text.jsonl"))}
    table = prepare_text("lines", source, SHARES, seed=1)
    assert table["id"].tolist() == [f"n{n}" for n in range(400)]
    found = table["part"].value_counts(normalize=True)
    for part in PARTS:
        # Four standard deviations of a share of 400 documents.
        assert found[part] == pytest.approx(SHARES[part], abs=4 * (0.25 / 400) ** 0.5)
    assert not prepare_text("lines", source, SHARES, seed=2)["part"].equals(table["part"])


def test_a_document_keeps_its_part_whatever_stands_beside_it(tmp_path: Path) -> None:
    def parts(count: int) -> dict[str, str]:
        path = lines_file(tmp_path / f"{count}.jsonl", count)
        table = prepare_text("lines", {"source": "file", "path": str(path)}, SHARES)
        return dict(zip(table["id"], table["part"], strict=True))

    few, many = parts(100), parts(300)
    assert few == {key: many[key] for key in few}


def test_plain_text_has_a_document_between_empty_lines(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("one\ntwo\n\n\nthree\n")
    table = prepare_text("plain", {"source": "file", "path": str(path)}, {"evaluation": 1})
    assert table["text"].tolist() == ["one\ntwo", "three"]
    assert table["id"].tolist() == ["line 1", "line 5"]


def test_a_package_has_a_document_per_file_and_no_passage_twice() -> None:
    source = {"source": "packages", "packages": ["click"], "characters": 5000}
    table = prepare_text("documentation", source, {"evaluation": 1})
    assert table["id"].is_unique
    assert all(one.startswith("click:") for one in table["id"])
    # The last file may go beyond.
    assert table["text"].str.len().iloc[:-1].sum() < 5000
    passages = [passage for text in table["text"] for passage in text.split("\n\n")]
    assert len(passages) == len(set(passages)) > 3


def test_articles_are_whole() -> None:
    table = prepare_text("wikipedia", {"source": "wiki-sections"}, {"evaluation": 1})
    # The 106 articles less those whose paragraphs are all too short.
    assert 95 <= len(table) <= 106
    assert table["text"].str.len().median() > 5000


@pytest.mark.parametrize(
    ("source", "parts", "words"),
    [
        ({"source": "filo"}, {"train": 1}, "unknown source 'filo'; did you mean 'file'"),
        ({"source": "file", "path": "x"}, {"train": 0.7}, "add up to 0.7"),
        ({"source": "file", "path": "x"}, {"trane": 1}, "unknown part 'trane'"),
        ({"source": "file", "path": "absent.txt"}, {"train": 1}, "cannot be read"),
        ({"source": "wikitext", "split": "dev"}, {"train": 1}, "no split 'dev'"),
    ],
)
def test_wrong_texts_are_refused(
    source: dict[str, str], parts: dict[str, float], words: str
) -> None:
    with pytest.raises(InputError, match=words):
        prepare_text("text", source, parts)


def test_documents_of_a_file_have_ids_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    source = {"source": "file", "path": str(path)}
    path.write_text('{"id": null, "text": "one"}\n{"text": "two"}\n{"id": "a", "text": "three"}\n')
    assert prepare_text("text", source, {"train": 1})["id"].tolist() == ["1", "2", "a"]
    path.write_text('{"id": "a", "text": "one"}\n{"id": "a", "text": "two"}\n')
    with pytest.raises(InputError, match="2 documents have the id 'a'"):
        prepare_text("text", source, {"train": 1})


def test_a_part_without_documents_is_refused() -> None:
    table = pd.DataFrame({"id": ["a"], "part": ["train"], "text": ["x"]})
    with pytest.raises(InputError, match="no document for calibration"):
        part_of(table, "calibration")


def test_wikitext_is_cut_at_headings_of_the_first_level(tmp_path: Path) -> None:
    path = tmp_path / "wiki.test.raw"
    path.write_text(RAW)
    pages = read_pages("test", path)
    assert [page.id for page in pages] == ["0 First Article", "1 Second Article"]
    assert "== Early years ==" in pages[0].text


def test_wikitext_reads_as_the_harness_reads_it(tmp_path: Path) -> None:
    from lm_eval.tasks.wikitext import preprocess_wikitext as harness

    path = tmp_path / "pages.jsonl"
    path.write_text(json.dumps({"page": RAW}) + "\n")
    (page,) = read_pages("test", path)
    assert page.text == harness.wikitext_detokenizer({"page": RAW})
    counted = harness.process_results({"page": RAW}, (-1.0,))
    assert (page.words, page.bytes) == (
        counted["word_perplexity"][1],
        counted["byte_perplexity"][1],
    )


def test_detokenizing_takes_spaces_out() -> None:
    assert detokenized('a , b . " c " ( d ) 1 @,@ 000 N @-@ x') == 'a, b. "c" (d) 1,000 N-x'


def test_absent_data_names_the_remedy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import datasets

    def unreachable(*_: object, **__: object) -> None:
        raise ConnectionError("offline")

    monkeypatch.setattr(datasets, "load_dataset", unreachable)
    with pytest.raises(
        InputError, match=r"neither in the local cache nor reachable.*wiki.test.raw"
    ):
        read_pages("test")
    with pytest.raises(InputError, match=r"neither in the local cache nor reachable.*`path`"):
        read_questions()
    path = tmp_path / "plain.txt"
    path.write_text("no heading\n")
    with pytest.raises(InputError, match="no page"):
        read_pages("test", path)


def question(subject: str, answer: int) -> dict[str, object]:
    choices = ["one", "two", "three", "four"]
    return {"question": f"{subject}?", "choices": choices, "answer": answer, "subject": subject}


def test_questions_are_read_from_every_layout(tmp_path: Path) -> None:
    records = [question(subject, n % 4) for n, subject in enumerate("bbab")]
    wanted = pd.DataFrame(records).sort_values("subject", kind="stable", ignore_index=True)
    lines, table, folder = tmp_path / "q.jsonl", tmp_path / "q.parquet", tmp_path / "csv"
    lines.write_text("".join(json.dumps(one) + "\n" for one in records))
    pd.DataFrame(records).to_parquet(table)
    folder.mkdir()
    for subject in "ab":
        (folder / f"{subject}_test.csv").write_text(
            "".join(
                f"{subject}?,one,two,three,four,{'ABCD'[one['answer']]}\n"  # type: ignore[index]
                for one in records
                if one["subject"] == subject
            )
        )
    for path in (lines, table, folder):
        found = read_questions(path)
        found["choices"] = found["choices"].map(list)
        pd.testing.assert_frame_equal(found, wanted, check_dtype=False)
    assert read_questions(table, limit=1)["subject"].tolist() == ["a", "b"]
    assert read_questions(table, subjects=["b"])["subject"].tolist() == ["b", "b", "b"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"answer": 4}, "an answer of 0 to 3"),
        ({"choices": ["one"]}, "four choices"),
        ({"choices": "abcd"}, "four choices"),
        ({"choices": 4}, "four choices"),
        ({"subject": 1}, "a subject"),
        ({"question": 7}, "a text"),
        ({"subject": None}, "no column subject"),
    ],
)
def test_faulty_questions_are_refused(
    change: dict[str, object], words: str, tmp_path: Path
) -> None:
    record = {key: value for key, value in (question("a", 0) | change).items() if value is not None}
    path = tmp_path / "q.jsonl"
    path.write_text(json.dumps(record) + "\n")
    with pytest.raises(InputError, match=words):
        read_questions(path)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"q,one,two,three,four,A\nq,one,two,three,four,\n", "record 2: 6 fields"),
        (b"q,one,two,three,four,AB\n", "record 1: 6 fields"),
        (b"q\xff,one,two,three,four,A\n", "in UTF-8"),
    ],
)
def test_faulty_records_of_questions_are_named(content: bytes, words: str, tmp_path: Path) -> None:
    (tmp_path / "x_test.csv").write_bytes(content)
    with pytest.raises(InputError, match=words):
        read_questions(tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("x.jsonl", b'{"page": "a"}\n{"text": "b"}\n', "line 2: no text 'page'"),
        ("x.jsonl", b'{"text": null}\n', "line 1: no text 'text'"),
        ("x.raw.gz", b"\x1f\x8b junk", "cannot be read to its end"),
    ],
)
def test_faulty_files_of_wikitext_are_named(
    name: str, content: bytes, words: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError, match=words):
        read_pages("test", path)
