"""A small byte-level BPE tokenizer, trained on the text that its model is trained on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

END, PADDING = "<|endoftext|>", "<|padding|>"


def train_tokenizer(texts: Iterable[str], size: int) -> Any:
    """Train a tokenizer; the same texts give the same one.

    Args:
        texts: read once.
        size: of the vocabulary, at least 258: END, PADDING and 256 bytes.

    Returns:
        A `PreTrainedTokenizerFast` of transformers. END is token 0; as in OLMoE it ends a text,
        begins one that nothing stands before, and is never added by the tokenizer itself.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=[END, PADDING],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=tokenizer,
        eos_token=END,
        pad_token=PADDING,
        clean_up_tokenization_spaces=False,
    )
