"""What an index costs: counted in blocks, ranked on disk, timed, summed up, drawn."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from whencount.economics import economics
from whencount.errors import InputError
from whencount.index_costs import measuring, sources
from whencount.index_costs.answer import Point, answer, pareto_front
from whencount.measures import Judgements, mean_quality, ndcg
from whencount.reports import economics_figures, economics_pieces, render
from whencount.reports.economics_words import amount, sentences
from whencount.scoring import CONFIGURATIONS, Parameters
from whencount.search import search
from whencount.vectors import SparseVectors

ROOT = Path(__file__).parents[1]
KEYS = {"representation": "sae_token", "kind": "basis", "collection": "made", "corpus": "made"}
DENSE = {**KEYS, "representation": "dense", "kind": "dense"}
BUDGETS = ["4/8", "native"]


def vectors(rows: int, seed: int, name: str) -> SparseVectors:
    random = np.random.default_rng(seed)
    dense = random.lognormal(size=(rows, 60)) * (random.random((rows, 60)) < 0.2)
    dense[::50] = 0
    return SparseVectors.from_dense([f"{name}{row}" for row in range(rows)], dense)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two shards of documents, queries, and dense states of both."""
    folder = tmp_path_factory.mktemp("vectors")
    random = np.random.default_rng(9)
    documents = vectors(300, 1, "d")
    parts = {
        "documents.0of2": documents.slice(0, 180),
        "documents.1of2": documents.slice(180, 300),
        "queries": vectors(40, 2, "q"),
    }
    for name, part in parts.items():
        (folder / name).mkdir()
        part.save(folder / name / "sae_token.seed0")
        np.save(folder / name / "states.npy", random.normal(size=(len(part), 16)).astype("f4"))
    return folder


def shards(folder: Path) -> list[Path]:
    return [folder / "documents.0of2", folder / "documents.1of2"]


@pytest.fixture(scope="module")
def judgements() -> Judgements:
    random = np.random.default_rng(3)
    queries = np.repeat(np.arange(0, 40, 2), 5)
    documents = random.integers(0, 300, len(queries))
    _, first = np.unique(queries * 300 + documents, return_index=True)
    return Judgements.from_positions(
        queries[first], documents[first], np.ones(len(first), np.int64), 40, 300
    )


def measured(
    folder: Path, judgements: Judgements, place: Path, part: str = "sae_token.seed0"
) -> tuple[pd.DataFrame, pd.DataFrame]:
    keys, budgets = (KEYS, BUDGETS) if part != sources.DENSE_PART else (DENSE, ["native"])
    return measuring.costs(
        shards(folder),
        folder / "queries",
        part,
        judgements,
        keys,
        budgets,
        Parameters(0.9, 0.4),
        place,
        threads=1,
    )


def test_a_row_has_what_whole_vectors_give(
    made: Path, judgements: Judgements, tmp_path: Path
) -> None:
    rows, profiles = measured(made, judgements, tmp_path)
    whole = SparseVectors.concatenate(
        [SparseVectors.load(folder / "sae_token.seed0") for folder in shards(made)]
    )
    queries = SparseVectors.load(made / "queries" / "sae_token.seed0")
    assert rows["budget"].tolist() == BUDGETS
    for row, (query_budget, document_budget) in zip(
        rows.to_dict("records"), [(4, 8), (None, None)], strict=True
    ):
        documents, asked = whole.cap(document_budget), queries.cap(query_budget)
        expected = economics(documents, asked).columns()
        for name, value in expected.items():
            assert row[name] == pytest.approx(value, rel=1e-12), name
        found = search(documents, asked, (Parameters(0.9, 0.4),), depth=10)
        means = mean_quality(ndcg(found.positions[0], found.counts[0], judgements), judgements)
        assert [row[f"q{one}"] for one in CONFIGURATIONS] == means.tolist()
        own = profiles[(profiles["budget"] == row["budget"]) & (profiles["side"] == "queries")]
        shares = -np.sort(-np.bincount(asked.features, minlength=60) / 40)
        assert own["share"].tolist() == shares[own["rank"] - 1].tolist()
    assert not [*tmp_path.iterdir()], "an index was left behind"


def test_the_bytes_of_an_index_are_those_on_disk(
    made: Path, judgements: Judgements, tmp_path: Path
) -> None:
    rows, _ = measured(made, judgements, tmp_path)
    source = sources.open_source(shards(made), made / "queries", "sae_token.seed0", (None, None))
    source.index(tmp_path / "index", Parameters())
    stored = sum(path.stat().st_size for path in (tmp_path / "index").iterdir())
    assert rows["index_bytes"].tolist()[1] == stored > 6 * source.profiles()[0].nonzeros
    assert rows["index_bytes"].tolist()[0] < stored


def test_shards_are_counted_block_by_block(
    made: Path, judgements: Judgements, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected, _ = measured(made, judgements, tmp_path)
    monkeypatch.setattr(sources, "_ROWS_AT_ONCE", 7)
    monkeypatch.setattr(measuring, "_QUERIES_AT_ONCE", 3)
    found, _ = measured(made, judgements, tmp_path)
    pd.testing.assert_frame_equal(found, expected, rtol=1e-12)


def test_weights_of_latent_terms_are_raised_before_they_are_capped(
    made: Path, judgements: Judgements, tmp_path: Path
) -> None:
    source = sources.Sparse(
        [SparseVectors.load(folder / "sae_token.seed0") for folder in shards(made)],
        SparseVectors.load(made / "queries" / "sae_token.seed0"),
        (4, 8),
        exponent=0.5,
    )
    rooted = tmp_path / "rooted"
    for name in ("documents.0of2", "documents.1of2", "queries"):
        own = SparseVectors.load(made / name / "sae_token.seed0")
        (rooted / name).mkdir(parents=True)
        replace(own, values=np.sqrt(own.values)).save(rooted / name / "sae_token.seed0")
    expected, _ = measured(rooted, judgements, tmp_path)
    row = source.costs(*source.profiles()).columns()
    for name, value in row.items():
        assert expected[name].iloc[0] == pytest.approx(value, rel=1e-6), name
    found, _ = source.index(tmp_path / "index", Parameters(0.9, 0.4)).rank(
        0, 40, CONFIGURATIONS[:1], 10, 1
    )
    means = mean_quality(ndcg(found[0], np.full(40, 10, np.int32), judgements), judgements)
    assert expected["q000"].iloc[0] == pytest.approx(float(means), rel=1e-6)


def test_dense_vectors_multiply_every_number(
    made: Path, judgements: Judgements, tmp_path: Path
) -> None:
    rows, profiles = measured(made, judgements, tmp_path, sources.DENSE_PART)
    (row,) = rows.to_dict("records")
    assert (row["posting_work"], row["document_nnz"], row["document_nnz_sd"]) == (300 * 16, 16, 0)
    assert (row["activation_support"], row["payload_bytes"]) == (16, 300 * 16 * 4)
    assert row["index_bytes"] == 300 * 16 * 4
    states = [np.load(folder / "states.npy") for folder in (*shards(made), made / "queries")]
    units = [one / np.linalg.norm(one, axis=1, keepdims=True) for one in states]
    cosines = units[2].astype(float) @ np.concatenate(units[:2]).astype(float).T
    order = np.argsort(-cosines, axis=1, kind="stable")[:, :10].astype(np.int32)
    expected = mean_quality(ndcg(order, np.full(40, 10, np.int32), judgements), judgements)
    assert row["q000"] == row["q111"] == pytest.approx(float(expected), rel=1e-12)
    assert (profiles["share"] == 1).all()


@pytest.mark.parametrize("part", ["sae_token.seed0", sources.DENSE_PART])
def test_queries_are_timed_one_by_one(made: Path, tmp_path: Path, part: str) -> None:
    frame = measuring.times(
        shards(made),
        made / "queries",
        part,
        40,
        {"representation": "one", "collection": "made"},
        ["native"],
        Parameters(),
        tmp_path,
        sample=7,
        rounds=2,
        threads=1,
    )
    (row,) = frame.to_dict("records")
    assert (row["timed_queries"], row["rounds"], row["threads"]) == (7, 2, 1)
    assert np.isnan(row["eight_median_ms"]) == (part == sources.DENSE_PART)
    for name in ("full",) if part == sources.DENSE_PART else ("full", "eight"):
        assert 0 < row[f"{name}_median_ms"] <= row[f"{name}_p95_ms"] < 60_000


def test_other_vocabularies_and_missing_states_are_refused(made: Path, tmp_path: Path) -> None:
    queries = SparseVectors.load(made / "queries" / "sae_token.seed0")
    with pytest.raises(InputError, match="other vocabularies"):
        sources.Sparse([queries], replace(queries, vocabulary_size=61))
    with pytest.raises(InputError, match="encode again"):
        sources.open_source([tmp_path], made / "queries", sources.DENSE_PART, (None, None))


def test_no_point_of_a_front_is_beaten() -> None:
    random = np.random.default_rng(4)
    candidates = [
        Point("one", "native", "basis", "q111", float(quality), float(cost))
        for quality, cost in random.integers(0, 12, (60, 2))
    ]
    front = pareto_front(candidates)
    assert [one.cost for one in front] == sorted({one.cost for one in front})
    for one in candidates:
        beaten = any(
            other.quality >= one.quality
            and other.cost <= one.cost
            and (other.quality, other.cost) != (one.quality, one.cost)
            for other in candidates
        )
        assert beaten != any((two.quality, two.cost) == (one.quality, one.cost) for two in front)


@pytest.fixture(scope="module")
def tables(
    made: Path, judgements: Judgements, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, pd.DataFrame]:
    place = tmp_path_factory.mktemp("tables")
    parts = [measured(made, judgements, place, part) for part in ("sae_token.seed0", "states.npy")]
    costs = pd.concat([one for one, _ in parts], ignore_index=True)
    times = costs[["representation", "collection", "budget"]].copy()
    times[["timed_queries", "rounds", "threads"]] = 7, 2, 1
    for number, name in enumerate(("full_median_ms", "full_p95_ms", "eight_median_ms")):
        times[name] = np.arange(1.0, len(times) + 1) + number
    times["eight_p95_ms"] = times["eight_median_ms"] * 2
    profiles = pd.concat([one for _, one in parts], ignore_index=True)
    return {"costs": costs, "profiles": profiles, "times": times}


def test_every_column_is_explained(tables: dict[str, pd.DataFrame]) -> None:
    text = (ROOT / "docs" / "tables.md").read_text(encoding="utf-8")
    text = text[text.index("## economics/economics.parquet") :]
    text = text[: text.index("## transfer")]
    for frame in tables.values():
        named = [name for name in frame if name not in {f"q{one}" for one in CONFIGURATIONS}]
        assert [name for name in named if f"`{name}`" not in text] == []


def test_the_words_follow_the_numbers(tables: dict[str, pd.DataFrame]) -> None:
    costs = tables["costs"].copy()
    costs[["q000", "q111"]] = [[0.2, 0.4], [0.3, 0.5], [0.49, 0.49]]
    costs["posting_work"] = [100.0, 10_000.0, 50_000.0]
    found = answer(costs, tables["times"])
    (one,) = found.collections
    assert (one.best.representation, one.best.budget, one.best.scorer) == (
        "sae_token",
        "native",
        "q111",
    )
    assert one.work_against_time is None
    said = " ".join(sentences(found))
    assert "the highest nDCG@10 is 0.500, of SAE token by full BM25, at 10.0 thousand" in said
    assert "Nothing cheaper keeps 95" in said
    costs.loc[0, "q111"] = 0.48
    said = " ".join(sentences(answer(costs, tables["times"])))
    assert "SAE token at 4/8 by full BM25 keeps 96" in said
    assert "at 1.0\N{NO-BREAK SPACE}% of the work" in said
    more = pd.concat([costs, costs.assign(collection="other")], ignore_index=True)
    assert len(answer(more, tables["times"]).collections) == 2


def test_amounts_read_well() -> None:
    assert [amount(one) for one in (0.1234, 12.0, 999.0, 12_340.0, 4.56e6, 7.8e9)] == [
        "0.123",
        "12",
        "999",
        "12.3 thousand",
        "4.6 million",
        "7.8 billion",
    ]


def test_figures_and_table_show_every_representation(tables: dict[str, pd.DataFrame]) -> None:
    costs, times = tables["costs"], tables["times"]
    drawings = [
        economics_figures.quality_against_cost(costs, "posting_work"),
        economics_figures.quality_against_cost(costs, "index_bytes"),
        *economics_figures.profiles(tables["profiles"], costs),
        economics_figures.work_against_time(costs, times),
    ]
    for drawing in drawings:
        assert drawing is not None
        shown = drawing._repr_html_()
        assert "dense vectors" in shown
        assert "SAE token" in shown
    markup = economics_pieces.table(costs, times)._repr_html_()
    assert markup.count("<tr>") == 1 + len(costs)
    assert economics_figures.work_against_time(costs, times.iloc[:0]) is None


@pytest.mark.study
def test_the_page_is_drawn(tables: dict[str, pd.DataFrame], tmp_path: Path) -> None:
    from whencount.tables import write_table

    paths = {name: str(tmp_path / f"{name}.parquet") for name in tables}
    for name, frame in tables.items():
        write_table(frame, paths[name])
    notebook = ROOT / "workflow" / "notebooks" / "economics.ipynb"
    parameters = {"study": "made", "settings": {"k1": 0.9}, "tables": paths}
    render(notebook, parameters, tmp_path / "figures", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    for name in ("posting_work", "index_bytes"):
        assert f'id="figure-quality_against_{name}"' in page
        assert (tmp_path / "figures" / f"quality_against_{name}.svg").is_file()
    assert 'id="figure-profiles_1"' in page
    assert 'id="figure-work_against_time"' in page
