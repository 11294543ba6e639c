"""Two arms: worked figures, worlds in which every row-local rule fails, exact reversals, stages."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from whencount.errors import InputError
from whencount.fusion import Arms, gates, reversals, selectors, stages, worlds
from whencount.fusion.arms import votes
from whencount.fusion.rules import ROW_LOCAL, RULES, order
from whencount.fusion.rules.min_max import in_window, stretched
from whencount.fusion.rules.reciprocal_rank import reciprocal_rank
from whencount.fusion.rules.square_root import dense_influence, square_root

GOLDEN = Path(__file__).parents[2] / "shared" / "golden" / "fusion.json"
NAN = float("nan")


@pytest.fixture(scope="module")
def golden() -> dict[str, Any]:
    if not GOLDEN.is_file():
        pytest.skip(f"{GOLDEN} is not here")
    found: dict[str, Any] = json.loads(GOLDEN.read_text())
    return found


@st.composite
def some_arms(draw: st.DrawFn, least: int = 1) -> Arms:
    """Rows with ties, absent votes, and tails that fall as scores rise."""
    rows = draw(st.integers(least, 40))
    seed = draw(st.integers(0, 2**32 - 1))
    random = np.random.default_rng(seed)
    scores = random.integers(0, draw(st.integers(1, 60)), (2, rows)) / 8.0
    tails = np.where(random.random((2, rows)) < 0.5, 0.5 ** (scores + 1), random.random((2, rows)))
    tails = np.clip(tails, 1e-6, 1)
    absent = random.random((2, rows)) < draw(st.sampled_from([0.0, 0.3, 0.8]))
    scores[absent], tails[absent] = NAN, 1.0
    return Arms.of(*scores, *tails)


# Worked figures


def test_min_max_windows(golden: dict[str, Any]) -> None:
    for case in golden["min_max"]:
        value = in_window(np.array([case["score"]]), *case["window"])[0]
        assert value == pytest.approx(case["value"], rel=1e-8)
    assert stretched(np.array([3.0, 3.0, NAN])).tolist() == [0.5, 0.5, 0.0]


def test_reciprocal_rank_figures(golden: dict[str, Any]) -> None:
    expected = golden["rrf"]
    descending = -np.arange(200.0)
    one = votes(descending)

    def beats_solo_first(rank: int, lists: int) -> float:
        return float(lists * one[rank] - one[0])

    for lists, tie in ((2, expected["ties_at"]), (3, expected["three_lists_ties_at"])):
        # Zero-based ranks; the figures count from one.
        assert beats_solo_first(tie - 1, lists) == pytest.approx(0, abs=1e-15)
        assert beats_solo_first(tie - 2, lists) > 0 > beats_solo_first(tie, lists)
    assert one[0] / one[99] == pytest.approx(expected["first_to_last_of_100"], rel=1e-8)


def test_square_root_figures(golden: dict[str, Any]) -> None:
    for case in golden["sqrt_mixture"]:
        arms = Arms.of([1.0], [1.0], [case["p_v"]], [case["p_l"]])
        assert square_root(arms)[0] == pytest.approx(case["E"], rel=1e-7)
        share = dense_influence(arms)[0]
        if "dense_influence" in case:
            assert share == pytest.approx(case["dense_influence"], rel=1e-6)
        else:
            assert 1 - share == pytest.approx(case["lexical_influence"], rel=1e-6)


def test_the_mixture_is_an_e_value_under_any_dependence() -> None:
    random = np.random.default_rng(0)
    p = 1 - random.random(400_000)
    for other in (p, 1 - p + 1e-12, 1 - random.random(len(p))):
        arms = Arms.of(p, p, p, np.clip(other, 1e-12, 1))
        # 1 / (2 sqrt p) has no variance, so its mean over draws settles slowly.
        assert square_root(arms).mean() == pytest.approx(1, abs=0.03)


def test_starvation_and_allowance(golden: dict[str, Any]) -> None:
    expected = golden["starvation"]
    for eligible, chance in expected["Pr(A<10)"].items():
        found = gates.starvation(int(eligible), expected["alpha"])
        assert found == pytest.approx(chance, abs=5e-6)
    for eligible, level in expected["allowance_for_5_percent"].items():
        found = gates.allowance(int(eligible))
        assert found == pytest.approx(level, abs=5e-7)
        assert gates.starvation(int(eligible), found) == pytest.approx(0.05, abs=1e-9)
    assert np.isnan(gates.allowance(9))


def test_starvation_with_relevant_rows_is_that_of_drawn_ones() -> None:
    random = np.random.default_rng(1)
    drawn = random.binomial(25, 0.2, 200_000) + random.binomial(5, 0.9, 200_000)
    chance = gates.starvation(30, 0.2, relevant=5, acceptance=0.9)
    assert chance == pytest.approx((drawn < 10).mean(), abs=0.005)


def test_the_pool_size_gate(golden: dict[str, Any]) -> None:
    for pool, rank in golden["pool_gate"]["largest_surviving_rank_zero_based"].items():
        assert gates.last_surviving_rank(int(pool)) == rank
    pools = [gates.last_surviving_rank(pool) for pool in range(1, 1000)]
    # Nothing that only the lexical arm has survives exactly up to 30 rows.
    assert [rank is None for rank in pools] == [pool <= 30 for pool in range(1, 1000)]
    assert pools[499:] == [40] * 500


def test_the_most_significant_maximum(golden: dict[str, Any]) -> None:
    case = golden["max_significance"]
    below, rows = case["F0(M)"], case["N"]
    assert selectors.maximum_tail(below, rows) == pytest.approx(case["product_form"], rel=1e-9)
    assert selectors.bonferroni_tail(below, rows) == pytest.approx(case["bonferroni"], rel=1e-9)
    assert selectors.draws_needed(0.05, 20_000) == 399_999
    assert selectors.smallest_tail(399_999) * 20_000 == pytest.approx(0.05)
    assert selectors.most_significant(0.2, 0.1) == "lexical"
    assert selectors.most_significant(0.1, 0.1) == "dense"
    with pytest.raises(InputError, match="between 0 and 1"):
        selectors.maximum_tail(1.5, 3)


# Worlds


def wrong_in(world: worlds.World, arms: Arms, scores: NDArray[np.float64]) -> bool:
    """Whether a strict order of two rows goes against that of the density ratio."""
    ratio = world.ratio(arms)
    return bool((ratio[0] > ratio[1]) and not scores[0] > scores[1]) or bool(
        (ratio[1] > ratio[0]) and not scores[1] > scores[0]
    )


def test_the_witness_is_ordered_oppositely_in_the_two_worlds() -> None:
    dense = worlds.DENSE_WORLD.ratio(worlds.WITNESS)
    lexical = worlds.LEXICAL_WORLD.ratio(worlds.WITNESS)
    assert dense[0] > dense[1]
    assert lexical[1] > lexical[0]


@pytest.mark.parametrize("name", ROW_LOCAL)
def test_every_row_local_rule_is_wrong_in_one_world(name: str) -> None:
    scores = ROW_LOCAL[name](worlds.WITNESS)
    wrong = [
        wrong_in(world, worlds.WITNESS, scores)
        for world in (worlds.DENSE_WORLD, worlds.LEXICAL_WORLD)
    ]
    assert sum(wrong) == 1


@given(some_arms())
@settings(max_examples=60, deadline=None)
def test_rules_called_row_local_see_one_row_at_a_time(arms: Arms) -> None:
    for name, rule in RULES.items():
        if name not in ROW_LOCAL:
            continue
        whole = rule(arms)
        for row in range(len(arms)):
            alone = Arms(*(getattr(arms, field)[[row]] for field in arms.__dataclass_fields__))
            assert rule(alone)[0] == whole[row]


def test_the_worlds_are_densities() -> None:
    # The mean of a density over even draws is 1; sqrt spacing tames the pole at 0.
    grid = ((np.arange(2000) + 0.5) / 2000) ** 2
    step = 2 * np.sqrt(grid) / 2000
    for world in (worlds.DENSE_WORLD, worlds.LEXICAL_WORLD):
        values = world.relevant(grid[:, None], grid[None, :])
        assert (values * step[:, None] * step[None, :]).sum() == pytest.approx(1, abs=1e-6)


@given(st.integers(0, 2**32 - 1), st.floats(0.01, 1))
@settings(max_examples=80, deadline=None)
def test_where_the_lexical_arm_is_redundant_the_density_ratio_gives_the_dense_order(
    seed: int, share: float
) -> None:
    # f1(l | v) = f0(l | v): whatever the conditional law is, it cancels.
    random = np.random.default_rng(seed)
    dense_tail = np.clip(random.random(50), 1e-9, 1)
    lexical_tail = np.clip(random.random(50), 1e-9, 1)
    conditional = 1 + 0.5 * np.cos(2 * np.pi * (lexical_tail + dense_tail))
    irrelevant = conditional
    relevant = conditional * 0.5 / np.sqrt(dense_tail)
    found = worlds.mixture_ratio(irrelevant, relevant, share)
    by_ratio = found[np.argsort(dense_tail)]
    assert (np.diff(by_ratio) <= 1e-12).all()


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=50, deadline=None)
def test_the_share_of_relevant_rows_changes_no_order(seed: int) -> None:
    random = np.random.default_rng(seed)
    irrelevant, relevant = random.random((2, 30)) + 0.01
    orders = [
        np.argsort(worlds.mixture_ratio(irrelevant, relevant, share), kind="stable").tolist()
        for share in (0.05, 0.5, 1.0)
    ]
    assert all(first == second for first, second in pairwise(orders))


# Reversals against actual sorts


@given(some_arms(least=2))
@settings(max_examples=150, deadline=None)
def test_every_reversal_satisfies_its_condition_and_no_other_pair_does(arms: Arms) -> None:
    pairs = reversals.dense_pairs(arms)
    g, b = pairs[:, 0], pairs[:, 1]
    for scores, turns in (
        (reciprocal_rank(arms), reversals.reciprocal_rank_turns(arms, pairs)),
        (square_root(arms), reversals.square_root_turns(arms, pairs)),
    ):
        difference = scores[b] - scores[g]
        clear = np.abs(difference) > 1e-12
        assert ((difference > 0) == turns)[clear].all()
        # What a person sees is the sorted list, so that is held to it as well.
        place = np.full(len(arms), len(arms))
        found = order(scores, arms)
        place[found] = np.arange(len(found))
        assert ((place[b] < place[g]) == turns)[clear].all()


@given(some_arms())
@settings(max_examples=60, deadline=None)
def test_dense_first_turns_no_pair_of_dense_rows(arms: Arms) -> None:
    scores = RULES["dense_first"](arms)
    pairs = reversals.dense_pairs(arms)
    assert (scores[pairs[:, 0]] > scores[pairs[:, 1]]).all()


@given(some_arms())
@settings(max_examples=60, deadline=None)
def test_an_order_has_every_admitted_row_once_and_no_other(arms: Arms) -> None:
    for rule in RULES.values():
        found = order(rule(arms), arms)
        assert sorted(found) == np.flatnonzero(arms.admitted).tolist()
        assert order(rule(arms), arms, depth=3).tolist() == found[:3].tolist()


def test_equal_scores_stand_in_the_dense_order() -> None:
    arms = Arms.of([1.0, 3.0, NAN, 2.0], [1.0, 1.0, 1.0, 1.0])
    assert order(np.zeros(4), arms).tolist() == [1, 3, 0, 2]


def test_conditional_evidence_decides_as_the_sum_does() -> None:
    random = np.random.default_rng(3)
    dense, conditional = random.normal(size=(2, 40))
    arms = Arms.of(dense, random.normal(size=40))
    pairs = reversals.dense_pairs(arms)
    turned = reversals.conditional_evidence_turns(dense, conditional, pairs)
    total = dense + conditional
    assert (turned == (total[pairs[:, 1]] > total[pairs[:, 0]])).all()
    assert turned.any()
    assert not turned.all()


# Stages


def random_stage(seed: int, share: float) -> stages.Stage:
    def stage(arms: Arms, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        return rows[np.random.default_rng(seed).random(len(rows)) < share]

    return stage


@given(some_arms(), st.lists(st.tuples(st.integers(0, 999), st.floats(0, 1)), max_size=4))
@settings(max_examples=120, deadline=None)
def test_no_pipeline_leaves_fewer_rows_than_it_promises(
    arms: Arms, drawn: list[tuple[int, float]]
) -> None:
    pipeline = [random_stage(seed, share) for seed, share in drawn]
    pipeline += [stages.admission_floor(0.05, 0.05), stages.pool_size_gate()]
    for length in range(len(pipeline) + 1):
        passage = stages.run_stages(arms, pipeline[:length])
        rows = passage.rows
        assert len(rows) >= min(10, len(arms))
        assert len(set(rows.tolist())) == len(rows)
        assert len(passage.survivors) == length
        if len(passage.kept) >= 10:
            assert len(passage.fallback) == 0


def test_the_fallback_is_the_top_of_the_dense_order() -> None:
    arms = Arms.of(np.arange(30.0), np.full(30, NAN))
    passage = stages.run_stages(arms, [lambda _, rows: rows[rows == 29]])
    assert passage.kept.tolist() == [29]
    assert passage.fallback.tolist() == [28, 27, 26, 25, 24, 23, 22, 21, 20]


def test_the_gate_lets_dense_rows_pass_and_lexical_ones_by_rank() -> None:
    lexical = -np.arange(31.0)
    arms = Arms.of(np.r_[np.full(30, NAN), 1.0], lexical)
    kept = stages.run_stages(arms, [stages.pool_size_gate()]).kept
    assert kept.tolist() == [0, 30]


def test_the_floor_needs_a_small_tail_in_an_arm_that_has_the_row() -> None:
    arms = Arms.of([1.0, NAN, 1.0], [NAN, 1.0, 1.0], [0.04, 1.0, 0.9], [1.0, 0.2, 0.9])
    assert stages.admission_floor(0.05, 0.05)(arms, np.arange(3)).tolist() == [0]
    assert stages.admission_floor(0.05, 0.3)(arms, np.arange(3)).tolist() == [0, 1]


def test_arms_that_are_no_arms_are_refused() -> None:
    with pytest.raises(InputError, match="shapes"):
        Arms.of([1.0], [1.0, 2.0])
    with pytest.raises(InputError, match="lexical tail of row 1 is 0"):
        Arms.of([1.0, 1.0], [1.0, 1.0], lexical_tail=[0.5, 0.0])
    with pytest.raises(InputError, match="dense score of row 0 is inf"):
        Arms.of([float("inf")], [1.0])


def test_the_oracle_is_the_best_of_each_query() -> None:
    best = selectors.oracle({"dense_first": [0.1, 0.9], "reciprocal_rank": [0.5, 0.2]})
    assert best.tolist() == [0.5, 0.9]
