"""A model's own code is never run, and a person is never asked whether it should be."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from whencount.encoders import load_encoder
from whencount.errors import InputError
from whencount.references.sparse_encoder import load_sparse_encoder

CODE = """\
from pathlib import Path
Path({sprung!r}).touch()
from transformers import PretrainedConfig, PreTrainedModel
class OddConfig(PretrainedConfig):
    model_type = "odd"
class OddModel(PreTrainedModel):
    config_class = OddConfig
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A folder of a model that brings code of its own, as the hub's do."""
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "odd.py").write_text(CODE.format(sprung=str(tmp_path / "sprung")))
    names = {
        "AutoConfig": "odd.OddConfig",
        "AutoModel": "odd.OddModel",
        "AutoModelForMaskedLM": "odd.OddModel",
        "AutoTokenizer": ["odd.OddTokenizer", "odd.OddTokenizer"],
    }
    for name in ("config.json", "tokenizer_config.json"):
        (folder / name).write_text(json.dumps({"model_type": "odd", "auto_map": names}))
    (folder / "tokenizer.json").write_text("{}")
    return folder


def test_the_trap_is_a_real_one(model: Path, tmp_path: Path) -> None:
    exec(compile((model / "odd.py").read_text(), "odd.py", "exec"), {"__name__": "odd"})
    assert (tmp_path / "sprung").exists()


def test_an_encoder_with_code_of_its_own_is_refused_and_not_run(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked(*_: object) -> str:
        raise AssertionError("a person was asked")

    monkeypatch.setattr("builtins.input", asked)
    with pytest.raises(InputError, match="could not be loaded"):
        load_encoder({"source": "folder", "path": str(model), "max_tokens": 16}, threads=1)
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize("files", ["modules", "config"])
def test_a_sparse_encoder_with_code_of_its_own_is_refused_and_not_run(
    model: Path, tmp_path: Path, files: str
) -> None:
    pytest.importorskip("sentence_transformers")
    if files == "modules":
        module = {"idx": 0, "name": "0", "path": "", "type": "odd.OddModel"}
        (model / "modules.json").write_text(json.dumps([module]))
    with pytest.raises(InputError, match="could not be loaded"):
        load_sparse_encoder({"source": "folder", "path": str(model), "max_tokens": 16})
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize("load", [partial(load_encoder, threads=1), load_sparse_encoder])
def test_no_key_of_a_configuration_allows_it(model: Path, load: Callable[..., object]) -> None:
    settings = {"source": "folder", "path": str(model), "trust_remote_code": True}
    with pytest.raises(InputError, match="unknown key 'trust_remote_code'"):
        load(settings)
