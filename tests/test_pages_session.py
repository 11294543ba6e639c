"""Decoding many rules as one batch: parity with transformers, budgets, what is really read."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from pages_models import LAYERS, SETTINGS, native_logits, tiny_llama, tokens

from whencount.errors import InputError
from whencount.pages import reading
from whencount.pages.calibration import calibrate
from whencount.pages.prefill import Prefix, prefill
from whencount.pages.selectors.base import LayerView
from whencount.pages.session import DecodingSession
from whencount.pages.settings import BASELINES, VARIANTS, PageSettings, Rule, rules_of
from whencount.scoring import Parameters

CONTEXT, STEPS = 203, 24


def every_rule(*budgets: int) -> tuple[Rule, ...]:
    return rules_of(BASELINES, VARIANTS, budgets, Parameters(), seed=3)


def decode(
    rules: tuple[Rule, ...],
    settings: PageSettings = SETTINGS,
    model: Any = None,
    device: str = "cpu",
) -> torch.Tensor:
    """Logits of STEPS given tokens, [steps, rows, vocabulary]."""
    model = tiny_llama() if model is None else model
    prefix = prefill(model, tokens(CONTEXT).to(device), settings)
    calibration = calibrate(prefix, sorted({rule.budget for rule in rules if rule.budget}))
    session = DecodingSession(model, prefix, calibration, rules, STEPS)
    return torch.stack([session.feed(token.expand(len(rules))) for token in tokens(STEPS, seed=1)])


@pytest.mark.parametrize("sinks", [0, 3])
def test_a_budget_that_covers_the_context_equals_native_attention(sinks: int) -> None:
    """Same argmax, logits to 1e-4, for every rule, while pages fill and begin."""
    rules = every_rule(256)
    found = decode(rules, replace(SETTINGS, sink_pages=sinks))
    ids = torch.cat((tokens(CONTEXT), tokens(STEPS, seed=1)))
    native = native_logits(tiny_llama(), ids)[CONTEXT:, None]
    np.testing.assert_allclose(found, native.expand_as(found), atol=1e-4)
    assert torch.equal(found.argmax(-1), native.argmax(-1).expand(-1, len(rules)))


def test_full_attention_ignores_what_the_other_rows_do() -> None:
    rules = (Rule("random", 32), Rule("full"), Rule("quest", 64))
    found = decode(rules)
    native = native_logits(tiny_llama(), torch.cat((tokens(CONTEXT), tokens(STEPS, seed=1))))
    np.testing.assert_allclose(found[:, 1], native[CONTEXT:], atol=1e-4)
    assert float((found[:, 0] - native[CONTEXT:]).abs().max()) > 0.1


def test_rows_decode_together_as_each_does_alone() -> None:
    rules = (
        Rule("h2o", 64),
        Rule("111", 64, "group"),
        Rule("quest", 48),
        Rule("011", 64, "head"),
        Rule("mass", 64),
    )
    together = decode(rules)
    for row, rule in enumerate(rules):
        np.testing.assert_allclose(together[:, row], decode((rule,))[:, 0], atol=1e-4)


def test_the_hook_without_a_reader_is_native_attention_bit_for_bit() -> None:
    model, ids = tiny_llama(), tokens(50)
    native = native_logits(model, ids)
    prefill(model, ids, SETTINGS)
    assert model.config._attn_implementation == "whencount_pages"
    assert torch.equal(model(ids[None], use_cache=False).logits[0], native)


def test_generated_answers_are_those_of_greedy_generation() -> None:
    model, context, question = tiny_llama(), tokens(CONTEXT), tokens(5, seed=2).tolist()
    prefix = prefill(model, context, SETTINGS)
    rules = (Rule("quest", 48), Rule("full"), Rule("mass", 512))
    session = DecodingSession(model, prefix, None, rules, 20)
    answers = session.generate(question, stops=(), limit=12)
    ids = torch.cat((context, torch.tensor(question)))
    for _ in range(12):
        ids = torch.cat((ids, native_logits(model, ids)[-1:].argmax(-1)))
    assert answers[1] == answers[2] == ids[-12:].tolist()


def test_rows_end_at_a_stop_and_leave_the_others_alone() -> None:
    model, question = tiny_llama(), tokens(5, seed=2).tolist()
    prefix = prefill(model, tokens(CONTEXT), SETTINGS)
    calibration = calibrate(prefix, [48, 64])
    rules = every_rule(48, 64)
    free = DecodingSession(model, prefix, calibration, rules, 60).generate(question, (), 40)
    stop = free[rules.index(Rule("h2o", 48, seed=3))][7]
    session = DecodingSession(model, prefix, calibration, rules, 60)
    stopped = session.generate(question, (stop,), 40)
    ended = 0
    for whole, found in zip(free, stopped, strict=True):
        until = whole.index(stop) if stop in whole else len(whole)
        assert found == whole[:until]
        ended += until < len(whole)
    assert ended > 1
    assert len(session.living) <= len(rules)


@pytest.mark.parametrize("sinks", [0, 2])
def test_no_row_reads_more_than_its_budget(sinks: int) -> None:
    """Kept pages are in every selection and are charged; pages are whole and none is read twice."""
    model, rules = tiny_llama(), every_rule(64, 96)
    settings = replace(SETTINGS, sink_pages=sinks)
    prefix = prefill(model, tokens(CONTEXT), settings)
    calibration = calibrate(prefix, [64, 96])
    session = DecodingSession(model, prefix, calibration, rules, STEPS, watched=range(len(rules)))
    for token in tokens(STEPS, seed=1):
        session.feed(token.expand(len(rules)))
    assert session.selections
    for one in session.selections:
        rule = rules[one.row]
        assert one.layer >= settings.dense_layers
        assert one.pages.shape == (4, rule.budget // 16)
        assert torch.equal(one.pages, one.pages.sort(dim=-1).values)
        assert bool((one.pages[:, 1:] > one.pages[:, :-1]).all())
        assert bool((one.pages[:, -1] == (CONTEXT + one.step) // 16).all())
        assert bool((one.pages[:, :sinks] == torch.arange(sinks)).all())
    steps = {(one.row, one.layer, one.step) for one in session.selections}
    assert len(steps) == (len(rules) - 1) * (LAYERS - settings.dense_layers) * STEPS


def test_pages_that_are_not_selected_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys and values of all other pages are made NaN just before attention reads."""
    rules = tuple(rule for rule in every_rule(64) if rule.selector not in ("full", "mass"))
    expected = decode(rules)
    plain = reading.read_pages

    def poisoned(view: LayerView, chosen: torch.Tensor) -> torch.Tensor:
        pages = view.pages
        kept = (pages.keys.clone(), pages.values.clone())
        unread = torch.ones(len(pages.keys), dtype=torch.bool)
        unread[pages.places(chosen, view.slots).flatten()] = False
        pages.keys[unread] = torch.nan
        pages.values[unread] = torch.nan
        found = plain(view, chosen)
        pages.keys.copy_(kept[0])
        pages.values.copy_(kept[1])
        return found

    monkeypatch.setattr("whencount.pages.session.read_pages", poisoned)
    assert torch.equal(decode(rules), expected)


@pytest.mark.parametrize("threads", [1, 3])
def test_reading_in_place_equals_gathering(monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    """The compiled kernel against gather and scaled-dot-product attention."""
    monkeypatch.setattr("torch.get_num_threads", lambda: threads)
    compared = []
    compiled = reading._read_compiled

    def both(*given: Any) -> torch.Tensor:
        found = compiled(*given)
        gathered = reading._read_gathered(*given).view(found.shape)
        compared.append(float((found - gathered).abs().max()))
        return found

    monkeypatch.setattr("whencount.pages.reading._read_compiled", both)
    decode(every_rule(64))
    assert len(compared) == 2 * 2 * STEPS
    assert max(compared) < 1e-5


def test_half_precision_runs_on_a_cpu_and_stays_near_single() -> None:
    rules = every_rule(64, 256)
    half = decode(rules, model=tiny_llama(torch.float16))
    assert half.dtype == torch.float32
    native = native_logits(
        tiny_llama(torch.float16), torch.cat((tokens(CONTEXT), tokens(STEPS, seed=1)))
    )[CONTEXT:]
    covering = [row for row, rule in enumerate(rules) if rule.budget == 256]
    for row in [0, *covering]:
        np.testing.assert_allclose(half[:, row], native, atol=0.02)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
def test_half_precision_on_a_gpu_equals_native_attention_where_a_budget_covers_all() -> None:
    model = copy.deepcopy(tiny_llama(torch.float16)).cuda()
    rules = every_rule(64, 256)
    found = decode(rules, model=model, device="cuda")
    ids = torch.cat((tokens(CONTEXT), tokens(STEPS, seed=1))).cuda()
    native = native_logits(model, ids)[CONTEXT:].cpu()
    for row in [0, *(row for row, rule in enumerate(rules) if rule.budget == 256)]:
        np.testing.assert_allclose(found[:, row], native, atol=0.02)


def test_a_context_shorter_than_a_budget_is_read_whole() -> None:
    model = tiny_llama()
    prefix = prefill(model, tokens(7), SETTINGS)
    rules = every_rule(64)
    session = DecodingSession(model, prefix, calibrate(prefix, [64]), rules, 70)
    given = tokens(70, seed=1)
    found = torch.stack([session.feed(token.expand(len(rules))) for token in given])
    native = native_logits(model, torch.cat((tokens(7), given)))[7:]
    np.testing.assert_allclose(found[:40], native[:40, None].expand_as(found[:40]), atol=1e-4)


def prefix_of(count: int = CONTEXT) -> Prefix:
    return prefill(tiny_llama(), tokens(count), SETTINGS)


@pytest.mark.parametrize("sinks", [0, 2])
def test_the_smallest_budget_reads_what_is_always_kept(sinks: int) -> None:
    settings = replace(SETTINGS, sink_pages=sinks)
    model, prefix = tiny_llama(), prefill(tiny_llama(), tokens(CONTEXT), settings)
    budget = 16 * (1 + sinks)
    rules = every_rule(budget)
    calibration = calibrate(prefix, [budget])
    assert not calibration.layers[0].entered[budget].any()
    session = DecodingSession(model, prefix, calibration, rules, 3, range(len(rules)))
    found = session.feed(torch.ones(len(rules), dtype=torch.int64))
    assert len(session.selections) == (len(rules) - 1) * (LAYERS - SETTINGS.dense_layers)
    for one in session.selections:
        assert one.pages.tolist() == [[*range(sinks), CONTEXT // 16]] * 4
    np.testing.assert_allclose(found[1:], found[1:2].expand_as(found[1:]), atol=1e-4)


def test_a_budget_too_small_for_the_kept_pages_is_refused() -> None:
    with pytest.raises(InputError, match="budget of 15 tokens does not pay"):
        DecodingSession(tiny_llama(), prefix_of(), None, [Rule("quest", 15)], 4)


def test_a_budget_that_was_not_calibrated_is_refused() -> None:
    prefix = prefix_of()
    for calibration in (None, calibrate(prefix, [64])):
        with pytest.raises(InputError, match="not calibrated; calibrate 48 too"):
            DecodingSession(tiny_llama(), prefix, calibration, [Rule("100", 48, "head")], 4)


def test_a_full_session_and_an_empty_question_are_refused() -> None:
    session = DecodingSession(tiny_llama(), prefix_of(), None, [Rule("full")], 1)
    with pytest.raises(InputError, match="empty question"):
        session.generate([], (), 3)
    session.feed(torch.tensor([1]))
    with pytest.raises(InputError, match="room for 1 tokens"):
        session.feed(torch.tensor([1]))


def test_logits_that_are_not_finite_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    session = DecodingSession(tiny_llama(), prefix_of(), None, [Rule("full")], 1)
    monkeypatch.setattr(
        "whencount.pages.session.read_everything", lambda view: view.queries * torch.nan
    )
    with pytest.raises(InputError, match="not finite after 204 tokens; load it in fp32"):
        session.feed(torch.tensor([1]))
