"""A small masked language model with a vocabulary of its own, to train SPLADE from.

A published SPLADE begins with a language model that has read much text. Where none can be had, this
one begins as a bag of words: head and word embeddings are shared, the head's dense layer is the
identity and the bias of the logits is negative, so that at first the logit of a token is positive
where it stands and hardly elsewhere. Training moves weights from there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from whencount.errors import InputError

_EMBEDDING_SPREAD = 0.1
_BIAS = -4.0
_SPECIAL = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}


@dataclass(frozen=True)
class SmallModel:
    """Sizes of the model.

    Attributes:
        vocabulary: word pieces, special ones included.
        width: of a hidden state; a multiple of 64.
        layers: of the encoder.
    """

    vocabulary: int = 8192
    width: int = 128
    layers: int = 2

    def __post_init__(self) -> None:
        if self.width < 64 or self.width % 64:
            raise InputError(f"learned_sparse: width is {self.width}; give a multiple of 64")
        if self.layers < 1 or self.vocabulary < 256:
            raise InputError(
                "learned_sparse: a small model has at least 1 layer and 256 word pieces"
            )


def word_pieces(texts: Iterable[str], size: int) -> Any:
    """An uncased WordPiece tokenizer; the same texts give the same one.

    Its pieces are the special tokens, every character (at the beginning of a word and within one),
    and then the most frequent words, of equal ones the first by characters. The trainers of the
    tokenizers library number pieces by the order of a hash table, so two of their runs differ.

    Args:
        texts: read once.
        size: the most pieces.

    Raises:
        InputError: the characters alone are more than that.
    """
    from tokenizers import BertWordPieceTokenizer
    from transformers import PreTrainedTokenizerFast

    plain = BertWordPieceTokenizer(
        {token: number for number, token in enumerate(_SPECIAL.values())}, lowercase=True
    )
    normalizer, splitter = plain._tokenizer.normalizer, plain._tokenizer.pre_tokenizer
    counts: Counter[str] = Counter()
    for text in texts:
        words = splitter.pre_tokenize_str(normalizer.normalize_str(text))
        counts.update(word for word, _ in words)
    letters = sorted({letter for word in counts for letter in word})
    pieces = [*_SPECIAL.values(), *letters, *(f"##{letter}" for letter in letters)]
    if len(pieces) > size:
        raise InputError(
            f"learned_sparse: the texts have {len(letters):,} characters, too many for a vocabulary"
            f" of {size:,}; give {2 * len(pieces):,} or more"
        )
    known = set(pieces)
    frequent = sorted(counts, key=lambda word: (-counts[word], word))
    words_kept = [word for word in frequent if word not in known][: size - len(pieces)]
    vocabulary = {piece: number for number, piece in enumerate([*pieces, *words_kept])}
    tokenizer = BertWordPieceTokenizer(vocabulary, lowercase=True)
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=tokenizer._tokenizer,
        model_max_length=512,
        clean_up_tokenization_spaces=False,
        **{f"{name}_token": token for name, token in _SPECIAL.items()},
    )


def write_small_model(
    texts: Iterable[str], sizes: SmallModel, seed: int, folder: str | Path
) -> None:
    """Write a new model and its tokenizer as a folder of transformers.

    Args:
        texts: what the vocabulary is made of; read once.
        seed: of the weights.
        folder: to write; it is there and empty.
    """
    import torch
    from transformers import BertConfig, BertForMaskedLM, set_seed

    tokenizer = word_pieces(texts, sizes.vocabulary)
    set_seed(seed)
    config = BertConfig(
        # The trainer of the vocabulary stops early where the text has no more pieces.
        vocab_size=len(tokenizer),
        hidden_size=sizes.width,
        num_hidden_layers=sizes.layers,
        num_attention_heads=sizes.width // 64,
        intermediate_size=4 * sizes.width,
        max_position_embeddings=512,
        pad_token_id=tokenizer.pad_token_id,
        tie_word_embeddings=True,
    )
    model = BertForMaskedLM(config)
    with torch.no_grad():
        model.bert.embeddings.word_embeddings.weight.normal_(0.0, _EMBEDDING_SPREAD)
        head = model.cls.predictions
        head.transform.dense.weight.copy_(torch.eye(sizes.width))
        head.transform.dense.bias.zero_()
        head.bias.fill_(_BIAS)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
