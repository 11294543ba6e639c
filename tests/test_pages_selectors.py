"""Selectors against the study's own words in loops, and the identities of section 9."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pages_oracle
import pytest
import torch
from pages_models import GROUPS, HEADS, LAYERS, SETTINGS, tiny_llama, tokens

from whencount.pages.calibration import LayerCalibration, calibrate
from whencount.pages.prefill import LayerPrefix, Prefix, prefill
from whencount.pages.selectors import LayerView, order, selector_of
from whencount.pages.selectors.base import Selector
from whencount.pages.selectors.corrected import corrected_scores, page_idf, page_values
from whencount.pages.session import DecodingSession
from whencount.pages.settings import BASELINES, PageSettings, Rule, rules_of
from whencount.pages.storage import LayerPages
from whencount.pages.summaries import page_extremes, page_lengths, shared_bounds
from whencount.scoring import CONFIGURATIONS, Parameters

CONTEXT, STEPS, BUDGET = 203, 40, 96
PARAMETERS = Parameters(k1=0.9, b=0.6)


class Recording(DecodingSession):
    """Keeps the queries and keys of every layer, step and row."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.queries: dict[tuple[int, int, int], Any] = {}
        self.keys: dict[tuple[int, int], list[Any]] = {}

    def read(
        self,
        layer: int,
        queries: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
        scaling: float,
    ) -> torch.Tensor:
        for place, row in enumerate(self._rows):
            self.queries[row, layer, self._step] = queries[place, :, 0].double().numpy()
            self.keys.setdefault((row, layer), []).append(keys[place, :, 0].double().numpy())
        return super().read(layer, queries, keys, values, scaling)


@cache
def decoded(sinks: int) -> tuple[Prefix, Recording, tuple[Rule, ...]]:
    settings = PageSettings(
        dense_layers=SETTINGS.dense_layers,
        sink_pages=sinks,
        calibration_positions=SETTINGS.calibration_positions,
    )
    model = tiny_llama()
    prefix = prefill(model, tokens(CONTEXT), settings)
    rules = rules_of(BASELINES, ("head", "group"), (BUDGET,), PARAMETERS, seed=5)
    session = Recording(
        model, prefix, calibrate(prefix, [BUDGET]), rules, STEPS, watched=range(len(rules))
    )
    for token in tokens(STEPS, seed=1):
        session.feed(token.expand(len(rules)))
    return prefix, session, rules


@pytest.mark.parametrize("sinks", [0, 2])
def test_every_selector_chooses_what_the_study_prints(sinks: int) -> None:
    """All rows, layers, heads and some steps; the context ends and pages fill up on the way."""
    prefix, session, rules = decoded(sinks)
    count = BUDGET // 16 - 1 - sinks
    shared: dict[str, Any] = {"count": count, "sinks": sinks, "scaling": prefix.scaling}
    per_group = HEADS // GROUPS
    calibrations = {
        (layer, head): pages_oracle.calibrate(
            prefix.layers[layer].queries[:, head].double().numpy(),
            prefix.layers[layer].keys[head // per_group].double().numpy(),
            prefix.positions.tolist(),
            **shared,
        )
        for layer in range(1, LAYERS)
        for head in range(HEADS)
    }
    heavy: dict[tuple[int, int], pages_oracle.HeavyHitters] = {}
    found = {(one.row, one.layer, one.step): one.pages for one in session.selections}
    assert all(layer >= 1 for _, layer, _ in found)
    compared = 0
    for row, rule in enumerate(rules):
        if rule.selector in ("full", "random"):
            continue
        for layer in range(1, LAYERS):
            for step in range(STEPS):
                if rule.selector != "h2o" and step % 13 and step != STEPS - 1:
                    continue
                for head in range(HEADS):
                    group = head // per_group
                    before = prefix.layers[layer].keys[group].double().numpy()
                    own = [keys[group] for keys in session.keys[row, layer][: step + 1]]
                    keys = np.concatenate((before, np.stack(own)))
                    queries = session.queries[row, layer, step]
                    unit = (
                        range(group * per_group, (group + 1) * per_group)
                        if rule.variant == "group"
                        else range(head, head + 1)
                    )
                    if rule.selector == "quest":
                        expected = pages_oracle.quest(queries[head], keys, **shared)
                    elif rule.selector == "mass":
                        expected = pages_oracle.heaviest(queries[head], keys, **shared)
                    elif rule.selector == "streaming":
                        expected = pages_oracle.streaming(len(keys), count, sinks)
                    elif rule.selector == "h2o":
                        received = prefix.layers[layer].received
                        assert received is not None
                        state = heavy.setdefault(
                            (layer, head),
                            pages_oracle.HeavyHitters(received[head].numpy(), count, sinks),
                        )
                        expected = state.choose(len(keys))
                    else:
                        expected = pages_oracle.corrected(
                            rule.selector,
                            queries[list(unit)],
                            keys,
                            CONTEXT,
                            [calibrations[layer, one] for one in unit],
                            k1=PARAMETERS.k1,
                            b=PARAMETERS.b,
                            **shared,
                        )
                    kept = {*range(sinks), (len(keys) - 1) // 16}
                    pages = found[row, layer, step][head].tolist()
                    assert len(pages) == len(set(pages)) == BUDGET // 16
                    assert set(pages) == expected | kept, (rule, layer, step, head)
                    compared += 1
    assert compared == 8 * (40 + 19 * 4)


def test_random_pages_follow_from_the_seed_alone() -> None:
    _, session, rules = decoded(0)
    row = [rule.selector for rule in rules].index("random")
    own = {(one.layer, one.step): one.pages for one in session.selections if one.row == row}
    assert not torch.equal(own[1, 0], own[1, 1])
    assert not torch.equal(own[1, 0], own[2, 0])
    view = random_view(heads=4, groups=2, pages=30)
    drawn = [selector_of([Rule("random", 96, seed=seed)]).choose(view, 5) for seed in (5, 5, 6)]
    assert torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[0], drawn[2])


def random_view(heads: int, groups: int, pages: int, rows: int = 8, seed: int = 0) -> LayerView:
    """A layer of random keys and queries, with a calibration of random counts."""
    draws = torch.Generator().manual_seed(seed)
    context = pages * 16 - 5
    keys, values = torch.randn(2, groups, context, 8, generator=draws)
    layer = LayerPrefix(keys, values, torch.empty(0), None)
    stored = LayerPages(layer, rows, 30, 16)
    for _ in range(23):
        step = torch.randn(rows, groups, 8, generator=draws)
        stored.append(torch.arange(rows), step, step)
    whole = context // 16
    extremes = page_extremes(keys[:, : whole * 16], 16)
    lengths = page_lengths(extremes)
    existed = torch.randint(0, 40, (whole,), generator=draws)
    entered = (existed * torch.rand(heads, whole, generator=draws)).long()
    queries = torch.randn(rows, heads, 8, generator=draws) * 3
    calibration = LayerCalibration(
        existed=existed,
        entered={96: entered},
        head_scale=torch.rand(heads, generator=draws, dtype=torch.float64) + 0.5,
        group_scale=torch.rand(groups, generator=draws, dtype=torch.float64) + 0.5,
        average_length=lengths.mean(-1),
        lengths=lengths,
        exists=torch.ones(1, whole, dtype=torch.bool),
        bounds=shared_bounds(queries, extremes, 0.3),
        mass=torch.empty(0),
    )
    return LayerView(0, queries, torch.arange(rows), stored, layer, calibration, 0.3, SETTINGS)


def choice(selector: Selector, view: LayerView) -> torch.Tensor:
    """Chosen pages, rising, by row and unit."""
    return selector.choose(view, 5).sort(dim=-1).values


def alike(variant: str, one: str, other: str, seeds: int = 12) -> float:
    """Share of (row, unit) in which two configurations choose the same pages."""
    same = []
    for seed in range(seeds):
        view = random_view(heads=6, groups=2, pages=40, seed=seed)
        pair = [choice(selector_of([Rule(name, 96, variant)] * 8), view) for name in (one, other)]
        same.append((pair[0] == pair[1]).all(-1))
    return float(torch.stack(same).double().mean())


@pytest.mark.parametrize(("one", "other"), [("000", "010"), ("001", "011")])
def test_saturation_alone_changes_nothing_where_a_page_has_one_feature(
    one: str, other: str
) -> None:
    assert alike("head", one, other) == 1.0
    assert alike("group", one, other) < 1.0


@pytest.mark.parametrize(("one", "other"), [("100", "110"), ("000", "001"), ("000", "100")])
def test_other_pairs_of_configurations_differ(one: str, other: str) -> None:
    assert alike("head", one, other) < 1.0


def test_all_off_is_the_native_selector_to_the_last_bit() -> None:
    _, session, rules = decoded(0)
    quest, off = (
        rules.index(Rule("quest", BUDGET, seed=5)),
        rules.index(Rule("000", BUDGET, "head", PARAMETERS)),
    )
    by_row = {
        row: [one.pages for one in session.selections if one.row == row] for row in (quest, off)
    }
    assert len(by_row[quest]) == STEPS * (LAYERS - 1)
    for native, corrected in zip(by_row[quest], by_row[off], strict=True):
        assert torch.equal(native, corrected)


def test_all_off_calls_the_native_selector(monkeypatch: pytest.MonkeyPatch) -> None:
    called = []

    def choose(self: Any, view: LayerView, count: int) -> torch.Tensor:
        called.append((self.group, len(view.slots)))
        return torch.zeros(len(view.slots), 1, count, dtype=torch.int64)

    monkeypatch.setattr("whencount.pages.selectors.quest.Quest.choose", choose)
    view = random_view(heads=6, groups=2, pages=20)
    for variant in ("head", "group"):
        selector_of([Rule("000", 96, variant)] * 8).choose(view, 5)
    assert called == [(False, 8), (True, 8)]


@pytest.mark.parametrize("variant", ["head", "group"])
def test_a_batch_of_configurations_scores_as_each_does_alone(variant: str) -> None:
    view = random_view(heads=6, groups=2, pages=40)
    rules = [
        Rule(str(configuration), 96, variant) for configuration in sorted(CONFIGURATIONS, key=order)
    ]
    together = selector_of(rules)
    found = choice(together, view)
    for place, rule in enumerate(rules):
        assert torch.equal(
            found[place], choice(selector_of([rule]), view.rows(place, place + 1))[0]
        )
    together.keep(torch.tensor([1, 4, 7]))
    fewer = LayerView(
        0,
        view.queries[[1, 4, 7]],
        view.slots[[1, 4, 7]],
        view.pages,
        view.prefix,
        view.calibration,
        view.scaling,
        view.settings,
    )
    assert torch.equal(choice(together, fewer), found[[1, 4, 7]])


def test_pages_written_after_calibration_have_idf_one() -> None:
    """Own complete pages of a session and pages that never existed at a calibration position."""
    view = random_view(heads=2, groups=2, pages=12)
    calibration = view.calibration
    assert calibration is not None
    weights = page_idf(calibration, 96)
    assert bool((weights[:, calibration.existed == 0] == 1).all())
    selector: Any = selector_of([Rule("100", 96, "head")] * 8)
    values = view.values() / calibration.head_scale[:, None]
    scores = selector._scores(view, 0)
    assert view.own_complete == 2
    assert torch.equal(scores[..., -2:], values[..., -2:])
    assert torch.equal(scores[..., :-2], values[..., :-2] * weights)


def test_without_k1_saturation_leaves_the_order_of_pages() -> None:
    """Every weight is then 1, so the earliest pages are taken."""
    view = random_view(heads=2, groups=2, pages=40)
    rule = Rule("010", 96, "head", Parameters(k1=0.0))
    assert choice(selector_of([rule] * 8), view).tolist() == [[[0, 1, 2, 3, 4]] * 2] * 8


def test_scores_of_one_configuration_by_hand() -> None:
    """Value 2, length factor .5, IDF 3, k1 1: 3 * 2 * 2 / (2 + .5)."""
    one = torch.ones(1, 1, 1, dtype=torch.float64)
    full = next(c for c in CONFIGURATIONS if str(c) == "111")
    assert float(corrected_scores(2 * one, one / 2, 3 * one, full, 1.0)) == pytest.approx(4.8)


def test_heavy_hitters_forget_rows_that_ended() -> None:
    view = random_view(heads=4, groups=2, pages=30, rows=3)
    received = torch.rand(4, view.prefix.keys.shape[1], generator=torch.Generator().manual_seed(9))
    prefix = LayerPrefix(view.prefix.keys, view.prefix.values, torch.empty(0), received)
    full = LayerView(
        0, view.queries, view.slots, view.pages, prefix, None, view.scaling, view.settings
    )
    selector = selector_of([Rule("h2o", 96)] * 3)
    found = selector.choose(full, 5)
    selector.keep(torch.tensor([2]))
    assert torch.equal(selector.choose(full.rows(2, 3), 5)[0], found[2])


def test_heavy_hitters_beside_many_sink_pages_are_the_latest_pages() -> None:
    """Of seven pages five are sinks and one is current: the one left is a recent one."""
    settings = PageSettings(sink_pages=5)
    view = replace(random_view(heads=4, groups=2, pages=30), settings=settings)
    received = torch.rand(4, view.prefix.keys.shape[1], generator=torch.Generator().manual_seed(9))
    prefix = replace(view.prefix, received=received)
    assert settings.choices_of(7 * 16) == 1
    chosen = selector_of([Rule("h2o", 7 * 16)]).choose(replace(view, prefix=prefix), 1)
    assert (chosen == view.candidates - 1).all()


def test_values_of_a_group_have_one_scale() -> None:
    view = random_view(heads=6, groups=2, pages=12)
    calibration = view.calibration
    assert calibration is not None
    bounds = torch.zeros(1, 6, 3)
    values = page_values(bounds, calibration, group=True)
    expected = np.log(2) / calibration.group_scale.repeat_interleave(3)
    np.testing.assert_allclose(values[0, :, 0], expected, rtol=1e-12)
