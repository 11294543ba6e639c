"""The thirteen published collections: what is known of them, and their traps.

Small data sets stand in the layout of ir_datasets, and its own code reads them; only the checksums
in its list of downloads are replaced by those of the small files.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from collection_files import Home, beir_zip, gzipped, lines, planted_home, running_host, tar_gz

from whencount.collections import (
    PreparedCollection,
    open_collection,
    open_fit_passages,
    prepare,
)
from whencount.collections import published as published_module
from whencount.collections.catalogue import PUBLISHED, entry_for
from whencount.collections.data_files import data_files, load_dataset
from whencount.collections.registry import source_for
from whencount.errors import InputError

pytest.importorskip("ir_datasets")
SHARED = Path(__file__).parents[1] / ".." / "shared" / "data" / "qrels"
shared_data = pytest.mark.skipif(not SHARED.is_dir(), reason="the shared qrels are not here")

# Documents, queries and judgements as section 3 of the study has them.
STUDY = {
    "msmarco-dev": (8_841_823, 6_980, 7_437),
    "trec-dl-2019": (8_841_823, 43, 9_260),
    "trec-dl-2020": (8_841_823, 54, 11_386),
    "arguana": (8_674, 1_406, 1_406),
    "nfcorpus": (3_633, 323, 12_334),
    "scifact": (5_183, 300, 339),
    "fiqa": (57_638, 648, 1_706),
    "scidocs": (25_657, 1_000, 29_928),
    "trec-covid": (171_332, 50, 66_336),
    "limit": (50_000, 1_000, 2_000),
    "miracl-hi": (506_264, 350, 3_494),
    "miracl-bn": (297_265, 411, 4_206),
    "miracl-te": (518_079, 828, 1_606),
}
FROM_IR_DATASETS = [name for name, entry in PUBLISHED.items() if entry.identifier]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    with planted_home(tmp_path / "home", monkeypatch) as planted:
        yield planted


def about(prepared: PreparedCollection) -> dict[str, Any]:
    record: dict[str, Any] = json.loads((prepared.path / "collection.json").read_text())
    return record


def documents_of(*texts: str, title: str = "") -> str:
    return lines([{"_id": f"d{n}", "title": title, "text": text} for n, text in enumerate(texts)])


def queries_of(*identifiers: str) -> str:
    return lines([{"_id": identifier, "text": f"about {identifier}"} for identifier in identifiers])


# What is known without a download


def test_the_catalogue_has_the_sizes_of_the_study() -> None:
    sizes = {name: (e.documents, e.queries, e.judgements) for name, e in PUBLISHED.items()}
    assert sizes == STUDY
    assert len({entry.corpus for entry in PUBLISHED.values()}) == 11


@pytest.mark.parametrize("name", FROM_IR_DATASETS)
def test_the_catalogue_agrees_with_ir_datasets(home: Home, name: str) -> None:
    """Counts, languages, places, addresses and checksums are those of the installed package."""
    entry = PUBLISHED[name]
    dataset = load_dataset(entry.identifier)
    counts = [dataset.docs_metadata(), dataset.queries_metadata(), dataset.qrels_metadata()]
    assert [each["count"] for each in counts] == [*STUDY[name]]
    assert dataset.docs_lang() == entry.language
    declared = {}
    for part in ("documents", "queries", "judgements"):
        for file in data_files(dataset, part):
            place = str(file.remote.path.relative_to(home.path))
            declared[place] = (file.remote.urls, file.remote.digest, dict(file.remote.headers))
            size = file.remote.bytes
            if not (name.startswith("miracl-") and part != "documents"):
                assert size in {one.bytes for one in entry.files if one.path == place}
    ours = {file.path: (file.urls, file.md5, dict(file.headers)) for file in entry.files}
    assert ours == declared


@shared_data
def test_sizes_and_checksums_are_those_of_the_files_themselves() -> None:
    names = {
        "qrels.dl19-passage.txt": "msmarco-passage/trec-dl-2019/qrels",
        "qrels.dl20-passage.txt": "msmarco-passage/trec-dl-2020/qrels",
    }
    for code in ("hi", "bn", "te"):
        for kind in ("topics", "qrels"):
            name = f"{kind}.miracl-v1.0-{code}-dev.tsv"
            names[name] = f"miracl/v1.0/{code}/dev/{kind}.tsv"
    files = {file.path: file for entry in PUBLISHED.values() for file in entry.files}
    for name, place in names.items():
        content = (SHARED / name).read_bytes()
        assert files[place].bytes == len(content)
        assert files[place].md5 == hashlib.md5(content).hexdigest()


# By name in a config


@pytest.mark.parametrize(
    ("name", "options", "entry"),
    [
        ("scifact", {}, "scifact"),
        ("scifact", {"source": "published"}, "scifact"),
        ("claims", {"source": "published", "id": "scifact"}, "scifact"),
        ("claims", {"source": "ir_datasets", "id": "beir/scifact/test"}, "scifact"),
        ("limit", {"source": "published"}, "limit"),
        ("limit", {}, None),
        ("limit", {"source": "limit"}, None),
        ("wiki-sections", {}, None),
        ("scifact", {"source": "beir", "path": "x"}, None),
        ("claims", {"source": "ir_datasets", "id": "beir/scifact/train"}, None),
    ],
)
def test_an_entry_is_found_for_what_a_config_says(
    name: str, options: dict[str, Any], entry: str | None
) -> None:
    found = entry_for(name, options)
    assert (found.name if found else None) == entry


@pytest.mark.parametrize(
    ("name", "options", "source"),
    [
        ("scifact", {}, "published"),
        ("limit", {}, "limit"),
        ("limit", {"source": "published"}, "published"),
        ("wiki-sections", {}, "wiki-sections"),
        ("mine", {"source": "beir"}, "beir"),
    ],
)
def test_the_source_may_be_left_out(name: str, options: dict[str, Any], source: str) -> None:
    assert source_for(name, options) == source


def test_limit_alone_is_generated() -> None:
    assert open_collection("limit", {}).document_total == 2000


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("scifat", {}, r"unknown source 'scifat'; did you mean 'scifact'\?.*wiki-sections"),
        ("wiki-section", {}, r"did you mean 'wiki-sections'"),
        ("x", {"source": "fiqa"}, r"write \{source: published, id: fiqa\}"),
        ("x", {"source": "publish"}, r"did you mean 'published'"),
        ("x", {"source": "published"}, r"no published collection is called 'x'"),
        ("x", {"source": "published", "id": "trec-dl-19"}, r"did you mean 'trec-dl-2019'"),
        ("scifact", {"pth": "here"}, r"unknown option 'pth'; did you mean 'path'"),
        ("scifact", {"split": "train"}, r"'split' goes with 'path'"),
    ],
)
def test_what_does_not_exist_suggests_the_nearest(
    name: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        open_collection(name, options)


# The traps


def test_arguana_keeps_the_query_among_its_documents_and_judged_documents_that_are_absent(
    home: Home, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Five judged documents are not in the corpus, as in the published data."""
    corpus = documents_of(*(f"argument {n}" for n in range(12)), title="Debate")
    queries = lines([{"_id": f"d{n}", "text": f"argument {n}"} for n in range(8)])
    qrels = [(f"d{n}", f"absent{n}" if n < 5 else f"d{n + 4}", 1) for n in range(8)]
    qrels.append(("d7", "d7", 0))
    home.plant("beir/arguana", beir_zip("arguana", corpus, queries, qrels))
    collection = open_collection("arguana", {"source": "ir_datasets", "id": "beir/arguana"})
    prepared = prepare(collection, tmp_path / "out")
    assert {query.id for query in prepared.queries} < {*prepared.document_ids}
    assert next(prepared.documents()).text == "Debate argument 0"
    assert prepared.counts.unknown_documents == 5
    assert len(prepared.qrels) == 9
    assert prepared.document_positions.tolist() == [-1] * 5 + [9, 10, 11, 7]
    assert about(prepared)["counts"]["unknown_documents"] == 5
    warning = "5 judged document ids are not in the corpus; they are kept"
    assert any(warning in line for line in about(prepared)["warnings"])
    assert sum(warning in line for line in caplog.messages) == 1


def test_a_published_collection_is_complete_or_refused(home: Home, tmp_path: Path) -> None:
    total, queries, _ = STUDY["arguana"]
    texts = [f"argument {n}" for n in range(total)]
    topics = queries_of(*(f"q{n}" for n in range(queries)))
    qrels = [(f"q{n}", f"d{n}", 1) for n in range(queries)]
    home.plant("beir/arguana", beir_zip("arguana", documents_of(*texts), topics, qrels))
    prepared = prepare(open_collection("arguana", {}), tmp_path / "out")
    assert len(prepared) == total
    assert (prepared.language, prepared.licence) == ("en", "CC-BY-4.0")
    archive = home.path / "beir" / "arguana" / "source.zip"
    assert about(prepared)["files"] == [
        {
            "name": "source.zip",
            "bytes": archive.stat().st_size,
            "sha256": hashlib.sha256(archive.read_bytes()).hexdigest(),
        }
    ]


def test_a_copy_of_ones_own_must_have_the_published_numbers(tmp_path: Path) -> None:
    folder = tmp_path / "scifact"
    folder.mkdir()
    (folder / "corpus.jsonl").write_text(documents_of("a", "b"))
    (folder / "queries.jsonl").write_text(queries_of("q1"))
    (folder / "qrels.tsv").write_text("q1\td0\t1\n")
    collection = open_collection("scifact", {"path": str(folder)})
    with pytest.raises(InputError, match=r"has 2 documents, but as published it has 5,183.*beir"):
        prepare(collection, tmp_path / "out")
    assert not (tmp_path / "out").exists()


MSMARCO_QUERIES = "q1\tbirds at night\nq2\tbirds that fish\nq3\tnever judged\n"


def plant_msmarco(home: Home, archive: bytes | None = None) -> None:
    """Three passages, a dev set, and the topics of two years of which two and one are judged."""
    content = archive or tar_gz(
        {
            "collection.tsv": "0\tOwls hunt\n1\tHerons fish\n2\tCranes dance\n",
            "queries.dev.small.tsv": "q1\tbirds at night\nq2\tbirds that fish\n",
            "qrels.dev.small.tsv": "q1\t0\t0\t1\nq2\t0\t1\t1\n",
        }
    )
    home.plant("msmarco-passage/collectionandqueries", content)
    home.plant("msmarco-passage/trec-dl-2019/qrels", b"q1 Q0 0 3\nq1 Q0 1 0\nq2 Q0 1 2\n")
    home.plant("msmarco-passage/trec-dl-2020/qrels", b"q2 0 1 1\n")
    home.plant("msmarco-passage/trec-dl-2020/queries", gzipped(MSMARCO_QUERIES))
    topics = gzipped(MSMARCO_QUERIES)
    digest = hashlib.md5(topics).hexdigest()
    home.told["msmarco-passage/trec-dl-2019/queries"] = {"expected_md5": digest}
    (home.path / "downloads").mkdir(parents=True, exist_ok=True)
    (home.path / "downloads" / digest).write_bytes(topics)


def msmarco(subset: str) -> dict[str, str]:
    return {"source": "ir_datasets", "id": f"msmarco-passage/{subset}"}


def test_trec_dl_has_its_judged_queries_on_the_one_corpus(home: Home, tmp_path: Path) -> None:
    plant_msmarco(home)
    dev = replace(open_collection("dev", msmarco("dev/small")), document_total=None)
    prepared = prepare(dev, tmp_path / "dev")
    assert [document.text for document in prepared.documents()][2] == "Cranes dance"
    for year, judged, judgements in ((2019, ["q1", "q2"], 3), (2020, ["q2"], 1)):
        collection = open_collection("dl", msmarco(f"trec-dl-{year}/judged"))
        collection = replace(collection, document_total=None)
        borrowed = prepare(collection, tmp_path / str(year), corpus=tmp_path / "dev")
        assert [query.id for query in borrowed.queries] == judged
        assert len(borrowed.qrels) == judgements
        assert borrowed.document_ids.tolist() == ["0", "1", "2"]
        names = [file["name"] for file in about(borrowed)["files"]]
        assert "collectionandqueries.tar.gz" not in names


def test_the_three_collections_of_ms_marco_download_its_archive_once(
    home: Home, tmp_path: Path
) -> None:
    with running_host() as host:
        plant_msmarco(home)
        place = home.path / "msmarco-passage" / "collectionandqueries.tar.gz"
        url = host.serve("/passages.tar.gz", place.read_bytes())
        place.unlink()
        home.told["msmarco-passage/collectionandqueries"]["url"] = url
        for subset in ("dev/small", "trec-dl-2019/judged", "trec-dl-2020/judged"):
            collection = open_collection("x", msmarco(subset))
            assert len(list(collection.documents())) == 3
        assert [path for path, _ in host.asked] == ["/passages.tar.gz"]


@shared_data
@pytest.mark.parametrize(("year", "queries", "judgements"), [(19, 43, 9260), (20, 54, 11386)])
def test_trec_dl_as_published_has_the_judged_queries_of_the_study(
    home: Home, year: int, queries: int, judgements: int
) -> None:
    plant_msmarco(home)
    qrels = (SHARED / f"qrels.dl{year}-passage.txt").read_bytes()
    home.plant(f"msmarco-passage/trec-dl-20{year}/qrels", qrels, trusted=False)
    del home.told[f"msmarco-passage/trec-dl-20{year}/qrels"]
    stem = {19: "dl19-passage", 20: "dl20"}[year]
    topics = (SHARED / f"topics.{stem}.txt").read_text() + MSMARCO_QUERIES
    home.write(f"msmarco-passage/trec-dl-20{year}/queries.tsv", topics)
    if year == 20:
        home.plant("msmarco-passage/trec-dl-2020/queries", gzipped(topics))
    collection = open_collection("dl", msmarco(f"trec-dl-20{year}/judged"))
    assert (len(collection.queries), len(collection.qrels)) == (queries, judgements)


def plant_miracl(home: Home) -> None:
    corpora = (
        [("1#0", "उल्लू", "रात में शिकार"), ("2#0", "", "बगुला")],
        [("1#0", "उल्लू", "रात में शिकार"), ("3#1", "सारस", "")],
    )
    for number, passages in enumerate(corpora):
        records = [{"docid": d, "title": title, "text": text} for d, title, text in passages]
        home.plant(f"miracl/v1.0/hi/corpus/{number}", gzipped(lines(records)))


@shared_data
def test_miracl_reads_its_own_dev_set_and_corpus(home: Home, tmp_path: Path) -> None:
    """Topics and qrels are the published files; the two parts of the corpus repeat an id."""
    plant_miracl(home)
    for kind in ("topics", "qrels"):
        content = (SHARED / f"{kind}.miracl-v1.0-hi-dev.tsv").read_bytes()
        home.plant(f"miracl/v1.0/hi/dev/{kind}", content, trusted=False)
    options = {"source": "ir_datasets", "id": "miracl/hi/dev"}
    collection = replace(open_collection("hi", options), document_total=None)
    prepared = prepare(collection, tmp_path / "hi")
    texts = [document.text for document in prepared.documents()]
    assert texts == ["उल्लू रात में शिकार", "बगुला", "सारस"]
    assert prepared.counts.duplicate_documents == 1
    assert (len(prepared.queries), len(prepared.qrels)) == STUDY["miracl-hi"][1:]
    assert prepared.language == "hi"


def test_the_first_of_duplicate_ids_of_miracl_is_kept_unless_the_config_refuses_them(
    home: Home, tmp_path: Path
) -> None:
    plant_miracl(home)
    home.plant("miracl/v1.0/hi/dev/topics", "q\tउल्लू\n".encode())
    home.plant("miracl/v1.0/hi/dev/qrels", b"q 0 1#0 1\n")
    options = {"source": "ir_datasets", "id": "miracl/hi/dev"}
    prepared = prepare(open_collection("hi", options), tmp_path / "first")
    assert prepared.document_ids.tolist() == ["1#0", "2#0", "3#1"]
    options["duplicates"] = "refuse"
    with pytest.raises(InputError, match=r"document 3.*'1#0'.*document 1"):
        prepare(open_collection("hi", options), tmp_path / "hi")


def test_queries_without_a_positive_judgement_stay_and_are_counted(
    home: Home, tmp_path: Path
) -> None:
    """TREC-COVID judges with -1, 0, 1 and 2; below 1 is not relevant."""
    corpus = lines(
        [
            {
                "_id": f"d{n}",
                "title": "",
                "text": f"virus {n}",
                "metadata": {"url": "", "pubmed_id": ""},
            }
            for n in range(3)
        ]
    )
    queries = lines(
        [
            {"_id": f"{n}", "text": f"what {n}", "metadata": {"query": "", "narrative": ""}}
            for n in range(3)
        ]
    )
    qrels = [("0", "d0", 2), ("0", "d1", -1), ("1", "d1", 0), ("1", "d2", -1)]
    home.plant("beir/trec-covid", beir_zip("trec-covid", corpus, queries, qrels))
    collection = open_collection("covid", {"source": "ir_datasets", "id": "beir/trec-covid"})
    prepared = prepare(collection, tmp_path / "covid")
    assert [query.id for query in prepared.queries] == ["0", "1"]
    assert prepared.counts.queries_with_positive == 1
    assert prepared.qrels.relevance.tolist() == [2, -1, 0, -1]
    assert any("1 queries have no relevant judgement" in line for line in prepared.warnings)


@shared_data
def test_the_shared_qrels_of_trec_covid_lack_two_negative_judgements(home: Home) -> None:
    """66,334 lines where the study has 66,336: those at hand hold no -1, ir_datasets counts two."""
    from whencount.collections import read_qrels

    qrels = read_qrels(SHARED / "qrels.beir-v1.0.0-trec-covid.test.txt")
    assert len(qrels) == STUDY["trec-covid"][2] - 2
    assert qrels.relevance.min() == 0
    counts = load_dataset("beir/trec-covid").qrels_metadata()["fields"]["relevance"]
    assert counts["counts_by_value"]["-1"] == 2


def test_fit_passages_of_ir_datasets_are_the_judged_relevant_ones(home: Home) -> None:
    plant_msmarco(home)
    home.plant("msmarco-passage/train/qrels", b"q1 0 2 1\nq1 0 1 0\n")
    passages = open_fit_passages({"source": "ir_datasets", "id": "msmarco-passage/train"}, 0)
    assert [document.text for document in passages.documents()] == ["Cranes dance"]


# LIMIT


def plant_limit(folder: Path) -> None:
    """A corpus of the published size in the files of the published data set."""
    folder.mkdir(parents=True)
    total, queries, _ = STUDY["limit"]
    people = [{"_id": f"Person {n}", "title": "", "text": "likes owls."} for n in range(total)]
    (folder / "corpus.jsonl").write_text(lines(people))
    (folder / "queries.jsonl").write_text(queries_of(*(f"query_{n}" for n in range(queries))))
    judged = [
        {"query-id": f"query_{n}", "corpus-id": f"Person {n % 45 + other}", "score": 1}
        for n in range(queries)
        for other in (0, 1)
    ]
    (folder / "qrels.jsonl").write_text(lines(judged))


def test_limit_is_read_from_a_folder_of_the_published_files(tmp_path: Path) -> None:
    folder = tmp_path / "LIMIT"
    plant_limit(folder)
    collection = open_collection("limit", {"source": "published", "path": str(folder)})
    prepared = prepare(collection, tmp_path / "limit")
    assert (len(prepared), len(prepared.queries), len(prepared.qrels)) == STUDY["limit"]
    digests = {file["name"]: file["sha256"] for file in about(prepared)["files"]}
    assert digests == {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()
    }


def test_half_a_limit_is_refused_by_its_numbers(tmp_path: Path) -> None:
    folder = tmp_path / "LIMIT"
    plant_limit(folder)
    corpus = (folder / "corpus.jsonl").read_text().splitlines(keepends=True)
    (folder / "corpus.jsonl").write_text("".join(corpus[:-1]))
    collection = open_collection("limit", {"source": "published", "path": str(folder)})
    with pytest.raises(InputError, match=r"49,999 documents, but as published it has 50,000"):
        prepare(collection, tmp_path / "limit")


def test_limit_is_fetched_at_its_pinned_revision_and_checked(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "LIMIT"
    plant_limit(folder)
    files = PUBLISHED["limit"].files
    with running_host() as host:
        monkeypatch.setenv("HF_ENDPOINT", host.address)
        for file in files:
            content = (folder / Path(file.path).name).read_bytes()
            host.serve(file.urls[0].removeprefix("https://huggingface.co"), content)
        with pytest.raises(InputError, match=r"corpus\.jsonl.*does not have the sha256.*removed"):
            open_collection("limit", {"source": "published"})
        own = tuple(
            replace(
                file,
                sha256=hashlib.sha256((folder / Path(file.path).name).read_bytes()).hexdigest(),
            )
            for file in files
        )
        entry = replace(PUBLISHED["limit"], files=own)
        monkeypatch.setattr(published_module, "PUBLISHED", {**PUBLISHED, "limit": entry})
        prepared = prepare(open_collection("limit", {"source": "published"}), tmp_path / "out")
    assert len(prepared) == 50_000
    assert sorted(path.name for path in (home.path / "limit").iterdir()) == [
        "corpus.jsonl",
        "qrels.jsonl",
        "queries.jsonl",
    ]
    asked = host.asked[-1][0]
    assert asked.startswith("/datasets/orionweller/LIMIT/resolve/215834026c13176e520b3bc9d0a0550")


def test_a_damaged_file_of_limit_is_named(home: Home) -> None:
    plant_limit(home.path / "limit")
    with pytest.raises(InputError, match=r"limit/corpus\.jsonl is incomplete or damaged.*remove"):
        open_collection("limit", {"source": "published"})


# What cannot be had, and what is damaged


@pytest.mark.parametrize("name", ["scifact", "trec-dl-2020", "miracl-te", "limit"])
def test_a_download_that_cannot_be_had_names_file_size_and_place(home: Home, name: str) -> None:
    entry = PUBLISHED[name]
    with pytest.raises(InputError) as raised:
        open_collection(name, {"source": "published"})
    message = str(raised.value)
    missing = [
        file
        for file in entry.files
        if file.urls[0] in message and str(home.path / file.path) in message
    ]
    assert len(missing) == 1
    assert "could not be downloaded" in message
    assert "by other means and put it at" in message


def test_a_corpus_that_cannot_be_had_is_named_when_it_is_read(home: Home) -> None:
    plant_msmarco(home)
    (home.path / "msmarco-passage" / "collectionandqueries.tar.gz").unlink()
    collection = open_collection("dl", msmarco("trec-dl-2020/judged"))
    with pytest.raises(InputError, match=r"collectionandqueries\.tar\.gz \(1\.1 GB\).*put it at"):
        list(collection.documents())


SMALL_ZIP = beir_zip(
    "scifact", documents_of("a", "b"), queries_of("q1", "q2"), [("q1", "d0", 1), ("q2", "d1", 1)]
)
SCIFACT = {"source": "ir_datasets", "id": "beir/scifact/test"}


def test_half_an_archive_is_named(home: Home) -> None:
    place = home.plant("beir/scifact", SMALL_ZIP[: len(SMALL_ZIP) // 2], trusted=False)
    with pytest.raises(InputError) as raised:
        open_collection("scifact", SCIFACT)
    for part in (str(place), "incomplete or damaged", PUBLISHED["scifact"].files[0].md5, "remove"):
        assert part in str(raised.value)


@pytest.mark.parametrize("told", [True, False])
def test_half_an_archive_is_named_although_its_checksum_is_not_known(
    home: Home, told: bool
) -> None:
    place = home.plant("beir/scifact", SMALL_ZIP[:-30])
    if not told:
        home.told["beir/scifact"]["expected_md5"] = None
    with pytest.raises(InputError, match=r"judgements could not be read.*BadZipFile") as raised:
        open_collection("scifact", SCIFACT)
    assert f"{place} is damaged or incomplete: remove it" in str(raised.value)


def test_a_malformed_line_in_an_archive_names_the_archive_and_how_far_it_was_read(
    home: Home,
) -> None:
    corpus = documents_of("a", "b") + '{"_id": "d2", "text": \n'
    content = beir_zip("scifact", corpus, queries_of("q1"), [("q1", "d0", 1)])
    place = home.plant("beir/scifact", content)
    collection = open_collection("scifact", SCIFACT)
    with pytest.raises(InputError, match=r"documents could not be read.*JSONDecodeError") as raised:
        list(collection.documents())
    assert f"{place} is damaged" in str(raised.value)


def test_a_malformed_line_in_what_was_unpacked_names_that_file(home: Home) -> None:
    home.plant("beir/scifact", SMALL_ZIP)
    unpacked = home.write("beir/scifact/queries.json", queries_of("q1") + "{half of\n")
    with pytest.raises(InputError, match=r"queries could not be read after number 1 ") as raised:
        open_collection("scifact", SCIFACT)
    assert f"{unpacked} is damaged or incomplete: remove it" in str(raised.value)


def test_a_cut_line_in_unpacked_passages_names_that_file(home: Home) -> None:
    plant_msmarco(home)
    home.write("msmarco-passage/irds_version.txt", "v2")
    unpacked = home.write("msmarco-passage/collection.tsv", "0\tOwls hunt\n1")
    collection = open_collection("dev", msmarco("dev/small"))
    with pytest.raises(InputError, match=r"documents could not be read after number 1 ") as raised:
        list(collection.documents())
    assert f"{unpacked} is damaged" in str(raised.value)


def test_a_damaged_store_of_documents_is_named(home: Home) -> None:
    home.plant("beir/scifact", SMALL_ZIP)
    collection = open_collection("scifact", SCIFACT)
    assert len(list(collection.documents())) == 2
    store = home.path / "beir" / "scifact" / "docs.pklz4"
    content = (store / "bin").read_bytes()
    (store / "bin").write_bytes(content[: len(content) // 2])
    with pytest.raises(InputError, match=r"documents could not be read") as raised:
        list(open_collection("scifact", SCIFACT).documents())
    assert f"{store} is damaged or incomplete: remove it" in str(raised.value)


@pytest.mark.parametrize("trusted", [True, False])
def test_half_a_part_of_miracl_is_named(home: Home, trusted: bool) -> None:
    plant_miracl(home)
    home.plant("miracl/v1.0/hi/dev/topics", "q\tउल्लू\n".encode())
    home.plant("miracl/v1.0/hi/dev/qrels", b"q 0 1#0 1\n")
    whole = gzipped(lines([{"docid": "9", "title": "x", "text": "y" * 5000}]))
    if not trusted:
        del home.told["miracl/v1.0/hi/corpus/1"]
    place = home.plant("miracl/v1.0/hi/corpus/1", whole[:-10], trusted=trusted)
    collection = open_collection("hi", {"source": "ir_datasets", "id": "miracl/hi/dev"})
    with pytest.raises(InputError, match=r"(incomplete or damaged|damaged or incomplete)") as told:
        list(collection.documents())
    assert str(place) in str(told.value)
    assert "remove it" in str(told.value)


def test_wrong_qrels_are_named_before_they_are_used(home: Home) -> None:
    """ir_datasets itself takes a plain file in place as it is."""
    plant_msmarco(home)
    del home.told["msmarco-passage/trec-dl-2020/qrels"]
    with pytest.raises(InputError, match=r"trec-dl-2020/qrels is incomplete or damaged"):
        open_collection("dl", msmarco("trec-dl-2020/judged"))


def test_an_unknown_id_of_ir_datasets_is_named(home: Home) -> None:
    with pytest.raises(InputError, match="no data set 'beir/nothing'"):
        open_collection("x", {"source": "ir_datasets", "id": "beir/nothing"})


def test_a_data_set_without_qrels_is_named(home: Home) -> None:
    with pytest.raises(InputError, match="'beir/scifact' has no qrels; choose a subset"):
        open_collection("x", {"source": "ir_datasets", "id": "beir/scifact"})


def test_a_folder_of_downloads_that_cannot_be_made_is_named(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("IR_DATASETS_HOME", str(tmp_path / "file" / "home"))
    with pytest.raises(InputError, match=r"file/home cannot be made.*IR_DATASETS_HOME"):
        open_collection("scifact", {})
