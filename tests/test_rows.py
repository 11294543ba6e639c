from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from whencount import cells as cells_module
from whencount import rows as library
from whencount.cells import score_cells
from whencount.collecting import collect
from whencount.controls import controlled_frequency
from whencount.errors import InputError
from whencount.measures import Judgements
from whencount.naming import KEYS, Cell, Job
from whencount.scoring import Parameters
from whencount.search import collection_statistics, search
from whencount.study_rows import reported
from whencount.vectors import SparseVectors

VOCABULARY = 40
JOB = Job("sae_shared_token", "toy", 0)


def random_vectors(rows: int, seed: int, prefix: str) -> SparseVectors:
    generator = np.random.default_rng(seed)
    dense = generator.gamma(1.0, 1.0, (rows, VOCABULARY))
    dense *= generator.random((rows, VOCABULARY)) < np.linspace(0.7, 0.05, VOCABULARY)
    return SparseVectors.from_dense([f"{prefix}{row}" for row in range(rows)], dense)


@pytest.fixture(scope="module")
def toy() -> tuple[SparseVectors, SparseVectors, Judgements]:
    documents, queries = random_vectors(60, 0, "d"), random_vectors(12, 1, "q")
    generator = np.random.default_rng(2)
    pairs = [(q, d) for q in range(10) for d in generator.choice(60, 4, replace=False)]
    judgements = Judgements.from_positions(
        np.array([pair[0] for pair in pairs]),
        np.array([pair[1] for pair in pairs]),
        np.ones(len(pairs)),
        12,
        60,
    )
    return documents, queries, judgements


CELLS = [
    Cell("8/10", 0.6, 0.0),
    Cell("8/10", 1.2, 0.75),
    Cell("8/10", 1.2, 0.75, "shuffled_df"),
    Cell("8/10", 1.2, 0.75, "uniform_df"),
    Cell("native", 1.2, 0.75),
]


@pytest.fixture(scope="module")
def results(toy: tuple[SparseVectors, SparseVectors, Judgements]) -> dict[Cell, Any]:
    documents, queries, judgements = toy
    return score_cells([documents], queries, judgements, CELLS, depth=20, seed=5)


def test_a_collection_in_shards_gives_the_rows_of_the_whole(
    toy: tuple[SparseVectors, SparseVectors, Judgements], results: dict[Cell, Any]
) -> None:
    documents, queries, judgements = toy
    shards = [documents.slice(0, 7), documents.slice(7, 7), documents.slice(7, 60)]
    again = score_cells(shards, queries, judgements, CELLS, depth=20, seed=5)
    for cell in CELLS:
        assert again[cell].row == results[cell].row
        np.testing.assert_array_equal(again[cell].per_query, results[cell].per_query)


@pytest.mark.parametrize("cuts", [[0, 60], [0, 7, 7, 60]])
def test_a_large_collection_is_capped_on_disk_and_gives_the_same_rows(
    toy: tuple[SparseVectors, SparseVectors, Judgements],
    results: dict[Cell, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    cuts: list[int],
) -> None:
    documents, queries, judgements = toy
    shards = [documents.slice(start, stop) for start, stop in pairwise(cuts)]
    monkeypatch.setattr(cells_module, "SHARD_NONZEROS", 0)
    monkeypatch.setattr(cells_module, "_ROWS_PER_PIECE", 16)
    read: list[SparseVectors] = []
    load = SparseVectors.load

    def loaded(path: Path) -> SparseVectors:
        read.append(load(path))
        return read[-1]

    monkeypatch.setattr(SparseVectors, "load", loaded)
    again = score_cells(shards, queries, judgements, CELLS, depth=20, seed=5, checkpoints=tmp_path)
    # Capped once for the three cells of one budget, and once whole where there are several shards.
    assert [one.nonzeros for one in read] == [
        documents.cap(10).nonzeros,
        *([documents.nonzeros] if len(shards) > 1 else []),
    ]
    assert all(isinstance(one.values, np.memmap) for one in read)
    for cell in CELLS:
        assert again[cell].row == results[cell].row
        np.testing.assert_array_equal(again[cell].per_query, results[cell].per_query)


def test_a_cell_computed_alone_equals_the_cell_of_a_sweep(
    toy: tuple[SparseVectors, SparseVectors, Judgements], results: dict[Cell, Any]
) -> None:
    documents, queries, judgements = toy
    alone = score_cells([documents], queries, judgements, CELLS[1:2], depth=20, seed=5)
    assert alone[CELLS[1]].row == results[CELLS[1]].row


def test_quality_is_the_mean_over_queries_with_a_positive_judgement(
    results: dict[Cell, Any],
) -> None:
    result = results[CELLS[1]]
    assert result.row["queries"] == 10
    assert np.isnan(result.per_query[10:]).all()
    assert result.row["q111"] == pytest.approx(result.per_query[:10, 7].mean(), rel=1e-15)


def test_under_uniform_df_idf_changes_no_ranking(results: dict[Cell, Any]) -> None:
    row = results[CELLS[3]].row
    for rest in ("00", "01", "10", "11"):
        assert row[f"q1{rest}"] == row[f"q0{rest}"]


def test_controls_leave_configurations_without_idf_alone(results: dict[Cell, Any]) -> None:
    plain, shuffled = results[CELLS[1]].row, results[CELLS[2]].row
    assert [plain[f"q0{rest}"] for rest in ("00", "01", "10", "11")] == [
        shuffled[f"q0{rest}"] for rest in ("00", "01", "10", "11")
    ]
    assert plain["q111"] != shuffled["q111"]


def test_shuffled_df_permutes_and_follows_its_seed(
    toy: tuple[SparseVectors, SparseVectors, Judgements],
) -> None:
    statistics = collection_statistics(toy[0])
    first = controlled_frequency(statistics, "shuffled_df", 1)
    again = controlled_frequency(statistics, "shuffled_df", 1)
    other = controlled_frequency(statistics, "shuffled_df", 2)
    assert first is not None
    assert again is not None
    assert other is not None
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    assert sorted(first) == sorted(statistics.document_frequency)


def test_an_unknown_control_is_refused(
    toy: tuple[SparseVectors, SparseVectors, Judgements],
) -> None:
    with pytest.raises(InputError, match="shuffled_df or uniform_df"):
        controlled_frequency(collection_statistics(toy[0]), "none_df", 0)


def test_pooled_quantised_codes_give_exactly_nothing_to_saturation_and_length() -> None:
    """Study, section 2: eight equal values per document, so no ranking can change."""
    generator = np.random.default_rng(0)
    scale = np.float32(1 / 0.37)

    def codes(rows: int, prefix: str) -> SparseVectors:
        chosen = generator.integers(0, 16, (rows, 8)) + 16 * np.arange(8)
        return SparseVectors.from_coo(
            [f"{prefix}{row}" for row in range(rows)],
            np.repeat(np.arange(rows), 8),
            chosen.reshape(-1),
            np.full(rows * 8, scale),
            128,
        )

    documents, queries = codes(400, "d"), codes(50, "q")
    judgements = Judgements.from_positions(
        np.repeat(np.arange(50), 3),
        generator.integers(0, 400, 150),
        np.ones(150),
        50,
        400,
    )
    cells = [Cell("32/128", k1, b) for k1 in (0.0, 0.6, 2.4) for b in (0.0, 0.5, 1.0)]
    results = score_cells([documents], queries, judgements, cells, depth=50)
    table, _ = library.tables(
        Job("pq_pooled", "toy", 0), results, queries.ids, judgements.evaluated
    )
    assert (table["shapley_saturation"] == 0.0).all()
    assert (table["shapley_length"] == 0.0).all()
    assert (table["tie_share_010"] > 0.5).all()


def test_tables_name_every_row_and_query(
    toy: tuple[SparseVectors, SparseVectors, Judgements], results: dict[Cell, Any]
) -> None:
    queries = toy[1]
    table, per_query = library.tables(JOB, results, queries.ids, toy[2].evaluated)
    assert list(table["basis"].unique()) == ["sae_shared"]
    assert list(table["granularity"].unique()) == ["token"]
    native = table[table["budget"] == "native"]
    assert native["document_budget"].isna().all()
    assert len(per_query) == len(CELLS) * 10
    means = per_query.groupby(["budget", "k1", "b", "control"])["q011"].mean()
    for row in table.to_dict("records"):
        key = (row["budget"], row["k1"], row["b"], row["control"])
        assert means[key] == pytest.approx(row["q011"], rel=1e-12)


def test_index_statistics_are_those_of_the_capped_documents(results: dict[Cell, Any]) -> None:
    assert results[CELLS[1]].row["value_cv"] != results[CELLS[4]].row["value_cv"]
    assert results[CELLS[0]].row["value_cv"] == results[CELLS[1]].row["value_cv"]


CONFIG = {
    "bases": ["sae"],
    "granularities": ["token"],
    "shared": ["sae"],
    "collections": ["toy"],
    "families": {
        "primary": {
            "representations": ["sae_shared_token"],
            "budgets": ["8/10"],
            "k1": [1.2],
            "b": [0.75],
        },
        "parameters": {
            "representations": ["sae_shared_token"],
            "budgets": ["8/10"],
            "k1": [0.6, 1.2],
            "b": [0.75],
        },
    },
}


def small_table(toy: tuple[SparseVectors, SparseVectors, Judgements]) -> pd.DataFrame:
    documents, queries, judgements = toy
    cells = [Cell("8/10", 1.2, 0.75), Cell("8/10", 0.6, 0.75)]
    results = score_cells([documents], queries, judgements, cells, depth=20)
    return library.tables(JOB, results, queries.ids, judgements.evaluated)[0]


def test_collected_rows_know_their_families(
    toy: tuple[SparseVectors, SparseVectors, Judgements],
) -> None:
    rows = collect([small_table(toy)], CONFIG)
    assert rows["families"].tolist() == ["parameters", "primary parameters"]
    chosen = reported(rows, "primary", ["toy"])
    assert chosen["k1"].tolist() == [1.2]
    with pytest.raises(InputError, match="'seeds'"):
        reported(rows, "seeds")


def test_rows_name_their_corpus_and_tables_without_one_are_collected_all_the_same(
    toy: tuple[SparseVectors, SparseVectors, Judgements], results: dict[Cell, Any]
) -> None:
    table = small_table(toy)
    assert table["corpus"].tolist() == ["toy", "toy"]
    assert collect([table], CONFIG)["corpus"].tolist() == ["toy", "toy"]
    borrowed, _ = library.tables(JOB, results, toy[1].ids, toy[2].evaluated, corpus="other")
    assert set(borrowed["corpus"]) == {"other"}
    assert list(borrowed.columns[3:5]) == ["collection", "corpus"]
    foreign = collect([table.drop(columns="corpus")], CONFIG)
    assert foreign.columns.get_loc("families") == len(KEYS) - 1


def test_a_table_that_misses_a_row_is_refused(
    toy: tuple[SparseVectors, SparseVectors, Judgements],
) -> None:
    with pytest.raises(InputError, match="1 missing, 0 unasked"):
        collect([small_table(toy).iloc[:1]], CONFIG)


def test_rows_hold_what_a_search_by_hand_gives(
    toy: tuple[SparseVectors, SparseVectors, Judgements], results: dict[Cell, Any]
) -> None:
    documents, queries, judgements = toy
    rankings = search(documents.cap(10), queries.cap(8), [Parameters(0.6, 0.0)], depth=10)
    relevant = {divmod(int(key), judgements.documents) for key in judgements.keys}
    gains = np.array(
        [
            [(query, int(document)) in relevant for document in rankings.positions[0, 7, query]]
            for query in range(10)
        ],
        dtype=float,
    )
    discount = 1 / np.log2(np.arange(2, 12))
    sizes = np.bincount([query for query, _ in relevant], minlength=10)
    ideal = np.array([discount[:size].sum() for size in sizes])
    assert results[CELLS[0]].row["q111"] == pytest.approx(
        float((gains @ discount / ideal).mean()), abs=1e-12
    )


def test_a_killed_job_keeps_its_finished_budgets(
    toy: tuple[SparseVectors, SparseVectors, Judgements],
    results: dict[Cell, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    documents, queries, judgements = toy
    calls = 0

    def failing(*arguments: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise KeyboardInterrupt
        return search(*arguments, **options)

    def run() -> dict[Cell, Any]:
        return score_cells(
            [documents], queries, judgements, CELLS, depth=20, seed=5, checkpoints=tmp_path
        )

    monkeypatch.setattr(cells_module, "search", failing)
    with pytest.raises(KeyboardInterrupt):
        run()
    assert len(list(tmp_path.iterdir())) == 2
    resumed = run()
    assert calls == 5
    assert list(resumed) == list(results)
    for cell, result in results.items():
        assert repr(resumed[cell].row) == repr(result.row)
        assert resumed[cell].per_query.tobytes() == result.per_query.tobytes()
