"""Rules in charge of the routers: parity with the native forward, budgets, padding, hooks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from experts_models import (
    ACTIVE,
    EXPERTS,
    LAYERS,
    PAD,
    Picked,
    dense_mixture,
    documents,
    logits_of,
    recorder,
    tiny_olmoe,
)
from torch import Tensor

from whencount.errors import InputError
from whencount.experts.calibrating import calibrate
from whencount.experts.calibration import VARIANTS
from whencount.experts.routing import RoutedModel, RoutedTokens, routed
from whencount.experts.rules import CONFIGURATION_RULES, RULES, rule_named
from whencount.experts.rules.dense import Dense
from whencount.experts.rules.native import Native
from whencount.experts.rules.random import RandomExperts

IMPLEMENTATIONS = ("eager", "batched_mm", "grouped_mm")
PRECISIONS = (torch.float32, torch.float16)


def padded(side: str) -> tuple[Tensor, Tensor]:
    """Three rows of 12, 7 and 1 real tokens, and their attention mask."""
    ids, mask = torch.full((3, 12), PAD), torch.zeros((3, 12), dtype=torch.int64)
    for row, size in enumerate((12, 7, 1)):
        place = slice(12 - size, 12) if side == "left" else slice(0, size)
        ids[row, place] = torch.from_numpy(documents(1, size, seed=row)[0])
        mask[row, place] = 1
    return ids, mask


def rules_of(model: Any, variant: str = "token", **more: Any) -> dict[str, Any]:
    calibration = calibrate(model, documents())
    mask = np.zeros((LAYERS, EXPERTS), dtype=np.bool_)
    mask[:, :2] = True
    return {name: rule_named(name, calibration, variant, preserved=mask, **more) for name in RULES}


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("side", ["none", "left", "right"])
def test_token_lengths_leave_the_native_forward_bit_for_bit(
    dtype: torch.dtype, implementation: str, side: str
) -> None:
    model = tiny_olmoe(dtype, implementation)
    rules = rules_of(model)
    ids, mask = padded(side) if side != "none" else (torch.from_numpy(documents()), None)
    native = logits_of(model, ids, mask)
    outputs = {}
    for name in CONFIGURATION_RULES:
        with routed(model, rules[name]):
            outputs[name] = logits_of(model, ids, mask)
    for name in ("000", "001", "010", "011"):
        assert torch.equal(outputs[name], native), name
    assert torch.equal(outputs["101"], outputs["100"])
    for name in ("100", "110", "111"):
        assert not torch.equal(outputs[name], native), name


@pytest.mark.parametrize("normalised", [False, True])
@pytest.mark.parametrize("dtype", PRECISIONS)
def test_normalised_gate_weights_are_native_too(dtype: torch.dtype, normalised: bool) -> None:
    model = tiny_olmoe(dtype, normalised=normalised)
    native = logits_of(model, documents())
    with routed(model, rules_of(model)["011"]):
        assert torch.equal(logits_of(model, documents()), native)


def test_expert_lengths_make_saturation_alone_change_nothing() -> None:
    # p / (p + k1 l) is monotone in p / l: 010 = 000 and 011 = 001, but 001 differs from 000.
    model = tiny_olmoe()
    rules = rules_of(model, "expert")
    outputs = {}
    for name in CONFIGURATION_RULES:
        with routed(model, rules[name]):
            outputs[name] = logits_of(model, documents())
    assert torch.equal(outputs["010"], outputs["000"])
    assert torch.equal(outputs["011"], outputs["001"])
    assert not torch.equal(outputs["001"], outputs["000"])
    assert not torch.equal(outputs["101"], outputs["100"])


def test_equal_logits_fall_to_the_router_choice() -> None:
    model = tiny_olmoe()
    with torch.no_grad():
        for layer in model.model.layers:
            layer.mlp.gate.weight[1:] = layer.mlp.gate.weight[0]
    native = logits_of(model, documents())
    rules = rules_of(model)
    for name in ("001", "010", "011"):
        with routed(model, rules[name]):
            assert torch.equal(logits_of(model, documents()), native)


@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("active", [1, 2, 5, EXPERTS])
def test_all_off_at_another_number_is_the_model_built_with_that_number(
    active: int, dtype: torch.dtype
) -> None:
    built = logits_of(tiny_olmoe(dtype, active=active), documents())
    model = tiny_olmoe(dtype)
    calibration = calibrate(model, documents(), active)
    for name in ("000", "native", "011"):
        with routed(model, rule_named(name, calibration), active):
            assert torch.equal(logits_of(model, documents()), built)


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_with_all_experts_every_rule_is_the_dense_mixture(implementation: str) -> None:
    model = tiny_olmoe(implementation=implementation)
    with routed(model, Dense()):
        dense = logits_of(model, documents())
    for variant in VARIANTS:
        for name, rule in rules_of(model, variant).items():
            with routed(model, rule, EXPERTS):
                assert torch.equal(logits_of(model, documents()), dense), name


def test_the_dense_mixture_is_the_softmax_mixture_of_all_experts() -> None:
    model = tiny_olmoe()
    block = model.model.layers[0].mlp
    inner: dict[str, Tensor] = {}

    def keep(_: Any, args: Any, out: Tensor) -> None:
        inner["hidden"], inner["mixed"] = args[0].reshape(-1, 32), out.reshape(-1, 32)

    handle = block.register_forward_hook(keep)
    with routed(model, Dense()):
        logits_of(model, documents())
    handle.remove()
    expected = dense_mixture(block, inner["hidden"])
    assert torch.allclose(inner["mixed"].double(), expected, atol=1e-5)


def test_gate_weights_of_the_chosen_are_the_original_ones() -> None:
    for normalised in (False, True):
        for dtype in PRECISIONS:
            model = tiny_olmoe(dtype, normalised=normalised)
            given: dict[str, Tensor] = {}

            def keep(_: Any, args: Any, kept: dict[str, Tensor] = given) -> None:
                kept["chosen"], kept["weights"] = args[1], args[2]

            handle = model.model.layers[0].mlp.experts.register_forward_pre_hook(keep)
            seen, observe = recorder()
            with routed(model, RandomExperts(), ACTIVE, observe):
                logits_of(model, documents())
            handle.remove()
            tokens, chosen = seen[0]
            share = torch.softmax(tokens.logits.double(), dim=-1).gather(1, chosen)
            if normalised:
                share = share / share.sum(dim=-1, keepdim=True)
            assert torch.equal(given["chosen"], chosen)
            assert given["weights"].dtype == dtype
            tolerance = 1e-6 if dtype == torch.float32 else 1e-3
            assert torch.allclose(given["weights"].double(), share, rtol=tolerance, atol=0)
            assert bool((share.diff(dim=-1) <= 0).all())


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_only_chosen_experts_run(implementation: str) -> None:
    model = tiny_olmoe(implementation=implementation)
    clean = Picked(lambda tokens: -torch.arange(EXPERTS).expand(tokens.logits.shape))
    with routed(model, clean):
        expected = logits_of(model, documents())
    with torch.no_grad():
        for layer in model.model.layers:
            layer.mlp.experts.gate_up_proj[ACTIVE:] = torch.nan
            layer.mlp.experts.down_proj[ACTIVE:] = torch.nan
    assert logits_of(model, documents()).isnan().any()
    with routed(model, clean):
        assert torch.equal(logits_of(model, documents()), expected)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("name", ["100", "111", "balanced", "preserved", "random"])
def test_padding_changes_no_choice(name: str, side: str) -> None:
    model = tiny_olmoe()
    rule = rules_of(model)[name]
    ids, mask = padded(side)
    seen, observe = recorder()
    with routed(model, rule, None, observe):
        logits_of(model, ids, mask)
    together = {layer: found[1].reshape(3, 12, ACTIVE) for layer, found in seen.items()}
    real = seen[0][0].passage.real.reshape(3, 12)
    assert torch.equal(real, mask.bool())
    for row in range(3):
        with routed(model, rule, None, observe):
            logits_of(model, ids[row][real[row]][None])
        for layer, (_, alone) in seen.items():
            assert torch.equal(alone, together[layer][row][real[row]])


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("name", ["111", "random"])
def test_a_cache_changes_no_choice(name: str, masked: bool) -> None:
    model = tiny_olmoe()
    rule = rules_of(model)[name]
    ids = torch.from_numpy(documents(1, 9))
    seen, observe = recorder()
    with routed(model, rule, None, observe), torch.inference_mode():
        model(input_ids=ids)
        whole = seen[1][1]
        cache, steps = None, []
        for step in range(9):
            mask = torch.ones((1, step + 1), dtype=torch.int64) if masked else None
            output = model(
                input_ids=ids[:, step : step + 1],
                attention_mask=mask,
                cache=cache,
                use_cache=True,
            )
            cache = output.past_key_values
            steps.append(seen[1][1])
    assert torch.equal(torch.cat(steps), whole)


def test_embeddings_are_routed_like_token_ids() -> None:
    model = tiny_olmoe()
    rule = rules_of(model)["111"]
    ids = torch.from_numpy(documents())
    with routed(model, rule), torch.inference_mode():
        expected = model(input_ids=ids).logits
        found = model(inputs_embeds=model.get_input_embeddings()(ids)).logits
    assert torch.equal(found, expected)


def hooks(model: Any) -> int:
    return sum(
        len(module._forward_hooks) + len(module._forward_pre_hooks) for module in model.modules()
    )


def test_hooks_are_gone_after_a_fault_in_a_rule_in_the_block_or_none() -> None:
    model = tiny_olmoe()
    native, before = logits_of(model, documents()), hooks(model)

    def fail(tokens: RoutedTokens) -> Tensor:
        if tokens.index == 1:
            raise RuntimeError("from the second layer")
        return tokens.probabilities

    with routed(model, Picked(fail)):
        assert hooks(model) > before
        with pytest.raises(RuntimeError, match="second layer"):
            logits_of(model, documents())
    assert hooks(model) == before
    with pytest.raises(RuntimeError, match="second layer"), routed(model, Picked(fail)):
        logits_of(model, documents())
    assert hooks(model) == before
    with pytest.raises(KeyError), routed(model, RandomExperts()):
        raise KeyError
    assert hooks(model) == before
    with routed(model, RandomExperts()):
        assert not torch.equal(logits_of(model, documents()), native)
    assert hooks(model) == before
    assert torch.equal(logits_of(model, documents()), native)


def test_two_rules_are_not_in_charge_at_once() -> None:
    model = tiny_olmoe()
    before = hooks(model)
    with routed(model, RandomExperts()):
        with pytest.raises(ValueError, match="another rule is in charge"):
            RoutedModel(model, Native()).install()
        drawn = logits_of(model, documents())
    assert hooks(model) == before
    with routed(model, RandomExperts()):
        assert torch.equal(logits_of(model, documents()), drawn)


@pytest.mark.parametrize("active", [0, -1, EXPERTS + 1])
def test_a_number_of_experts_that_the_model_lacks_is_refused(active: int) -> None:
    with pytest.raises(InputError, match=rf"active is {active}; .* 1 and the {EXPERTS} experts"):
        RoutedModel(tiny_olmoe(), Native(), active)


def test_a_model_in_training_is_refused() -> None:
    with pytest.raises(ValueError, match="eval"):
        RoutedModel(tiny_olmoe().train(), Native())


@pytest.mark.parametrize("name", ["100", "111"])
def test_weights_kept_on_disk_are_routed_alike(name: str, tmp_path: Path) -> None:
    from accelerate import dispatch_model

    model = tiny_olmoe()
    rules = rules_of(model, "expert")
    with routed(model, rules[name]):
        expected = logits_of(model, documents())
    device_map = {"model.embed_tokens": "cpu", "model.norm": "cpu", "model.rotary_emb": "cpu"}
    device_map |= {"model.layers.0": "cpu", "model.layers.1": "disk", "lm_head": "cpu"}
    spread = dispatch_model(model, device_map, main_device="cpu", offload_dir=tmp_path)
    assert spread.model.layers[1].mlp.gate.weight.device.type == "meta"
    assert rules_of(spread, "expert")[name].calibration.weight_norms[1].min() > 0
    with routed(spread, rules_of(spread, "expert")[name]):
        assert torch.equal(logits_of(spread, documents()), expected)


def test_router_logits_and_balancing_loss_stay_those_of_the_router() -> None:
    model = tiny_olmoe()
    ids = torch.from_numpy(documents())
    with torch.inference_mode():
        native = model(input_ids=ids, output_router_logits=True).router_logits[0]
        with routed(model, RandomExperts()):
            found = model(input_ids=ids, output_router_logits=True).router_logits[0]
    assert torch.equal(found, native)
