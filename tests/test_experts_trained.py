"""Parity on the small OLMoE that the embedded study trained, where a run has left one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from experts_models import logits_of

from whencount.experts.calibrating import calibrate
from whencount.experts.routing import routed
from whencount.experts.rules import CONFIGURATION_RULES, rule_named
from whencount.experts.rules.dense import Dense

TRAINED = sorted((Path(__file__).parents[1] / "results" / "experts").glob("model.*/config.json"))


@pytest.fixture(params=[torch.float32, torch.float16], ids=["fp32", "fp16"])
def model(request: pytest.FixtureRequest) -> Any:
    if not TRAINED:
        pytest.skip("no trained model in results/experts; `make experts` trains one")
    from transformers import AutoModelForCausalLM

    loaded: Any = AutoModelForCausalLM
    return loaded.from_pretrained(TRAINED[0].parent, dtype=request.param).eval()


def test_identities_and_the_dense_mixture_hold_on_a_trained_model(model: Any) -> None:
    ids = np.random.default_rng(0).integers(3, model.config.vocab_size, (3, 64))
    calibration = calibrate(model, ids)
    native = logits_of(model, ids)
    outputs = {}
    for variant in ("token", "expert"):
        for name in CONFIGURATION_RULES:
            with routed(model, rule_named(name, calibration, variant)):
                outputs[variant, name] = logits_of(model, ids)
    for name in ("000", "001", "010", "011"):
        assert torch.equal(outputs["token", name], native), name
    assert torch.equal(outputs["token", "101"], outputs["token", "100"])
    assert torch.equal(outputs["expert", "010"], native)
    assert torch.equal(outputs["expert", "011"], outputs["expert", "001"])
    assert not torch.equal(outputs["token", "111"], native)
    with routed(model, Dense()):
        dense = logits_of(model, ids)
    with routed(model, rule_named("111", calibration), model.config.num_experts):
        assert torch.equal(logits_of(model, ids), dense)
