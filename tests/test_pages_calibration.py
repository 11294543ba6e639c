"""What the prefill shows: against transformers' eager attention, and causal."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pages_oracle
import pytest
import torch
from pages_models import GROUPS, HEADS, LAYERS, SETTINGS, native_attention, tiny_llama, tokens

from whencount.attribution import switch_pairs
from whencount.errors import InputError
from whencount.pages.calibration import Calibration, calibrate
from whencount.pages.prefill import Prefix, prefill
from whencount.pages.rankings import page_rankings
from whencount.pages.settings import PageSettings
from whencount.scoring import SWITCHES, Parameters

CONTEXT = 205


def up_to(prefix: Prefix, position: int) -> Prefix:
    """The same prefix, looked at up to a position only."""
    count = int((prefix.positions <= position).sum())
    return replace(
        prefix,
        positions=prefix.positions[:count],
        layers=tuple(replace(layer, queries=layer.queries[:count]) for layer in prefix.layers),
    )


def test_mass_and_received_attention_are_those_of_the_native_attention(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Against the probabilities that transformers' eager code returns."""
    monkeypatch.setattr(
        "whencount.pages.calibration.block_bytes", lambda _: 4 * HEADS * CONTEXT * 5
    )
    model, ids = tiny_llama(), tokens(CONTEXT)
    prefix = prefill(model, ids, SETTINGS)
    found = calibrate(prefix, [64])
    for number, native in enumerate(native_attention(model, ids)):
        layer = found.layers[number]
        for place, position in enumerate(prefix.positions.tolist()):
            pages = position // 16
            expected = native[:, position, : pages * 16].reshape(HEADS, pages, 16).sum(-1)
            np.testing.assert_allclose(layer.mass[place, :, :pages], expected, atol=1e-5)
            assert not layer.mass[place, :, pages:].any()
        received = prefix.layers[number].received
        if number < SETTINGS.dense_layers:
            assert received is None
        else:
            assert received is not None
            np.testing.assert_allclose(received, native.sum(1), rtol=1e-4)


@pytest.mark.parametrize("sinks", [0, 1])
def test_counts_and_scales_are_those_of_the_printed_definition(sinks: int) -> None:
    settings = PageSettings(sink_pages=sinks, calibration_positions=9)
    prefix = prefill(tiny_llama(), tokens(CONTEXT), settings)
    found = calibrate(prefix, [64, 96])
    for layer, own in zip(prefix.layers, found.layers, strict=True):
        values: list[list[float]] = [[] for _ in range(GROUPS)]
        for head in range(HEADS):
            group = head // (HEADS // GROUPS)
            for budget in (64, 96):
                expected = pages_oracle.calibrate(
                    layer.queries[:, head].double().numpy(),
                    layer.keys[group].double().numpy(),
                    prefix.positions.tolist(),
                    budget // 16 - 1 - sinks,
                    sinks,
                    prefix.scaling,
                )
                for page in range(CONTEXT // 16):
                    assert int(own.existed[page]) == expected.existed.get(page, 0)
                    entered = int(own.entered[budget][head, page])
                    assert entered == expected.entered.get(page, 0)
            scale = float(np.median(expected.values))
            assert float(own.head_scale[head]) == pytest.approx(scale, rel=1e-5)
            values[group] += expected.values
        for group in range(GROUPS):
            scale = float(np.median(values[group]))
            assert float(own.group_scale[group]) == pytest.approx(scale, rel=1e-5)
            lengths = [
                pages_oracle.length(pages_oracle.page_of(layer.keys[group].numpy(), page))
                for page in range(CONTEXT // 16)
            ]
            assert float(own.average_length[group]) == pytest.approx(np.mean(lengths), rel=1e-5)


@pytest.mark.parametrize("changed", [100, 131, 163])
def test_later_tokens_change_no_earlier_statistic(changed: int) -> None:
    """Tokens from `changed` on are other tokens, at the same length."""
    ids = tokens(CONTEXT)
    other = torch.cat((ids[:changed], (ids[changed:] + 1) % 89))
    pair = [
        calibrate(up_to(prefill(tiny_llama(), given, SETTINGS), changed - 1), [64])
        for given in (ids, other)
    ]
    whole = [calibrate(prefill(tiny_llama(), given, SETTINGS), [64]) for given in (ids, other)]
    assert any(
        not torch.equal(one.entered[64], two.entered[64])
        for one, two in zip(whole[0].layers, whole[1].layers, strict=True)
    )
    for one, two in zip(pair[0].layers, pair[1].layers, strict=True):
        assert int(one.existed.sum()) > 0
        assert torch.equal(one.existed, two.existed)
        assert torch.equal(one.entered[64], two.entered[64])
        assert torch.equal(one.head_scale, two.head_scale)
        assert torch.equal(one.group_scale, two.group_scale)
        assert torch.equal(one.mass, two.mass)
        there = one.exists[:, None].expand_as(one.bounds)
        assert torch.equal(one.bounds[there], two.bounds[there])


@pytest.mark.parametrize("padding", [1, 9, 16, 23])
def test_padding_moves_no_page_border(padding: int) -> None:
    ids = tokens(CONTEXT)
    padded = torch.cat((torch.zeros(padding, dtype=torch.int64), ids))
    mask = (torch.arange(len(padded)) >= padding).long()
    plain = prefill(tiny_llama(), ids, SETTINGS)
    found = prefill(tiny_llama(), padded, SETTINGS, attention_mask=mask)
    assert found.tokens == CONTEXT
    assert torch.equal(found.positions, plain.positions)
    np.testing.assert_allclose(found.logits, plain.logits, atol=1e-4)
    same = zip(calibrate(found, [64]).layers, calibrate(plain, [64]).layers, strict=True)
    for one, two in same:
        assert torch.equal(one.existed, two.existed)
        assert torch.equal(one.entered[64], two.entered[64])
        np.testing.assert_allclose(one.lengths, two.lengths, rtol=1e-4)


def test_contexts_that_cannot_be_prefilled_are_refused() -> None:
    ids = tokens(20)
    with pytest.raises(InputError, match="pad at the left only"):
        prefill(tiny_llama(), ids, SETTINGS, attention_mask=(ids != ids[4]).long())
    with pytest.raises(InputError, match="without a token"):
        prefill(tiny_llama(), ids[:0], SETTINGS)


def test_a_context_of_one_page_has_nothing_to_calibrate() -> None:
    found = calibrate(prefill(tiny_llama(), tokens(9), SETTINGS), [64])
    assert found.layers[0].existed.tolist() == []
    assert found.layers[0].head_scale.tolist() == [1.0] * HEADS


def rankings_by_loops(
    prefix: Prefix, calibration: Calibration, budget: int, group: bool, parameters: Parameters
) -> tuple[list[float], list[float]]:
    """Disruption by switch and held mass by configuration, page by page."""
    count = budget // 16 - 1
    names = [f"{number:03b}" for number in range(8)]
    unit_size = HEADS // GROUPS if group else 1
    changed: dict[str, list[float]] = {switch: [] for switch in SWITCHES}
    held: dict[str, list[float]] = {name: [] for name in names}
    for number in range(1, LAYERS):
        layer, own = prefix.layers[number], calibration.layers[number]
        for place, position in enumerate(prefix.positions.tolist()):
            if position // 16 <= count:
                continue
            for unit in range(HEADS // unit_size):
                heads = list(range(unit * unit_size, (unit + 1) * unit_size))
                keys = layer.keys[heads[0] // (HEADS // GROUPS)].double().numpy()
                calibrations = [
                    pages_oracle.calibrate(
                        layer.queries[:, head].double().numpy(),
                        keys,
                        prefix.positions.tolist(),
                        count,
                        0,
                        prefix.scaling,
                    )
                    for head in heads
                ]
                # Lengths are averaged over the whole context, pages end at the position.
                selected = {
                    name: pages_oracle.corrected(
                        name,
                        layer.queries[place, heads].double().numpy(),
                        keys[: position // 16 * 16 + 1],
                        CONTEXT,
                        calibrations,
                        count,
                        0,
                        prefix.scaling,
                        parameters.k1,
                        parameters.b,
                        average=float(own.average_length[heads[0] // (HEADS // GROUPS)]),
                    )
                    for name in names
                }
                mass = own.mass[place, heads].double().sum(0).numpy()
                most = np.sort(mass)[::-1][:count].sum()
                for name in names:
                    held[name].append(sum(mass[page] for page in selected[name]) / most)
                for switch in SWITCHES:
                    changed[switch].append(
                        float(
                            np.mean(
                                [
                                    1 - len(selected[names[off]] & selected[names[on]]) / count
                                    for off, on in switch_pairs(switch)
                                ]
                            )
                        )
                    )
    return [float(np.mean(changed[switch])) for switch in SWITCHES], [
        float(np.mean(held[name])) for name in names
    ]


@pytest.mark.parametrize("variant", ["head", "group"])
def test_configurations_are_compared_as_by_loops(variant: str) -> None:
    parameters = Parameters(k1=0.9, b=0.6)
    settings = PageSettings(dense_layers=1, calibration_positions=5)
    prefix = prefill(tiny_llama(), tokens(CONTEXT), settings)
    calibration = calibrate(prefix, [64])
    found = page_rankings(prefix, calibration, 64, variant, parameters)
    disruption, mass = rankings_by_loops(prefix, calibration, 64, variant == "group", parameters)
    np.testing.assert_allclose(found.disruption, disruption, rtol=1e-9)
    np.testing.assert_allclose(found.mass, mass, rtol=1e-5)
    if variant == "head":
        assert found.mass[0] == found.mass[2]
        assert found.mass[1] == found.mass[3]


def test_there_is_nothing_to_compare_where_every_page_is_taken() -> None:
    prefix = prefill(tiny_llama(), tokens(CONTEXT), SETTINGS)
    found = page_rankings(prefix, calibrate(prefix, [512]), 512, "head", Parameters())
    assert np.isnan(found.disruption).all()
    assert np.isnan(found.mass).all()
