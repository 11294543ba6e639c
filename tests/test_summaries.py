"""The answer of a study: its numbers follow from the tables, its words from its numbers."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from study_tables import ALPHA, DRAWS, StudyTables, study_tables

from whencount import summaries, wording
from whencount.errors import InputError
from whencount.reports import words
from whencount.significance import attainability
from whencount.summaries import Answer, Correlation, Share, Signs, Verdict


@pytest.fixture(scope="module")
def tables() -> StudyTables:
    return study_tables()


@pytest.fixture(scope="module")
def found(tables: StudyTables) -> Answer:
    reported = summaries.reported_rows(tables.rows, tables.significance, "primary")
    return summaries.answer(reported, tables.significance, tables.shares, alpha=ALPHA, draws=DRAWS)


def test_only_tested_rows_of_the_family_are_reported(tables: StudyTables) -> None:
    reported = summaries.reported_rows(tables.rows, tables.significance, "primary")
    assert len(reported) == 14 * 3
    assert set(reported["budget"]) == {"32/128"}
    assert set(reported["control"]) == {""}
    some = tables.significance[tables.significance["collection"] == "limit"]
    assert set(summaries.reported_rows(tables.rows, some, "primary")["collection"]) == {"limit"}


def test_tables_of_different_runs_are_refused(tables: StudyTables) -> None:
    with pytest.raises(InputError, match="different runs"):
        summaries.reported_rows(tables.rows.iloc[:100], tables.significance, "primary")
    with pytest.raises(InputError, match="parts idf, saturation"):
        summaries.share_groups(tables.shares[tables.shares["part"] != "length"])


def test_the_answer_counts_what_the_rows_hold(tables: StudyTables, found: Answer) -> None:
    rows = tables.rows[tables.rows["families"].str.contains("primary")]
    quality = rows["q111"] - rows["q000"]
    assert (found.rows, found.representations, found.collections) == (42, 14, 3)
    assert found.settings == (("32/128", 1.2, 0.75),)
    assert found.gain.up == int(np.sum(quality > 0))
    assert found.gain.total == 42
    assert found.gain.mean == pytest.approx(quality.mean())
    carried = rows["shapley_saturation"].sum() / quality.sum()
    shares = {share.switch: share for share in found.shares}
    assert shares["saturation"].share == pytest.approx(carried)
    assert sum(share.share for share in found.shares) == pytest.approx(1)
    assert list(found.shares) == sorted(found.shares, key=lambda share: -share.share)


def test_significant_rows_are_counted_by_direction(tables: StudyTables, found: Answer) -> None:
    table = tables.significance
    full = found.tested[0]
    assert full.up == int(((table["holm_full"] <= ALPHA) & (table["statistic_full"] > 0)).sum())
    assert full.rows == len(table)
    expected = {
        family: attainability(len(table) * tests, DRAWS, ALPHA).smallest
        for family, tests in (("full", 1), ("main_effects", 3))
    }
    assert found.attainable == pytest.approx(expected)


def test_spearman_is_pearson_of_ranks() -> None:
    random = np.random.default_rng(1)
    rows = pd.DataFrame({"one": random.normal(size=30), "other": random.normal(size=30)})
    expected = np.corrcoef(rows["one"].rank(), rows["other"].rank())[0, 1]
    found = summaries.spearman(rows, "one", "other")
    assert found.rho == pytest.approx(expected)
    assert found.rows == 30
    constant = rows.assign(one=1.0)
    assert math.isnan(summaries.spearman(constant, "one", "other").rho)


def test_centring_takes_each_collections_mean_off() -> None:
    rows = pd.DataFrame({"collection": ["a", "a", "b"], "value": [1.0, 3.0, 7.0]})
    assert summaries.centred(rows, ["value"])["value"].tolist() == [-1, 1, 0]
    assert rows["value"].tolist() == [1, 3, 7]


def test_a_sweep_holds_everything_else_at_the_default(tables: StudyTables) -> None:
    reported = summaries.reported_rows(tables.rows, tables.significance, "primary")
    budgets = summaries.varied(tables.rows, "budget", reported)
    assert sorted(set(budgets["budget"])) == ["16/64", "32/128", "64/256", "native"]
    assert len(budgets) == 14 * 3 * 4
    k1 = summaries.varied(tables.rows, "k1", reported)
    assert (len(k1), set(k1["b"])) == (14 * 2 * 3, {0.75})
    seeds = summaries.varied(tables.rows, "seed", reported)
    assert len(seeds) == 4 * 3
    alone = tables.rows[tables.rows["families"] == "primary budgets"]
    assert len(summaries.varied(alone, "seed", reported)) == 0


RISING = Signs(40, 2, 0, 0.1)


def answer_of(
    shares: tuple[float, float, float],
    *,
    half_width: float = 0.05,
    gain: Signs = RISING,
    rho: float = 0.8,
    up: int = 30,
    attainable: dict[str, float] | None = None,
) -> Answer:
    named = zip(("idf", "saturation", "length"), shares, strict=True)
    return Answer(
        representations=14,
        collections=3,
        rows=42,
        settings=(("32/128", 1.2, 0.75),),
        gain=gain,
        shares=tuple(
            sorted(
                (Share(name, s, s - half_width, s + half_width) for name, s in named),
                key=lambda share: -share.share,
            )
        ),
        statistics=Signs(30, 10, 2, 0.02),
        length_added=Signs(32, 9, 1, 0.03),
        idf_added=Signs(8, 30, 4, -0.01),
        by_collection=(("a", 0.05), ("b", 0.01), ("c", -0.01)),
        saturation=Correlation(rho, 42),
        saturation_within=Correlation(rho, 42),
        tested=tuple(
            Verdict(effect, up, 0, 42, 0.004) for effect in ("full", "idf", "saturation", "length")
        ),
        alpha=0.05,
        attainable=attainable,
    )


def text(answer: Answer) -> str:
    return " ".join(words.sentences(answer)).replace("\N{NO-BREAK SPACE}", " ")


def test_what_length_and_idf_each_add_to_saturation_is_told() -> None:
    told = text(answer_of((0.1, 0.6, 0.3)))
    assert "length adds +0.030 to saturation (Q011 − Q010, up in 32 rows)" in told
    assert "IDF then −0.010 (Q111 − Q011, up in 8)" in told


@pytest.mark.parametrize(
    ("shares", "begins"),
    [
        ((0.1, 0.6, 0.3), "Saturation carries the largest share of the summed gain, 60 %"),
        ((0.7, 0.1, 0.2), "IDF carries the largest share of the summed gain, 70 %"),
        ((0.1, -0.1, 1.0), "Length carries the largest share of the summed gain, 100 %"),
    ],
)
def test_the_switch_with_the_largest_share_is_named(
    shares: tuple[float, float, float], begins: str
) -> None:
    assert begins in text(answer_of(shares))


def test_overlap_of_intervals_is_told_as_it_is() -> None:
    assert "do not overlap" in text(answer_of((0.1, 0.6, 0.3)))
    assert "first two overlap" in text(answer_of((0.1, 0.48, 0.42)))
    assert "overlap" not in text(answer_of((0.1, 0.6, 0.3), half_width=0))


def test_direction_of_the_gain_and_of_the_correlation_choose_the_words() -> None:
    losing = answer_of((0.1, 0.6, 0.3), gain=Signs(2, 40, 0, -0.1), rho=-0.5)
    assert "lowers the mean nDCG@10" in text(losing)
    assert "The summed gain is negative" in text(losing)
    assert "the less saturation brings" in text(losing)
    assert "says little" in text(answer_of((0.1, 0.6, 0.3), rho=0.1))
    assert "cannot be told" in text(answer_of((0.1, 0.6, 0.3), rho=math.nan))
    few = replace(answer_of((0.1, 0.6, 0.3)), saturation=Correlation(1.0, 3))
    assert "cannot be told here: 3 rows are too few" in text(few)
    undefined = answer_of((math.nan, math.nan, math.nan), gain=Signs(0, 0, 42, 0.0))
    assert "cannot be shared out" in text(undefined)
    assert "the same in all of them" in text(undefined)


def test_collections_are_sorted_into_helped_and_harmed() -> None:
    answer = answer_of((0.1, 0.6, 0.3))
    assert "help on a (+0.050) and b (+0.010) and harm on c (−0.010)" in text(answer)
    everywhere = replace(answer, by_collection=(("a", 0.05), ("b", 0.01)))
    assert "help on every collection, most on a (+0.050)" in text(everywhere)
    many = replace(answer, by_collection=tuple((f"c{n}", 0.1 - n / 50) for n in range(10)))
    assert "help on 5 collections, most on c0" in text(many)
    assert "harm on 4 collections, most on c9" in text(many)


def test_draws_that_let_nothing_pass_are_told() -> None:
    blocked = answer_of((0.1, 0.6, 0.3), up=0, attainable={"full": 0.04, "main_effects": 0.12})
    assert "nothing is significant" in text(blocked)
    assert "lets nothing pass for the main effects" in text(blocked)
    assert "0.12, above 0.05" in text(blocked)
    enough = answer_of((0.1, 0.6, 0.3), attainable={"full": 0.004, "main_effects": 0.012})
    assert "lets nothing pass" not in text(enough)
    assert "the main effect of IDF in 30 (all up)" in text(enough)


def test_numbers_are_printed_with_a_true_minus_and_no_negative_zero() -> None:
    assert wording.percent(-0.004) == "0\N{NO-BREAK SPACE}%"
    assert wording.percent(-0.25) == "−25\N{NO-BREAK SPACE}%"
    assert wording.signed(-0.0123) == "−0.012"
    assert wording.signed(0.0) == "0"
    assert wording.signed(-0.0004) == "0.000"
