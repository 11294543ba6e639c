"""Time of SAE training per state, against the encoder's matrix product alone.

Run as `python benchmarks/sae.py`; prints one JSON object per row.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch

from whencount.bases.sae import ROWS_AT_ONCE, SaeOptions
from whencount.bases.sae_training import SparseStepper, initial_parameters

DIMENSIONS, BATCH = 768, 4096


def run(repeats: int = 5) -> list[dict[str, Any]]:
    """Median CPU time per state of one training step and of its parts, one thread.

    768 dimensions, 8,192 features, 32 active, batches of 4,096. "Encoder product" is the same
    product in the same blocks and nothing else; "in one piece" is a single call over the batch.
    The jobs alternate, so that a change of the machine's speed meets all of them.
    """
    options = SaeOptions()
    draws = np.random.default_rng(0).standard_normal((BATCH, DIMENSIONS))
    inputs = torch.from_numpy(draws.astype(np.float32))
    parameters = initial_parameters(options.features, DIMENSIONS, 0, "cpu")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    with ThreadPoolExecutor(1, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        stepper = SparseStepper(parameters, options, pool)
        room = torch.empty((ROWS_AT_ONCE, options.features))
        whole = torch.empty((BATCH, options.features))
        taken = 0

        def blocks() -> None:
            for start in range(0, BATCH, ROWS_AT_ONCE):
                block = inputs[start : start + ROWS_AT_ONCE]
                torch.addmm(parameters.bias, block, parameters.encoder.T, out=room)

        def one_piece() -> None:
            torch.addmm(parameters.bias, inputs, parameters.encoder.T, out=whole)

        def step() -> None:
            nonlocal taken
            taken += 1
            stepper.step(inputs, 1e-3, taken)

        jobs: dict[str, Callable[[], None]] = {
            "encoder product": blocks,
            "encoder product in one piece": one_piece,
            "training step": step,
        }
        times: dict[str, list[float]] = {name: [] for name in jobs}
        for job in jobs.values():
            job()
        for _ in range(repeats):
            for name, job in jobs.items():
                started = time.process_time()
                job()
                times[name].append((time.process_time() - started) / BATCH * 1e6)
    torch.set_num_threads(before)
    floor = statistics.median(times["encoder product"])
    return [
        {
            "job": name,
            "microseconds_per_state": round(statistics.median(values), 2),
            "lowest": round(min(values), 2),
            "highest": round(max(values), 2),
            "ratio_to_encoder_product": round(statistics.median(values) / floor, 3),
        }
        for name, values in times.items()
    ]


if __name__ == "__main__":
    for row in run():
        print(json.dumps(row))
