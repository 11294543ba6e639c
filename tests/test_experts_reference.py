"""Preserved experts and the dense reference, against models changed by hand."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from experts_models import (
    ACTIVE,
    EXPERTS,
    LAYERS,
    VOCABULARY,
    dense_mixture,
    documents,
    logits_of,
    recorder,
    tiny_olmoe,
)
from numpy.typing import NDArray
from scipy.special import log_softmax, rel_entr
from torch import Tensor

from whencount.errors import InputError
from whencount.experts.calibrating import calibrate
from whencount.experts.likelihood import document_likelihoods, token_likelihoods
from whencount.experts.preservation import (
    RemovalEffects,
    effects_table,
    removal_effects,
    without_experts,
)
from whencount.experts.reference import layer_agreement, output_agreement
from whencount.experts.routers import find_routers
from whencount.experts.routing import routed
from whencount.experts.rules import RULES, rule_named
from whencount.experts.rules.dense import Dense
from whencount.experts.rules.native import Native

TEXT = documents(4, 10, seed=9)


@cache
def model() -> Any:
    return tiny_olmoe()


def losses(of: Any) -> NDArray[np.float64]:
    """Mean negative log-likelihood of each document, in float64."""
    found = log_softmax(logits_of(of, TEXT).double().numpy(), axis=-1)
    return np.array(
        [
            -np.mean([found[row, place, ids[place + 1]] for place in range(len(ids) - 1)])
            for row, ids in enumerate(TEXT.tolist())
        ]
    )


def test_likelihoods_are_those_of_the_textbook_in_nats() -> None:
    with torch.inference_mode():
        found = document_likelihoods(model(), TEXT).numpy()
    assert found == pytest.approx(losses(model()), rel=1e-5)
    flat = token_likelihoods(torch.zeros(2, 700, 5), torch.zeros(2, 700, dtype=torch.int64))
    assert flat.shape == (2, 699)
    assert flat.numpy() == pytest.approx(math.log(5))


def test_a_rise_is_that_of_a_model_whose_expert_gives_nothing() -> None:
    effects = removal_effects(model(), TEXT, screening=4, finalists=1.0, tokens_per_pass=35)
    for layer in range(LAYERS):
        for expert in range(EXPERTS):
            changed = tiny_olmoe()
            with torch.no_grad():
                changed.model.layers[layer].mlp.experts.down_proj[expert] = 0
            rise = float((losses(changed) - losses(model())).mean())
            assert effects.measured[layer, expert] == pytest.approx(rise, abs=2e-6)
    assert effects.screened == pytest.approx(effects.measured, abs=1e-12)


def test_rows_of_a_batch_go_without_experts_of_different_layers() -> None:
    removed = np.array([[0, 2], [1, 5], [0, 0]])
    ids = np.repeat(TEXT[:1], 3, axis=0)
    with without_experts(find_routers(model()), removed):
        found = logits_of(model(), ids)
    for row, (layer, expert) in enumerate(removed):
        changed = tiny_olmoe()
        with torch.no_grad():
            changed.model.layers[layer].mlp.experts.down_proj[expert] = 0
        assert torch.allclose(found[row], logits_of(changed, ids)[row], atol=1e-5)


def test_screening_spares_passes_and_finds_the_same_finalists() -> None:
    sizes = []
    handle = model().register_forward_pre_hook(
        lambda _, args, kwargs: sizes.append(kwargs["input_ids"].numel()), with_kwargs=True
    )
    effects = removal_effects(model(), TEXT, screening=1, finalists=0.25)
    handle.remove()
    everyone, finalists = LAYERS * EXPERTS, LAYERS * EXPERTS // 4
    # The intact model runs in batches of the same size, once per document and size.
    most = 2 * (everyone + finalists * len(TEXT)) * TEXT.shape[1]
    assert sum(sizes) <= most
    assert np.isfinite(effects.measured).sum() == finalists
    best = np.sort(effects.screened.reshape(-1))[-finalists:]
    assert np.sort(effects.screened[np.isfinite(effects.measured)]) == pytest.approx(best)


def test_an_expert_that_no_token_is_routed_to_has_no_effect() -> None:
    lonely = tiny_olmoe()
    with torch.no_grad():
        # The router of layer 0 gives expert 6 the logit of the least wanted one of all.
        weight = lonely.model.layers[0].mlp.gate.weight
        weight[6] = 0
        weight[:3] *= 0
        lonely.model.layers[0].mlp.gate.weight[3:6] *= 5
    seen, observe = recorder()
    with routed(lonely, Native(), None, observe):
        logits_of(lonely, TEXT)
    idle = set(range(EXPERTS)) - set(seen[0][1].reshape(-1).tolist())
    effects = removal_effects(lonely, TEXT, screening=len(TEXT))
    assert all(effects.screened[0, expert] == 0 for expert in idle)


def test_the_largest_rises_are_preserved_and_no_fall_ever_is() -> None:
    measured = np.array([[0.3, np.nan, -0.1, 0.2], [0.2, 0.5, 0.0, np.nan]])
    effects = RemovalEffects((0, 1), np.nan_to_num(measured), measured, 1.0)
    assert np.argwhere(effects.preserved(0.25)).tolist() == [[0, 0], [1, 1]]
    # 0.3 of eight are 2.4, so three; of the two rises of 0.2 the one in the earlier layer.
    assert np.argwhere(effects.preserved(0.3)).tolist() == [[0, 0], [0, 3], [1, 1]]
    assert effects.preserved(1.0).sum() == 4
    assert effects.preserved(0.0).sum() == 0
    table = effects_table(effects, 0.25)
    assert table.loc[table["preserved"], ["layer", "expert"]].to_numpy().tolist() == [
        [0, 0],
        [1, 1],
    ]


@pytest.mark.parametrize("share", [-0.1, 0.2])
def test_no_more_experts_are_preserved_than_were_measured(share: float) -> None:
    effects = RemovalEffects((0,), np.zeros((1, 8)), np.zeros((1, 8)), 0.1)
    with pytest.raises(InputError, match=rf"{share}; it must lie between 0 and 0.1"):
        effects.preserved(share)


def test_preservation_refuses_what_it_cannot_measure() -> None:
    with pytest.raises(InputError, match="at least two tokens"):
        removal_effects(model(), TEXT[:, :1])
    broken = tiny_olmoe()
    with torch.no_grad():
        broken.lm_head.weight[:] = torch.inf
    with pytest.raises(InputError, match="loss without an expert is not a finite number"):
        removal_effects(broken, TEXT)


def output_of(rule: Any) -> Tensor:
    with routed(model(), rule):
        return logits_of(model(), TEXT)


def test_output_agreement_is_minus_the_divergence_from_the_dense_mixture() -> None:
    kept = np.zeros((LAYERS, EXPERTS), dtype=np.bool_)
    rules = [rule_named(name, calibrate(model(), TEXT), preserved=kept) for name in RULES]
    found = output_agreement(model(), TEXT, rules, batch=3)
    dense = np.exp(log_softmax(output_of(Dense()).double().numpy(), axis=-1))
    for name, rule, agreement in zip(RULES, rules, found, strict=True):
        other = np.exp(log_softmax(output_of(rule).double().numpy(), axis=-1))
        divergence = rel_entr(dense, other).sum(axis=-1).mean()
        assert agreement == pytest.approx(-divergence, abs=1e-6), name
    by_name = dict(zip(RULES, found, strict=True))
    assert by_name["dense"] == 0
    assert by_name["000"] == by_name["011"] == by_name["native"] < 0
    assert dense.shape == (*TEXT.shape, VOCABULARY)


def test_layer_agreement_is_minus_the_distance_from_the_dense_mixture() -> None:
    rules = [rule_named(name, calibrate(model(), TEXT)) for name in ("native", "111", "dense")]
    found = layer_agreement(model(), TEXT, rules, batch=2)
    seen, observe = recorder()
    with routed(model(), Native(), None, observe):
        logits_of(model(), TEXT)
    for layer in range(LAYERS):
        tokens, native = seen[layer]
        block = model().model.layers[layer].mlp
        expected = dense_mixture(block, tokens.hidden)
        with torch.inference_mode():
            mixed = block.experts(
                tokens.hidden, native, tokens.probabilities.gather(1, native)
            ).double()
            distance = (mixed - expected).square().sum(dim=1) / expected.square().sum(dim=1)
        assert found[0, layer] == pytest.approx(-float(distance.mean()), rel=1e-4)
    assert found[1].max() < 0
    assert found[2].tolist() == [0.0, 0.0]


def test_with_all_experts_every_rule_agrees_with_the_reference() -> None:
    rules = [rule_named(name, calibrate(model(), TEXT, EXPERTS)) for name in ("000", "111")]
    assert output_agreement(model(), TEXT, rules, EXPERTS).tolist() == [0.0, 0.0]
    assert layer_agreement(model(), TEXT, rules, EXPERTS).tolist() == [[0.0, 0.0]] * 2
    assert ACTIVE < EXPERTS
