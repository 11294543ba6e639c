"""Sparse encoders of others write the vectors that their own library computes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from numpy.typing import NDArray

from whencount.errors import InputError
from whencount.references.sparse_encoder import encode_external, load_sparse_encoder
from whencount.vectors import SparseVectors

WORDS = ["rare", "words", "carry", "more", "weight", "than", "common", "ones", "length", "page"]
WORDS += ["saturation", "expert", "token"]
TEXTS = [
    ("d0", "rare words carry more weight"),
    ("d1", ""),
    ("d2", "length saturation " * 40),
    ("d3", "page"),
    ("d4", "common ones"),
    ("d5", "rare words carry more weight"),
    ("d6", "expert token expert token length page"),
]
PRETRAINED = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def save_model(folder: Path, pooling: str) -> Path:
    """A masked language model of random weights and SPLADE pooling, as the library saves them."""
    from sentence_transformers import SparseEncoder
    from sentence_transformers.sparse_encoder.modules import MLMTransformer, SpladePooling
    from tokenizers import BertWordPieceTokenizer
    from transformers import BertConfig, BertForMaskedLM, PreTrainedTokenizerFast

    language_model = folder / "language_model"
    language_model.mkdir()
    vocabulary = {word: number for number, word in enumerate([*PRETRAINED, *WORDS])}
    PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=BertWordPieceTokenizer(vocabulary)._tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
    ).save_pretrained(language_model)
    torch.manual_seed(0)
    configuration = BertConfig(
        vocab_size=len(PRETRAINED) + len(WORDS),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
        initializer_range=0.5,
    )
    BertForMaskedLM(configuration).save_pretrained(language_model)
    model = SparseEncoder(
        modules=[
            MLMTransformer(str(language_model)),
            SpladePooling(pooling_strategy=pooling),  # type: ignore[arg-type]
        ],
        device="cpu",
    )
    model.prompts = {"query": "rare ", "document": ""}
    model.save(str(folder / "model"))
    return folder / "model"


@pytest.fixture(scope="module", params=["max", "sum"])
def model(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model(tmp_path_factory.mktemp("splade"), request.param)


@pytest.fixture
def collection(tmp_path: Path) -> Path:
    folder = tmp_path / "collection"
    folder.mkdir()
    for name in ("documents", "queries"):
        columns = list(zip(*TEXTS, strict=True))
        table = pa.table({"id": list(columns[0]), "text": list(columns[1])})
        pq.write_table(table, folder / f"{name}.parquet")
    return folder


def run(
    model: Path, collection: Path, out: Path, side: Any = "passage", **options: Any
) -> SparseVectors:
    settings = {"source": "folder", "path": str(model), "device": "cpu", "max_tokens": 32}
    settings |= options.pop("settings", {})
    encode_external(settings, collection, side, out, representation="x_external.seed0", **options)
    return SparseVectors.load(out / "x_external.seed0")


def dense(vectors: SparseVectors) -> NDArray[np.float32]:
    matrix = np.zeros((len(vectors), vectors.vocabulary_size), dtype=np.float32)
    rows = np.repeat(np.arange(len(vectors)), vectors.row_sizes())
    matrix[rows, vectors.features] = vectors.values
    return matrix


@pytest.mark.parametrize("side", ["query", "passage"])
def test_vectors_are_those_of_the_library(
    side: str, model: Path, collection: Path, tmp_path: Path
) -> None:
    from sentence_transformers import SparseEncoder

    vectors = run(model, collection, tmp_path / "out", side, settings={"batch": 2})
    theirs = SparseEncoder(str(model), device="cpu")
    theirs.max_seq_length = 32
    encode = theirs.encode_query if side == "query" else theirs.encode_document
    expected = [encode(text, convert_to_sparse_tensor=False).numpy() for _, text in TEXTS]
    assert vectors.ids.tolist() == [identifier for identifier, _ in TEXTS]
    assert vectors.vocabulary_size == len(PRETRAINED) + len(WORDS)
    np.testing.assert_allclose(dense(vectors), np.stack(expected), atol=2e-5)


def test_vectors_are_the_pooled_saturated_logits(
    model: Path, collection: Path, tmp_path: Path
) -> None:
    """log(1 + relu(logit)), by maximum or sum over all tokens; texts are cut at the limit."""
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    vectors = dense(run(model, collection, tmp_path / "out"))
    network = AutoModelForMaskedLM.from_pretrained(model)
    tokenizer = AutoTokenizer.from_pretrained(model)
    strategy = (
        "max" if '"max"' in (model / "1_SpladePooling" / "config.json").read_text() else "sum"
    )
    for row, (_, text) in enumerate(TEXTS):
        inputs = tokenizer(text, truncation=True, max_length=32, return_tensors="pt")
        assert inputs["input_ids"].shape[1] <= 32
        with torch.inference_mode():
            weights = torch.log1p(torch.relu(network(**inputs).logits[0]))
        pooled = weights.amax(dim=0) if strategy == "max" else weights.sum(dim=0)
        np.testing.assert_allclose(vectors[row], pooled.numpy(), atol=2e-5)


def test_shards_join_to_the_whole_and_the_largest_weights_are_kept(
    model: Path, collection: Path, tmp_path: Path
) -> None:
    whole = run(model, collection, tmp_path / "whole")
    parts = [
        run(model, collection, tmp_path / f"part{shard}", shard=shard, shards=3)
        for shard in range(3)
    ]
    joined = SparseVectors.concatenate(parts)
    assert joined.ids.tolist() == whole.ids.tolist()
    np.testing.assert_allclose(dense(joined), dense(whole), atol=2e-5)
    capped = run(model, collection, tmp_path / "capped", maximum_stored=3)
    assert np.array_equal(capped.features, whole.cap(3).features)


def test_two_passes_write_the_same_bytes(model: Path, collection: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        run(model, collection, tmp_path / name, threads=1)
    files = [path for path in (tmp_path / "a").rglob("*") if path.is_file()]
    assert len(files) == 5
    for path in files:
        assert path.read_bytes() == (tmp_path / "b" / path.relative_to(tmp_path / "a")).read_bytes()


def test_weights_that_are_not_finite_are_refused_and_leave_nothing(
    model: Path, collection: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sentence_transformers import SparseEncoder

    def broken(self: Any, texts: list[str], **_: Any) -> torch.Tensor:
        result = torch.ones(len(texts), 18)
        result[[text == "page" for text in texts], 7] = float("nan")
        return result

    monkeypatch.setattr(SparseEncoder, "encode_document", broken)
    with pytest.raises(InputError, match=r"text 'd3': .* not finite"):
        run(model, collection, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_pass_keeps_to_its_texts_and_tokens(model: Path) -> None:
    encoder = load_sparse_encoder({"source": "folder", "path": str(model), "device": "cpu"})
    texts = ["x" * 1000] * 20 + ["x"] * 100
    batches = list(encoder.batches(texts))
    assert sorted(at for batch in batches for at in batch) == list(range(120))
    assert [len(batch) for batch in batches] == [8, 8, 8, 32, 32, 32]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"source": "folder", "path": "/nowhere"}, "/nowhere holds neither modules.json"),
        ({"source": "hub", "name": "naver/splade-v3"}, "needs 'revision'"),
        ({"source": "cloud"}, "source is 'cloud'"),
        ({"path": "x"}, "no 'source'"),
        ({"source": "folder", "path": "x", "bach": 3}, "unknown key 'bach'"),
        ({"source": "folder", "path": "x", "batch": 0}, "batch is 0"),
        ({"source": "folder", "path": "x", "precision": "fp8"}, "precision is 'fp8'"),
    ],
)
def test_a_sparse_encoder_that_is_not_there_is_one_sentence(
    options: dict[str, Any], words: str
) -> None:
    with pytest.raises(InputError, match=words):
        load_sparse_encoder(options)


def test_a_damaged_model_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(InputError, match="could not be loaded"):
        load_sparse_encoder({"source": "folder", "path": str(tmp_path), "device": "cpu"})


def test_a_dense_model_is_refused(tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    save_model(tmp_path, "max")
    transformer = Transformer(str(tmp_path / "language_model"))
    dense_model = SentenceTransformer(modules=[transformer, Pooling(16)], device="cpu")
    dense_model.save(str(tmp_path / "dense"))
    with pytest.raises(InputError, match="is a model of dense vectors"):
        load_sparse_encoder({"source": "folder", "path": str(tmp_path / "dense")})
