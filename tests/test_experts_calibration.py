"""Calibration, its statistics and the comparison of choices, against loops over tokens."""

from __future__ import annotations

import itertools
import math
from functools import cache
from pathlib import Path
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
from numpy.typing import NDArray

from whencount import diagnostics
from whencount.errors import InputError
from whencount.experts.calibrating import calibrate
from whencount.experts.calibration import (
    VARIANTS,
    Calibration,
    calibration_of,
    calibration_table,
)
from whencount.experts.documents import fixed_documents
from whencount.experts.routing import routed
from whencount.experts.rules import RULES, rule_named
from whencount.experts.rules.native import Native
from whencount.experts.statistics import choice_statistics, index_statistics, routing_shares
from whencount.scoring import CONFIGURATIONS, Configuration, Parameters
from whencount.tables import read_table, write_table
from whencount.vectors import SparseVectors

TEXT = documents(7, 12, seed=5)


@cache
def model() -> Any:
    return tiny_olmoe()


@cache
def calibration(active: int = ACTIVE) -> Calibration:
    return calibrate(model(), TEXT, active, batch=3)


@cache
def router_logits(active: int = ACTIVE) -> NDArray[np.float32]:
    """Shape (layers, tokens, experts), under the router's own choice."""
    seen, observe = recorder()
    with routed(model(), Native(), active, observe):
        logits_of(model(), TEXT)
    return np.stack([seen[layer][0].logits.numpy() for layer in range(LAYERS)])


@pytest.mark.parametrize("active", [1, ACTIVE])
def test_frequencies_masses_and_norms_are_those_of_a_loop(active: int) -> None:
    found = calibration(active)
    assert found.tokens == TEXT.size
    assert found.layers == (0, 1)
    for layer, rows in enumerate(router_logits(active)):
        frequency, mass, norms = np.zeros(EXPERTS, dtype=int), np.zeros(EXPERTS), []
        for row in rows:
            share = softmax(row)
            for expert in oracle_choice(list(share), row, active):
                frequency[expert] += 1
                mass[expert] += share[expert]
            norms.append(math.hypot(*map(float, row)))
        assert found.routed[layer].tolist() == frequency.tolist()
        assert found.frequency[layer] == pytest.approx(frequency / TEXT.size)
        assert found.mass[layer] == pytest.approx(mass, rel=1e-6)
        assert found.probability[layer] == pytest.approx(
            np.mean([softmax(row) for row in rows], axis=0), rel=1e-6
        )
        assert found.average_length("token", layer) == pytest.approx(np.mean(norms), rel=1e-6)
        weights = model().model.layers[layer].mlp.gate.weight.detach().double().numpy()
        expected = [math.hypot(*map(float, row)) for row in weights]
        assert found.weight_norms[layer] == pytest.approx(expected, rel=1e-12)
        assert found.average_length("expert", layer) == pytest.approx(np.mean(expected))


def test_idf_is_that_of_the_study() -> None:
    for layer in range(LAYERS):
        expected = [
            math.log(1 + (TEXT.size - df + 0.5) / (df + 0.5)) for df in calibration().routed[layer]
        ]
        assert calibration().inverse_document_frequency(layer) == pytest.approx(expected)


def test_batches_change_no_count_and_runs_no_bit() -> None:
    one = calibrate(model(), TEXT, batch=1)
    assert one.routed.tolist() == calibration().routed.tolist()
    assert one.logit_norm_sd == pytest.approx(calibration().logit_norm_sd, rel=1e-6)
    again = calibration_table(calibrate(model(), TEXT, ACTIVE, batch=3))
    assert again.equals(calibration_table(calibration()))


def test_a_table_keeps_a_calibration(tmp_path: Path) -> None:
    write_table(calibration_table(calibration()), tmp_path / "calibration.parquet")
    found = calibration_of(read_table(tmp_path / "calibration.parquet"))
    assert calibration_table(found).equals(calibration_table(calibration()))
    rule = rule_named("111", found, "expert")
    with routed(model(), rule):
        after = logits_of(model(), TEXT)
    with routed(model(), rule_named("111", calibration(), "expert")):
        assert torch.equal(logits_of(model(), TEXT), after)


def test_index_statistics_are_those_of_retrieval_over_tokens_as_documents() -> None:
    expected: dict[str, list[float]] = {}
    for rows in router_logits():
        dense = np.zeros((TEXT.size, EXPERTS), dtype=np.float32)
        for token, row in enumerate(rows):
            share = softmax(row)
            chosen = oracle_choice(list(share), row, ACTIVE)
            dense[token, chosen] = share[chosen]
        vectors = SparseVectors.from_dense([f"t{token}" for token in range(len(dense))], dense)
        for name, value in diagnostics.index_statistics(vectors).items():
            expected.setdefault(name, []).append(value)
    for variant in VARIANTS:
        found = index_statistics(calibration(), variant)
        assert list(found) == list(expected)
        for name, values in expected.items():
            if name not in {"length_cv", "length_log_sd"}:
                assert found[name] == pytest.approx(np.mean(values), rel=1e-5), name


def test_length_statistics_follow_the_variant() -> None:
    norms = [np.linalg.norm(rows.astype(np.float64), axis=1) for rows in router_logits()]
    weights = [
        layer.mlp.gate.weight.detach().double().norm(dim=1).numpy()
        for layer in model().model.layers
    ]
    for variant, lengths in (("token", norms), ("expert", weights)):
        found = index_statistics(calibration(), variant)
        variation = np.mean([one.std() / one.mean() for one in lengths])
        assert found["length_cv"] == pytest.approx(variation, rel=1e-6)
        spread = np.mean([np.log(one).std() for one in lengths])
        assert found["length_log_sd"] == pytest.approx(spread, rel=1e-6)


@pytest.mark.parametrize("variant", VARIANTS)
def test_disruption_spread_and_drop_are_those_of_a_loop(variant: str) -> None:
    found = choice_statistics(model(), TEXT, calibration(), variant, batch=2)
    sets: dict[str, list[set[int]]] = {}
    spread: dict[str, list[float]] = {}
    drop: dict[str, list[float]] = {}
    for configuration in CONFIGURATIONS:
        name = str(configuration)
        for layer, rows in enumerate(router_logits()):
            for row in rows:
                scores = oracle_scores(
                    row, calibration(), layer, configuration, variant, Parameters()
                )
                chosen = oracle_choice(scores, row, ACTIVE)
                kept = np.array([scores[expert] for expert in chosen])
                sets.setdefault(name, []).append(set(chosen))
                spread.setdefault(name, []).append(kept.std() / kept.mean())
                drop.setdefault(name, []).append((kept.max() - kept.min()) / kept.max())
        assert found[f"score_spread_{name}"] == pytest.approx(np.mean(spread[name]), rel=1e-5)
        assert found[f"score_drop_{name}"] == pytest.approx(np.mean(drop[name]), rel=1e-5)
    for place, switch in enumerate(("idf", "saturation", "length")):
        changed = []
        for others in itertools.product("01", repeat=2):
            off = "".join(others[:place]) + "0" + "".join(others[place:])
            on = off[:place] + "1" + off[place + 1 :]
            changed += [
                1 - len(one & two) / ACTIVE for one, two in zip(sets[off], sets[on], strict=True)
            ]
        assert found[f"disruption_{switch}"] == pytest.approx(np.mean(changed), abs=1e-12)
    assert found["disruption_idf"] > 0


def test_shares_count_who_enters_and_who_leaves() -> None:
    kept = np.ones((LAYERS, EXPERTS), dtype=np.bool_)
    rules = [rule_named(name, calibration(), "expert", preserved=kept) for name in RULES]
    found = dict(zip(RULES, routing_shares(model(), TEXT, rules, batch=2), strict=True))
    for name, configuration in (("111", "111"), ("000", "000"), ("101", "101")):
        routed_to = np.zeros((3, LAYERS, EXPERTS), dtype=int)
        for layer, rows in enumerate(router_logits()):
            for row in rows:
                native = set(oracle_choice(list(row), row, ACTIVE))
                scores = oracle_scores(
                    row,
                    calibration(),
                    layer,
                    Configuration.parse(configuration),
                    "expert",
                    Parameters(),
                )
                chosen = set(oracle_choice(scores, row, ACTIVE))
                for place, experts in enumerate((chosen, chosen - native, native - chosen)):
                    routed_to[place, layer, list(experts)] += 1
        assert found[name].routed.tolist() == routed_to[0].tolist()
        assert found[name].entered.tolist() == routed_to[1].tolist()
        assert found[name].left.tolist() == routed_to[2].tolist()
        assert found[name].changed == routed_to[1].sum() / (ACTIVE * LAYERS * TEXT.size)
    assert found["native"].routed.tolist() == calibration().routed.tolist()
    assert found["preserved"].changed == found["native"].changed == 0
    assert found["dense"].routed.min() == found["dense"].tokens == TEXT.size


def test_documents_are_cut_from_the_texts_in_a_row() -> None:
    read = []

    def texts() -> Any:
        for word in ("abc", "defgh", "", "ijklmnop", "never read"):
            read.append(word)
            yield word

    found = fixed_documents(texts(), lambda text: [ord(one) for one in text], 5, 3)
    assert ["".join(map(chr, row)) for row in found] == ["abcde", "fghij", "klmno"]
    assert "never read" not in read
    short = fixed_documents(["abcdefg"], lambda text: list(range(len(text))), 5, 3)
    assert short.tolist() == [[0, 1, 2, 3, 4]]
    with pytest.raises(InputError, match=r"has 4 tokens, fewer than one document of 5"):
        fixed_documents(["abcd"], lambda text: [0] * len(text), 5, 3)


def test_calibration_without_documents_is_refused() -> None:
    with pytest.raises(InputError, match="no calibration text"):
        calibrate(model(), np.zeros((0, 12), dtype=np.int64))


def test_hidden_states_that_overflow_are_refused() -> None:
    broken = tiny_olmoe(torch.float16)
    with torch.no_grad():
        broken.model.layers[0].mlp.experts.down_proj.mul_(60_000)
    before = sum(len(module._forward_hooks) for module in broken.modules())
    with pytest.raises(InputError, match=r"routed layer 1: .* not a finite number.*fp32"):
        calibrate(broken, TEXT)
    assert sum(len(module._forward_hooks) for module in broken.modules()) == before
