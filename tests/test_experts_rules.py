"""Which experts each rule chooses, against the study's definitions written in loops."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from experts_models import (
    ACTIVE,
    EXPERTS,
    LAYERS,
    documents,
    logits_of,
    oracle_choice,
    oracle_scores,
    recorder,
    softmax,
    tiny_olmoe,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from whencount.errors import InputError
from whencount.experts.calibrating import calibrate
from whencount.experts.calibration import VARIANTS, Calibration
from whencount.experts.routing import Passage, RoutedTokens, routed
from whencount.experts.rules import CONFIGURATION_RULES, RULES, rule_named
from whencount.experts.rules.balanced import Balanced
from whencount.experts.rules.corrected import Corrected
from whencount.experts.rules.preserved import Preserved
from whencount.experts.rules.random import RandomExperts
from whencount.scoring import CONFIGURATIONS, Configuration, Parameters


@cache
def model() -> Any:
    return tiny_olmoe()


@cache
def calibration() -> Calibration:
    return calibrate(model(), documents(8, 16, seed=3))


def routed_by(rule: Any, active: int | None = None) -> dict[int, tuple[RoutedTokens, torch.Tensor]]:
    seen, observe = recorder()
    with routed(model(), rule, active, observe):
        logits_of(model(), documents())
    return seen


def made_tokens(
    logits: Any, active: int = ACTIVE, index: int = 0, first_id: int = 3
) -> RoutedTokens:
    """What a router with these logits would hand to a rule."""
    logits = torch.as_tensor(logits, dtype=torch.float32)
    count = len(logits)
    native = torch.softmax(logits, dim=-1).topk(active, dim=-1).indices
    passage = Passage(
        torch.full((count,), first_id), torch.arange(count), torch.ones(count, dtype=torch.bool)
    )
    return RoutedTokens(index, torch.zeros(count, 4), logits, native, torch.float32, passage)


@pytest.mark.parametrize("active", [1, ACTIVE, EXPERTS - 1])
@pytest.mark.parametrize("parameters", [Parameters(), Parameters(0.3, 1.0), Parameters(5.0, 0.2)])
@pytest.mark.parametrize("variant", VARIANTS)
def test_configurations_choose_what_the_study_defines(
    variant: str, parameters: Parameters, active: int
) -> None:
    for configuration in CONFIGURATIONS:
        rule = Corrected(calibration(), configuration, variant, parameters)
        for layer, (tokens, chosen) in routed_by(rule, active).items():
            for row, found in zip(tokens.logits.numpy(), chosen.tolist(), strict=True):
                scores = oracle_scores(
                    row, calibration(), layer, configuration, variant, parameters
                )
                assert found == oracle_choice(scores, row, active), (str(configuration), layer)


def test_corrected_scores_are_the_formulas() -> None:
    tokens = routed_by(rule_named("native", calibration()))[1][0]
    for variant in VARIANTS:
        for configuration in CONFIGURATIONS:
            found = Corrected(calibration(), configuration, variant).scores(tokens)
            for row, scores in zip(tokens.logits.numpy(), found.numpy(), strict=True):
                expected = oracle_scores(
                    row, calibration(), 1, configuration, variant, Parameters()
                )
                assert scores == pytest.approx(expected, rel=1e-5)


def test_idf_alone_brings_a_rare_expert_in() -> None:
    # By hand: N = 1000, df 990 and 10 give IDF ln(1 + 10.5 / 990.5) = .0105 and
    # ln(1 + 990.5 / 10.5) = 4.557; probabilities .6 and .4 become .0063 and 1.82.
    frequencies = np.array([[990, 10]], dtype=np.int64)
    seen = replace(calibration(), tokens=1000, routed=frequencies)
    tokens = made_tokens(np.log([[0.6, 0.4]]), active=1)
    rule = Corrected(seen, Configuration.parse("100"))
    assert rule.choose(tokens, 1).tolist() == [[1]]  # type: ignore[union-attr]
    assert rule.scores(tokens).numpy() == pytest.approx(np.array([[0.00633, 1.823]]), rel=2e-3)
    assert tokens.first(1).tolist() == [[0]]


@given(
    st.lists(
        st.lists(st.floats(-60, 60, width=16), min_size=EXPERTS, max_size=EXPERTS),
        min_size=1,
        max_size=4,
    ),
    st.floats(0, 20),
    st.floats(0, 1),
    st.integers(1, EXPERTS),
)
@settings(max_examples=60, deadline=None)
def test_a_length_per_token_never_changes_a_choice_without_idf(
    logits: list[list[float]], k1: float, b: float, active: int
) -> None:
    # Also with ties, probabilities that underflow to 0, k1 = 0 and a length of 0.
    tokens = made_tokens(logits)
    for name in ("001", "010", "011"):
        rule = rule_named(name, calibration(), "token", Parameters(k1, b))
        assert torch.equal(rule.choose(tokens, active), tokens.first(active))  # type: ignore[arg-type]
    of_100 = rule_named("100", calibration(), "token", Parameters(k1, b)).choose(tokens, active)
    of_101 = rule_named("101", calibration(), "token", Parameters(k1, 0.0)).choose(tokens, active)
    assert of_100 is not None
    assert of_101 is not None
    assert torch.equal(of_100, of_101)


def test_balancing_adds_the_strength_times_the_missing_frequency() -> None:
    rule = Balanced(calibration())
    for layer, (tokens, chosen) in routed_by(rule).items():
        for row, found in zip(tokens.logits.numpy(), chosen.tolist(), strict=True):
            share = calibration().routed[layer] / calibration().tokens
            scores = softmax(row) + 0.1 * (ACTIVE / EXPERTS - share)
            assert found == oracle_choice(list(scores), row, ACTIVE)
        # k / E raises all scores alike, so that only the scores show it.
        assert rule.scores(tokens)[-1].numpy() == pytest.approx(scores, rel=1e-5)


def test_preserved_experts_stay_wherever_the_router_chose_them() -> None:
    kept = np.zeros((LAYERS, EXPERTS), dtype=np.bool_)
    kept[0, [1, 4]], kept[1, [0, 2, 7]] = True, True
    base = Corrected(calibration(), Configuration.parse("111"))
    changed = 0
    for layer, (tokens, chosen) in routed_by(Preserved(base, kept)).items():
        native, scores = tokens.native.tolist(), base.scores(tokens).tolist()
        for token, row in enumerate(tokens.logits.numpy()):
            staying = [expert for expert in native[token] if kept[layer, expert]]
            forced = [
                np.inf if expert in staying else score for expert, score in enumerate(scores[token])
            ]
            assert chosen[token].tolist() == oracle_choice(forced, row, ACTIVE)
            assert set(staying) <= set(chosen[token].tolist())
            changed += chosen[token].tolist() != oracle_choice(scores[token], row, ACTIVE)
    assert changed > 0


def test_preserving_none_is_the_base_and_preserving_all_is_native() -> None:
    base = Corrected(calibration(), Configuration.parse("111"))
    for share, expected in ((False, base), (True, rule_named("native", calibration()))):
        kept = np.full((LAYERS, EXPERTS), share)
        found = routed_by(Preserved(base, kept))
        for layer, (_, chosen) in routed_by(expected).items():
            assert torch.equal(found[layer][1], chosen)


def test_random_experts_are_distinct_and_equally_likely() -> None:
    tokens = made_tokens(np.zeros((4000, EXPERTS)))
    chosen = RandomExperts().choose(tokens, ACTIVE)
    assert all(len(set(row)) == ACTIVE for row in chosen.tolist())
    counts = np.bincount(chosen.reshape(-1).numpy(), minlength=EXPERTS)
    # Binomial(4000, 3/8): five standard deviations are 153.
    assert np.abs(counts - 4000 * ACTIVE / EXPERTS).max() < 153
    pairs = {tuple(sorted(row)) for row in chosen.tolist()}
    assert len(pairs) == 56, "all 8 choose 3 sets occur"


def test_random_experts_depend_on_seed_layer_position_and_token() -> None:
    logits = np.zeros((50, EXPERTS))
    first = RandomExperts(0).choose(made_tokens(logits), ACTIVE)
    assert torch.equal(RandomExperts(0).choose(made_tokens(logits), ACTIVE), first)
    for rule, tokens in (
        (RandomExperts(1), made_tokens(logits)),
        (RandomExperts(0), made_tokens(logits, index=1)),
        (RandomExperts(0), made_tokens(logits, first_id=4)),
        (RandomExperts(0), made_tokens(logits[:, ::-1].copy()[1:])),
    ):
        other = rule.choose(tokens, ACTIVE)
        moved = len(other) < len(first)
        assert torch.equal(other, first[: len(other)]) == moved


def test_scores_that_are_no_numbers_are_refused() -> None:
    tokens = made_tokens(np.full((2, EXPERTS), np.nan))
    with pytest.raises(InputError, match="layer 0: a score of an expert is not a number"):
        rule_named("111", calibration()).choose(tokens, ACTIVE)


def test_every_rule_has_the_name_that_tables_give_it() -> None:
    kept = np.zeros((LAYERS, EXPERTS), dtype=np.bool_)
    for name in RULES:
        assert rule_named(name, calibration(), preserved=kept).name == name
    assert CONFIGURATION_RULES == ("000", "001", "010", "011", "100", "101", "110", "111")


@pytest.mark.parametrize(
    ("name", "variant", "message"),
    [
        ("112", "token", "rule '112' is not known; choose from 000, 001"),
        ("111", "page", "variant 'page' is not known; choose from token, expert"),
        ("preserved", "token", "needs the experts to preserve"),
    ],
)
def test_unknown_rules_are_refused(name: str, variant: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        rule_named(name, calibration(), variant)
