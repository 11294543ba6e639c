"""The paired bootstrap against its definition written out, Holm, and reproducibility."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from whencount.attribution import QUALITY_COLUMNS, main_effect, margin
from whencount.errors import InputError
from whencount.scoring import SWITCHES
from whencount.significance import (
    EFFECTS,
    attainability,
    bootstrap,
    holm,
    resamples,
    significance,
)


def qualities(rows: int, queries: int, seed: int = 0) -> NDArray[np.float64]:
    random = np.random.default_rng(seed)
    base = random.random((rows, queries, 1))
    return np.clip(base + random.normal(0.01, 0.2, size=(rows, queries, 8)), 0, 1)


def statistics(mean: NDArray[np.float64]) -> NDArray[np.float64]:
    """Margin and standardised main effects of eight means, as the study writes them."""
    deviation = mean.std()
    if deviation <= 1e-12:
        return np.zeros(4)
    return np.array([margin(mean), *(main_effect(mean) / deviation)])


def literal_p(
    quality: NDArray[np.float64], indices: list[NDArray[np.int64]]
) -> NDArray[np.float64]:
    """The definition word by word for one row, shape (queries, 8)."""
    observed = statistics(quality.mean(axis=0))
    extreme = np.zeros(4)
    for drawn in indices:
        extreme += np.abs(statistics(quality[drawn].mean(axis=0)) - observed) >= np.abs(observed)
    return (1 + extreme) / (len(indices) + 1)


def test_p_equals_the_literal_bootstrap_on_the_same_draws() -> None:
    quality = qualities(rows=6, queries=23)
    draws = 700
    indices = [
        np.repeat(np.arange(23), counts.astype(int))
        for block in resamples(23, draws, collection="scifact", seed=3)
        for counts in block
    ]
    assert len(indices) == draws
    result = bootstrap(quality, collection="scifact", draws=draws, seed=3)
    for row in range(6):
        np.testing.assert_allclose(
            result.observed[row], statistics(quality[row].mean(axis=0)), atol=1e-12
        )
        np.testing.assert_allclose(result.p[row], literal_p(quality[row], indices), atol=1e-15)


def test_p_agrees_with_independent_draws_within_sampling_error() -> None:
    quality = qualities(rows=1, queries=40, seed=8)
    random = np.random.default_rng(99)
    indices = [random.integers(0, 40, size=40) for _ in range(4_000)]
    expected = literal_p(quality[0], indices)
    result = bootstrap(quality, collection="any", draws=4_000, seed=1)
    # Five standard errors of the difference of two proportions.
    error = 5 * np.sqrt(2 * np.maximum(expected * (1 - expected), 1e-4) / 4_000)
    assert (np.abs(result.p[0] - expected) <= error).all()
    assert (expected > 0.01).any(), "a case where p is not at its floor"


def test_p_of_a_row_does_not_depend_on_the_rows_beside_it_or_their_order() -> None:
    quality = qualities(rows=9, queries=31)
    together = bootstrap(quality, collection="fiqa", draws=500, seed=0).p
    backwards = bootstrap(quality[::-1], collection="fiqa", draws=500, seed=0).p[::-1]
    alone = np.stack(
        [bootstrap(row[None], collection="fiqa", draws=500, seed=0).p[0] for row in quality]
    )
    np.testing.assert_array_equal(together, backwards)
    np.testing.assert_array_equal(together, alone)


def test_draws_follow_from_seed_and_collection() -> None:
    def first(collection: str, seed: int) -> NDArray[np.float64]:
        return next(resamples(50, 10, collection=collection, seed=seed))

    np.testing.assert_array_equal(first("a", 0), first("a", 0))
    assert (first("a", 0) != first("b", 0)).any()
    assert (first("a", 0) != first("a", 1)).any()
    assert (first("a", 0).sum(axis=1) == 50).all()


def test_more_draws_begin_with_the_same_draws() -> None:
    few = np.concatenate(list(resamples(700, 300, collection="a", seed=0)))
    many = np.concatenate(list(resamples(700, 3_000, collection="a", seed=0)))
    assert many.shape == (3_000, 700)
    np.testing.assert_array_equal(few, many[:300])


def test_configurations_that_never_differ_have_p_of_one() -> None:
    quality = np.repeat(np.random.default_rng(0).random((1, 20, 1)), 8, axis=2)
    result = bootstrap(quality, collection="a", draws=200, seed=0)
    np.testing.assert_array_equal(result.observed, np.zeros((1, 4)))
    np.testing.assert_array_equal(result.p, np.ones((1, 4)))


def test_switch_that_changes_nothing_has_effect_zero_and_p_of_one() -> None:
    half = np.random.default_rng(1).random((3, 30, 4))
    quality = np.repeat(half, 2, axis=2)  # length, the last bit, changes nothing
    result = bootstrap(quality, collection="a", draws=300, seed=0)
    length = EFFECTS.index("length")
    np.testing.assert_array_equal(result.observed[:, length], 0.0)
    np.testing.assert_array_equal(result.p[:, length], 1.0)


def test_effect_that_every_query_shows_reaches_the_smallest_p() -> None:
    random = np.random.default_rng(2)
    quality = np.zeros((1, 60, 8))
    quality[..., 4:] = 0.5 + 0.1 * random.random((1, 60, 1))
    result = bootstrap(quality, collection="a", draws=999, seed=0)
    assert result.p[0, EFFECTS.index("full")] == 1 / 1000
    assert result.p[0, EFFECTS.index("idf")] == 1 / 1000


def test_holm_equals_its_definition() -> None:
    p = np.array([0.01, 0.04, 0.03, 0.005])
    # Sorted: .005 x 4, .01 x 3, .03 x 2, .04 x 1, then the running maximum.
    np.testing.assert_allclose(holm(p), [0.03, 0.06, 0.06, 0.02])
    np.testing.assert_allclose(holm(p.reshape(2, 2)), [[0.03, 0.06], [0.06, 0.02]])
    with pytest.raises(InputError, match="p of the family is missing"):
        holm([0.1, np.nan])


def test_attainability_says_when_nothing_can_pass() -> None:
    fine = attainability(140, 10_000)
    assert fine.passes
    assert fine.smallest == pytest.approx(140 / 10_001)
    hopeless = attainability(140, 999)
    assert not hopeless.passes
    assert hopeless.message == (
        "with 999 draws and 140 tests the smallest attainable Holm p is 0.14, so nothing can pass"
        " 0.05; use at least 2,799 draws"
    )
    assert attainability(140, 2_799).passes
    assert not attainability(140, 2_798).passes
    with pytest.raises(InputError, match="alpha is 1"):
        attainability(1, 10, alpha=1.0)


def study(seed: int = 0) -> pd.DataFrame:
    parts: list[pd.DataFrame] = []
    for collection, queries in (("a", 12), ("b", 17)):
        for name in ("pca", "sae"):
            part = pd.DataFrame(
                qualities(1, queries, seed=seed + len(parts))[0], columns=list(QUALITY_COLUMNS)
            )
            part.insert(0, "query_id", [f"q{number}" for number in range(queries)])
            part.insert(0, "representation", name)
            part.insert(0, "collection", collection)
            parts.append(part)
    return pd.concat(parts, ignore_index=True)


def test_study_table_has_a_line_per_row_and_holm_over_each_family() -> None:
    lines = study()
    table = significance(lines, ["representation"], draws=400, seed=5)
    assert table[["collection", "representation"]].to_numpy().tolist() == [
        ["a", "pca"],
        ["a", "sae"],
        ["b", "pca"],
        ["b", "sae"],
    ]
    assert table["queries"].tolist() == [12, 12, 17, 17]
    np.testing.assert_allclose(table["holm_full"], holm(table["p_full"]))
    mains = [f"p_{switch}" for switch in SWITCHES]
    np.testing.assert_allclose(
        table[[f"holm_{switch}" for switch in SWITCHES]], holm(table[mains].to_numpy())
    )
    row = lines[(lines.collection == "b") & (lines.representation == "sae")]
    alone = bootstrap(
        row.sort_values("query_id")[list(QUALITY_COLUMNS)].to_numpy()[None],
        collection="b",
        draws=400,
        seed=5,
    )
    np.testing.assert_array_equal(table.iloc[3][[f"p_{name}" for name in EFFECTS]], alone.p[0])


def test_rows_with_few_queries_are_never_significant() -> None:
    lines = study()
    few = pd.concat([lines[lines["collection"] == "b"], lines[lines["query_id"].isin(["q0"])]])
    few = few.drop_duplicates()
    few.loc[few["collection"] == "a", list(QUALITY_COLUMNS)] = [0, 0, 0, 0, 1, 1, 1, 1]
    table = significance(few, ["representation"], draws=400)
    one = table[table["collection"] == "a"]
    assert one["queries"].tolist() == [1, 1]
    # Each of the 400 resamples of one query is that query: the formula alone would give 1/401.
    assert (one["statistic_idf"] == 2).all()
    tested = [f"{kind}_{effect}" for kind in ("p", "holm") for effect in EFFECTS]
    assert (one[tested].to_numpy() == 1).all()
    pd.testing.assert_frame_equal(
        table[table["collection"] == "b"].filter(like="p_").reset_index(drop=True).iloc[:, :4],
        significance(lines, ["representation"], draws=400)[2:]
        .filter(like="p_")
        .reset_index(drop=True)
        .iloc[:, :4],
    )


def test_study_table_does_not_depend_on_the_order_of_lines() -> None:
    lines = study()
    shuffled = lines.sample(frac=1, random_state=0)
    pd.testing.assert_frame_equal(
        significance(lines, ["representation"], draws=300),
        significance(shuffled, ["representation"], draws=300),
    )


def test_rows_with_other_queries_or_a_query_twice_are_refused() -> None:
    lines = study()
    with pytest.raises(InputError, match="must have the same queries"):
        significance(lines.iloc[1:], ["representation"], draws=10)
    with pytest.raises(InputError, match="query 'q0' stands twice"):
        significance(pd.concat([lines, lines.iloc[:1]]), ["representation"], draws=10)


def test_missing_quality_and_no_draws_are_refused() -> None:
    with pytest.raises(InputError, match="not finite"):
        bootstrap(np.full((1, 3, 8), np.nan), collection="a", draws=10)
    with pytest.raises(InputError, match="0 bootstrap draws"):
        bootstrap(np.zeros((1, 3, 8)), collection="a", draws=0)
    with pytest.raises(InputError, match="no evaluated query"):
        bootstrap(np.zeros((1, 0, 8)), collection="a", draws=10)
