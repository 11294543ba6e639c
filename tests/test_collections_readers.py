"""Reading BEIR folders, TREC files, qrels and ir_datasets; what bad input says."""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whencount.collections import open_collection, prepare, read_qrels
from whencount.collections.trec import read_topics
from whencount.errors import InputError

SHARED = Path(__file__).parents[1] / ".." / "shared" / "data"
shared_data = pytest.mark.skipif(not SHARED.is_dir(), reason="the shared data are not here")


def write_beir(
    folder: Path,
    corpus: list[dict[str, Any]] | None = None,
    queries: list[dict[str, Any]] | None = None,
    qrels: str = "query-id\tcorpus-id\tscore\nq1\td1\t1\n",
) -> dict[str, Any]:
    corpus = corpus or [
        {"_id": "d1", "title": "Owls", "text": "hunt at night"},
        {"_id": "d2", "title": "", "text": "Herons fish"},
    ]
    queries = queries or [
        {"_id": "q1", "text": "night birds"},
        {"_id": "train", "text": "not judged in this split"},
    ]
    (folder / "qrels").mkdir(parents=True)
    (folder / "corpus.jsonl").write_text("".join(json.dumps(line) + "\n" for line in corpus))
    (folder / "queries.jsonl").write_text("".join(json.dumps(line) + "\n" for line in queries))
    (folder / "qrels" / "test.tsv").write_text(qrels)
    return {"source": "beir", "path": str(folder)}


def test_a_beir_folder_joins_title_and_text_and_keeps_the_judged_queries(tmp_path: Path) -> None:
    collection = open_collection("birds", write_beir(tmp_path / "birds"))
    texts = [document.text for document in collection.documents()]
    assert texts == ["Owls hunt at night", "Herons fish"]
    assert [query.id for query in collection.queries] == ["q1"]


def test_unjudged_queries_stay_where_the_config_asks_for_them(tmp_path: Path) -> None:
    options = write_beir(tmp_path / "birds") | {"judged_queries_only": False}
    assert len(open_collection("birds", options).queries) == 2


def test_gzipped_files_read_like_plain_ones(tmp_path: Path) -> None:
    options = write_beir(tmp_path / "birds")
    plain = list(open_collection("birds", options).documents())
    for name in ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv"):
        path = tmp_path / "birds" / name
        path.with_name(path.name + ".gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    assert list(open_collection("birds", options).documents()) == plain


def test_a_truncated_gzip_is_named(tmp_path: Path) -> None:
    options = write_beir(tmp_path / "birds")
    path = tmp_path / "birds" / "corpus.jsonl"
    whole = gzip.compress(np.random.default_rng(0).bytes(20000).hex().encode())
    path.with_name("corpus.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    path.unlink()
    with pytest.raises(InputError, match=r"corpus\.jsonl\.gz.*(damaged|truncated)"):
        list(open_collection("birds", options).documents())


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"_id": "d3", "text": ', r"line 2: not valid JSON"),
        ('["d3"]', r"line 2: found list"),
        ('{"text": "no id"}', r"line 2: no '_id' among the keys text"),
        ('{"_id": "d3"}', r"line 2: no 'text'"),
        ('{"_id": "d3", "text": 7}', r"line 2: the text is int"),
        ('{"_id": "", "text": "x"}', r"line 2: the id is empty"),
    ],
)
def test_a_malformed_line_is_named(tmp_path: Path, line: str, message: str) -> None:
    options = write_beir(tmp_path / "birds")
    path = tmp_path / "birds" / "corpus.jsonl"
    path.write_text('{"_id": "d1", "text": "owls"}\n' + line + "\n")
    with pytest.raises(InputError, match=message):
        list(open_collection("birds", options).documents())


def test_a_duplicate_document_id_names_both_lines_and_writes_nothing(tmp_path: Path) -> None:
    documents = [{"_id": name, "text": "x"} for name in ("a", "b", "c", "b")]
    options = write_beir(tmp_path / "birds", documents)
    with pytest.raises(InputError, match=r"corpus\.jsonl, line 4.*'b'.*line 2"):
        prepare(open_collection("birds", options), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_first_of_duplicate_documents_stays_where_asked_for(tmp_path: Path) -> None:
    documents = [{"_id": name, "text": f"{n}"} for n, name in enumerate(("d1", "b", "d1"))]
    options = write_beir(tmp_path / "birds", documents) | {"duplicates": "first"}
    prepared = prepare(open_collection("birds", options), tmp_path / "out")
    assert [document.text for document in prepared.documents()] == ["0", "1"]
    assert prepared.counts.duplicate_documents == 1


def test_a_duplicate_query_id_names_both_lines(tmp_path: Path) -> None:
    queries = [{"_id": "q1", "text": "x"}, {"_id": "q1", "text": "y"}]
    with pytest.raises(InputError, match=r"queries\.jsonl, line 2.*'q1'.*line 1"):
        open_collection("birds", write_beir(tmp_path / "birds", queries=queries))


def test_a_collection_without_any_judged_query_is_refused(tmp_path: Path) -> None:
    options = write_beir(tmp_path / "birds", qrels="other\td1\t1\n")
    with pytest.raises(InputError, match="judge none of its queries"):
        open_collection("birds", options)


def test_unknown_ids_in_the_qrels_are_kept_counted_and_warned_of_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    qrels = "q1\td1\t1\nq1\tgone\t1\nq1\tlost\t0\nq9\td1\t2\n"
    options = write_beir(tmp_path / "birds", qrels=qrels)
    prepared = prepare(open_collection("birds", options), tmp_path / "out")
    assert prepared.counts.unknown_documents == 2
    assert prepared.counts.unknown_queries == 1
    assert prepared.document_positions.tolist() == [0, -1, -1, 0]
    assert prepared.query_positions.tolist() == [0, 0, 0, -1]
    assert sum("document ids are not in the corpus" in line for line in caplog.messages) == 1


def test_a_missing_split_names_those_there_are(tmp_path: Path) -> None:
    options = write_beir(tmp_path / "birds") | {"split": "dev"}
    with pytest.raises(InputError, match=r"dev\.tsv does not exist; there are test"):
        open_collection("birds", options)


def test_the_only_qrels_of_a_folder_are_taken(tmp_path: Path) -> None:
    options = write_beir(tmp_path / "birds")
    qrels = tmp_path / "birds" / "qrels" / "test.tsv"
    qrels.rename(qrels.with_name("dev.tsv"))
    assert len(open_collection("birds", options).qrels) == 1


def test_of_several_splits_test_is_taken_unless_another_is_named(tmp_path: Path) -> None:
    options = write_beir(tmp_path / "birds")
    folder = tmp_path / "birds" / "qrels"
    (folder / "dev.tsv").write_text("train\td2\t1\n")
    assert open_collection("birds", options).qrels.query_ids.tolist() == ["q1"]
    named = open_collection("birds", options | {"split": "dev"})
    assert named.qrels.query_ids.tolist() == ["train"]
    (folder / "test.tsv").rename(folder / "train.tsv")
    with pytest.raises(InputError, match=r"test\.tsv does not exist; there are dev, train"):
        open_collection("birds", options)


@pytest.mark.parametrize("name", ["qrels.jsonl", "qrels.tsv", "qrels.tsv.gz"])
def test_qrels_may_stand_beside_the_corpus(tmp_path: Path, name: str) -> None:
    options = write_beir(tmp_path / "birds")
    folder = tmp_path / "birds"
    (folder / "qrels" / "test.tsv").unlink()
    (folder / "qrels").rmdir()
    line = '{"query-id": "q1", "corpus-id": "d2", "score": 1}\n'
    content = (line if "jsonl" in name else "q1\td2\t1\n").encode()
    (folder / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    assert open_collection("birds", options).qrels.document_ids.tolist() == ["d2"]


def test_a_folder_without_qrels_is_told(tmp_path: Path) -> None:
    options = write_beir(tmp_path / "birds")
    (tmp_path / "birds" / "qrels" / "test.tsv").unlink()
    with pytest.raises(
        InputError, match=r"test\.tsv does not exist; there is no qrels file at all"
    ):
        open_collection("birds", options)


def test_what_was_read_is_kept_for_the_record(tmp_path: Path) -> None:
    prepared = prepare(open_collection("birds", write_beir(tmp_path / "birds")), tmp_path / "out")
    record = json.loads((prepared.path / "collection.json").read_text())
    folder = tmp_path / "birds"
    assert {file["name"]: file["sha256"] for file in record["files"]} == {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in (folder / "corpus.jsonl", folder / "queries.jsonl", folder / "qrels/test.tsv")
    }
    assert str(tmp_path) not in json.dumps(record)


def test_an_unknown_source_suggests_the_nearest() -> None:
    with pytest.raises(InputError, match="did you mean 'wiki-sections'"):
        open_collection("x", {"source": "wiki-section"})


def test_an_unknown_option_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="unknown option 'spilt'; did you mean 'split'"):
        open_collection("birds", write_beir(tmp_path / "birds") | {"spilt": "test"})


def test_qrels_forms_are_told_apart(tmp_path: Path) -> None:
    trec, beir = tmp_path / "a.txt", tmp_path / "b.tsv"
    trec.write_text("q1 0 d1 2\nq1 Q0 d2 -1\n\nq2 0 d1 0\n")
    beir.write_text("query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td2\t-1\nq2\td1\t0\n")
    for path in (trec, beir):
        qrels = read_qrels(path)
        assert qrels.query_ids.tolist() == ["q1", "q1", "q2"]
        assert qrels.document_ids.tolist() == ["d1", "d2", "d1"]
        assert qrels.relevance.tolist() == [2, -1, 0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("q1 0 d1 1\nq1 0 d2 high\n", r"line 2: relevance 'high'"),
        ("q1 0 d1 1\nq1 0 d2 0.5\n", r"line 2: relevance '0\.5'"),
        ("q1 0 d1 1\nq1 d2 1\n", r"line 2: found 3 columns where the lines before have 4"),
        ("q1 d1\n", r"line 1: found 2 columns"),
        ("q1 0 d1 99999999999\n", r"line 1: relevance 99999999999 does not fit"),
        ("q1 0 d1 " + "9" * 5000 + "\n", r"line 1: relevance 9+ does not fit"),
        ("q1 0 d1 1\nq1 0 d1 0\n", r"line 2.*relevance 0, but 1 on line 1"),
        ("q1\t0\t\t1\n", r"line 1: the document id is empty"),
        ("q1\t\t1\n", r"line 1: the document id is empty"),
        ("q1\t0\td1\t1\nq1\t0\t\t1\n", r"line 2: the document id is empty"),
        ("\t0\td1\t1\n", r"line 1: the query id is empty"),
        ("q1\td1\t\n", r"line 1: found 2 columns"),
        ("", "holds no judgement"),
        ("query-id\tcorpus-id\tscore\n", "holds no judgement"),
    ],
)
def test_bad_qrels_are_named_by_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "qrels.txt"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_qrels(path)


def test_an_empty_column_that_nothing_reads_is_harmless(tmp_path: Path) -> None:
    path = tmp_path / "qrels.txt"
    path.write_text("q1\t\td1\t1\nq1\t0\td2\t0\t\n")
    assert read_qrels(path).document_ids.tolist() == ["d1", "d2"]


def test_qrels_in_json_lines_read_like_the_others(tmp_path: Path) -> None:
    path = tmp_path / "qrels.jsonl"
    path.write_text(
        '{"query-id": "q1", "corpus-id": "d 1", "score": 2}\n'
        '{"query-id": "q1", "corpus-id": "d2", "score": 0.0}\n'
    )
    qrels = read_qrels(path)
    assert qrels.document_ids.tolist() == ["d 1", "d2"]
    assert qrels.relevance.tolist() == [2, 0]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"query-id": "q1", "score": 1}', r"line 1: 'corpus-id' is None"),
        ('{"query-id": "", "corpus-id": "d", "score": 1}', r"line 1: 'query-id' is ''"),
        ('{"query-id": "q1", "corpus-id": "d", "score": 0.5}', r"line 1: relevance '0\.5'"),
        ('{"query-id": "q1", "corpus-id": "d"}', r"line 1: relevance 'None'"),
        ('{"query-id": "q1", "corpus-id": "d", "score": 9e18}', r"does not fit in 32 bits"),
        ("q1 0 d1 1", r"line 1: not valid JSON"),
    ],
)
def test_bad_qrels_in_json_lines_are_named(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "qrels.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(InputError, match=message):
        read_qrels(path)


def test_a_pair_judged_twice_alike_is_kept_once(tmp_path: Path) -> None:
    path = tmp_path / "qrels.txt"
    path.write_text("q1 0 d1 1\nq1 0 d2 0\nq1 0 d1 1\n")
    assert read_qrels(path).document_ids.tolist() == ["d1", "d2"]


word = st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=6)


@given(st.dictionaries(st.tuples(word, word), st.integers(-2, 3), min_size=1, max_size=12))
@settings(max_examples=50, deadline=None)
def test_qrels_survive_being_written_in_either_form(
    tmp_path_factory: pytest.TempPathFactory, judged: dict[tuple[str, str], int]
) -> None:
    path = tmp_path_factory.mktemp("qrels") / "qrels"
    for header, template in (
        ("", "{} 0 {} {}\n"),
        ("query-id\tcorpus-id\tscore\n", "{}\t{}\t{}\n"),
    ):
        lines = [template.format(query, document, r) for (query, document), r in judged.items()]
        path.write_text(header + "".join(lines), encoding="utf-8")
        qrels = read_qrels(path)
        pairs = zip(qrels.query_ids, qrels.document_ids, strict=True)
        assert dict(zip(pairs, qrels.relevance.tolist(), strict=True)) == judged


def test_trec_files_beside_a_tab_separated_corpus(tmp_path: Path) -> None:
    (tmp_path / "corpus.tsv").write_text("d1\tOwls hunt\nd2\tHerons\tfish\n")
    (tmp_path / "topics.tsv.gz").write_bytes(gzip.compress(b"q1\tnight birds\nq2\tnone\n"))
    (tmp_path / "qrels.txt").write_text("q1 0 d2 1\n")
    options = {
        "source": "trec",
        "documents": str(tmp_path / "corpus.tsv"),
        "topics": str(tmp_path / "topics.tsv.gz"),
        "qrels": str(tmp_path / "qrels.txt"),
    }
    collection = open_collection("birds", options)
    assert [document.text for document in collection.documents()] == ["Owls hunt", "Herons\tfish"]
    assert [query.text for query in collection.queries] == ["night birds"]


@shared_data
@pytest.mark.parametrize(
    ("name", "queries", "judgements"),
    [
        ("beir-v1.0.0-arguana.test", 1406, 1406),
        ("beir-v1.0.0-nfcorpus.test", 323, 12334),
        ("beir-v1.0.0-scifact.test", 300, 339),
        ("beir-v1.0.0-fiqa.test", 648, 1706),
        ("beir-v1.0.0-scidocs.test", 1000, 29928),
        # Section 3 has 66,336; this file has two lines fewer.
        ("beir-v1.0.0-trec-covid.test", 50, 66334),
        ("dl19-passage", 43, 9260),
        ("dl20-passage", 54, 11386),
        ("miracl-v1.0-hi-dev", 350, 3494),
        ("miracl-v1.0-bn-dev", 411, 4206),
        ("miracl-v1.0-te-dev", 828, 1606),
        ("msmarco-passage.dev-subset", 6980, 7437),
    ],
)
def test_published_topics_and_qrels_have_the_published_counts(
    name: str, queries: int, judgements: int
) -> None:
    """The counts are those of the study's section 3."""
    folder = SHARED / "qrels"
    qrels = read_qrels(next(iter(folder.glob(f"qrels.{name}.*"))))
    stem = {"dl20-passage": "dl20"}.get(name, name)
    topics = read_topics(next(iter(folder.glob(f"topics.{stem}.*"))))
    judged = [query for query in topics if query.id in qrels.judged_queries()]
    assert (len(judged), len(qrels)) == (queries, judgements)


@shared_data
def test_published_topics_and_qrels_make_a_collection_with_a_corpus_of_ones_own(
    tmp_path: Path,
) -> None:
    """Anserini's files of TREC-DL 2019 in three lines of a config."""
    (tmp_path / "passages.tsv.gz").write_bytes(gzip.compress(b"0\tOwls hunt\n7\tHerons fish\n"))
    options = {
        "source": "trec",
        "documents": str(tmp_path / "passages.tsv.gz"),
        "topics": str(SHARED / "qrels" / "topics.dl19-passage.txt"),
        "qrels": str(SHARED / "qrels" / "qrels.dl19-passage.txt"),
    }
    collection = open_collection("dl19", options)
    assert (len(collection.queries), len(collection.qrels)) == (43, 9260)
    assert [query.text for query in collection.queries if query.id == "1037798"] == [
        "who is robert gray"
    ]


@shared_data
@pytest.mark.parametrize(
    ("name", "documents", "queries", "judgements"),
    [("scifact", 5183, 300, 339), ("xquad-r-hi", 1244, 1190, 1190), ("cranfield", 1400, 225, 1837)],
)
def test_shared_folders_open_by_config_alone(
    name: str, documents: int, queries: int, judgements: int
) -> None:
    collection = open_collection(name, {"source": "beir", "path": str(SHARED / name)})
    counted = sum(1 for _ in collection.documents())
    assert (counted, len(collection.queries), len(collection.qrels)) == (
        documents,
        queries,
        judgements,
    )
