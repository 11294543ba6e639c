"""Training of the dictionaries of latent terms on a stream of token states.

All seeds of a model see the same chunks, each in an order of its own, so the backbone is run once
for all. Optimiser, learning rate and revival of dead features are those of
`whencount.bases.sae_training`; what differs is where states come from, that the last parameters are
kept, and that the three activations of `steppers` can be had.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from whencount.bases.sae import Sae, SaeOptions
from whencount.bases.sae_state import Parameters
from whencount.bases.sae_training import (
    DenseStepper,
    SparseStepper,
    Stepper,
    initial_parameters,
    learning_rate,
    revive,
)
from whencount.errors import InputError
from whencount.files import atomic_directory, atomic_file
from whencount.latent_terms.states import StateStream
from whencount.latent_terms.steppers import (
    ACTIVATIONS,
    BatchTopKStepper,
    JumpReluStepper,
    further_of,
)
from whencount.progress import progress

_SECONDS_BETWEEN = 60.0
_ROWS = 8192
_VALIDATION_ROWS = 2048
_MOST_VALIDATION_STATES = 20_000
_RESOLUTION = 1_000_000
COLUMNS = ("seed", "step", "states", "training_fvu", "validation_fvu", "active", "dead")


@dataclass(frozen=True)
class LatentOptions:
    """Options of a model; the published sizes are the defaults (the study, section 12).

    Attributes:
        features: size of the dictionary.
        active: how many features a state has (k); in the mean for batch_topk and jump_relu.
        activation: topk, batch_topk or jump_relu.
        epochs: passes over the passages.
        batch: states per step.
        learning_rate: the peak.
        warmup: share of the steps in which the rate rises.
        weight_decay: AdamW's.
        clip: the greatest norm of a step's gradient.
        buffer: states in memory at once.
        held_back: passages for validation.
        intervals: how often error and dead features are noted, and dead ones revived.
    """

    features: int = 32_768
    active: int = 16
    activation: str = "topk"
    epochs: int = 1
    batch: int = 4096
    learning_rate: float = 1e-3
    warmup: float = 0.05
    weight_decay: float = 0.01
    clip: float = 1.0
    buffer: int = 500_000
    held_back: int = 500
    intervals: int = 10

    @property
    def sae(self) -> SaeOptions:
        """The part that the steppers know."""
        names = SaeOptions.__dataclass_fields__
        return SaeOptions(**{key: value for key, value in asdict(self).items() if key in names})


@dataclass
class _Run:
    """One seed's training between two chunks."""

    seed: int
    parameters: Parameters
    stepper: Stepper
    fired: NDArray[np.int64]
    step: int = 0
    states: int = 0
    loss: float = 0.0
    steps_since: int = 0
    lines: list[list[float]] = field(default_factory=list)

    NUMBERS = ("step", "states", "loss", "steps_since", "lines")

    def tensors(self) -> dict[str, torch.Tensor]:
        """Every tensor that a later step depends on, by name; live ones."""
        groups = {
            "parameters": self.parameters,
            "first": self.stepper.first,
            "second": self.stepper.second,
        }
        found = {
            f"{self.seed}.{group}.{name}": tensor
            for group, members in groups.items()
            for name, tensor in zip(("encoder", "decoder", "bias"), members.tensors(), strict=True)
        }
        more = further_of(self.stepper)
        found |= {f"{self.seed}.further.{name}": tensor for name, tensor in more.items()}
        return found | {f"{self.seed}.fired": torch.from_numpy(self.fired)}


def train(
    stream: StateStream,
    options: LatentOptions,
    seeds: Sequence[int],
    out: str | Path,
    *,
    device: str = "cpu",
    threads: int = 1,
    checkpoints: Path | None = None,
) -> None:
    """Train a dictionary per seed and write each as a representation, and `training.json`.

    The folder `out` has a folder per seed (`seed0`, ...) that `whencount.representations`
    reads, of scale 1 at the granularity `token`: the value of a feature is the plain sum of its
    codes. `training.json` has lines of COLUMNS; fvu is the mean squared error as a share of the
    variance. The result is the same, byte for byte, for the same device and number of threads,
    whether or not the training was broken off.

    Raises:
        InputError: bad options, or too few states for one batch.
    """
    _check(options, stream)
    with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        runs = [_start(seed, stream, options, device, pool, threads) for seed in seeds]
        training = _Training(stream, options, runs, device, pool.map, checkpoints)
        training.go()
    with atomic_directory(out) as folder:
        for run in runs:
            _write(folder / f"seed{run.seed}", run, training, options)
        lines = [[run.seed, *line] for run in runs for line in run.lines]
        (folder / "training.json").write_text(json.dumps({"columns": COLUMNS, "lines": lines}))


def _check(options: LatentOptions, stream: StateStream) -> None:
    if options.activation not in ACTIVATIONS:
        raise InputError(
            f"latent terms: activation {options.activation!r} is unknown; choose one of"
            f" {', '.join(ACTIVATIONS)}"
        )
    if not 1 <= options.active <= options.features:
        raise InputError(
            f"latent terms: active is {options.active}; it must lie in 1..{options.features},"
            " the number of features"
        )
    if stream.sizes.max() < options.batch:
        raise InputError(
            f"latent terms: a chunk has {int(stream.sizes.max()):,} token states at most, fewer"
            f" than a batch of {options.batch:,}; give more fit passages or a smaller batch"
        )


def _start(
    seed: int,
    stream: StateStream,
    options: LatentOptions,
    device: str,
    pool: ThreadPoolExecutor,
    threads: int,
) -> _Run:
    parameters = initial_parameters(options.features, stream.encoder.dimensions, seed, device)
    stepper: Stepper
    if options.activation == "batch_topk":
        stepper = BatchTopKStepper(parameters, options.sae)
    elif options.activation == "jump_relu":
        stepper = JumpReluStepper(parameters, options.sae)
    elif device == "cpu":
        stepper = SparseStepper(parameters, options.sae, pool, threads)
    else:
        stepper = DenseStepper(parameters, options.sae)
    return _Run(seed, parameters, stepper, np.zeros(options.features, dtype=np.int64))


class _Training:
    def __init__(
        self,
        stream: StateStream,
        options: LatentOptions,
        runs: Sequence[_Run],
        device: str,
        run: Callable[..., Any],
        checkpoints: Path | None,
    ) -> None:
        self.stream, self.options, self.runs, self.device = stream, options, runs, device
        self._map = run
        self._path = None if checkpoints is None else checkpoints / "latent.safetensors"
        self._kept = time.monotonic()
        self.done = 0
        steps = stream.sizes // options.batch
        self.total = int(steps.sum()) * options.epochs
        self.mean = torch.zeros(stream.encoder.dimensions)
        self.spread = torch.ones(1)

    def go(self) -> None:
        """Every chunk of every pass that is not done."""
        chunks = len(self.stream.chunks)
        self._restore()
        first = self.stream.chunk(0) if self.done == 0 or chunks == 1 else None
        if self.done == 0 and first is not None:
            self._centre(first)
        held: torch.Tensor | None = None if first is None else self._scaled(first)
        del first
        validation = self._scaled(self.stream.validation()[:_MOST_VALIDATION_STATES])
        rest = range(self.done, chunks * self.options.epochs)
        sizes = [int(self.stream.sizes[one % chunks]) for one in rest]
        for number in progress(rest, sum(sizes), "training latent terms", "state", sizes):
            inputs = self._scaled(self.stream.chunk(number % chunks)) if held is None else held
            held = held if chunks == 1 else None
            for run in self.runs:
                self._chunk(run, number, inputs, validation)
            self.done = number + 1
            if self.done < chunks * self.options.epochs:
                self._keep_now_and_then()

    def _centre(self, states: NDArray[np.float32]) -> None:
        """Take mean and spread from the first chunk."""
        mean = states.mean(axis=0, dtype=np.float64)
        self.mean = torch.from_numpy(mean.astype(np.float32))
        squares = sum(
            float(np.square(states[start : start + _ROWS] - mean).sum())
            for start in range(0, len(states), _ROWS)
        )
        self.spread = torch.tensor([math.sqrt(squares / states.size) or 1.0])

    def _scaled(self, states: NDArray[np.float32]) -> torch.Tensor:
        """The same memory, centred and scaled, on the device."""
        inputs = torch.from_numpy(states)
        return inputs.sub_(self.mean).div_(self.spread).to(self.device)

    def _chunk(
        self, run: _Run, number: int, inputs: torch.Tensor, validation: torch.Tensor
    ) -> None:
        options = self.options
        order = np.random.default_rng([run.seed, 1, number]).permutation(len(inputs))
        every = max(1, self.total // options.intervals)
        for place in range(len(inputs) // options.batch):
            rows = np.sort(order[place * options.batch : (place + 1) * options.batch])
            batch = inputs[torch.from_numpy(rows)]
            rate = learning_rate(run.step * _RESOLUTION // self.total, _RESOLUTION, options.sae)
            loss, counts = run.stepper.step(batch, rate, run.step + 1)
            run.loss += loss
            run.steps_since += 1
            run.fired += counts
            run.step += 1
            run.states += len(batch)
            if run.step % every == 0 or run.step == self.total:
                self._note(run, batch, validation)

    def _note(self, run: _Run, batch: torch.Tensor, validation: torch.Tensor) -> None:
        """Note error and dead features of the interval, revive the dead in the first half."""
        fvu, active = self.validate(run, validation)
        dead = np.flatnonzero(run.fired == 0)
        training = run.loss / run.steps_since
        run.lines.append([run.step, run.states, training, fvu, active, len(dead)])
        print(
            f"seed {run.seed}, step {run.step:,} of {self.total:,}: unexplained variance"
            f" {training:.3f} in training, {fvu:.3f} held back; {len(dead):,} dead features",
            file=sys.stderr,
            flush=True,
        )
        if len(dead) and run.step <= self.total // 2:
            random = np.random.default_rng([run.seed, 2, run.step])
            revive(dead, batch, run.parameters, self.options.sae, random)
            run.stepper.forget(dead)  # type: ignore[attr-defined]
        run.loss, run.steps_since = 0.0, 0
        run.fired[:] = 0

    def validate(self, run: _Run, validation: torch.Tensor) -> tuple[float, float]:
        """Unexplained share of the variance of the states held back, and active features."""
        basis = self.basis(run)

        def error(start: int) -> tuple[float, float]:
            block = validation[start : start + _VALIDATION_ROWS]
            codes = basis.codes_of(block)
            assert codes.features is not None
            found = torch.nn.functional.embedding_bag(
                codes.features.long(),
                run.parameters.decoder,
                per_sample_weights=codes.values,
                mode="sum",
            )
            return float(((block - found).double() ** 2).sum()), float((codes.values > 0).sum())

        parts = list(self._map(error, range(0, len(validation), _VALIDATION_ROWS)))
        spread = float(((validation - validation.mean(0)).double() ** 2).sum())
        total, active = (sum(column) for column in zip(*parts, strict=True))
        return total / spread, active / len(validation)

    def basis(self, run: _Run) -> Sae:
        """The dictionary as it is now; it shares the live tensors."""
        tensors: dict[str, torch.Tensor] = {
            "encoder": run.parameters.encoder,
            "decoder": run.parameters.decoder,
            "bias": run.parameters.bias,
            "mean": self.mean.to(self.device),
            "spread": self.spread.to(self.device),
        }
        if hasattr(run.stepper, "threshold"):
            tensors["threshold"] = run.stepper.threshold()
        dimensions = int(run.parameters.encoder.shape[1])
        report = {"seed": run.seed, "activation": self.options.activation, "steps": run.step}
        return Sae(tensors, self.options.sae, dimensions, report)

    def _keep_now_and_then(self) -> None:
        if self._path is None or time.monotonic() - self._kept < _SECONDS_BETWEEN:
            return
        from safetensors.torch import save_file

        tensors = {"mean": self.mean, "spread": self.spread}
        numbers: dict[str, Any] = {"done": self.done}
        for run in self.runs:
            tensors |= {
                name: tensor.detach().cpu().contiguous() for name, tensor in run.tensors().items()
            }
            numbers[str(run.seed)] = {name: getattr(run, name) for name in _Run.NUMBERS}
        with atomic_file(self._path) as temporary:
            save_file(tensors, temporary, metadata={"numbers": json.dumps(numbers)})
        self._kept = time.monotonic()

    def _restore(self) -> None:
        if self._path is None or not self._path.is_file():
            return
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(self._path, framework="pt") as stored:
                numbers: Mapping[str, Any] = json.loads(stored.metadata()["numbers"])
                found = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118
        except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
            print(f"{self._path} is damaged ({error}); training begins anew", file=sys.stderr)
            return
        self.mean, self.spread, self.done = found["mean"], found["spread"], int(numbers["done"])
        for run in self.runs:
            for name, tensor in run.tensors().items():
                tensor.copy_(found[name])
            for name, value in numbers[str(run.seed)].items():
                setattr(run, name, value)
        print(f"going on after chunk {self.done:,}", file=sys.stderr, flush=True)


def _write(folder: Path, run: _Run, training: _Training, options: LatentOptions) -> None:
    """Write a dictionary as `whencount.fitting.fit_basis` writes a representation."""
    folder.mkdir()
    basis = training.basis(run).to("cpu")
    basis.tensors = {name: one.detach().contiguous().clone() for name, one in basis.tensors.items()}
    basis.save(folder)
    manifest = {
        "basis": basis.name,
        "granularity": "token",
        "seed": run.seed,
        "options": asdict(options),
        "dimensions": basis.dimensions,
        "vocabulary_size": basis.vocabulary_size,
        "scale": 1.0,
        "encoder": training.stream.encoder.description,
        # What `encode` compares its encoder with.
        "fit_states": {"encoder": training.stream.encoder.description},
        "passages": len(training.stream.texts),
    }
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")
