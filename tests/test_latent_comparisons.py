"""Comparisons of latent terms, the verdict on the reversal, the pages that tell of both."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from whencount.errors import InputError
from whencount.latent_terms.comparing import COMPARISONS, comparisons, paired
from whencount.latent_terms.reversal import VERDICTS, learned_side, reversal, verdict
from whencount.reports import reversal_pieces
from whencount.significance import holm, resamples


def qualities(
    difference: float, collections: tuple[str, ...] = ("a", "b"), seeds: int = 2, queries: int = 40
) -> pd.DataFrame:
    """Per-query qualities whose BM25 lies about `difference` above the inner product."""
    random = np.random.default_rng(len(collections))
    lines = []
    for collection in collections:
        for seed in range(seeds):
            inner = random.uniform(0.3, 0.6, queries)
            lines.append(
                pd.DataFrame(
                    {
                        "representation": "toy_latent",
                        "collection": collection,
                        "seed": seed,
                        "budget": "native",
                        "k1": 1.2,
                        "b": 0.75,
                        "control": "",
                        "query_id": [f"q{number}" for number in range(queries)],
                        "q000": inner,
                        "q111": inner + difference + random.normal(0, 0.02, queries),
                    }
                )
            )
    return pd.concat(lines, ignore_index=True)


def test_a_paired_difference_is_the_bootstrap_as_it_is_defined() -> None:
    values = np.random.default_rng(3).normal(0.05, 0.1, 60)
    found = paired(values, collection="a", draws=500, seed=7)
    counts = np.concatenate(list(resamples(60, 500, collection="a", seed=7)))
    means = counts @ values / 60
    assert found.mean == pytest.approx(values.mean())
    assert found.p == (1 + (np.abs(means - values.mean()) >= abs(values.mean())).sum()) / 501
    assert (found.low, found.high) == pytest.approx(tuple(np.percentile(means, [2.5, 97.5])))
    assert paired([0.5] * 4, collection="a", draws=500, seed=7).p == 1
    assert paired([0.0] * 9, collection="a", draws=500, seed=7).p == 1
    assert paired([0.1] * 9, collection="a", draws=500, seed=7).p == 1 / 501
    with pytest.raises(InputError, match="must be finite"):
        paired([0.1, np.nan] * 5, collection="a", draws=500, seed=7)


def tuned_table() -> tuple[pd.DataFrame, pd.DataFrame]:
    random = np.random.default_rng(0)
    lines = [
        {
            "representation": "toy_latent",
            "collection": "a",
            "seed": seed,
            "query_id": f"q{query}",
            "part": "test" if query >= 20 else "development",
            "scorer": scorer,
            "setting": setting,
            "ndcg_10": 0.3 + 0.2 * (scorer == "bm25") + random.normal(0, 0.03) + (query < 20) * 9,
        }
        for seed in range(2)
        for query in range(60)
        for scorer in ("inner", "bm25")
        for setting in ("untuned", "tuned")
    ]
    words = pd.DataFrame(
        {"collection": "a", "query_id": [f"q{query}" for query in range(60)], "ndcg_10": 0.5}
    )
    return pd.DataFrame(lines), words


def test_comparisons_see_test_queries_alone_and_average_seeds() -> None:
    tuned, words = tuned_table()
    found = comparisons(tuned, words, draws=400, seed=0).set_index("comparison")
    assert list(found.index) == list(COMPARISONS)
    assert (found["queries"] == 40).all()
    assert (found["seeds"] == 2).all()
    line = found.loc["bm25_over_inner_untuned"]
    test = tuned[(tuned["part"] == "test") & (tuned["setting"] == "untuned")]
    means = test.groupby("scorer")["ndcg_10"].mean()
    assert line["difference"] == pytest.approx(means["bm25"] - means["inner"])
    assert line["low"] > 0
    assert found.loc["untuned_over_words", "second"] == 0.5
    # One line per comparison: Holm changes nothing.
    np.testing.assert_allclose(found["holm_p"], found["p"])
    two = pd.concat([tuned, tuned.assign(collection="b")])
    both = comparisons(two, pd.concat([words, words.assign(collection="b")]), draws=400, seed=0)
    for _, lines in both.groupby("comparison"):
        np.testing.assert_allclose(lines["holm_p"], holm(lines["p"]))
    with pytest.raises(InputError, match="no quality for query 'q20'"):
        comparisons(tuned, words[words["query_id"] != "q20"], draws=400, seed=0)


@pytest.mark.parametrize(
    ("latent", "learned", "expected"),
    [
        ("as published", "as published", "held"),
        ("as published", "open", "partly"),
        ("opposite", "as published", "partly"),
        ("opposite", "open", "refuted"),
        ("opposite", "opposite", "refuted"),
        ("open", "open", "cannot be decided here"),
        ("as published", None, "cannot be decided here"),
        (None, "as published", "cannot be decided here"),
    ],
)
def test_a_verdict_follows_from_the_two_outcomes(
    latent: str | None, learned: str | None, expected: str
) -> None:
    assert verdict(latent, learned) == expected
    assert expected in VERDICTS


@pytest.mark.parametrize(
    ("latent", "learned", "expected"),
    [
        (0.2, -0.1, "held"),
        (0.2, 0.1, "partly"),
        (0.2, 0.0, "partly"),
        (-0.2, 0.1, "refuted"),
        (0.2, None, "cannot be decided here"),
    ],
)
def test_the_page_says_what_the_qualities_show(
    latent: float, learned: float | None, expected: str
) -> None:
    sides: dict[str, Any] = {
        "latent": qualities(latent),
        "learned_sparse": None if learned is None else qualities(learned),
    }
    table = reversal(sides, draws=300, seed=0)
    assert set(table["verdict"]) == {expected}
    total = table[table["collection"] == "all"].set_index("side")
    assert total.loc["latent", "difference"] == pytest.approx(latent, abs=0.01)
    low, high = total["low"]["latent"], total["high"]["latent"]
    assert low < latent < high
    words = reversal_pieces.sentences(table)
    told = {"held": "held", "partly": "held in part", "refuted": "is refuted"}
    assert told.get(expected, "cannot be decided here") in words[0]
    assert len(words) == 3
    assert ("has none" in words[2]) == (learned is None)
    assert reversal_pieces.numbers(table).markup.count("<tr>") == len(table) + 1
    assert "published" in reversal_pieces.differences(table)._repr_html_()
    assert expected in reversal_pieces.answer(table).markup


def test_a_reversal_of_nothing_or_of_damaged_tables_is_refused() -> None:
    with pytest.raises(InputError, match="no quality to compare"):
        reversal({"latent": None}, draws=100, seed=0)
    with pytest.raises(InputError, match="lack the column 'q111'"):
        reversal({"latent": qualities(0.1).drop(columns="q111")}, draws=100, seed=0)


def test_splade_like_vectors_are_compared_at_the_same_parameters() -> None:
    own = qualities(0.1)
    others = [
        own.assign(budget="32/128"),
        own,
        own.assign(k1=0.6),
        own.assign(control="uniform_df"),
        own.assign(collection="elsewhere"),
    ]
    learned = pd.concat(others, ignore_index=True)
    pd.testing.assert_frame_equal(learned_side(learned, own).reset_index(drop=True), own)
    capped = learned_side(learned[learned["budget"] != "native"], own)
    assert set(capped["budget"]) == {"32/128"}
    with pytest.raises(InputError, match="no SPLADE-like vectors were scored"):
        learned_side(own.assign(k1=0.6), own)
