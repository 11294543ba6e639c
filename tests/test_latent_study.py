"""The study of latent terms on real texts: weights, tuning, pruning, recall, frequencies, features.

Counts of words stand for summed codes: they are sparse, not negative, and real.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from oracle import textbook_scores
from scipy import stats

from whencount.collections import PreparedCollection, open_collection, prepare
from whencount.economics import posting_work
from whencount.errors import InputError
from whencount.latent_terms import features, weights
from whencount.latent_terms.beside import beside
from whencount.latent_terms.collecting import collect
from whencount.latent_terms.frequencies import POINTS, rank_frequency
from whencount.latent_terms.pruning import pruning_curve
from whencount.latent_terms.scoring import KINDS, job_tables
from whencount.latent_terms.splitting import development_split
from whencount.latent_terms.tuning import Point, choose, evaluate, grid_table
from whencount.latent_terms.weights import changed, weigh, without
from whencount.measures import Judgements
from whencount.naming import Job
from whencount.references.lexical import count_terms
from whencount.scoring import Configuration, Parameters
from whencount.vectors import SparseVectors

OPTIONS: dict[str, Any] = {
    "budget": "native",
    "phi": 0.5,
    "k1": 1.2,
    "b": 0.75,
    "grid": {"phi": [0.5, 1], "k1": [0.6, 2.4], "b": [0, 1]},
    "development": 0.4,
    "recall": [5, 60],
    "pruning": [0.05, 0.5],
}
JOB = Job("toy_latent", "limit", 0)


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> PreparedCollection:
    options = {"source": "limit", "documents": 60, "relevant_documents": 8}
    return prepare(open_collection("limit", options), tmp_path_factory.mktemp("limit"))


@pytest.fixture(scope="module")
def codes(collection: PreparedCollection) -> tuple[SparseVectors, SparseVectors]:
    return count_terms(collection)


@pytest.fixture(scope="module")
def judgements(collection: PreparedCollection) -> Judgements:
    return Judgements.from_qrels(collection.qrels, collection.query_ids, collection.document_ids)


@pytest.fixture(scope="module")
def tables(
    collection: PreparedCollection,
    codes: tuple[SparseVectors, SparseVectors],
    judgements: Judgements,
) -> Mapping[str, pd.DataFrame]:
    documents, queries = codes
    return job_tables(
        JOB,
        [documents.slice(0, 25), documents.slice(25, 60)],
        queries,
        judgements,
        collection.query_ids,
        OPTIONS,
        corpus="limit",
        references={},
        depth=20,
        study_seed=0,
        limit=True,
        threads=1,
    )


def dense(vectors: SparseVectors) -> np.ndarray[Any, np.dtype[np.float64]]:
    result = np.zeros((len(vectors), vectors.vocabulary_size))
    rows = np.repeat(np.arange(len(vectors)), vectors.row_sizes())
    result[rows, vectors.features] = vectors.values
    return result


def test_weights_are_powers_and_rows_keep_their_order() -> None:
    values = np.array([[4, 9, 0, 1], [0, 0, 0, 0], [2, 2.0000002, 7, 2]], dtype=np.float32)
    found = weigh(SparseVectors.from_dense(["a", "b", "c"], values), 0.5)
    np.testing.assert_allclose(dense(found), np.sqrt(values.astype(np.float64)), rtol=1e-7)
    same = SparseVectors.from_dense(["a", "b", "c"], dense(found))
    assert found.features.tolist() == same.features.tolist()
    # Sums that only rounding makes equal stand by rising feature, as equal weights do everywhere.
    close = SparseVectors.from_dense(["a"], np.array([[1.0, np.nextafter(np.float32(1), 2)]]))
    assert close.features.tolist() == [1, 0]
    assert weigh(close, 0.25).features.tolist() == [0, 1]
    with pytest.raises(InputError, match="exponent of phi"):
        weigh(found, 0)


def test_pieces_on_disk_give_what_memory_gives(
    codes: tuple[SparseVectors, SparseVectors], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shards = [codes[0].slice(0, 31), codes[0].slice(31, 60)]
    whole = changed(shards, lambda piece: weigh(piece, 0.5), None)
    monkeypatch.setattr(weights, "SHARD_NONZEROS", 10)
    monkeypatch.setattr(weights, "_ROWS_PER_PIECE", 7)
    found = changed(shards, lambda piece: weigh(piece, 0.5), tmp_path / "weighed")
    assert isinstance(found.values, np.memmap)
    for name in ("indptr", "features", "values"):
        np.testing.assert_array_equal(getattr(found, name), getattr(whole, name))


def test_a_split_follows_from_ids_and_seed_alone() -> None:
    ids = np.array([f"q{number}" for number in range(4000)], dtype=object)
    inside = development_split(ids, 0.3, 0)
    assert stats.binomtest(int(inside.sum()), len(ids), 0.3).pvalue > 1e-4
    order = np.random.default_rng(0).permutation(len(ids))
    assert (development_split(ids[order], 0.3, 0) == inside[order]).all()
    assert (development_split(ids[:7], 0.3, 0) == inside[:7]).all()
    assert (development_split(ids, 0.3, 1) != inside).any()
    # A larger share only adds.
    assert (development_split(ids, 0.5, 0) >= inside).all()


def test_no_test_label_moves_a_choice(
    collection: PreparedCollection,
    codes: tuple[SparseVectors, SparseVectors],
    judgements: Judgements,
) -> None:
    documents, queries = codes
    development = development_split(collection.query_ids, 0.4, 0)
    test = np.flatnonzero(~development & judgements.evaluated)
    target = np.arange(judgements.queries)
    target[test] = np.random.default_rng(1).permutation(test)
    query, document = np.divmod(judgements.keys, judgements.documents)
    permuted = Judgements.from_positions(
        target[query], document, judgements.gains, judgements.queries, judgements.documents
    )

    def choices(of: Judgements) -> tuple[pd.DataFrame, list[int]]:
        found = evaluate(
            [documents], queries, of, OPTIONS["grid"], Point(0.5, 1.2, 0.75), threads=1
        )
        return grid_table(found, development), [choose(one, development) for one in found]

    true, chosen = choices(judgements)
    false, chosen_then = choices(permuted)
    assert chosen == chosen_then
    assert true["chosen"].tolist() == false["chosen"].tolist()
    np.testing.assert_array_equal(true["development"], false["development"])
    # The labels did change something: what is told of the test.
    assert (true["test"] != false["test"]).any()


def test_the_grid_has_every_point_and_the_untuned_one_is_not_chosen(
    tables: Mapping[str, pd.DataFrame],
) -> None:
    grid = tables["grid"]
    counts = grid.groupby("scorer").size()
    # Two phi by two k1 by two b, and the untuned point, which is not in the grid.
    assert (counts["bm25"], counts["inner"]) == (9, 2)
    assert grid.groupby("scorer")["chosen"].sum().tolist() == [1, 1]
    outside = grid[~grid["in_grid"]]
    assert outside["untuned"].tolist() == [True]
    assert not outside["chosen"].any()
    for _, lines in grid[grid["in_grid"]].groupby("scorer"):
        assert lines.loc[lines["chosen"], "development"].item() == lines["development"].max()


def test_rows_are_the_textbook_scores_on_weights(
    tables: Mapping[str, pd.DataFrame],
    codes: tuple[SparseVectors, SparseVectors],
    judgements: Judgements,
    collection: PreparedCollection,
) -> None:
    documents, queries = (np.sqrt(dense(one)) for one in codes)
    row = tables["rows"].iloc[0]
    assert (row["representation"], row["basis"], row["granularity"], row["phi"]) == (
        "toy_latent",
        "toy",
        "latent",
        0.5,
    )
    relevant = np.zeros((judgements.queries, judgements.documents), dtype=bool)
    relevant.reshape(-1)[judgements.keys] = True
    for bits in ("000", "011", "111"):
        scores = textbook_scores(
            documents, queries, Configuration.parse(bits), Parameters(1.2, 0.75)
        )
        # Scores that are equal on paper are rounded to be so, as the search does.
        order = np.argsort(-np.round(scores, 9), axis=1, kind="stable")[:, :10]
        gains = np.take_along_axis(relevant, order, axis=1) & (
            np.take_along_axis(scores, order, axis=1) > 0
        )
        discounts = 1 / np.log2(np.arange(2, 12))
        ideal = np.array([discounts[: min(10, count)].sum() for count in relevant.sum(axis=1)])
        expected = (gains @ discounts / ideal).mean()
        assert row[f"q{bits}"] == pytest.approx(expected, abs=1e-12)
    per_query = tables["per_query"]
    assert per_query["q111"].mean() == pytest.approx(row["q111"])
    # Tuning measures the same at the untuned point.
    tuned = tables["tuned"]
    untuned = tuned[tuned["setting"] == "untuned"].groupby("scorer")["ndcg_10"].mean()
    assert untuned["inner"] == pytest.approx(row["q000"])
    assert untuned["bm25"] == pytest.approx(row["q111"])
    development = development_split(collection.query_ids, 0.4, 0)
    parts = tuned.drop_duplicates("query_id").set_index("query_id")["part"]
    assert set(parts[parts == "development"].index) == set(collection.query_ids[development])


def test_pruning_drops_what_many_documents_have(
    codes: tuple[SparseVectors, SparseVectors],
    judgements: Judgements,
    tables: Mapping[str, pd.DataFrame],
) -> None:
    documents, queries = (weigh(one, 0.5) for one in codes)
    curve = pruning_curve(documents, queries, judgements, [0.5, 0.05], Parameters(), threads=1)
    assert curve["threshold"].tolist() == [1.0, 0.5, 0.05]
    row = tables["rows"].iloc[0]
    assert curve["bm25"].iloc[0] == pytest.approx(row["q111"])
    assert curve["inner"].iloc[0] == pytest.approx(row["q000"])
    live = dense(documents) > 0
    share = live.mean(axis=0)
    for _, line in curve.iterrows():
        kept = share <= line["threshold"]
        assert line["postings"] == live[:, kept].sum()
        assert line["features"] == (live.any(axis=0) & kept).sum()
        asked = (dense(queries) > 0).mean(axis=0)
        work = posting_work(len(live), share * kept, asked * kept)
        assert line["posting_work"] == pytest.approx(work)
    gone = share > 0.05
    left = dense(without(documents, gone))
    np.testing.assert_array_equal(left, np.where(gone, 0, dense(documents)))


def test_recall_is_told_of_all_and_of_the_test(
    collection: PreparedCollection,
    codes: tuple[SparseVectors, SparseVectors],
    tables: Mapping[str, pd.DataFrame],
) -> None:
    recall = tables["recall"].set_index(["scorer", "setting", "part", "cutoff"])["recall"]
    # At the rank of the last document everything is found that shares a word with its query.
    assert recall["bm25", "untuned", "all", 60] == 1
    assert ("bm25", "tuned", "all", 60) not in recall.index
    assert ("bm25", "tuned", "test", 60) in recall.index
    random = np.random.default_rng(0)
    states = ([random.normal(size=(60, 8))], random.normal(size=(len(codes[1]), 8)))
    found = beside(collection, OPTIONS, limit=True, study_seed=0, states=states, threads=1)
    others = found["recall"].set_index(["scorer", "part", "cutoff"])["recall"]
    assert others["words", "all", 5] == 1
    assert others["dense", "all", 60] == 1
    assert 0 <= others["dense", "all", 5] < 0.5
    assert set(found["frequencies"]["kind"]) == {"words"}
    assert len(beside(collection, OPTIONS, limit=False, study_seed=0)["recall"]) == 0


def test_a_rank_frequency_curve_keeps_its_ends_and_the_slope_of_all_of_it() -> None:
    ranks = np.arange(1, 5001)
    frequency = np.round(1e7 * ranks**-0.8).astype(np.int64)
    table = rank_frequency(np.random.default_rng(0).permutation(frequency), 10**8)
    assert len(table) <= POINTS
    assert table["rank"].iloc[[0, -1]].tolist() == [1, 5000]
    assert table["df"].tolist() == frequency[table["rank"] - 1].tolist()
    assert table["zipf_slope"].iloc[0] == pytest.approx(0.8, abs=1e-4)
    assert len(rank_frequency(np.zeros(3, dtype=np.int64), 5)) == 0


def test_the_strongest_rows_are_found_block_by_block(
    codes: tuple[SparseVectors, SparseVectors], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(features, "_ROWS_PER_BLOCK", 7)
    documents = codes[0]
    found = features.strongest([documents.slice(0, 20), documents.slice(20, 60)], 3, 0.5)
    full = dense(documents)
    for feature in range(documents.vocabulary_size):
        column = full[:, feature]
        best = [row for row in np.argsort(-column, kind="stable")[:3] if column[row] > 0]
        kept = found.rows[feature]
        assert kept[kept >= 0].tolist() == best
        np.testing.assert_allclose(found.weights[feature][kept >= 0], np.sqrt(column[best]))
    np.testing.assert_array_equal(found.frequency, (full > 0).sum(axis=0))
    np.testing.assert_allclose(found.mass, np.sqrt(full).sum(axis=0), rtol=1e-6)


def test_what_a_browser_shows_is_text_of_the_collection(
    collection: PreparedCollection, codes: tuple[SparseVectors, SparseVectors]
) -> None:
    options = {"features": 20, "passages": 2, "queries": 1, "characters": 50}
    shown, examples = features.feature_tables(
        [codes[0]], codes[1], collection.path, collection.path, options, exponent=0.5
    )
    assert len(shown) == 20
    # Spread by frequency, from the most to the least frequent.
    frequency = (dense(codes[0]) > 0).sum(axis=0)
    assert {shown["df"].max(), shown["df"].min()} == {
        frequency.max(),
        frequency[frequency > 0].min(),
    }
    texts = {one.id: one.text for one in collection.documents()}
    for _, line in examples[examples["kind"] == "passage"].iterrows():
        assert len(line["text"]) <= 50
        assert texts[line["id"]].startswith(line["text"].removesuffix("…"))
    asked = {one.id: one.text for one in collection.queries}
    lines = examples[examples["kind"] == "query"]
    assert [asked[one][:40] for one in lines["id"]] == [one[:40] for one in lines["text"]]


def test_tables_of_all_jobs_are_gathered_or_refused(tables: Mapping[str, pd.DataFrame]) -> None:
    other = {kind: table.assign(seed=1) for kind, table in tables.items()}
    for kind in KINDS:
        found = collect(kind, [other[kind], tables[kind]], 2)
        assert found["seed"].drop_duplicates().tolist() == [0, 1]
    with pytest.raises(InputError, match="run the study again"):
        collect("rows", [tables["rows"]], 2)


@pytest.mark.parametrize(
    ("text", "spans", "most", "expected"),
    [
        ("short", [(0, 2)], 10, ("short", [(0, 2)])),
        ("0123456789abcdef", [(1, 3)], 8, ("0123456…", [(1, 3)])),
        ("0123456789abcdef", [(5, 9)], 8, ("…345678…", [(3, 7)])),
        ("0123456789abcdef", [(14, 16)], 8, ("…9abcdef", [(6, 8)])),
        ("0123456789abcdef", [], 8, ("0123456…", [])),
    ],
)
def test_an_excerpt_shows_where_a_feature_fires(
    text: str, spans: list[tuple[int, int]], most: int, expected: tuple[str, list[tuple[int, int]]]
) -> None:
    found = features.excerpt(text, spans, most)
    assert found == expected
    assert len(found[0]) <= most
    for (low, high), (first, last) in zip(found[1], spans, strict=True):
        assert text[first:last].startswith(found[0][low:high])
