"""The seven bases agree with their definitions, survive a round trip and repeat themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from whencount.bases import BASES, Basis, Codes, TrainingStates, basis_type, load_basis
from whencount.errors import InputError

OPTIONS: dict[str, dict[str, Any]] = {
    "identity": {},
    "gaussian": {"dimensions": 24},
    "pca": {"components": 10},
    "kmeans": {"centroids": 20, "nearest": 4},
    "pq": {"subspaces": 8, "bits": 4},
    "rq": {"stages": 5, "bits": 4},
    "sae": {"features": 96, "active": 6, "batch": 64, "epochs": 2},
}
FEATURES = {"identity": 64, "gaussian": 48, "pca": 20, "kmeans": 20, "pq": 128, "rq": 80, "sae": 96}
DIMENSIONS = 32


def clustered(rows: int = 600) -> NDArray[np.float32]:
    rng = np.random.default_rng(5)
    centres = rng.normal(size=(12, DIMENSIONS)) * 2
    states = centres[rng.integers(12, size=rows)] + rng.normal(size=(rows, DIMENSIONS))
    return states.astype(np.float32)


STATES = clustered()
TRAINING = TrainingStates(STATES, np.arange(500), np.arange(500, 600))


def fitted(name: str, seed: int = 3, **options: Any) -> Basis[Any]:
    return BASES[name].fit(TRAINING, seed, {**OPTIONS[name], **options})


def encoded(basis: Basis[Any], states: NDArray[np.float32] = STATES) -> Codes:
    return basis.encode(torch.from_numpy(states))


def dense(codes: Codes) -> NDArray[np.float64]:
    """Codes as a dense matrix."""
    if codes.features is None:
        return codes.values.numpy().astype(np.float64)
    matrix = np.zeros((len(codes.values), codes.vocabulary_size))
    rows = np.arange(len(matrix))[:, None]
    np.add.at(matrix, (rows, codes.features.numpy()), codes.values.numpy())
    return matrix


def learned(basis: Basis[Any], name: str) -> NDArray[np.float64]:
    return basis.tensors[name].numpy().astype(np.float64)


def split(coordinates: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.hstack([np.maximum(coordinates, 0), np.maximum(-coordinates, 0)])


def test_every_basis_has_a_case() -> None:
    assert set(OPTIONS) == set(BASES)


@pytest.mark.parametrize("name", BASES)
def test_codes_are_finite_and_not_negative_over_the_declared_features(name: str) -> None:
    basis = fitted(name)
    codes = encoded(basis)
    assert basis.vocabulary_size == codes.vocabulary_size == FEATURES[name]
    assert bool((torch.isfinite(codes.values) & (codes.values >= 0)).all())
    assert codes.values.dtype == torch.float32
    if codes.features is not None:
        assert codes.features.dtype == torch.int32
        assert 0 <= int(codes.features.min()) <= int(codes.features.max()) < FEATURES[name]
        for features, values in zip(codes.features, codes.values, strict=True):
            positive = features[values > 0]
            assert len(torch.unique(positive)) == len(positive)


@pytest.mark.parametrize("name", BASES)
def test_saved_basis_gives_the_same_codes(name: str, tmp_path: Path) -> None:
    basis = fitted(name)
    basis.save(tmp_path)
    again = load_basis(tmp_path)
    assert type(again) is type(basis)
    assert again.options == basis.options
    assert again.manifest == basis.manifest
    first, second = encoded(basis), encoded(again)
    assert torch.equal(first.values, second.values)
    if first.features is not None and second.features is not None:
        assert torch.equal(first.features, second.features)


@pytest.mark.parametrize("name", BASES)
def test_fit_repeats_itself_to_the_byte(name: str) -> None:
    first, second = fitted(name), fitted(name)
    assert first.manifest == second.manifest
    for key, tensor in first.tensors.items():
        assert torch.equal(tensor, second.tensors[key])


@pytest.mark.parametrize("name", ["gaussian", "kmeans", "pq", "rq", "sae"])
def test_another_seed_gives_another_basis(name: str) -> None:
    key = next(iter(fitted(name).tensors))
    assert not torch.equal(fitted(name, 3).tensors[key], fitted(name, 4).tensors[key])


@pytest.mark.parametrize("name", BASES)
def test_codes_of_a_state_depend_on_its_neighbours_only_by_rounding(name: str) -> None:
    basis = fitted(name)
    together = dense(encoded(basis))[:20]
    alone = np.vstack([dense(encoded(basis, STATES[row : row + 1])) for row in range(20)])
    np.testing.assert_allclose(alone, together, atol=1e-5)


@pytest.mark.parametrize("name", BASES)
def test_no_states_give_no_codes(name: str) -> None:
    codes = encoded(fitted(name), np.zeros((0, DIMENSIONS), np.float32))
    assert len(codes.values) == 0
    assert codes.vocabulary_size == FEATURES[name]


def test_identity_splits_coordinates_by_sign() -> None:
    np.testing.assert_array_equal(dense(encoded(fitted("identity"))), split(STATES.astype(float)))


def test_gaussian_projects_by_normal_draws_over_root_n() -> None:
    basis = fitted("gaussian")
    draws = np.random.default_rng(3).standard_normal((24, DIMENSIONS)) / np.sqrt(24)
    np.testing.assert_allclose(dense(encoded(basis)), split(STATES @ draws.T), atol=1e-5)


def test_pca_is_the_leading_eigenvectors_of_the_training_covariance() -> None:
    train = STATES[:500].astype(float)
    _, vectors = np.linalg.eigh(np.cov(train.T))
    leading = vectors[:, ::-1][:, :10]
    components = learned(fitted("pca"), "components")
    np.testing.assert_allclose(np.abs(np.sum(components.T * leading, axis=0)), 1, atol=1e-4)
    expected = split((STATES - train.mean(axis=0)) @ components.T)
    np.testing.assert_allclose(dense(encoded(fitted("pca"))), expected, atol=1e-4)


def test_kmeans_weighs_the_nearest_centroids_by_a_softmax() -> None:
    basis = fitted("kmeans")
    distances = ((STATES[:, None, :] - learned(basis, "centroids")[None]) ** 2).sum(axis=2)
    nearest = np.argsort(distances, axis=1)[:, :4]
    chosen = np.take_along_axis(distances, nearest, axis=1)
    # A centroid may coincide with the only state it attracts.
    temperature = np.median(chosen[:500][chosen[:500] > 1e-6])
    assert float(basis.tensors["temperature"][0]) == pytest.approx(temperature, rel=1e-5)
    weights = np.exp(-chosen / temperature)
    weights /= weights.sum(axis=1, keepdims=True)
    expected = np.zeros((len(STATES), 20))
    np.put_along_axis(expected, nearest, weights, axis=1)
    np.testing.assert_allclose(dense(encoded(basis)), expected, atol=1e-5)


def test_kmeans_centroids_are_the_means_of_what_they_attract() -> None:
    basis = fitted("kmeans", iterations=100)
    centroids = learned(basis, "centroids")
    nearest = ((STATES[:500, None] - centroids[None]) ** 2).sum(axis=2).argmin(axis=1)
    means = np.vstack([STATES[:500][nearest == c].mean(axis=0) for c in range(20)])
    np.testing.assert_allclose(means, centroids, atol=1e-4)


def test_pq_chooses_the_nearest_code_of_each_subspace() -> None:
    basis = fitted("pq")
    parts = STATES.reshape(-1, 8, 4)
    distances = ((parts[:, :, None, :] - learned(basis, "centroids")[None]) ** 2).sum(axis=3)
    codes = encoded(basis)
    assert codes.features is not None
    np.testing.assert_array_equal(codes.features.numpy(), distances.argmin(2) + np.arange(8) * 16)
    assert bool((codes.values == 1).all())


def test_rq_chooses_the_nearest_code_of_each_stage_to_the_residual() -> None:
    basis = fitted("rq")
    residual = STATES.astype(float)
    codes = encoded(basis)
    assert codes.features is not None
    for stage, table in enumerate(learned(basis, "centroids")):
        nearest = ((residual[:, None, :] - table[None]) ** 2).sum(axis=2).argmin(axis=1)
        np.testing.assert_array_equal(codes.features[:, stage].numpy(), nearest + stage * 16)
        residual = residual - table[nearest]
    assert (residual**2).sum() < 0.5 * ((STATES - STATES.mean(axis=0)) ** 2).sum()
    assert bool((codes.values == 1).all())


def test_sae_is_relu_then_the_k_largest() -> None:
    basis = fitted("sae")
    inputs = (STATES - learned(basis, "mean")) / learned(basis, "spread")
    scores = np.maximum(inputs @ learned(basis, "encoder").T + learned(basis, "bias"), 0)
    kept = np.argsort(-scores, axis=1, kind="stable")[:, :6]
    expected = np.zeros_like(scores)
    np.put_along_axis(expected, kept, np.take_along_axis(scores, kept, axis=1), axis=1)
    np.testing.assert_allclose(dense(encoded(basis)), expected, atol=1e-4)
    np.testing.assert_allclose(np.linalg.norm(learned(basis, "decoder"), axis=1), 1, rtol=1e-5)


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("kmeans", {"centroids": 501}, "501 centroids need at least as many .* found 500"),
        ("kmeans", {"nearest": 21}, "nearest is 21"),
        ("pq", {"bits": 9}, "512 codes need"),
        ("pq", {"subspaces": 5}, "32 dimensions cannot be cut into 5"),
        ("rq", {"bits": 9}, "512 codes need"),
        ("pca", {"components": 33}, "at most 32"),
        ("sae", {"active": 97}, "active is 97"),
        ("sae", {"warmup": 1.5}, "at most 1"),
        ("sae", {"epochs": 0}, "option epochs is 0"),
        ("sae", {"learning_rate": float("nan")}, "option learning_rate is nan"),
        ("gaussian", {"dimensions": True}, "option dimensions is True"),
        ("identity", {"size": 3}, "unknown option 'size'"),
    ],
)
def test_bad_options_are_refused(name: str, options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        fitted(name, **options)


@pytest.mark.parametrize("name", ["identity", "kmeans", "pq", "sae"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_states_that_are_not_finite_are_refused(name: str, value: float) -> None:
    states = STATES.copy()
    states[123, 4] = value
    with pytest.raises(InputError, match="state 123"):
        BASES[name].fit(TrainingStates(states, TRAINING.train, TRAINING.validation), 0, {})


def test_unknown_basis_is_refused() -> None:
    with pytest.raises(InputError, match="'ica' is unknown"):
        basis_type("ica")


def test_folder_without_a_whole_basis_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no whole basis"):
        load_basis(tmp_path)
    fitted("pca").save(tmp_path)
    (tmp_path / "basis.safetensors").write_bytes(b"broken")
    with pytest.raises(InputError, match="holds no whole basis"):
        load_basis(tmp_path)


def test_half_precision_states_fit_every_basis() -> None:
    half = TrainingStates(STATES.astype(np.float16), TRAINING.train, TRAINING.validation)
    for name, kind in BASES.items():
        assert encoded(kind.fit(half, 0, OPTIONS[name])).vocabulary_size == FEATURES[name]
