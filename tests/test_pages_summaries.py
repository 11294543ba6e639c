from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from pages_oracle import bound, length, page_of

from whencount.errors import InputError
from whencount.pages.prefill import LayerPrefix, attention_received, calibration_positions
from whencount.pages.settings import BASELINES, PageSettings, Rule, rules_of
from whencount.pages.storage import LayerPages
from whencount.pages.summaries import (
    non_negative,
    own_bounds,
    page_extremes,
    page_lengths,
    shared_bounds,
)
from whencount.scoring import Parameters


def random_layer(tokens: int, heads: int = 2, size: int = 8) -> LayerPrefix:
    draws = torch.Generator().manual_seed(tokens)
    keys, values = torch.randn(2, heads, tokens, size, generator=draws)
    return LayerPrefix(keys, values, torch.empty(0), None)


def test_extremes_of_a_partial_last_page_are_of_its_own_keys() -> None:
    keys = torch.arange(20.0).view(1, 20, 1)
    assert page_extremes(keys, 16).tolist() == [[[15.0, 0.0], [19.0, 16.0]]]


def test_page_borders_are_counted_from_the_first_real_token() -> None:
    keys = torch.randn(2, 40, 3, generator=torch.Generator().manual_seed(0))
    padded = torch.cat((torch.full((2, 7, 3), 99.0), keys), dim=1)
    assert torch.equal(page_extremes(padded, 16, first=7), page_extremes(keys, 16))


def test_bound_and_length_follow_the_printed_formula() -> None:
    """max(q_i min_i, q_i max_i) summed, by loops in float64."""
    layer = random_layer(50)
    queries = torch.randn(3, 4, 8, generator=torch.Generator().manual_seed(1))
    extremes = page_extremes(layer.keys, 16)
    found = shared_bounds(queries, extremes, 0.25)
    same = own_bounds(queries, extremes.expand(3, -1, -1, -1), 0.25)
    lengths = page_lengths(extremes)
    for head in range(4):
        keys = layer.keys[head // 2].double().numpy()
        for page in range(4):
            own = page_of(keys, page)
            assert float(lengths[head // 2, page]) == pytest.approx(length(own), rel=1e-6)
            for row in range(3):
                expected = bound(queries[row, head].double().numpy(), own, 0.25)
                assert float(found[row, head, page]) == pytest.approx(expected, rel=1e-5)
                assert float(same[row, head, page]) == pytest.approx(expected, rel=1e-5)


def test_values_rise_with_bounds_of_any_size() -> None:
    """ln(1 + e^x), which is x itself for large x: e^710 is no float64."""
    bounds = torch.tensor([-50.0, 0.0, 50.0, 700.0, 710.0, 999.0, 1001.0, 1e30] * 4)
    expected = np.logaddexp(0.0, bounds.double().numpy())
    np.testing.assert_allclose(non_negative(bounds).numpy(), expected, rtol=1e-14)


def test_no_key_of_a_page_scores_above_its_bound() -> None:
    layer = random_layer(160)
    queries = torch.randn(5, 4, 8, generator=torch.Generator().manual_seed(2))
    found = shared_bounds(queries, page_extremes(layer.keys, 16), 1.0)
    keys = layer.keys.repeat_interleave(2, dim=0)
    scores = torch.einsum("rhd,htd->rht", queries, keys).view(5, 4, 10, 16)
    assert bool((scores.amax(-1) <= found + 1e-5).all())


@pytest.mark.parametrize("context", [5, 16, 37, 48])
def test_extremes_that_grow_token_by_token_equal_those_of_all_keys(context: int) -> None:
    layer, more = random_layer(context), random_layer(60)
    pages = LayerPages(layer, rows=2, room=60, page_tokens=16)
    for token in range(60):
        step = more.keys[:, token]
        pages.append(torch.arange(2), torch.stack((step, -step)), torch.stack((step, step)))
    for row, sign in enumerate((1, -1)):
        keys = torch.cat((layer.keys, sign * more.keys), dim=1)
        own = pages.own_extremes[row, :, : -(-keys.shape[1] // 16) - pages.shared]
        grown = torch.cat((pages.shared_extremes, own), dim=1)
        assert torch.equal(grown, page_extremes(keys, 16))


def test_pages_are_found_where_they_were_written() -> None:
    layer, more = random_layer(37), random_layer(20)
    pages = LayerPages(layer, rows=3, room=20, page_tokens=16)
    for token in range(20):
        step = more.keys[:, token].expand(3, -1, -1) * torch.arange(3.0)[:, None, None]
        pages.append(torch.arange(3), step, step)
    slots = torch.tensor([2, 0])
    chosen = torch.tensor([0, 2, 3]).expand(2, 2, -1)
    found = pages.keys[pages.places(chosen, slots)]
    for row, slot in enumerate(slots.tolist()):
        keys = torch.cat((layer.keys, slot * more.keys), dim=1)
        for head in range(2):
            for place, page in enumerate((0, 2, 3)):
                expected = keys[head, page * 16 : page * 16 + 16]
                assert torch.equal(found[row, head, place, : len(expected)], expected)


def test_calibration_positions_are_even_and_end_with_the_context() -> None:
    assert calibration_positions(128, 4).tolist() == [31, 63, 95, 127]
    assert calibration_positions(3, 64).tolist() == [0, 1, 2]


def test_received_attention_is_the_column_sum_of_the_softmax(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Blocks of a few queries against one whole matrix in float64."""
    monkeypatch.setattr("whencount.pages.prefill.block_bytes", lambda _: 4 * 4 * 41 * 5)
    draws = torch.Generator().manual_seed(3)
    queries, keys = torch.randn(4, 41, 8, generator=draws), random_layer(41).keys
    found = attention_received(queries, keys, 0.5)
    logits = 0.5 * queries.double() @ keys.repeat_interleave(2, dim=0).double().transpose(1, 2)
    logits.masked_fill_(torch.ones(41, 41, dtype=torch.bool).triu(1), -math.inf)
    np.testing.assert_allclose(found, logits.softmax(-1).sum(1), rtol=1e-5)


def test_budgets_pay_for_whole_pages_and_for_the_kept_ones() -> None:
    settings = PageSettings(sink_pages=1)
    assert (settings.pages_of(512), settings.choices_of(512)) == (32, 30)
    assert settings.choices_of(527) == 30
    assert settings.choices_of(32) == 0
    with pytest.raises(InputError, match=r"budget of 31 tokens .* at least 32"):
        settings.pages_of(31)


@pytest.mark.parametrize(
    "wrong", [{"selector": "0000"}, {"selector": "011"}, {"selector": "quest", "variant": "head"}]
)
def test_rules_that_mean_nothing_are_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(InputError):
        Rule(**wrong)  # type: ignore[arg-type]


def test_page_settings_out_of_range_are_refused() -> None:
    with pytest.raises(InputError, match="page_tokens is 0"):
        PageSettings(page_tokens=0)


def test_a_study_has_full_attention_once_and_everything_else_per_budget() -> None:
    rules = rules_of(BASELINES, ("head", "group"), (512, 1024), Parameters())
    assert len(rules) == len(set(rules)) == 1 + 2 * (5 + 2 * 8)
