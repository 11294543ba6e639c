"""Training of the Top-K sparse autoencoder with a sparse backward pass.

Loss: the mean squared error over states and coordinates. Only the k active features of a state
have a gradient, so the dense work of a step is the encoder's product alone; everything after it
touches k rows per state. A GPU takes dense products instead, which are deterministic and cheap
there. Both give the gradient of the loss exactly (up to rounding).

Dead features (Bricken et al. 2023, scaled to the data): a feature that fired for no state of a
whole epoch is pointed at the residual of a state drawn in proportion to its squared error, its
encoder row at a fifth of that direction, its bias and moments at zero. Not after the last epoch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from whencount.bases import kernels
from whencount.bases.base import TrainingStates
from whencount.bases.sae import ROWS_AT_ONCE, SaeOptions, encode_inputs
from whencount.bases.sae_state import Keeper, Parameters, TrainingState
from whencount.progress import progress

_FEATURES_AT_ONCE = 512
_STATES_AT_ONCE = 8192


def initial_parameters(features: int, dimensions: int, seed: int, device: str) -> Parameters:
    """Random unit decoder columns, the encoder their transpose, no bias."""
    draws = np.random.default_rng([seed, 0]).standard_normal((features, dimensions))
    draws /= np.linalg.norm(draws, axis=1, keepdims=True)
    decoder = torch.from_numpy(draws.astype(np.float32)).to(device)
    return Parameters(decoder.clone(), decoder, torch.zeros(features, device=device))


class Stepper(Protocol):
    """Computes gradients and applies them, on one kind of device.

    Attributes:
        first, second: AdamW's moments.
    """

    first: Parameters
    second: Parameters

    def step(self, inputs: torch.Tensor, rate: float, number: int) -> tuple[float, Any]:
        """Take step `number`, counted from 1; return the loss and how often features fired."""

    def forget(self, features: NDArray[np.int64]) -> None:
        """Zero the optimiser's moments of these features."""


class _Moments:
    def __init__(self, parameters: Parameters, options: SaeOptions) -> None:
        self.parameters = parameters
        self.options = options
        self.gradients = Parameters(*(torch.zeros_like(t) for t in parameters.tensors()))
        self.first = Parameters(*(torch.zeros_like(t) for t in parameters.tensors()))
        self.second = Parameters(*(torch.zeros_like(t) for t in parameters.tensors()))

    @property
    def _sources(self) -> tuple[Parameters, Parameters, Parameters, Parameters]:
        return self.parameters, self.gradients, self.first, self.second

    def forget(self, features: NDArray[np.int64]) -> None:
        """Zero the optimiser's moments of these features."""
        rows = torch.from_numpy(features).to(self.parameters.bias.device)
        for moments in (self.first, self.second):
            for tensor in moments.tensors():
                tensor[rows] = 0


@dataclass(frozen=True)
class _Forward:
    """What the first half of a sparse step leaves for the second."""

    inputs: NDArray[np.float32]
    errors: NDArray[np.float32]
    codes: NDArray[np.float32]
    slopes: NDArray[np.float32]
    norms: NDArray[np.float32]
    starts: NDArray[np.int64]
    pairs: NDArray[np.int32]
    loss: float

    @property
    def for_kernels(self) -> tuple[NDArray[Any], ...]:
        return self.starts, self.pairs, self.inputs, self.errors, self.codes, self.slopes


class SparseStepper(_Moments):
    """CPU: blocks of states, then blocks of features, shared between threads.

    No sum crosses a block of states, and the blocks depend on the sizes alone (for one thread and
    for two they are the same), so a fit gives the same bytes again.
    """

    def __init__(
        self,
        parameters: Parameters,
        options: SaeOptions,
        pool: ThreadPoolExecutor,
        threads: int = 1,
    ) -> None:
        super().__init__(parameters, options)
        self._pool = pool
        self._shares = max(2, threads)
        self._squares = 0.0

    def step(self, inputs: torch.Tensor, rate: float, number: int) -> tuple[float, Any]:
        """Take step `number`, counted from 1; return the loss and how often features fired."""
        half = self._forward(inputs)
        bound = kernels.gradient_bound(half.starts, half.pairs, half.codes, half.slopes, half.norms)
        # A margin for rounding: only where clipping surely changes nothing.
        if bound * 1.001 < self.options.clip**2:
            self._fused(half, self._numbers(1.0, rate, number))
        else:
            self._backward(half)
            self.update(rate, number)
        return half.loss, np.diff(half.starts)

    def differentiate(self, inputs: torch.Tensor) -> tuple[float, NDArray[np.int64]]:
        """Fill `gradients`; return the loss and how often each feature fired."""
        half = self._forward(inputs)
        self._backward(half)
        return half.loss, np.diff(half.starts)

    def update(self, rate: float, number: int) -> None:
        """Clip `gradients` and take AdamW step `number`, counted from 1."""
        clip = min(1.0, self.options.clip / (math.sqrt(self._squares) + 1e-6))
        numbers = self._numbers(clip, rate, number)

        def apply(job: tuple[int, int]) -> None:
            part, first = job
            rows = slice(first, first + _FEATURES_AT_ONCE)
            arrays = [source.tensors()[part][rows].numpy() for source in self._sources]
            kernels.adam_rows(*arrays, numbers, part == 1)  # type: ignore[call-arg, arg-type]

        firsts = range(0, len(self.parameters.bias), _FEATURES_AT_ONCE)
        for _ in self._pool.map(apply, [(part, first) for part in (0, 1) for first in firsts]):
            pass
        self._update_bias(numbers)

    def _numbers(self, clip: float, rate: float, number: int) -> NDArray[np.float32]:
        decay = self.options.weight_decay
        return np.asarray([clip, rate, decay, 1 - 0.9**number, 1 - 0.999**number], dtype=np.float32)

    def _update_bias(self, numbers: NDArray[np.float32]) -> None:
        rows = [source.bias.numpy()[None, :] for source in self._sources]
        kernels.adam_rows(*rows, numbers, False)  # type: ignore[call-arg, arg-type]

    def _forward(self, inputs: torch.Tensor) -> _Forward:
        count, dimensions = inputs.shape
        k = self.options.active
        features = np.empty((count, k), dtype=np.int32)
        codes = np.empty((count, k), dtype=np.float32)
        slopes = np.empty((count, k), dtype=np.float32)
        errors = np.empty((count, dimensions), dtype=np.float32)
        norms = np.empty((count, 2), dtype=np.float32)
        encoder, decoder, bias = self.parameters.tensors()
        scale = np.float32(2.0 / (count * dimensions))

        block = min(ROWS_AT_ONCE, max(128, -(-count // self._shares)))

        def forward(start: int) -> float:
            rows = slice(start, start + block)
            values, chosen = encode_inputs(inputs[rows], encoder, bias, k)
            codes[rows], features[rows] = values.numpy(), chosen.numpy()
            return kernels.decode_rows(
                inputs[rows].numpy(),
                decoder.numpy(),
                features[rows],
                codes[rows],
                scale,
                errors[rows],
                slopes[rows],
                norms[rows],
            )

        squared = sum(self._pool.map(forward, range(0, count, block)))
        starts, pairs = kernels.pairs_by_feature(features, codes, len(decoder))
        loss = squared / (count * dimensions)
        return _Forward(inputs.numpy(), errors, codes, slopes, norms, starts, pairs, loss)

    def _blocks(self) -> list[tuple[int, int]]:
        size = len(self.parameters.bias)
        return [
            (first, min(first + _FEATURES_AT_ONCE, size))
            for first in range(0, size, _FEATURES_AT_ONCE)
        ]

    def _backward(self, half: _Forward) -> None:
        gradients = [tensor.numpy() for tensor in self.gradients.tensors()]

        def work(block: tuple[int, int]) -> float:
            return kernels.accumulate_gradients(*block, *half.for_kernels, *gradients)

        self._squares = sum(self._pool.map(work, self._blocks()))

    def _fused(self, half: _Forward, numbers: NDArray[np.float32]) -> None:
        held = (self.parameters, self.first, self.second)
        encoder = tuple(source.encoder.numpy() for source in held)
        decoder = tuple(source.decoder.numpy() for source in held)
        bias_gradient = self.gradients.bias.numpy()

        def work(block: tuple[int, int]) -> None:
            kernels.step_features(  # type: ignore[call-arg]
                *block,
                *half.for_kernels,  # type: ignore[arg-type]
                encoder,
                decoder,
                bias_gradient,
                numbers,
            )

        for _ in self._pool.map(work, self._blocks()):
            pass
        self._update_bias(numbers)


class DenseStepper(_Moments):
    """Any device: dense products, in torch."""

    def step(self, inputs: torch.Tensor, rate: float, number: int) -> tuple[float, Any]:
        """Take step `number`, counted from 1; return the loss and how often features fired."""
        result = self.differentiate(inputs)
        self.update(rate, number)
        return result

    def differentiate(self, inputs: torch.Tensor) -> tuple[float, NDArray[np.int64]]:
        """Fill `gradients`; return the loss and how often each feature fired."""
        encoder, _, bias = self.parameters.tensors()
        values, features = encode_inputs(inputs, encoder, bias, self.options.active)
        codes = torch.zeros((len(inputs), len(encoder)), device=inputs.device)
        # Added, not set: a place without a feature is (value 0, feature 0).
        codes.scatter_add_(1, features.long(), values)
        return self._gradients(inputs, codes)

    def _gradients(
        self, inputs: torch.Tensor, codes: torch.Tensor
    ) -> tuple[float, NDArray[np.int64]]:
        """Those of the mean squared error, given the codes of a batch: (n, features)."""
        decoder = self.parameters.decoder
        errors = codes @ decoder - inputs
        loss = float((errors.double() ** 2).mean())
        errors *= 2.0 / inputs.numel()
        fired = codes > 0
        slopes = (errors @ decoder.T) * fired
        self.gradients = Parameters(slopes.T @ inputs, codes.T @ errors, slopes.sum(0))
        return loss, fired.sum(0).cpu().numpy()

    def update(self, rate: float, number: int) -> None:
        """Clip `gradients` and take AdamW step `number`, counted from 1."""
        squares = sum(float((tensor**2).sum()) for tensor in self.gradients.tensors())
        clip = min(1.0, self.options.clip / (math.sqrt(squares) + 1e-6))
        for parameter, gradient, first, second in zip(
            *(source.tensors() for source in self._sources), strict=True
        ):
            slope = gradient * clip
            first.mul_(0.9).add_(slope, alpha=0.1)
            second.mul_(0.999).addcmul_(slope, slope, value=0.001)
            root = (second / (1 - 0.999**number)).sqrt_().add_(1e-8)
            parameter.mul_(1 - rate * self.options.weight_decay)
            parameter.addcdiv_(first, root, value=-rate / (1 - 0.9**number))
        decoder = self.parameters.decoder
        decoder /= decoder.norm(dim=1, keepdim=True).clamp(min=1e-30)


def learning_rate(step: int, steps: int, options: SaeOptions) -> float:
    """Linear warm-up to the peak, then half a cosine to 0; `step` from 0 to steps - 1."""
    rising = max(1, round(options.warmup * steps))
    if step < rising:
        return options.learning_rate * (step + 1) / rising
    share = (step - rising) / max(1, steps - rising)
    return options.learning_rate * 0.5 * (1 + math.cos(math.pi * share))


@dataclass(frozen=True)
class _Inputs:
    """States as the autoencoder sees them: centred, of mean square 1."""

    states: TrainingStates
    mean: NDArray[np.float32]
    spread: float
    device: str

    @classmethod
    def of(cls, states: TrainingStates, device: str) -> _Inputs:
        count = len(states.train)
        total = np.zeros(states.dimensions)
        for rows in _pieces(states.train, _STATES_AT_ONCE):
            total += states.rows(rows).sum(axis=0, dtype=np.float64)
        mean = (total / count).astype(np.float32)
        squares = 0.0
        for rows in _pieces(states.train, _STATES_AT_ONCE):
            squares += float(np.square(states.rows(rows) - mean, dtype=np.float64).sum())
        return cls(states, mean, math.sqrt(squares / (count * states.dimensions)) or 1.0, device)

    def take(self, rows: NDArray[np.int64]) -> torch.Tensor:
        block = self.states.rows(rows)
        block -= self.mean
        block /= np.float32(self.spread)
        return torch.from_numpy(block).to(self.device)


def train(
    states: TrainingStates,
    seed: int,
    options: SaeOptions,
    device: str,
    threads: int,
    checkpoints: Path | None = None,
) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    """Train an autoencoder and keep the epoch of least validation error.

    Without validation states the last epoch is kept. The result is the same, byte for byte, for
    the same device and number of threads. In a folder `checkpoints` the training keeps now and then
    how far it is, and goes on from there with the same result.

    Returns:
        The tensors of `Sae`, and the manifest: validation curve (mean squared error as a share of
        the variance, by epoch), the epoch kept, dead features in it, and features revived.
    """
    inputs = _Inputs.of(states, device)
    parameters = initial_parameters(options.features, states.dimensions, seed, device)
    with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        stepper: Stepper = (
            SparseStepper(parameters, options, pool, threads)
            if device == "cpu"
            else DenseStepper(parameters, options)
        )
        kept, report = _epochs(inputs, parameters, stepper, options, seed, pool.map, checkpoints)
    tensors = {
        "encoder": kept.encoder,
        "decoder": kept.decoder,
        "bias": kept.bias,
        "mean": torch.from_numpy(inputs.mean),
        "spread": torch.tensor([inputs.spread], dtype=torch.float32),
    }
    return tensors, report


def _epochs(
    inputs: _Inputs,
    parameters: Parameters,
    stepper: Stepper,
    options: SaeOptions,
    seed: int,
    run: Callable[..., Iterator[Any]],
    checkpoints: Path | None = None,
) -> tuple[Parameters, dict[str, Any]]:
    train_rows, validation_rows = inputs.states.train, inputs.states.validation
    per_epoch = math.ceil(len(train_rows) / options.batch)
    steps = options.epochs * per_epoch
    state = TrainingState.start(parameters, stepper, options.features)
    keeper = Keeper(state, checkpoints)
    bar = progress(range(state.step, steps), steps - state.step, "training the autoencoder", "step")
    for epoch in range(state.step // per_epoch, options.epochs):
        rng = np.random.default_rng([seed, 1, epoch])
        order = rng.permutation(train_rows)
        for rows in _pieces(
            order[(state.step - epoch * per_epoch) * options.batch :], options.batch
        ):
            step = next(bar)
            # Rows of a step in file order: its sum is over a set, and the disk likes it better.
            batch = inputs.take(np.sort(rows))
            batch_loss, counts = stepper.step(batch, learning_rate(step, steps, options), step + 1)
            state.loss += batch_loss * len(rows)
            state.fired += counts
            state.step = step + 1
            if state.step < (epoch + 1) * per_epoch:
                keeper.keep_now_and_then()
        state.training_curve.append(state.loss / len(train_rows))
        dead = np.flatnonzero(state.fired == 0)
        state.dead_counts.append(len(dead))
        curve = state.validation_curve
        if len(validation_rows):
            curve.append(_validate(inputs, parameters, options.active, run))
        if not curve or state.best < 0 or curve[-1] < curve[state.best]:
            state.best, state.kept = epoch, parameters.copy()
        if epoch + 1 < options.epochs and len(dead):
            revive(dead, inputs.take(np.sort(order[: options.batch])), parameters, options, rng)
            stepper.forget(dead)
            state.revived += len(dead)
        state.loss, state.fired = 0.0, np.zeros(options.features, dtype=np.int64)
        if epoch + 1 < options.epochs:
            keeper.keep()
    for _ in bar:  # lets the progress display end
        pass
    return state.kept, {
        "training_mse": state.training_curve,
        "validation_mse": state.validation_curve,
        "best_epoch": state.best,
        "steps": steps,
        "dead_features": state.dead_counts[state.best],
        "dead_features_by_epoch": state.dead_counts,
        "dead_after_states": len(train_rows),
        "revived_features": state.revived,
        "mse_unit": "share of the variance of the training states",
    }


def _errors(block: torch.Tensor, parameters: Parameters, k: int) -> torch.Tensor:
    """Input minus reconstruction, shape (n, d)."""
    values, features = encode_inputs(block, parameters.encoder, parameters.bias, k)
    return block - torch.nn.functional.embedding_bag(
        features.long(), parameters.decoder, per_sample_weights=values, mode="sum"
    )


def _validate(
    inputs: _Inputs, parameters: Parameters, k: int, run: Callable[..., Iterator[Any]]
) -> float:
    def squared(rows: NDArray[np.int64]) -> float:
        return float((_errors(inputs.take(rows), parameters, k).double() ** 2).sum())

    rows = inputs.states.validation
    total: float = sum(run(squared, _pieces(rows, 2048)))
    return total / (len(rows) * inputs.states.dimensions)


def revive(
    dead: NDArray[np.int64],
    sample: torch.Tensor,
    parameters: Parameters,
    options: SaeOptions,
    rng: np.random.Generator,
) -> None:
    """Point dead features at residuals of `sample`, drawn in proportion to their squares."""
    errors = _errors(sample, parameters, options.active)
    weights = (errors.double() ** 2).sum(1).cpu().numpy()
    total = float(weights.sum())
    if total <= 0:
        return
    chosen = rng.choice(len(sample), len(dead), p=weights / total)
    directions = errors[torch.from_numpy(chosen).to(errors.device)]
    directions = directions / directions.norm(dim=1, keepdim=True).clamp(min=1e-30)
    rows = torch.from_numpy(dead).to(errors.device)
    parameters.decoder[rows] = directions
    # At full length the revived crowd out the living: the error grows instead of falling.
    parameters.encoder[rows] = 0.2 * directions
    parameters.bias[rows] = 0


def _pieces(rows: NDArray[np.int64], size: int) -> Iterator[NDArray[np.int64]]:
    for start in range(0, len(rows), size):
        yield rows[start : start + size]
