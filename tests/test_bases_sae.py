"""Training of the Top-K autoencoder: exact gradients, AdamW, and a falling error."""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from whencount.bases import BASES, TrainingStates
from whencount.bases.sae import SaeOptions
from whencount.bases.sae_state import Parameters
from whencount.bases.sae_training import (
    DenseStepper,
    SparseStepper,
    initial_parameters,
    learning_rate,
)
from whencount.bases.selection import top_k

OPTIONS = SaeOptions(features=300, active=7, clip=0.05)


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as executor:
        yield executor


def inputs_of(rows: int = 600, dimensions: int = 40) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(1).normal(size=(rows, dimensions))).float()


def parameters_of(dimensions: int = 40) -> Parameters:
    parameters = initial_parameters(OPTIONS.features, dimensions, 2, "cpu")
    draws = np.random.default_rng(3).normal(size=parameters.bias.shape)
    parameters.bias += torch.from_numpy(draws * 0.1).float()
    return parameters


def autograd(parameters: Parameters, inputs: torch.Tensor) -> tuple[float, list[torch.Tensor]]:
    """The definition: loss and gradients of encoder, decoder, bias by automatic differentiation."""
    encoder, decoder, bias = (
        tensor.clone().double().requires_grad_() for tensor in parameters.tensors()
    )
    scores = torch.relu(inputs.double() @ encoder.T + bias)
    values, features = torch.topk(scores, OPTIONS.active)
    codes = torch.zeros_like(scores).scatter(1, features, values)
    loss = ((codes @ decoder - inputs.double()) ** 2).mean()
    loss.backward()  # type: ignore[no-untyped-call]
    gradients = [tensor.grad for tensor in (encoder, decoder, bias)]
    return loss.item(), [gradient for gradient in gradients if gradient is not None]


@pytest.mark.parametrize("kind", ["sparse", "dense"])
def test_gradients_are_those_of_automatic_differentiation(
    kind: str, pool: ThreadPoolExecutor
) -> None:
    parameters, inputs = parameters_of(), inputs_of()
    stepper: SparseStepper | DenseStepper = (
        SparseStepper(parameters, OPTIONS, pool)
        if kind == "sparse"
        else DenseStepper(parameters, OPTIONS)
    )
    loss, fired = stepper.differentiate(inputs)
    expected_loss, expected = autograd(parameters, inputs)
    assert loss == pytest.approx(expected_loss, rel=1e-5)
    assert fired.sum() == 600 * 7
    for gradient, reference in zip(stepper.gradients.tensors(), expected, strict=True):
        np.testing.assert_allclose(
            gradient.numpy(), reference.numpy(), atol=1e-6 * float(reference.abs().max()) + 1e-9
        )


@pytest.mark.parametrize("clip", [0.02, 1e6])
@pytest.mark.parametrize("kind", ["sparse", "dense"])
def test_steps_are_adamw_with_clipping_and_unit_decoder_columns(
    kind: str, clip: float, pool: ThreadPoolExecutor
) -> None:
    options = SaeOptions(features=300, active=7, clip=clip, weight_decay=0.1)
    ours, inputs = parameters_of(), inputs_of()
    theirs = [tensor.clone().requires_grad_() for tensor in ours.tensors()]
    optimiser = torch.optim.AdamW(theirs, lr=1e-2, weight_decay=0.1)
    stepper: SparseStepper | DenseStepper = (
        SparseStepper(ours, options, pool) if kind == "sparse" else DenseStepper(ours, options)
    )
    for step in range(1, 4):
        stepper.differentiate(inputs)
        for tensor, gradient in zip(theirs, stepper.gradients.tensors(), strict=True):
            tensor.grad = gradient.clone()
        torch.nn.utils.clip_grad_norm_(theirs, clip)
        optimiser.step()
        with torch.no_grad():
            theirs[1] /= theirs[1].norm(dim=1, keepdim=True)
        stepper.update(1e-2, step)
        for tensor, mine in zip(theirs, ours.tensors(), strict=True):
            np.testing.assert_allclose(mine.numpy(), tensor.detach().numpy(), atol=2e-5)


def test_fused_step_equals_gradient_then_update(pool: ThreadPoolExecutor) -> None:
    options = SaeOptions(features=300, active=7, clip=1e3)
    one, other, inputs = parameters_of(), parameters_of(), inputs_of()
    fused, apart = SparseStepper(one, options, pool), SparseStepper(other, options, pool)
    for number in range(1, 4):
        first = fused.step(inputs, 1e-2, number)
        second = apart.differentiate(inputs)
        apart.update(1e-2, number)
        assert first[0] == pytest.approx(second[0], rel=1e-6)
        # Only the second one fills its matrices of gradients.
        assert not fused.gradients.encoder.any()
        assert apart.gradients.encoder.any()
        for mine, theirs in zip(one.tensors(), other.tensors(), strict=True):
            np.testing.assert_allclose(mine.numpy(), theirs.numpy(), atol=1e-5)


def test_step_clips_where_the_gradient_is_long(pool: ThreadPoolExecutor) -> None:
    one, other, inputs = parameters_of(), parameters_of(), inputs_of()
    options = SaeOptions(features=300, active=7, clip=0.01)
    SparseStepper(one, options, pool).step(inputs, 1e-2, 1)
    dense = DenseStepper(other, options)
    dense.step(inputs, 1e-2, 1)
    norm = math.sqrt(sum(float((tensor**2).sum()) for tensor in dense.gradients.tensors()))
    assert norm > 0.01
    for mine, theirs in zip(one.tensors(), other.tensors(), strict=True):
        np.testing.assert_allclose(mine.numpy(), theirs.numpy(), atol=2e-5)


def test_rate_rises_then_falls_along_a_cosine() -> None:
    options = SaeOptions(learning_rate=2.0, warmup=0.1)
    rates = [learning_rate(step, 100, options) for step in range(100)]
    np.testing.assert_allclose(rates[:10], np.arange(1, 11) / 10 * 2)
    assert rates[10] == 2.0
    assert rates[55] == pytest.approx(1 + math.cos(math.pi * 0.5))
    assert rates[99] < 0.01
    assert learning_rate(0, 1, options) == 2.0


def sparse_signals(rows: int) -> NDArray[np.float32]:
    """States that are sums of four of 48 directions: what a dictionary can learn."""
    rng = np.random.default_rng(7)
    dictionary = rng.normal(size=(48, 32))
    chosen = np.argsort(rng.random((rows, 48)), axis=1)[:, :4]
    weights = rng.random((rows, 4, 1)) + 0.5
    return np.asarray((dictionary[chosen] * weights).sum(axis=1) + 1.0, dtype=np.float32)


def fit(threads: int = 1, **options: Any) -> Any:
    states = sparse_signals(4000)
    training = TrainingStates(states, np.arange(3600), np.arange(3600, 4000))
    chosen = {"features": 128, "active": 6, "batch": 128, "epochs": 6, "learning_rate": 3e-3}
    return BASES["sae"].fit(training, 0, {**chosen, **options}, threads=threads)


def test_training_lowers_the_validation_error_and_keeps_the_best_epoch() -> None:
    report = fit().manifest
    curve = report["validation_mse"]
    assert len(curve) == 6
    assert curve[-1] < 0.8 * curve[0]
    assert report["best_epoch"] == int(np.argmin(curve))
    assert report["steps"] == 6 * math.ceil(3600 / 128)
    assert report["dead_features"] == report["dead_features_by_epoch"][report["best_epoch"]]


def test_dead_features_are_revived_and_counted() -> None:
    # Far more features than 200 states can keep alive.
    states = sparse_signals(260)
    training = TrainingStates(states, np.arange(200), np.arange(200, 260))
    chosen = {"features": 1024, "active": 4, "batch": 32, "epochs": 3}
    report = BASES["sae"].fit(training, 0, chosen).manifest
    dead = report["dead_features_by_epoch"]
    assert dead[0] > 0
    assert report["revived_features"] == sum(dead[:-1])
    assert report["dead_after_states"] == 200


def test_training_gives_the_same_bytes_for_one_thread_and_two() -> None:
    one, two = fit(1, epochs=2), fit(2, epochs=2)
    for name, tensor in one.tensors.items():
        assert torch.equal(tensor, two.tensors[name])
    assert one.manifest == two.manifest


@settings(deadline=None, max_examples=60)
@given(
    rows=st.integers(1, 5),
    width=st.integers(1, 1200),
    k=st.integers(1, 40),
    levels=st.sampled_from([2, 5, 1000]),
    floor=st.sampled_from([-np.inf, 0.0]),
    seed=st.integers(0, 1000),
)
def test_top_k_takes_the_largest_and_of_equals_the_smaller_feature(
    rows: int, width: int, k: int, levels: int, floor: float, seed: int
) -> None:
    k = min(k, width)
    rng = np.random.default_rng(seed)
    scores = (rng.integers(levels, size=(rows, width)) - levels // 2).astype(np.float32)
    values, features = top_k(torch.from_numpy(scores), k, floor)
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    best = np.take_along_axis(scores, order, axis=1)
    np.testing.assert_array_equal(values.numpy(), np.where(best > floor, best, 0))
    np.testing.assert_array_equal(features.numpy(), np.where(best > floor, order, 0))
