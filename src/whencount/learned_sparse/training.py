"""Training of a small SPLADE: in-batch negatives, and FLOPS that grow with the square of the step.

The losses, the schedule and the loop are those of sentence-transformers: InfoNCE on inner products
with the other passages of a batch as negatives, plus `lambda` times the FLOPS regulariser of each
side, the sum over features of the squared mean weight in a batch (Paria et al., 2020,
arXiv:2004.05665; Formal et al., 2021, arXiv:2109.10086), whose weight rises quadratically.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from whencount.errors import InputError
from whencount.files import atomic_directory
from whencount.learned_sparse.pairs import Pair

LOG = "training.json"
_CHECKPOINTS = 5


@dataclass(frozen=True)
class SpladeOptions:
    """How a model is trained.

    Attributes:
        documents: greatest weight of the FLOPS of passages; 0 trains without.
        queries: greatest weight of the FLOPS of queries.
        warmup: share of the steps in which these weights rise, with the square of the step.
        steps: of the optimiser.
        batch: pairs per step.
        learning_rate: the peak of AdamW, after a tenth of the steps; it falls to 0 linearly.
        max_tokens: passages and queries are cut to so many.
        pooling: max or sum over tokens.
    """

    documents: float = 0.0
    queries: float = 0.0
    warmup: float = 0.33
    steps: int = 200
    batch: int = 32
    learning_rate: float = 1e-4
    max_tokens: int = 64
    pooling: str = "max"

    def __post_init__(self) -> None:
        if self.pooling not in ("max", "sum"):
            raise InputError(f"learned_sparse: pooling is {self.pooling!r}; choose max or sum")
        if self.documents < 0 or self.queries < 0:
            raise InputError("learned_sparse: a weight of FLOPS is negative; give 0 or more")
        if self.batch < 2 or self.steps < 1:
            raise InputError(
                "learned_sparse: a training has at least 1 step, and a batch at least 2 pairs, the"
                " others being negatives"
            )


def train_splade(
    start: str | Path,
    pairs: Sequence[Pair],
    options: SpladeOptions,
    seed: int,
    out: str | Path,
    *,
    device: str = "cpu",
    checkpoints: Path | None = None,
) -> None:
    """Train a SPLADE model and write it as a folder that `load_splade` reads, with `training.json`.

    Args:
        start: folder of a masked language model and its tokenizer.
        pairs: queries and the passages that they are to find.
        seed: of the order of the pairs and of dropout.
        out: folder to write, whole or not at all.
        checkpoints: folder for the state of a broken-off training; the result is the same, byte
            for byte, whether or not it was broken off, on the same machine and number of threads.

    `training.json` lists, by step: loss, base_loss, document_regularizer_loss,
    query_regularizer_loss and their weights, as sentence-transformers logs them.

    Raises:
        InputError: fewer pairs than a batch, or no masked language model at `start`.
    """
    if len(pairs) < options.batch:
        raise InputError(
            f"learned_sparse: {len(pairs)} pairs are fewer than a batch of {options.batch}; give"
            " more fit passages or a smaller batch"
        )
    from whencount.encoders.quiet import quiet_transformers

    with quiet_transformers(), TemporaryDirectory() as scratch:
        kept = checkpoints or Path(scratch)
        trainer, model = _trainer(start, pairs, options, seed, device, kept)
        trainer.train(resume_from_checkpoint=_last(kept))
        with atomic_directory(out) as folder:
            model.save(str(folder), create_model_card=False)
            written = {
                "options": asdict(options),
                "seed": seed,
                "pairs": len(pairs),
                "lines": [
                    _numbers(line, options)
                    for line in trainer.state.log_history
                    if "base_loss" in line
                ],
            }
            (folder / LOG).write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")


def read_log(folder: str | Path) -> list[dict[str, Any]]:
    """The lines of a training, by step.

    Raises:
        InputError: the folder holds none.
    """
    path = Path(folder) / LOG
    try:
        return list(json.loads(path.read_text(encoding="utf-8"))["lines"])
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"{path} cannot be read ({error}); train the model again") from None


def _trainer(
    start: str | Path,
    pairs: Sequence[Pair],
    options: SpladeOptions,
    seed: int,
    device: str,
    checkpoints: Path,
) -> tuple[Any, Any]:
    import datasets
    from sentence_transformers import SparseEncoder
    from sentence_transformers.base.modules import Transformer
    from sentence_transformers.sparse_encoder import (
        SparseEncoderTrainer,
        SparseEncoderTrainingArguments,
        losses,
    )
    from sentence_transformers.sparse_encoder.callbacks import (
        SpladeRegularizerWeightSchedulerCallback,
    )
    from sentence_transformers.sparse_encoder.modules import SpladePooling
    from transformers import set_seed

    set_seed(seed)
    transformer = Transformer(
        str(start), transformer_task="fill-mask", max_seq_length=options.max_tokens
    )
    model = SparseEncoder(
        modules=[transformer, SpladePooling(pooling_strategy=cast(Any, options.pooling))],
        device=device,
    )
    loss = losses.SpladeLoss(
        model,
        losses.SparseMultipleNegativesRankingLoss(model),
        document_regularizer_weight=options.documents,
        query_regularizer_weight=options.queries,
    )
    every = max(1, options.steps // _CHECKPOINTS)
    arguments = SparseEncoderTrainingArguments(
        output_dir=str(checkpoints),
        max_steps=options.steps,
        per_device_train_batch_size=options.batch,
        learning_rate=options.learning_rate,
        warmup_steps=max(1, options.steps // 10),
        weight_decay=0.01,
        seed=seed,
        data_seed=seed,
        logging_steps=max(1, options.steps // 20),
        save_strategy="steps",
        save_steps=every,
        save_total_limit=1,
        report_to="none",
        disable_tqdm=not sys.stderr.isatty(),
        use_cpu=device == "cpu",
        fp16=device == "cuda",
        dataloader_pin_memory=False,
        dataloader_drop_last=True,
    )
    columns = {
        "query": [pair.query for pair in pairs],
        "passage": [pair.passage for pair in pairs],
    }
    schedule = SpladeRegularizerWeightSchedulerCallback(loss, warmup_ratio=options.warmup)
    trainer = SparseEncoderTrainer(
        model=model,
        args=arguments,
        train_dataset=datasets.Dataset.from_dict(columns),
        loss=loss,
        callbacks=[schedule],
    )
    return trainer, model


def _last(checkpoints: Path) -> str | None:
    """The newest whole checkpoint; one that broke off while it was written is removed."""
    found = sorted(
        checkpoints.glob("checkpoint-*"), key=lambda path: int(path.name.rsplit("-", 1)[1])
    )
    # The trainer writes its state last.
    for path in reversed(found):
        if (path / "trainer_state.json").is_file():
            return str(path)
        shutil.rmtree(path)
    return None


def regulariser_weight(step: int, greatest: float, options: SpladeOptions) -> float:
    """The weight of FLOPS in a step, counted from 1: it rises with the square of the steps."""
    rising = max(1, int(options.steps * options.warmup))
    return greatest * min(1.0, (step - 1) / rising) ** 2


def _numbers(line: Mapping[str, Any], options: SpladeOptions) -> dict[str, float]:
    """What does not depend on the clock, and the weights, which the log is written without."""
    clocks = ("runtime", "per_second")
    found = {
        name: float(value)
        for name, value in sorted(line.items())
        if isinstance(value, int | float) and not name.endswith(clocks)
    }
    for side, greatest in (("document", options.documents), ("query", options.queries)):
        weight = regulariser_weight(int(found["step"]), greatest, options)
        found[f"{side}_regularizer_weight"] = weight
    return found
