"""Advice without labels, held against plain loops, made-up worlds and the labels of real ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from numpy.typing import NDArray

from whencount import attribution
from whencount.advising import Grid, advise, evidence
from whencount.advising.evidence import ESTIMATES, gather, paired
from whencount.advising.index import MEANINGS, described, saturation_expected
from whencount.advising.page import advice_page, headline
from whencount.advising.references import TextFiles, from_run, from_texts
from whencount.cli.advise import advise as command
from whencount.cli.words import words as count_command
from whencount.diagnostics import index_statistics
from whencount.errors import InputError
from whencount.references import count_words
from whencount.scoring import CONFIGURATIONS, Configuration
from whencount.search import search
from whencount.vectors import SparseVectors

SHARED = Path(__file__).parents[2] / "shared" / "data"
SMALL = Grid((1.2, 0.6), (0.75, 0.25))


def world(seed: int = 0, documents: int = 300, queries: int = 60) -> tuple[Any, Any]:
    random = np.random.default_rng(seed)
    kept = random.random((documents, 80)) < 0.2
    dense = random.gamma(0.5, 3.0, (documents, 80)) * kept
    asked = random.gamma(1.0, 1.0, (queries, 80)) * (random.random((queries, 80)) < 0.1)
    asked[:, 0] += 0.1
    return (
        SparseVectors.from_dense([f"d{n}" for n in range(documents)], dense),
        SparseVectors.from_dense([f"q{n}" for n in range(queries)], asked),
    )


def top(documents: SparseVectors, queries: SparseVectors, bits: str) -> NDArray[np.int32]:
    found = search(documents, queries, depth=10, configurations=(Configuration.parse(bits),))
    positions = np.full((len(queries), 10), -1, dtype=np.int32)
    for row, count in enumerate(found.counts[0, 0]):
        positions[row, :count] = found.positions[0, 0, row, :count]
    return positions


def noisy(positions: NDArray[np.int32], documents: int, share: float) -> NDArray[np.int32]:
    """Another ranking: some of the ten are drawn at random."""
    random = np.random.default_rng(5)
    drawn = np.array([random.choice(documents, 10, replace=False) for _ in positions])
    keep = random.random(positions.shape) >= share
    return np.where(keep, positions, drawn).astype(np.int32)


def test_estimates_equal_plain_loops() -> None:
    documents, queries = world()
    reference = top(documents, queries, "010")
    reference[3] = -1
    (found,) = gather(documents, queries, {"r": reference}, SMALL, draws=50)
    assert found.queries == 59
    ideal = sum(1 / np.log2(rank + 2) for rank in range(10))
    for place, parameters in enumerate(SMALL.cells()):
        rankings = search(documents, queries, (parameters,), depth=10)
        for number in range(8):
            total = []
            for row in range(len(queries)):
                if row == 3:
                    continue
                kept = rankings.positions[0, number, row, : rankings.counts[0, number, row]]
                gains = [
                    1 / np.log2(rank + 2) for rank, one in enumerate(kept) if one in reference[row]
                ]
                total.append(sum(gains) / ideal)
            assert found.quality[place, number] == pytest.approx(np.mean(total), abs=1e-12)
    phi = attribution.shapley(found.quality[0])
    for value, name in zip(phi, ESTIMATES, strict=False):
        assert found.estimates[name].value == pytest.approx(value)
        assert found.estimates[name].low <= value <= found.estimates[name].high


def test_a_paired_difference_of_a_thing_with_itself_is_nothing() -> None:
    documents, queries = world()
    (found,) = gather(documents, queries, {"r": top(documents, queries, "111")}, SMALL, draws=50)
    same = paired(found, (0, 5), (0, 5), 50, 0)
    assert (same.value, same.low, same.high, same.sign) == (0, 0, 0, 0)


@pytest.mark.parametrize("bits", ["010", "000", "101"])
def test_advice_finds_the_configuration_that_its_references_follow(bits: str) -> None:
    documents, queries = world(1, queries=250)
    reference = noisy(top(documents, queries, bits), len(documents), 0.5)
    other = noisy(top(documents, queries, bits), len(documents), 0.6)
    found = advise(documents, queries, {"one": reference, "two": other}, grid=SMALL, draws=200)
    assert found.configuration == bits
    assert found.confidence == "strong"
    assert all(effect.low > 0 for effect in found.effects.values())
    # The inner product is compared with the best of the others.
    assert (found.rival == "000") == (bits != "000")


def test_a_reference_that_repeats_a_configuration_is_told_and_trusted_less() -> None:
    documents, queries = world(2, queries=250)
    found = advise(
        documents, queries, {"same": top(documents, queries, "011")}, grid=SMALL, draws=100
    )
    assert found.configuration == "011"
    assert found.confidence == "weak"
    assert any("nearly repeated by 011" in one for one in found.warnings)
    assert any("One reference alone" in one for one in found.warnings)


def test_thin_and_contradictory_evidence_is_warned_of() -> None:
    documents, queries = world(3, queries=30)
    references = {"a": top(documents, queries, "010"), "b": top(documents, queries, "000")}
    found = advise(documents, queries, references, grid=SMALL, draws=100)
    told = " ".join(found.warnings)
    assert "30 queries only" in told
    assert "disagree on saturation" in told
    assert found.confidence == "weak"
    assert 0 <= found.agreement["a and b"] <= 1


def test_few_documents_are_warned_of_and_trusted_less() -> None:
    documents, queries = world(1, documents=150, queries=250)
    reference = noisy(top(documents, queries, "010"), len(documents), 0.4)
    found = advise(documents, queries, {"one": reference}, grid=SMALL, draws=100)
    assert found.confidence == "weak"
    assert any("150 documents only" in one for one in found.warnings)


def test_the_index_alone_speaks_of_saturation_only() -> None:
    documents, _ = world()
    found = advise(documents)
    assert found.configuration in ("010", "000")
    assert found.confidence == "index alone"
    assert found.expectation is not None
    assert found.expectation.rows == 140
    assert 0 < found.expectation.rmse < 0.2
    assert set(found.statistics) == set(MEANINGS)
    assert any("nothing is said of IDF and length" in one for one in found.warnings)
    empty = SparseVectors.from_dense(["a", "b"], np.zeros((2, 3)))
    assert advise(empty).configuration == "000"


def test_an_index_on_disk_gives_the_same_advice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents, queries = world(5)
    references = {"r": noisy(top(documents, queries, "011"), len(documents), 0.3)}
    held = advise(documents, queries, references, grid=SMALL, draws=50)
    monkeypatch.setattr(evidence, "_IN_MEMORY", 100)
    stored = advise(documents, queries, references, grid=SMALL, draws=50, scratch=tmp_path)
    assert (tmp_path / "index" / "meta.json").is_file()
    assert stored.as_json() == held.as_json()


def test_an_index_is_described_in_the_units_that_are_named() -> None:
    dense = np.array([[1.0, 2.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0], [3.0, 0.0, 1.0, 0.0]])
    found = described(SparseVectors.from_dense(["a", "b", "c"], dense))
    assert found["nnz_mean"] == pytest.approx(5 / 3)
    assert found["length_mean"] == pytest.approx(8 / 3)
    assert found["live_features"] == 3
    assert found["df_median"] == pytest.approx(1 / 3)
    assert found["df_largest"] == 1
    assert found["active_fraction"] == pytest.approx(5 / 12)


def test_the_expectation_is_a_ridge_that_has_not_seen_the_index() -> None:
    documents, _ = world()
    first = saturation_expected(index_statistics(documents))
    again = saturation_expected(index_statistics(documents))
    assert first == again
    assert first is not None
    odd = saturation_expected(index_statistics(documents) | {"value_cv": 99.0})
    assert odd is not None
    assert odd.outside == ("value_cv",)
    assert saturation_expected(index_statistics(documents) | {"value_cv": float("nan")}) is None


def test_runs_and_texts_become_positions(tmp_path: Path) -> None:
    ids = np.array(["d0", "d1", "d2"], dtype=object)
    asked = np.array(["q0", "q1"], dtype=object)
    run = tmp_path / "run.trec"
    run.write_text(
        "q1 Q0 d2 1 9 x\nq1 Q0 elsewhere 2 8 x\nq1 Q0 d0 3 7 x\nq9 Q0 d0 1 1 x\n", encoding="utf-8"
    )
    found = from_run(run, asked, ids)
    assert found[0].tolist() == [-1] * 10
    assert found[1].tolist() == [2, 0, *[-1] * 8]
    run.write_text("q7 Q0 d2 1 9 x\n", encoding="utf-8")
    with pytest.raises(InputError, match="ids are the same"):
        from_run(run, asked, ids)
    corpus, texts = tmp_path / "c.jsonl", tmp_path / "q.jsonl"
    corpus.write_text(
        "".join(
            json.dumps({"_id": f"d{n}", "text": text}) + "\n"
            for n, text in enumerate(["red fox", "blue whale", "red red herring"])
        )
    )
    texts.write_text(json.dumps({"_id": "q0", "text": "whale"}) + "\n")
    assert from_texts(corpus, texts, asked, ids)[0, 0] == 1
    assert len(TextFiles(corpus, texts)) == 3


@pytest.fixture
def files(tmp_path: Path) -> Path:
    documents, queries = world(4, queries=80)
    for name, vectors in (("documents", documents), ("queries", queries)):
        lines = []
        for row, identifier in enumerate(vectors.ids):
            low, high = vectors.indptr[row], vectors.indptr[row + 1]
            features = map(str, vectors.features[low:high].tolist())
            vector = dict(zip(features, vectors.values[low:high].tolist(), strict=True))
            lines.append(json.dumps({"id": identifier, "vector": vector}) + "\n")
        (tmp_path / f"{name}.jsonl").write_text("".join(lines))
    positions = noisy(top(documents, queries, "010"), len(documents), 0.5)
    (tmp_path / "run.trec").write_text(
        "".join(
            f"q{row} Q0 d{one} {rank} {10 - rank} x\n"
            for row, line in enumerate(positions)
            for rank, one in enumerate(dict.fromkeys(line.tolist()))
        )
    )
    return tmp_path


def run(*arguments: str) -> Any:
    return CliRunner().invoke(command, list(arguments))


def test_the_command_prints_writes_and_repeats_itself(files: Path) -> None:
    given = ["--documents", str(files / "documents.jsonl"), "--queries",
             str(files / "queries.jsonl"), "--reference", str(files / "run.trec"),
             "--draws", "100"]  # fmt: skip
    done = run(*given, "--out", str(files / "out"))
    assert done.exit_code == 0, done.output
    assert "Advice: 010, saturation" in done.output
    assert "less that of 000 is +" in done.output
    table = pd.read_parquet(files / "out" / "estimates.parquet")
    assert len(table) == 9 * 8 + len(ESTIMATES)
    page = (files / "out" / "advice.html").read_text(encoding="utf-8")
    assert "http://" not in page.replace("http://www.w3.org", "")
    told = json.loads((files / "out" / "advice.json").read_text())
    printed = run(*given, "--json")
    assert json.loads(printed.stdout) == told
    assert told["switches"] == {"idf": False, "saturation": True, "length": False}
    quality = table.query("kind == 'quality' and k1 == 1.2 and b == .75").set_index("name")["value"]
    assert quality.to_dict() == told["references"]["run.trec"]["pseudo_quality"]
    assert set(told["references"]["run.trec"]["pseudo_quality"]) == set(map(str, CONFIGURATIONS))


def test_the_page_shows_names_as_text() -> None:
    documents, queries = world(6)
    name = "<script>alert(1)</script>"
    found = advise(documents, queries, {name: top(documents, queries, "111")}, draws=20)
    page = advice_page(found, name)
    assert "<script>alert" not in page
    assert "&lt;script&gt;" in page
    assert "Advice:" in headline(found)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--reference", "run.trec"], "--queries"),
        (["--queries", "queries.jsonl", "--reference", "missing.trec"], "missing.trec"),
        (["--queries", "run.trec"], "run.trec"),
        (["--queries", "others.jsonl", "--reference", "run.trec"], "no query shares a feature"),
        (["--seed", "-1"], "--seed"),
    ],
)
def test_bad_input_is_one_sentence(
    files: Path, arguments: list[str], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(files)
    (files / "others.jsonl").write_text('{"id": "q0", "vector": {"word": 1}}\n')
    done = run("--documents", "documents.jsonl", *arguments, "--out", "out")
    assert done.exit_code != 0
    assert sentence in f"{done.output}{done.exception}"
    assert not (files / "out").exists()


def test_word_counts_of_a_folder_are_vectors_to_begin_with(tmp_path: Path) -> None:
    folder = SHARED / "scifact"
    if not folder.is_dir():
        pytest.skip(f"{folder} is not here")
    done = CliRunner().invoke(count_command, [str(folder), "--out", str(tmp_path / "v")])
    assert done.exit_code == 0, done.output
    texts = TextFiles(folder / "corpus.jsonl", folder / "queries.jsonl")
    documents, queries, words = count_words(texts)
    first = json.loads((tmp_path / "v" / "documents.jsonl").open(encoding="utf-8").readline())
    low, high = documents.indptr[0], documents.indptr[1]
    expected = {
        words[at]: int(value)
        for at, value in zip(documents.features[low:high], documents.values[low:high], strict=True)
    }
    assert first == {"id": texts.ids[0], "contents": "", "vector": expected}
    # Held against the labels that the advice has not seen.
    reference = from_texts(
        folder / "corpus.jsonl", folder / "queries.jsonl",
        np.array([query.id for query in texts.queries], dtype=object),
        np.array(texts.ids, dtype=object),
    )  # fmt: skip
    advice = advise(documents, queries, {"text": reference}, draws=100)
    qrels = pd.read_csv(folder / "qrels" / "test.tsv", sep="\t", dtype=str)
    from whencount.collections.model import Qrels
    from whencount.judgements import Judgements
    from whencount.measures import ndcg

    judged = Judgements.from_qrels(
        Qrels(
            qrels["query-id"].to_numpy(dtype=object),
            qrels["corpus-id"].to_numpy(dtype=object),
            qrels["score"].to_numpy(dtype=np.int32),
        ),
        [query.id for query in texts.queries],
        texts.ids,
    )
    found = search(documents, queries, (advice.parameters,), depth=10)
    quality = np.nanmean(ndcg(found.positions, found.counts, judged)[0], axis=-1)
    chosen = [str(one) for one in CONFIGURATIONS].index(advice.configuration)
    assert quality[chosen] > quality[0] + 0.1
    assert quality[chosen] >= quality.max() - 0.01
