"""A trained model as a folder: weights, tokenizer, training table, and a card saying what it is."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whencount.encoders.quiet import quiet_transformers
from whencount.experts.texts import part_of
from whencount.experts.training import new_model, packed_sequences, train
from whencount.experts.training_options import TrainingOptions
from whencount.experts.vocabulary import END, train_tokenizer
from whencount.files import atomic_directory
from whencount.tables import read_table, write_table

if TYPE_CHECKING:
    import pandas as pd

_TOKENIZER_CHARACTERS = 4_000_000
_TABLE = "training.parquet"


def train_model(
    name: str,
    text: pd.DataFrame,
    options: TrainingOptions | Mapping[str, Any],
    out: str | Path,
    *,
    seed: int = 0,
    threads: int = 1,
    about: str = "",
    checkpoints: Path | None = None,
) -> None:
    """Train a small OLMoE on the part `train` of a prepared text and write it as a folder.

    The same text, options and seed give the same files, byte for byte, on one machine. The folder
    has what `whencount.language_models` loads (config.json, model.safetensors, tokenizer.json),
    training.parquet (see `whencount.experts.training.train`) and README.md.

    Args:
        name: what the configuration calls the model.
        text: of `whencount.experts.texts.prepare_text`.
        options: sizes and training.
        out: the folder to write, whole or not at all.
        seed: of weights and of the order of sequences.
        threads: at most two are used.
        about: one phrase for the card, what the text is.
        checkpoints: folder for how far the training is; None keeps nothing.

    Raises:
        InputError: wrong options, too little text, or a loss that is not finite.
    """
    if not isinstance(options, TrainingOptions):
        options = TrainingOptions.of(options)
    documents = part_of(text, "train")
    left_for_tokenizer, chosen = _TOKENIZER_CHARACTERS, []
    for document in documents:
        chosen.append(document.text)
        left_for_tokenizer -= len(document.text)
        if left_for_tokenizer <= 0:
            break
    tokenizer = train_tokenizer(chosen, options.vocabulary)
    end = tokenizer.convert_tokens_to_ids(END)

    def sequences(part: str) -> Any:
        texts = [document.text for document in part_of(text, part)]
        encoded = tokenizer(texts, add_special_tokens=False)["input_ids"]
        return packed_sequences(encoded, end, options.context)

    model = new_model(options, seed, end, tokenizer.pad_token_id)
    training, validation = sequences("train"), sequences("validation")
    table = train(model, training, validation, options, seed, threads, checkpoints)
    with atomic_directory(out) as folder:
        with quiet_transformers():
            model.save_pretrained(folder)
            tokenizer.save_pretrained(folder)
        # safetensors writes a file that its owner alone can read.
        shutil.copymode(folder / "config.json", folder / "model.safetensors")
        write_table(table, folder / _TABLE)
        card = _card(name, options, model, table, about, training.size, seed)
        (folder / "README.md").write_text(card, encoding="utf-8")


def read_training(folder: str | Path) -> pd.DataFrame:
    """The training table of a trained model: step, tokens, loss, balance, validation.

    Raises:
        InputError: it is missing or damaged.
    """
    return read_table(Path(folder) / _TABLE)


def _card(
    name: str,
    options: TrainingOptions,
    model: Any,
    table: pd.DataFrame,
    about: str,
    text_tokens: int,
    seed: int,
) -> str:
    size = sum(parameter.numel() for parameter in model.parameters())
    last = table.iloc[-1]
    seen = int(last["tokens"])
    return f"""---
language: en
library_name: transformers
tags: [olmoe, mixture-of-experts]
---
# {name}

A small mixture-of-experts language model with the architecture of OLMoE, trained from scratch by
whencount so that expert routing can be studied without downloading a model. It is no version of
OLMoE-1B-7B, shares no weight with it, and is of no use for anything but the study of its routing.

| | |
|---|---|
| parameters | {size:,} |
| layers | {options.layers} |
| experts per layer | {options.experts}, {options.active} of them active |
| hidden size, expert size | {options.hidden}, {options.intermediate} |
| context | {options.context} tokens |
| vocabulary | {options.vocabulary:,} (byte-level BPE, trained on the same text) |
| text | {about or "see the configuration of the study"}, {text_tokens:,} tokens |
| trained on | {seen:,} tokens, {seen / max(1, text_tokens):.2f} passes over the text |
| seed | {seed} |
| validation loss | {float(last["validation"]):.3f} nats per token, other documents |

Training: AdamW, batches of {options.batch} sequences, peak learning rate {options.learning_rate:g},
{options.warmup:.0%} warm-up, cosine decay, weight decay {options.weight_decay:g}, gradients clipped
at {options.clip:g}, load balancing loss with weight {options.balance:g}. training.parquet has the
curve.
"""
