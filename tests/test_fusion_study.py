"""The study of two arms: pair scores, nulls, profiles, evaluation, what is decided and claimed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal, spearmanr
from two_arm_collection import DEPTH, Files, make

from whencount.errors import InputError
from whencount.fusion.arms import Arms
from whencount.fusion.calibration import draw, evaluation_half, halves
from whencount.fusion.claims import CLAIMS, claims_table
from whencount.fusion.evaluation import Inputs, Options, evaluate
from whencount.fusion.events import checked_reversals, events
from whencount.fusion.isotonic import project
from whencount.fusion.nulls import LEVELS, Null, drift, interval, rates
from whencount.fusion.pools import pool
from whencount.fusion.profile import Profile, estimate
from whencount.fusion.rules import order
from whencount.fusion.summary import CONSTANT, decisions_table, gathered, rules_table
from whencount.judgements import Judgements
from whencount.reports import fusion_figures, fusion_pieces, fusion_words
from whencount.reports.fusion_style import FusionTables

OPTIONS = Options(DEPTH, 0.2, 40, 300, 0)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Files, Files]:
    folder = tmp_path_factory.mktemp("two-arms")
    return make(folder, "here", 0), make(folder, "there", 1)


@pytest.fixture(scope="module")
def inputs(files: tuple[Files, Files]) -> Inputs:
    return files[0].inputs(files[1])


@pytest.fixture(scope="module")
def jobs(files: tuple[Files, Files]) -> dict[tuple[str, str], dict[str, pd.DataFrame]]:
    one, other = files
    return {
        (arm, mine.name): evaluate(mine.inputs(rest, dimensions=dimensions), OPTIONS)
        for arm, dimensions in (("encoder", None), ("projected", 2))
        for mine, rest in ((one, other), (other, one))
    }


@pytest.fixture(scope="module")
def tables(jobs: dict[tuple[str, str], dict[str, pd.DataFrame]]) -> dict[str, pd.DataFrame]:
    found = gathered(jobs)
    found["rules"] = rules_table(found["per_query"], 500, 0)
    found["decisions"] = decisions_table(found["per_query"])
    return found


# Pair scores


def test_pairs_are_scored_as_the_references_score_them(inputs: Inputs) -> None:
    for run, score in (
        (inputs.dense_run, inputs.scores.dense),
        (inputs.lexical_run, inputs.scores.lexical),
    ):
        found = score(run.query_positions, run.document_positions)
        assert np.allclose(found, run.scores, rtol=1e-6, atol=1e-9)


def test_a_pair_has_the_same_bits_in_any_company(inputs: Inputs) -> None:
    random = np.random.default_rng(0)
    queries, documents = random.integers(0, 80, 500), random.integers(0, 300, 500)
    for score in (inputs.scores.dense, inputs.scores.lexical):
        together = score(queries, documents)
        alone = np.concatenate([score(queries[[n]], documents[[n]]) for n in range(0, 500, 7)])
        assert np.abs(together[::7] - alone).max() <= 1e-12


def test_both_arms_must_be_of_one_collection(files: tuple[Files, Files]) -> None:
    scores = files[0].inputs().scores
    with pytest.raises(InputError, match="must be of one collection"):
        replace(scores, queries=np.zeros((3, 12)))


# Nulls


def test_a_tail_counts_the_draws_that_reach_the_score() -> None:
    null = Null.of([3.0, 1.0, 2.0, 2.0])
    found = null.tail(np.array([0.0, 1.0, 2.0, 2.5, 9.0]))
    assert found.tolist() == [1.0, 1.0, 0.8, 0.4, 0.2]
    for wrong in ([], [np.nan]):
        with pytest.raises(InputError, match="a null needs finite scores"):
            Null.of(wrong)


def test_a_null_of_the_same_law_is_calibrated_and_another_is_not() -> None:
    random = np.random.default_rng(1)
    null = Null.of(random.standard_normal(50_000))
    held_out = random.standard_normal(50_000)
    found = rates(null, held_out)
    assert found["level"].tolist() == list(LEVELS)
    assert (np.abs(found["rate"] - found["level"]) < 0.008).all()
    shifted = rates(null, held_out + 0.5)
    assert (shifted["low"] > shifted["level"]).all()
    lengths = random.integers(5, 500, len(held_out)).astype(float)
    longer = drift(null, held_out + lengths / 500, lengths)
    assert longer["rate"].is_monotonic_increasing
    assert longer["pairs"].sum() == len(held_out)


def test_the_exact_interval_is_that_of_statsmodels() -> None:
    from statsmodels.stats.proportion import proportion_confint

    for hits, trials in ((0, 20), (3, 17), (20, 20)):
        expected = proportion_confint(hits, trials, method="beta")
        assert interval(hits, trials) == pytest.approx(expected)


# Profiles


@given(st.integers(0, 2**32 - 1), st.integers(2, 7), st.integers(2, 7))
@settings(max_examples=30, deadline=None)
def test_the_projection_rises_and_no_rising_table_is_nearer(seed: int, m: int, n: int) -> None:
    random = np.random.default_rng(seed)
    table, weights = random.standard_normal((m, n)), random.uniform(0.1, 2, (m, n))
    found = project(table, weights, tolerance=1e-12)
    assert (np.diff(found, axis=0) >= 0).all()
    assert (np.diff(found, axis=1) >= 0).all()
    # The projection on a closed convex set: no element lies on the table's side of it.
    for _ in range(20):
        other = np.cumsum(np.cumsum(random.exponential(1, (m, n)), axis=0), axis=1)
        other += random.normal(0, 3)
        assert (weights * (table - found) * (other - found)).sum() <= 1e-5 * m * n


def test_the_profile_finds_the_density_ratio_of_known_laws() -> None:
    random = np.random.default_rng(2)
    share, count = 0.3, 6_000
    null = multivariate_normal([0, 0], [[1, 0.3], [0.3, 1]])
    good = multivariate_normal([1.5, 1.0], [[1, 0.3], [0.3, 1]])
    panel = np.concatenate(
        [
            null.rvs(int(count * (1 - share)), random),
            good.rvs(int(count * share), random),
        ]
    )
    profile = estimate(panel, null.rvs(count, random), seed=0)
    rows = good.rvs(500, random)
    true = np.log((1 - share) + share * good.pdf(rows) / null.pdf(rows))
    assert spearmanr(profile.score(*rows.T), true).statistic > 0.97


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=30, deadline=None)
def test_the_profile_rises_in_both_scores(seed: int) -> None:
    random = np.random.default_rng(seed)
    lines = np.sort(random.standard_normal(9)).cumsum()
    lines = np.unique(np.abs(lines).cumsum())
    ratio = np.cumsum(np.cumsum(random.exponential(1, (len(lines),) * 2), 0), 1)
    profile = Profile(lines, lines, ratio, ratio[:, 0], 100, 100)
    low = random.uniform(lines[0] - 1, lines[-1] + 1, (200, 2))
    high = low + random.exponential(0.5, low.shape) * random.integers(0, 2, low.shape)
    assert (profile.score(*high.T) >= profile.score(*low.T) - 1e-12).all()
    assert profile.conditional(*low.T) + profile.dense_alone(low[:, 0]) == pytest.approx(
        profile.score(*low.T)
    )


def test_a_panel_of_few_rows_is_refused() -> None:
    rows = np.random.default_rng(0).standard_normal((100, 2))
    with pytest.raises(InputError, match="at least 50"):
        estimate(rows[:10], rows, 0)
    with pytest.raises(InputError, match="all have one score"):
        estimate(np.zeros((100, 2)), rows, 0)


# Drawing and pooling


def test_halves_of_the_queries_depend_on_ids_alone() -> None:
    names = [f"q{n}" for n in range(400)]
    found = evaluation_half(names, 0)
    assert 150 < found.sum() < 250
    assert (evaluation_half(names[::-1], 0)[::-1] == found).all()
    assert (evaluation_half(names, 1) != found).any()


def test_drawn_pairs_know_which_are_relevant(inputs: Inputs) -> None:
    keys = inputs.judgements.keys
    pairs = draw(inputs.scores, np.arange(80), keys, 10, 300, 0)
    assert len(pairs) == 10 * 300
    assert pairs.relevant.sum() == 20
    fewer = draw(inputs.scores, np.arange(80), keys, 10, 50, 0)
    assert len(fewer) == 500
    assert (np.diff(fewer.documents)[np.diff(fewer.queries) == 0] > 0).all()
    first, rest = halves(pairs)
    assert not set(pairs.queries[first]) & set(pairs.queries[rest])


def test_a_pool_has_the_rows_of_both_lists_and_their_grades(inputs: Inputs) -> None:
    null = Null.of([0.0, 1.0])
    pools = pool(
        inputs.dense_run, inputs.lexical_run, inputs.scores, (null, null), inputs.judged, 5
    )
    assert len(pools) == 80
    for query in (0, 17, 79):
        at = pools.rows(query)
        for run, votes in (
            (inputs.dense_run, pools.dense_votes),
            (inputs.lexical_run, pools.lexical_votes),
        ):
            mine = (run.query_positions == query) & (run.ranks <= 5)
            assert set(pools.documents[at][votes[at]]) == set(run.document_positions[mine])
        good = inputs.judged[1][inputs.judged[0] == query]
        assert set(pools.documents[at][pools.relevance[at] > 0]) <= set(good)
        arms = pools.arms(query)
        assert (np.isnan(arms.dense) == ~pools.dense_votes[at]).all()


# Events


def test_events_of_a_worked_example() -> None:
    nan = float("nan")
    # Rows 0..9 are the dense top ten, 10 stands below, 11 is in the lexical list alone.
    dense = [*np.arange(20.0, 9.0, -1), nan]
    lexical = [1.0, nan, *[nan] * 8, 5.0, 9.0]
    arms = Arms.of(dense, lexical)
    relevance = np.array([1.0, 1.0, *[0.0] * 10])
    found = events(arms, np.arange(10), np.array([10, 11, *range(2, 10)]), relevance)
    assert found == {
        "intruder_lifted": 1,
        "intruder_lexical_only": 1,
        "pushed_out_despite_vote": 1,
        "pushed_out_without_vote": 1,
    }


def test_a_wrong_condition_is_found_out() -> None:
    arms = Arms.of([3.0, 2.0, 1.0], [1.0, 3.0, 2.0])
    scores = np.array([0.1, 0.5, 0.3])
    place = np.empty(3, dtype=np.int64)
    place[order(scores, arms)] = np.arange(3)
    pairs = np.array([[0, 1], [0, 2], [1, 2]])
    right = checked_reversals(scores, place, pairs, lambda p: scores[p[:, 1]] > scores[p[:, 0]])
    assert right == (3, 2, 0, 0)
    wrong = checked_reversals(scores, place, pairs, lambda p: np.zeros(len(p), dtype=bool))
    assert wrong == (3, 2, 2, 0)
    near = checked_reversals(scores * 0, place, pairs, lambda p: np.ones(len(p), dtype=bool))
    assert near == (0, 0, 0, 3)


# A whole job


def test_informed_arms_fused_are_above_either_alone(tables: dict[str, pd.DataFrame]) -> None:
    rules = tables["rules"]
    means = rules[rules["dense_arm"] == "encoder"].groupby("rule")["ndcg_10"].mean()
    assert means["joint_density"] > max(means["dense_first"], means["lexical_first"])
    assert means["oracle"] >= means[[rule for rule in CONSTANT if rule in means]].max()


def test_no_real_pair_contradicts_its_condition(tables: dict[str, pd.DataFrame]) -> None:
    mine = tables["reversals"]
    assert set(mine["rule"]) == {"reciprocal_rank", "square_root", "joint_density"}
    assert (mine["reversals"] > 0).all()
    assert (mine["violations"] == 0).all()


def test_labels_of_the_evaluation_half_change_no_order(
    files: tuple[Files, Files], inputs: Inputs
) -> None:
    mine = evaluation_half(inputs.query_ids, OPTIONS.seed)
    queries, documents, grades = inputs.judged
    moved = np.where(mine[queries], (documents + 7) % 300, documents)
    judgements = Judgements.from_positions(queries, moved, grades, 80, 300)
    other = replace(inputs, judged=(queries, moved, grades), judgements=judgements)
    before, after = evaluate(inputs, OPTIONS), evaluate(other, OPTIONS)
    for column in ("against_lexical", "against_dense"):
        assert before["per_query"][column].tolist() == after["per_query"][column].tolist()
    assert before["per_query"]["ndcg_10"].tolist() != after["per_query"]["ndcg_10"].tolist()
    for name in ("nulls", "drift"):
        pd.testing.assert_frame_equal(before[name], after[name])


def test_a_job_gives_the_same_tables_again(
    files: tuple[Files, Files], jobs: dict[tuple[str, str], dict[str, pd.DataFrame]]
) -> None:
    again = evaluate(files[0].inputs(files[1]), OPTIONS)
    for name, table in jobs["encoder", "here"].items():
        pd.testing.assert_frame_equal(table, again[name])


def test_without_other_collections_the_foreign_null_is_left_out(files: tuple[Files, Files]) -> None:
    found = evaluate(files[0].inputs(), OPTIONS)
    assert set(found["nulls"]["null"]) == {"judged"}
    assert "joint_density_foreign" not in set(found["per_query"]["rule"])


def test_a_collection_with_nothing_relevant_of_its_own_is_refused(
    files: tuple[Files, Files],
) -> None:
    one = files[0]
    empty = replace(
        one.collection, document_positions=np.full_like(one.collection.document_positions, -1)
    )
    with pytest.raises(InputError, match="no relevant document among its own"):
        replace(one, collection=empty).inputs()


# Summaries


def test_rules_are_compared_query_by_query(tables: dict[str, pd.DataFrame]) -> None:
    rules = tables["rules"].query("dense_arm == 'encoder' and collection == 'here'")
    one = rules.set_index("rule").loc["reciprocal_rank"]
    per_query = tables["per_query"]
    mine = per_query[(per_query["dense_arm"] == "encoder") & (per_query["collection"] == "here")]
    wide = mine.pivot(index="query_id", columns="rule", values="ndcg_10")
    apart = wide["reciprocal_rank"] - wide["dense_first"]
    assert one["difference"] == pytest.approx(apart.mean())
    assert one["wins"] + one["ties"] + one["losses"] == one["queries"] == len(apart)
    assert one["low"] < one["difference"] < one["high"]
    tested = tables["rules"]["p"].notna()
    assert not tested[tables["rules"]["rule"].isin(["dense_first", "oracle"])].any()
    assert (tables["rules"]["holm"][tested] >= tables["rules"]["p"][tested]).all()


def test_the_oracle_of_the_two_bounds_every_policy(tables: dict[str, pd.DataFrame]) -> None:
    keys = ["dense_arm", "collection"]
    wide = tables["decisions"].pivot(index=keys, columns="policy", values="ndcg_10")
    assert (wide.max(axis=1) == wide["oracle"]).all()
    per_collection = wide["per_collection"]
    assert (
        (per_collection == wide["always_dense"]) | (per_collection == wide["always_fused"])
    ).all()


def verdicts(tables: dict[str, pd.DataFrame]) -> dict[str, str]:
    found = claims_table(tables)
    assert found["evidence"].str.len().min() > 0
    return dict(zip(found["claim"], found["verdict"], strict=True))


def test_what_must_hold_holds_in_a_run(tables: dict[str, pd.DataFrame]) -> None:
    found = verdicts(tables)
    assert set(found) == {claim.name for claim in CLAIMS}
    for name in ("conditions", "redundant_law", "reservation", "independence"):
        assert found[name] == "held", name


Change = Callable[[dict[str, pd.DataFrame]], None]


def _set(table: str, column: str, value: Any, **where: Any) -> Change:
    def change(tables: dict[str, pd.DataFrame]) -> None:
        rows = np.ones(len(tables[table]), dtype=bool)
        for key, wanted in where.items():
            rows &= (tables[table][key] == wanted).to_numpy()
        assert rows.any()
        copy = tables[table].astype({column: "float64"})
        copy.loc[rows, column] = value
        tables[table] = copy

    return change


def _losing(**events: float) -> list[Change]:
    changes = [_set("rules", "difference", -0.1, rule="reciprocal_rank")]
    return changes + [
        _set("events", column, value, rule="reciprocal_rank") for column, value in events.items()
    ]


REFUTED: dict[str, list[Change]] = {
    "row_local": [_set("rules", "difference", 0.1, rule="square_root")],
    "lifted_rows": _losing(intruder_lifted=1, intruder_lexical_only=3),
    "membership": _losing(loss=2.0, loss_nothing_left=1.5),
    "conditions": [_set("reversals", "violations", 1, rule="square_root")],
    "redundant_data": [
        *_losing(),
        _set("checks", "bound", 0.2, check="redundancy"),
        _set("checks", "value", 0.5, check="redundancy"),
    ],
    "selector": [_set("rules", "ndcg_10", 0.0, rule="most_significant")],
    "null_maximum": [_set("checks", "bound", 0.5, check="null_maximum")],
    "extinction": [_set("checks", "value", 3, check="gate")],
    "reservation": [_set("checks", "value", 2, check="reservation")],
    "independence": [_set("checks", "value", 1e-6, check="candidate_independence")],
    "binding": [_set("rules", "difference", -0.01, rule="joint_density")],
}
HELD: dict[str, list[Change]] = {
    "row_local": [_set("rules", "difference", -0.1, rule="square_root", collection="here")],
    "lifted_rows": _losing(intruder_lifted=3, intruder_lexical_only=1),
    "membership": _losing(loss=2.0, loss_nothing_left=0.5),
    "redundant_data": [
        *_losing(),
        _set("checks", "bound", -0.2, check="redundancy"),
        _set("checks", "value", 0.5, check="redundancy"),
    ],
    "selector": [_set("rules", "ndcg_10", 1.0, rule="most_significant")],
    "extinction": [
        _set("checks", "value", 3, check="gate"),
        _set("checks", "value", 0, quantity="contradictions"),
    ],
    "binding": [_set("rules", "difference", 0.01, rule="joint_density")],
}


@pytest.mark.parametrize("name", REFUTED)
def test_a_run_can_refute_each_claim(tables: dict[str, pd.DataFrame], name: str) -> None:
    changed = dict(tables)
    for change in REFUTED[name]:
        change(changed)
    assert verdicts(changed)[name] == "refuted"


@pytest.mark.parametrize("name", HELD)
def test_a_claim_that_could_have_been_refuted_holds(
    tables: dict[str, pd.DataFrame], name: str
) -> None:
    changed = dict(tables)
    for change in HELD[name]:
        change(changed)
    assert verdicts(changed)[name] == "held"


def test_a_claim_that_nothing_could_refute_is_not_called_held(
    tables: dict[str, pd.DataFrame],
) -> None:
    changed = dict(tables)
    _set("rules", "difference", 0.1, rule="reciprocal_rank")(changed)
    _set("checks", "value", 0, quantity="pools of at most 30 rows")(changed)
    changed["rules"] = changed["rules"][changed["rules"]["dense_arm"] == "encoder"]
    found = verdicts(changed)
    for name in ("lifted_rows", "membership", "redundant_data", "extinction", "row_local"):
        assert found[name] == "undecided", name


# The page


@pytest.fixture
def shown(tables: dict[str, pd.DataFrame]) -> FusionTables:
    everything = {**tables, "claims": claims_table(tables)}
    names = ("rules", "decisions", "claims", "events", "reversals", "nulls", "drift", "checks")
    return FusionTables(**{name: everything[name] for name in names})


def test_the_answer_is_computed_from_the_tables(shown: FusionTables) -> None:
    text = " ".join(fusion_words.sentences(shown))
    assert "2 collections under 2 dense arms" in text
    assert "each of them satisfies its condition" in text
    broken = replace(shown, reversals=shown.reversals.assign(violations=1))
    assert "CONTRADICT" in " ".join(fusion_words.sentences(broken))
    assert "nothing can be told" in fusion_words.sentences(replace(shown, rules=shown.rules[:0]))[0]


def test_every_figure_and_table_is_drawn_and_names_are_text(shown: FusionTables) -> None:
    hostile = "<script>alert(1)</script>"
    tables = {
        name: table.replace({"here": hostile}) if "collection" in table else table
        for name, table in shown.named().items()
    }
    named = FusionTables(**tables)
    for drawing in (
        fusion_figures.differences(named.rules),
        fusion_figures.decisions(named.decisions),
        fusion_figures.events(named.events),
        fusion_figures.nulls(named.nulls),
    ):
        assert drawing is not None
        assert "<script" not in drawing._repr_html_()
    for table in (
        fusion_pieces.answer(named),
        fusion_pieces.rules(named.rules),
        fusion_pieces.decisions(named.decisions),
        fusion_pieces.claims(named.claims),
        fusion_pieces.reversals(named.reversals),
        fusion_pieces.nulls(named.nulls),
        fusion_pieces.drift(named.drift),
        fusion_pieces.making(named, {"depth": 5}, hostile),
    ):
        assert "<script" not in table._repr_html_()
