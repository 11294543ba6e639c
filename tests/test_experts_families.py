"""Families of mixture-of-experts models: which obey a rule, and how the others are refused.

Every model is a tiny random one. `make` of a family holds what its configuration needs beside the
common sizes.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from experts_models import VOCABULARY, documents, logits_of, tiny_olmoe
from torch import nn

from whencount.errors import InputError
from whencount.experts.calibrating import calibrate
from whencount.experts.routers import find_routers
from whencount.experts.routing import routed
from whencount.experts.rules import rule_named
from whencount.experts.rules.dense import Dense

EXPERTS, ACTIVE, LAYERS = 8, 2, 2
COMMON = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 16,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "num_experts_per_tok": ACTIVE,
    "max_position_embeddings": 64,
    "pad_token_id": 1,
    "bos_token_id": 0,
    "eos_token_id": 2,
}
LATENT = {
    "moe_intermediate_size": 16,
    "n_routed_experts": EXPERTS,
    "first_k_dense_replace": 1,
    "q_lora_rank": 16,
    "kv_lora_rank": 16,
    "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 8,
    "v_head_dim": 8,
    "head_dim": 8,
    "n_group": 1,
    "topk_group": 1,
}
# Family: configuration beyond the common one, layers with a router, weighting of the chosen.
OBEYING: dict[str, tuple[dict[str, Any], tuple[int, ...], str]] = {
    "Olmoe": ({"num_experts": EXPERTS}, (0, 1), "probability"),
    "FlexOlmo": ({"num_experts": EXPERTS}, (0, 1), "probability"),
    "Mixtral": ({"num_local_experts": EXPERTS}, (0, 1), "renormalised"),
    "MiniMax": ({"num_local_experts": EXPERTS, "head_dim": 8}, (0, 1), "renormalised"),
    "Qwen2Moe": (
        {
            "num_experts": EXPERTS,
            "moe_intermediate_size": 16,
            "shared_expert_intermediate_size": 16,
            "mlp_only_layers": [0],
        },
        (1,),
        "probability",
    ),
    "Qwen3Moe": (
        {
            "num_experts": EXPERTS,
            "moe_intermediate_size": 16,
            "norm_topk_prob": True,
            "head_dim": 8,
        },
        (0, 1),
        "renormalised",
    ),
    "Qwen3Next": (
        {
            "num_experts": EXPERTS,
            "moe_intermediate_size": 16,
            "shared_expert_intermediate_size": 16,
            "head_dim": 8,
            "layer_types": ["linear_attention", "full_attention"],
        },
        (0, 1),
        "renormalised",
    ),
    "DeepseekV2": (LATENT | {"routed_scaling_factor": 2.5}, (1,), "probability"),
    "GptOss": (
        {"num_local_experts": EXPERTS, "head_dim": 8, "layer_types": ["full_attention"] * LAYERS},
        (0, 1),
        "softmax",
    ),
    "GraniteMoe": ({"num_local_experts": EXPERTS}, (0, 1), "softmax"),
    "Jamba": (
        {
            "num_experts": EXPERTS,
            "attn_layer_period": 2,
            "attn_layer_offset": 1,
            "expert_layer_period": 1,
            "expert_layer_offset": 0,
            "use_mamba_kernels": False,
        },
        (0, 1),
        "probability",
    ),
}
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "DeepseekV3": (LATENT, r"layers\.1\.mlp\.gate \(e_score_correction_bias shifts"),
    "DeepseekV2": (
        LATENT | {"topk_method": "group_limited_greedy", "n_group": 4},
        r"layers\.1\.mlp\.gate \(its choice or its gate weights do not follow from a softmax",
    ),
    "Phimoe": (
        {"num_local_experts": EXPERTS, "router_jitter_noise": 0.0, "input_jitter_noise": 0.0},
        "do not follow from a softmax over its logits",
    ),
    "HunYuanMoEV1": (
        {"num_experts": EXPERTS, "moe_topk": ACTIVE, "head_dim": 8},
        "does not expose its weight and active experts",
    ),
    "Llama": ({}, "LlamaForCausalLM has no router of experts"),
}


def make(family: str, options: dict[str, Any]) -> Any:
    import transformers

    configuration = getattr(transformers, f"{family}Config")(**COMMON | options)
    model = getattr(transformers, f"{family}ForCausalLM")._from_config(configuration)
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.25)
    return model.eval()


@pytest.mark.parametrize("family", OBEYING)
def test_a_family_obeys_rules_and_stays_native_where_none_applies(family: str) -> None:
    options, layers, weighting = OBEYING[family]
    for dtype in (torch.float32, torch.float16):
        model = make(family, options).to(dtype)
        routers = find_routers(model)
        assert tuple(router.layer for router in routers) == layers
        assert {(one.experts, one.active) for one in routers} == {(EXPERTS, ACTIVE)}
        assert {router.gating.weighting for router in routers} == {weighting}
        native = logits_of(model, documents())
        calibration = calibrate(model, documents())
        for name in ("000", "001", "011"):
            with routed(model, rule_named(name, calibration)):
                assert torch.equal(logits_of(model, documents()), native), (name, dtype)
        with routed(model, rule_named("111", calibration)):
            assert not torch.equal(logits_of(model, documents()), native)
        with routed(model, Dense()):
            dense = logits_of(model, documents())
        with routed(model, rule_named("111", calibration), EXPERTS):
            assert torch.equal(logits_of(model, documents()), dense)


@pytest.mark.parametrize("family", REFUSED)
def test_other_families_are_refused_in_one_sentence(family: str) -> None:
    options, message = REFUSED[family]
    with pytest.raises(InputError, match=message) as refusal:
        find_routers(make(family, options))
    assert "choose a m" in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_damaged_router_is_called_damaged() -> None:
    model = tiny_olmoe()
    with torch.no_grad():
        model.model.layers[1].mlp.gate.weight[0, 0] = torch.nan
    with pytest.raises(InputError, match=r"layers\.1\.mlp\.gate .*the model is damaged"):
        find_routers(model)


def test_layers_of_different_sizes_are_refused() -> None:
    model = make("Olmoe", {"num_experts": EXPERTS})
    model.model.layers[1].mlp.gate.top_k = 3
    with pytest.raises(InputError, match=r"different sizes \(experts, active: \[\(8, 2\), \(8, 3"):
        find_routers(model)


def test_a_router_without_experts_beside_it_is_refused() -> None:
    model = make("Olmoe", {"num_experts": EXPERTS})
    block = model.model.layers[0].mlp
    block.add_module("mixture", block.experts)
    del block.experts
    with pytest.raises(InputError, match=r"layers\.0\.mlp\.gate \(no module of experts stands"):
        find_routers(model)


def test_a_router_that_needs_more_than_hidden_states_is_refused() -> None:
    class Needy(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight, self.top_k = nn.Parameter(torch.zeros(EXPERTS, 32)), ACTIVE

        def forward(self, hidden: Any, bias: Any) -> Any:
            return hidden, bias

    model = make("Olmoe", {"num_experts": EXPERTS})
    model.model.layers[0].mlp.gate = Needy().eval()
    with pytest.raises(InputError, match="needs more than hidden states"):
        find_routers(model)
