"""The answers of the studies of KV pages and of experts: identities, intervals, selections."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from setting_tables import ANSWER, BUDGETS, EXAMPLES, PAGES, experts_tables, pages_tables

from whencount import attribution
from whencount.errors import InputError
from whencount.reports import setting_tables
from whencount.reports.setting_tables import load_experts
from whencount.setting_summaries.effects import effects
from whencount.setting_summaries.experts import experts_answer
from whencount.setting_summaries.identities import identities, output_identities
from whencount.setting_summaries.intervals import Difference, paired_difference
from whencount.setting_summaries.kv_pages import pages_answer
from whencount.setting_summaries.routing import shifts
from whencount.setting_summaries.selections import selections


def rows_of(quality: dict[str, float], variant: str, k1: float = 1.2) -> pd.DataFrame:
    names = [f"{number:03b}" for number in range(8)]
    line = pd.DataFrame([{f"q{name}": quality.get(name, 0.5) for name in names}])
    line = line.assign(variant=variant, k1=k1, task="one")
    return pd.concat([line, attribution.targets(line)], axis=1)


def verdicts(rows: pd.DataFrame) -> dict[str, bool]:
    return {one.statement: one.holds for one in identities(rows)}


def test_identities_hold_where_saturation_alone_changes_nothing() -> None:
    quality = {"000": 0.8, "010": 0.8, "001": 0.7, "011": 0.7, "100": 0.3, "110": 0.4, "101": 0.2,
               "111": 0.1}  # fmt: skip
    found = verdicts(rows_of(quality, "head"))
    assert found == dict.fromkeys(found, True)
    # By hand: (.4 - .3)/6 + (.1 - .2)/3.
    row = rows_of(quality, "head").iloc[0]
    assert row["shapley_saturation"] == pytest.approx(0.1 / 6 - 0.1 / 3, abs=1e-15)
    assert row["collection_gain"] == row["gain"]


def test_a_broken_identity_is_found_with_its_size() -> None:
    rows = rows_of({"000": 0.8, "010": 0.7, "001": 0.7, "011": 0.7}, "head")
    broken = {one.statement: one for one in identities(rows) if not one.holds}
    assert set(broken) == {
        "010 = 000",
        "G = Q111 − Q000",
        "φ of saturation = (Q110 − Q100)/6 + (Q111 − Q101)/3",
    }
    assert broken["010 = 000"].largest == pytest.approx(0.1)
    assert all(one.expected for one in broken.values())


def test_a_missing_quality_is_no_agreement() -> None:
    rows = rows_of({"010": math.nan}, "head")
    assert not verdicts(rows)["010 = 000"]


def test_saturation_that_is_constant_is_not_held_to_the_identities() -> None:
    rows = rows_of({"000": 0.8, "010": 0.1}, "head", k1=0.0)
    found = {one.statement: one for one in identities(rows)}
    assert found["010 = 000"].checked == 0
    assert not found["010 = 000"].holds
    assert found["the three Shapley values add up to Q111 − Q000"].holds


def test_nothing_must_coincide_where_heads_are_summed() -> None:
    rows = rows_of({"000": 0.8, "010": 0.7}, "group")
    found = {one.statement: one for one in identities(rows)}
    assert not found["010 = 000"].expected
    assert found["010 = 000"].broken == 1
    assert "G = Q111 − Q000" not in found


@pytest.mark.parametrize(("variant", "pairs"), [("token", 4), ("expert", 2)])
def test_each_variant_of_routing_has_its_identities(variant: str, pairs: int) -> None:
    found = identities(rows_of({}, variant))
    assert sum("φ" not in one.statement and "=" in one.statement for one in found) == pairs + 1


def test_outputs_are_compared_one_by_one_and_with_the_native_rule() -> None:
    tables = pages_tables()
    keys = ["model", "task", "context", "example", "budget"]
    values = ("score", "prediction")

    def found(table: pd.DataFrame) -> dict[tuple[str, str], int]:
        checked = output_identities(table, keys, "selector", values, {"head": "quest"})
        assert all(one.checked == 3 * len(BUDGETS) * EXAMPLES for one in checked)
        return {(one.variant, one.statement): one.broken for one in checked if one.expected}

    same = found(tables.per_example)
    assert same == {("head", "000 = quest"): 0, ("head", "010 = 000"): 0, ("head", "011 = 001"): 0}
    outputs = tables.per_example.copy()
    chosen = (outputs["selector"] == "010") & (outputs["variant"] == "head")
    place = outputs.index[chosen][0]
    outputs.loc[place, "prediction"] = "another answer with the same score"
    assert found(outputs)["head", "010 = 000"] == 1


def units(one: list[float], other: list[float], group: str = "a") -> pd.DataFrame:
    parts = [
        pd.DataFrame({"rule": rule, "value": values, "unit": range(len(values)), "group": group})
        for rule, values in (("one", one), ("other", other))
    ]
    return pd.concat(parts, ignore_index=True).assign(weight=1.0)


def difference_of(table: pd.DataFrame, **further: Any) -> Difference:
    return paired_difference(
        table, "rule", "one", "other", value="value", group=["group"], unit="unit", **further
    )


def test_a_difference_pairs_units_and_resamples_them() -> None:
    # Paired, every difference is .1 though single values scatter: the interval has no width.
    base = np.random.default_rng(0).uniform(size=40)
    found = difference_of(units(list(base + 0.1), list(base)))
    assert found.mean == pytest.approx(0.1)
    assert (found.low, found.high) == pytest.approx((0.1, 0.1))
    assert found.apart


def test_the_interval_of_a_difference_has_the_width_of_its_standard_error() -> None:
    apart = np.random.default_rng(1).normal(0.0, 1.0, size=400)
    found = difference_of(units(list(apart), [0.0] * 400), draws=4_000)
    expected = 1.96 * apart.std() / 20
    assert (found.high - found.low) / 2 == pytest.approx(expected, rel=0.07)
    assert found.mean == pytest.approx(apart.mean())


def test_groups_count_alike_and_units_by_their_weight() -> None:
    many, few = units([1.0] * 30, [0.0] * 30), units([0.0] * 10, [0.0] * 10, "b")
    assert difference_of(pd.concat([many, few])).mean == pytest.approx(0.5)
    weighed = units([1.0, 0, 0, 0, 0], [0.0] * 5).assign(weight=[6.0, 1, 1, 1, 1] * 2)
    assert difference_of(weighed, weight="weight").mean == pytest.approx(0.6)


def test_a_handful_of_units_has_no_interval() -> None:
    found = difference_of(units([1.0] * 4, [0.0] * 4))
    assert found.few
    assert not found.apart
    assert difference_of(units([], [])).units == 0


def test_the_answer_of_pages_has_every_selector_at_every_budget() -> None:
    tables = pages_tables(contexts=(1024, 2048))
    found = pages_answer(tables.rows, tables.per_example, tables.baselines)
    assert found.budgets == BUDGETS
    assert (found.tasks, found.contexts) == (
        tuple(dict.fromkeys(tables.rows["task"])),
        (1024, 2048),
    )
    for budget in BUDGETS:
        level = found.level("quest", budget)
        assert level is not None
        assert level.cells == 6
        mine = tables.baselines
        mine = mine[(mine["selector"] == "quest") & (mine["budget"] == budget)]
        assert level.score == pytest.approx(mine["score"].mean())
    # 000 per head is Quest, so the best of eight cannot be below it.
    for best in found.best:
        assert best.difference.mean >= 0
    assert {one.variant for one in found.effects} == {"head", "group"}


def test_full_attention_may_stand_at_one_budget_alone() -> None:
    tables = pages_tables()
    once = tables.baselines[
        (tables.baselines["selector"] != "full") | (tables.baselines["budget"] == BUDGETS[0])
    ]
    once = once.assign(budget=once["budget"].mask(once["selector"] == "full", 0))
    outputs = tables.per_example
    outputs = outputs[(outputs["selector"] != "full") | (outputs["budget"] == BUDGETS[0])]
    outputs = outputs.assign(budget=outputs["budget"].mask(outputs["selector"] == "full", 0))
    one = pages_answer(tables.rows, outputs, once)
    other = pages_answer(tables.rows, tables.per_example, tables.baselines)
    assert one.levels == other.levels
    assert one.random == other.random


def test_tables_without_a_line_give_an_answer_without_numbers() -> None:
    tables = pages_tables()
    found = pages_answer(
        tables.rows.iloc[:0], tables.per_example.iloc[:0], tables.baselines.iloc[:0]
    )
    assert (found.rows, found.budgets, found.best, found.effects) == (0, (), (), ())


def test_shares_resample_whole_groups_and_leave_out_rows_without_a_gain() -> None:
    rows = pages_tables().rows
    first = effects(rows, "task")[0]
    chosen = rows[rows["variant"] == first.variant]
    assert first.rows == len(chosen)
    expected = chosen["shapley_idf"].sum() / chosen["gain"].sum()
    assert first.shares[0].share == pytest.approx(expected)
    assert effects(rows.assign(gain=math.nan), "task") == []


def test_the_difference_of_a_rule_is_that_of_its_qualities() -> None:
    tables = experts_tables()
    quality = (-tables.per_document["nll"]).fillna(tables.per_document["accuracy"])
    documents = tables.per_document.assign(quality=quality)
    found = experts_answer(tables.rows, documents, tables.baselines)
    assert found.metrics == {"library": "nll", "mmlu": "accuracy"}
    native = {one.evaluation: one.quality for one in found.differences if one.rule == "native"}
    for one in found.differences:
        # Token-weighted for a text, plain for accuracy: as the table's own means.
        assert one.difference.mean == pytest.approx(one.quality - native[one.evaluation])
    assert all(one.holds for one in found.identities if one.expected)
    random = found.of("library", "random")[0]
    assert random.difference.high < -2


def test_selections_count_reads_of_pages_and_of_the_answer() -> None:
    lines = [
        # Two steps of one head: both read page 0, one of them page 3.
        {"selector": "quest", "layer": 2, "head": 0, "step": 0, "page": 0},
        {"selector": "quest", "layer": 2, "head": 0, "step": 0, "page": 3},
        {"selector": "quest", "layer": 2, "head": 0, "step": 1, "page": 0},
        {"selector": "answer", "layer": -1, "head": -1, "step": -1, "page": 3},
    ]
    table = pd.DataFrame(lines).assign(
        model="m", task="t", context=64, example="e", variant="", budget=32
    )
    (found,) = selections(table)
    assert found.selectors == (("quest", ""),)
    assert found.share.tolist() == [[1.0, 0.0, 0.0, 0.5]]
    assert found.read.tolist() == [1.5]
    assert found.answer == (3,)
    assert found.answer_by_layer.tolist() == [[0.5]]


def test_of_many_recorded_examples_the_first_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = pages_tables().selected
    path = tmp_path / "selected.parquet"
    pd.concat([one, one.assign(example="another")]).to_parquet(path, index=False)
    monkeypatch.setattr(setting_tables, "_LINES_AT_ONCE", 100)
    pd.testing.assert_frame_equal(setting_tables.first_example(path), one)
    one.iloc[:0].to_parquet(path, index=False)
    assert setting_tables.first_example(path).empty
    path.write_text("no table")
    with pytest.raises(InputError, match=r"selected\.parquet cannot be read"):
        setting_tables.first_example(path)


def test_full_attention_reads_every_page_beside_every_budget() -> None:
    (found,) = selections(pages_tables().selected)
    assert found.selectors[0] == ("full", "")
    assert found.share.shape == (22, PAGES)
    assert (found.share[0] == 1).all()
    assert found.answer == ANSWER


def test_shifts_say_which_experts_gain_and_lose() -> None:
    native = [0.5, 0.3, 0.2, 0.0]
    share = [0.4, 0.3, 0.2, 0.1]
    table = pd.DataFrame({"expert": range(4), "frequency": native, "share": share})
    # A tenth of the tokens went from the first expert to the last, and a twentieth back and forth.
    table = table.assign(entered=[0.0, 0.05, 0.0, 0.1], left=[0.1, 0.05, 0.0, 0.0])
    table = table.assign(model="m", layer=0, rule="100", variant="token")
    (found,) = shifts(table)
    assert (found.gained, found.lost, found.same) == (1, 1, False)
    assert found.moved == pytest.approx(0.15)
    assert shifts(table.assign(rule="dense", share=1.0)) == []
    (same,) = shifts(table.assign(share=table["frequency"], entered=0.0, left=0.0))
    assert same.same
    assert same.moved == 0


def test_documents_of_either_kind_have_a_quality(tmp_path: Path) -> None:
    paths = experts_tables().write(tmp_path)
    read = load_experts(paths).per_document
    text = read[read["evaluation"] == "library"]
    assert (text["quality"] == -text["nll"]).all()
    asked = read[read["evaluation"] == "mmlu"]
    assert (asked["quality"] == asked["accuracy"]).all()
