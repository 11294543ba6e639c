"""A small OLMoE, trained from scratch on embedded text, so that routing can be studied anywhere.

Every part of it is that of OLMoE-1B-7B: 64 experts, 8 of them active, gate weights that are not
renormalised, the Switch loss of load balancing (Fedus et al., 2021, equations 4 to 6). Only its
sizes differ. Each batch is cut into two halves whose gradients two threads compute and one adds, so
that one thread and two give the same bytes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from whencount.errors import InputError
from whencount.experts.training_options import HALVES, TrainingOptions
from whencount.experts.training_state import Keeper, TrainingState
from whencount.progress import progress

if TYPE_CHECKING:
    import pandas as pd

_BETAS = (0.9, 0.95)
_VALIDATION_SEQUENCES = 64


def new_model(options: TrainingOptions, seed: int, end: int = 0, padding: int = 1) -> Any:
    """An untrained `OlmoeForCausalLM`, its weights drawn by `seed`, in float32 on the CPU.

    Args:
        options: its sizes.
        seed: of the draw; the state of torch's own generator is left as it was.
        end, padding: ids of these tokens.
    """
    from whencount.encoders.quiet import quiet_transformers

    with quiet_transformers():
        from transformers import OlmoeConfig, OlmoeForCausalLM

    config = OlmoeConfig(
        vocab_size=options.vocabulary,
        hidden_size=options.hidden,
        intermediate_size=options.intermediate,
        num_hidden_layers=options.layers,
        num_attention_heads=options.heads,
        num_experts=options.experts,
        num_experts_per_tok=options.active,
        max_position_embeddings=options.context,
        initializer_range=options.deviation,
        router_aux_loss_coef=options.balance,
        tie_word_embeddings=True,
        eos_token_id=end,
        pad_token_id=padding,
        use_cache=True,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return OlmoeForCausalLM(config)


def packed_sequences(
    token_ids: Sequence[Sequence[int]], end: int, context: int
) -> NDArray[np.int64]:
    """Documents in a row, `end` before each, cut into sequences; what is left over is dropped.

    Returns:
        int64, shape (sequences, context).
    """
    pieces = [np.asarray([end, *ids], dtype=np.int64) for ids in token_ids]
    stream = np.concatenate(pieces) if pieces else np.empty(0, dtype=np.int64)
    whole = len(stream) // context
    return stream[: whole * context].reshape(whole, context)


def train(
    model: Any,
    sequences: NDArray[np.int64],
    validation: NDArray[np.int64],
    options: TrainingOptions,
    seed: int,
    threads: int,
    checkpoints: Path | None = None,
) -> pd.DataFrame:
    """Train a model in place; the same inputs give the same weights, byte for byte.

    In a folder `checkpoints` it keeps now and then how far it is, and goes on from there with the
    same result.

    Args:
        model: of `new_model`.
        sequences: int64, shape (sequences, context), at least a batch of them.
        validation: int64, shape (sequences, context), of other documents.
        options: how.
        seed: of the order of sequences; each epoch has its own.
        threads: at most two are used.
        checkpoints: folder; None keeps nothing.

    Returns:
        Columns step, tokens (seen so far), loss (mean over the steps since the last line, nats per
        token, without the balancing loss), balance (that loss alone: the number of active experts
        where all are chosen equally often, more elsewhere), validation (nats per token).

    Raises:
        InputError: not a batch of sequences, no validation text, or a loss that is not finite.
    """
    if len(sequences) < options.batch or len(validation) == 0:
        raise InputError(
            f"training: {len(sequences)} sequences of {options.context} tokens to train on and"
            f" {len(validation)} to validate on; a batch has {options.batch}; give more text"
        )
    parameters = [one for one in model.parameters() if one.requires_grad]
    matrices = [one for one in parameters if one.ndim > 1]
    others = [one for one in parameters if one.ndim <= 1]
    optimiser = torch.optim.AdamW(
        [
            {"params": matrices, "weight_decay": options.weight_decay},
            {"params": others, "weight_decay": 0.0},
        ],
        lr=options.learning_rate,
        betas=_BETAS,
        fused=True,
    )
    state = TrainingState(dict(model.named_parameters()), optimiser)
    keeper = Keeper(state, checkpoints)
    told = {
        math.ceil(options.steps * number / options.validations)
        for number in range(1, options.validations + 1)
    }
    bar = progress(range(state.step, options.steps), options.steps - state.step, "training", "step")
    model.train()
    with _one_thread_each(min(threads, HALVES)) as pool:
        for step in bar:
            batch = sequences[_rows(len(sequences), options.batch, step, seed)]
            halves = np.split(batch, HALVES)
            results = list(pool.map(lambda half: _gradients(model, parameters, half), halves))
            for place, parameter in enumerate(parameters):
                parts = [gradients[place] for gradients, _, _ in results]
                parameter.grad = torch.stack(parts).mean(dim=0)
            state.add(*(float(np.mean([one[n] for one in results])) for n in (1, 2)))
            torch.nn.utils.clip_grad_norm_(parameters, options.clip)
            for group in optimiser.param_groups:
                group["lr"] = learning_rate(step, options)
            optimiser.step()
            state.step = step + 1
            if state.step in told:
                loss = _validation_loss(model, validation, pool)
                state.tell(options.batch * options.context, loss)
            if state.step < options.steps:
                keeper.keep_now_and_then()
    model.eval()
    return state.table()


def learning_rate(step: int, options: TrainingOptions) -> float:
    """Linear warm-up to the peak, then half a cosine to 0; `step` from 0 to steps - 1."""
    rising = max(1, round(options.warmup * options.steps))
    if step < rising:
        return options.learning_rate * (step + 1) / rising
    share = (step - rising) / max(1, options.steps - rising)
    return options.learning_rate * 0.5 * (1 + math.cos(math.pi * share))


def _rows(count: int, batch: int, step: int, seed: int) -> NDArray[np.int64]:
    """Which sequences a step reads: every epoch all of them, in an order of its own."""
    per_epoch = count // batch
    epoch, place = divmod(step, per_epoch)
    order = np.random.default_rng([seed, epoch]).permutation(count)
    return order[place * batch : (place + 1) * batch]


def _gradients(
    model: Any, parameters: Sequence[torch.Tensor], half: NDArray[np.int64]
) -> tuple[tuple[torch.Tensor, ...], float, float]:
    """Gradients of one half of a batch, its loss in nats per token, its balancing loss."""
    ids = torch.from_numpy(half)
    out = model(input_ids=ids, labels=ids, output_router_logits=True, use_cache=False)
    balance = float(out.aux_loss.detach())
    loss = float(out.loss.detach()) - model.router_aux_loss_coef * balance
    if not math.isfinite(loss):
        raise InputError("training: the loss is not a finite number; lower the learning rate")
    return torch.autograd.grad(out.loss, list(parameters)), loss, balance


def _validation_loss(model: Any, sequences: NDArray[np.int64], pool: ThreadPoolExecutor) -> float:
    """Mean negative log-likelihood of the first sequences, nats per token."""
    from whencount.experts.likelihood import document_likelihoods

    def loss_of(block: NDArray[np.int64]) -> torch.Tensor:
        with torch.inference_mode():
            return document_likelihoods(model, block)

    chosen = sequences[:_VALIDATION_SEQUENCES]
    model.eval()
    losses = list(pool.map(loss_of, [chosen[at : at + 8] for at in range(0, len(chosen), 8)]))
    model.train()
    return float(torch.cat(losses).mean())


@contextmanager
def _one_thread_each(workers: int) -> Iterator[ThreadPoolExecutor]:
    """Workers, and this thread, with one thread of torch each: sums then have one order."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with ThreadPoolExecutor(workers, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            yield pool
    finally:
        torch.set_num_threads(before)
