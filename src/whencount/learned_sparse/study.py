"""A model of the study of learned sparse vectors, from its options: trained, then encoding."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from whencount.collections.prepared import Texts
from whencount.encoders import resolve_device
from whencount.learned_sparse.encoding import load_splade, splade_vectors
from whencount.learned_sparse.pairs import cloze_pairs
from whencount.learned_sparse.starting import SmallModel, write_small_model
from whencount.learned_sparse.training import SpladeOptions, train_splade
from whencount.progress import progress
from whencount.references.sparse_encoder import Side
from whencount.vectors import VectorsWriter


def train_model(
    passages: Iterable[tuple[str, str]],
    options: Mapping[str, Any],
    seed: int,
    out: str | Path,
    threads: int = 1,
    checkpoints: Path | None = None,
) -> None:
    """Train a model on cloze pairs of passages.

    Args:
        passages: (id, text) pairs, read twice.
        options: fields of `SpladeOptions`, and `start`: either fields of `SmallModel` (a new model
            with a vocabulary made of the passages) or `path`, a folder of a masked language model.
        seed: of pairs, weights and order.
        threads: of a CPU.
    """
    import torch

    torch.set_num_threads(threads)
    known = SpladeOptions.__dataclass_fields__
    parsed = SpladeOptions(**{key: value for key, value in options.items() if key in known})
    start = dict(options.get("start", {}))
    pairs = list(cloze_pairs(passages, seed))
    device = resolve_device(options.get("device", "auto"))
    with TemporaryDirectory() as scratch:
        if "path" in start:
            folder = Path(str(start["path"]))
        else:
            folder = Path(scratch)
            write_small_model((text for _, text in passages), SmallModel(**start), seed, folder)
        train_splade(folder, pairs, parsed, seed, out, device=device, checkpoints=checkpoints)


def encode_texts(
    texts: Texts,
    options: Mapping[str, Any],
    side: Side,
    out: str | Path,
    trained: Path | None = None,
) -> None:
    """Encode texts by a trained model, or by the checkpoint that the options name.

    Args:
        options: of a model: `checkpoint` (where nothing is trained), `pooling`, `queries` and
            `maximum_stored`.
        out: folder of vectors to write, whole or not at all.
    """
    source = (
        dict(options["checkpoint"])
        if trained is None
        else {
            "source": "folder",
            "path": str(trained),
            "max_tokens": int(options["training"].get("max_tokens", 64)),
            "device": options["training"].get("device", "auto"),
        }
    )
    encoder = load_splade(
        source, pooling=options.get("pooling"), queries=options.get("queries", "model")
    )
    most = options.get("maximum_stored") or None
    blocks = splade_vectors(encoder, texts, side, most)
    noun = "query" if side == "query" else "document"
    with VectorsWriter(out, encoder.vocabulary_size) as writer:
        sizes = _row_counts(len(texts))
        for block in progress(blocks, len(texts), "encoding", noun, weights=sizes):
            writer.append(block)


def _row_counts(total: int, window: int = 1024) -> Iterable[int]:
    return [min(window, total - start) for start in range(0, total, window)]
