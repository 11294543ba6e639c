"""Likelihoods by rolling windows and questions, as the standard harness has them."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from experts_models import tiny_olmoe
from tiny_language_model import tiny_tokenizer

from whencount.errors import InputError
from whencount.experts.calibrating import calibrate
from whencount.experts.evaluation import Likelihood, Passage, open_evaluation, prefix_of
from whencount.experts.rolling import rolling_likelihoods, rolling_windows
from whencount.experts.routing import Rule, routed
from whencount.experts.rules import rule_named
from whencount.language_models import LanguageModel, load_language_model

# No text repeats itself: of windows with equal tokens the harness scores only the first, also where
# they predict different numbers of them.
TEXTS = [
    "The cat sat.",
    " ".join(f"Dog {n} saw dog {n * n}; both ran." for n in range(14)),
    "x",
    ", ".join(str(n**3) for n in range(40)),
]
CONTEXT = 32


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> LanguageModel:
    """A tiny OLMoE with a tokenizer of bytes, loaded as a folder is."""
    folder = tmp_path_factory.mktemp("model")
    from transformers import OlmoeConfig, OlmoeForCausalLM

    config = OlmoeConfig(
        **{
            **tiny_olmoe().config.to_dict(),
            "vocab_size": 259,
            "eos_token_id": 1,
            "bos_token_id": 0,
            "pad_token_id": None,
        }
    )
    torch.manual_seed(4)
    whole: Any = OlmoeForCausalLM(config)
    with torch.no_grad():
        for parameter in whole.parameters():
            if parameter.ndim > 1:
                parameter.normal_(std=0.25)
    whole.save_pretrained(folder)
    tiny_tokenizer(starts=False).save_pretrained(folder)
    return load_language_model({"source": "folder", "path": str(folder)}, threads=1)


@pytest.fixture(scope="module")
def rule(model: LanguageModel) -> Rule:
    documents = np.random.default_rng(0).integers(2, 259, (6, 16))
    return rule_named("110", calibrate(model.model, documents))


@contextmanager
def harness_task(
    folder: Path, task: dict[str, Any], records: list[dict[str, Any]]
) -> Iterator[Path]:
    """A folder with one task on local data, as a person writes one."""
    data = folder / "data.jsonl"
    data.write_text("".join(json.dumps(record) + "\n" for record in records))
    kwargs = {"data_files": {"test": str(data)}, "cache_dir": str(folder / "cache")}
    common = {"dataset_path": "json", "dataset_kwargs": kwargs, "test_split": "test"}
    (folder / "task.yaml").write_text(json.dumps(common | task))
    yield folder


ROLLING = {
    "task": "pages",
    "output_type": "loglikelihood_rolling",
    "doc_to_text": "",
    "doc_to_target": "{{page}}",
    "metric_list": [{"metric": "word_perplexity"}, {"metric": "byte_perplexity"}],
}


@pytest.mark.parametrize("count", [0, 1, 5, 6, 7, 11, 12, 13, 29])
@pytest.mark.parametrize("context", [1, 2, 6])
def test_windows_are_those_of_the_harness(count: int, context: int) -> None:
    from lm_eval.utils import get_rolling_token_windows, make_disjoint_window

    ids = list(range(100, 100 + count))
    wanted = map(make_disjoint_window, get_rolling_token_windows(ids, 7, context, 1))
    found = rolling_windows(ids, 7, context)
    assert [
        (list(one.ids[: -one.predicted]), list(one.ids[-one.predicted :])) for one in found
    ] == [(list(before), list(after)) for before, after in wanted]


def test_each_token_is_predicted_from_what_its_window_shows(model: LanguageModel) -> None:
    ids = model.encode(TEXTS[1])[:45]
    total = 0.0
    for window in rolling_windows(ids, 0, 20):
        with torch.inference_mode():
            logits = model.model(input_ids=torch.tensor([window.ids[:-1]])).logits[0].double()
        chances = torch.log_softmax(logits, dim=-1)
        for place in range(len(window.ids) - window.predicted, len(window.ids)):
            total -= float(chances[place - 1, window.ids[place]])
    (found,) = rolling_likelihoods(model.model, [ids], 0, 20)
    assert found == pytest.approx(total, abs=1e-4)


def test_batches_change_no_likelihood(model: LanguageModel) -> None:
    documents = [model.encode(text) for text in TEXTS]
    alone = rolling_likelihoods(model.model, documents, 0, CONTEXT, tokens_per_pass=1)
    together = rolling_likelihoods(model.model, documents, 0, CONTEXT, tokens_per_pass=10_000)
    np.testing.assert_allclose(alone, together, rtol=1e-6)


def test_a_model_spread_by_a_device_map_has_the_same_likelihoods(
    model: LanguageModel, rule: Rule, tmp_path: Path
) -> None:
    from accelerate import dispatch_model

    documents = [model.encode(text) for text in TEXTS]
    with routed(model.model, rule):
        whole = rolling_likelihoods(model.model, documents, 0, CONTEXT)
    # The second layer lies on the disk and is brought in by hooks, as another card's would be.
    places = {name: "cpu" for name in ("model.embed_tokens", "model.layers.0", "model.norm")}
    places |= {"model.rotary_emb": "cpu", "lm_head": "cpu", "model.layers.1": "disk"}
    spread = dispatch_model(
        copy.deepcopy(model.model), places, main_device="cpu", offload_dir=str(tmp_path)
    )
    with routed(spread, rule):
        found = rolling_likelihoods(spread, documents, 0, CONTEXT)
    np.testing.assert_array_equal(found, whole)


def test_the_harness_gives_the_same_likelihoods_through_the_adapter(
    model: LanguageModel, rule: Rule, tmp_path: Path
) -> None:
    passages = [Passage.of(str(place), text) for place, text in enumerate(TEXTS)]
    records = [{"page": text} for text in TEXTS]
    options = {"source": "task", "task": "pages", "context": CONTEXT}
    with harness_task(tmp_path, ROLLING, records) as folder:
        with open_evaluation("pages", options | {"path": str(folder)}) as opened:
            native = opened.measure(model)
            with routed(model.model, rule):
                theirs = opened.measure(model)
        with routed(model.model, rule):
            ours = Likelihood(passages, context=CONTEXT).measure(model)
    np.testing.assert_allclose(
        ours["nll"] * ours["tokens"], theirs["nll"] * theirs["tokens"], atol=1e-4
    )
    assert ours["tokens"].tolist() == theirs["tokens"].tolist()
    assert ours["bytes"].tolist() == theirs["bytes"].tolist()
    # The rule was in charge of the harness's model, too.
    assert abs(native["nll"] - theirs["nll"]).max() > 1e-3


def test_words_and_bytes_are_counted_as_the_harness_counts_them() -> None:
    from lm_eval.tasks.wikitext.preprocess_wikitext import process_results

    for text in TEXTS:
        counted = process_results({"page": text}, (-1.0,))
        passage = Passage.of("d", text)
        assert passage.words == counted["word_perplexity"][1]
        assert passage.bytes == counted["byte_perplexity"][1]


def test_a_cut_document_counts_what_is_left_of_it(model: LanguageModel) -> None:
    found = Likelihood([Passage.of("d", TEXTS[1])], tokens=10, context=CONTEXT).measure(model)
    left = model.decode(model.encode(TEXTS[1])[:10])
    assert found["tokens"].tolist() == [10]
    assert found["bytes"].tolist() == [len(left.encode())]


def test_the_prefix_begins_or_ends_a_text(model: LanguageModel) -> None:
    assert prefix_of(model) == model.tokenizer.bos_token_id


def test_a_context_beyond_the_model_is_refused(model: LanguageModel) -> None:
    with pytest.raises(InputError, match=r"context is 65 and .* takes 64"):
        Likelihood([Passage.of("d", "x")], context=65).measure(model)


def test_questions_are_answered_by_the_most_likely_letter(
    model: LanguageModel, rule: Rule, tmp_path: Path
) -> None:
    draws = np.random.default_rng(1)
    records = [
        {
            "question": f"Q{place}?",
            "choices": [str(one) for one in draws.integers(0, 9, 4)],
            "answer": int(draws.integers(4)),
            "subject": "abstract_algebra" if place % 2 else "anatomy",
        }
        for place in range(6)
    ]
    path = tmp_path / "questions.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in records))
    options = {"source": "mmlu", "path": str(path)}
    with open_evaluation("mmlu", options) as opened, routed(model.model, rule):
        found = opened.measure(model)
        ordered = sorted(records, key=lambda one: str(one["subject"]))
        right = [float(_best_letter(model, one) == one["answer"]) for one in ordered]
    assert found["document"].tolist() == [
        *[f"abstract_algebra/{n}" for n in range(3)],
        *[f"anatomy/{n}" for n in range(3)],
    ]
    assert found["accuracy"].tolist() == right
    assert found["nll"].isna().all()


def _best_letter(model: LanguageModel, record: dict[str, Any]) -> int:
    subject = str(record["subject"]).replace("_", " ")
    prompt = (
        f"The following are multiple choice questions (with answers) about {subject}.\n\n"
        f"{record['question']}\n"
        + "".join(
            f"{letter}. {one}\n" for letter, one in zip("ABCD", record["choices"], strict=True)
        )
        + "Answer:"
    )
    scores = []
    for letter in "ABCD":
        # One byte is one token here: the blank and the letter.
        ids = (model.encode(prompt) + model.encode(f" {letter}"))[-(model.context_limit + 1) :]
        with torch.inference_mode():
            logits = model.model(input_ids=torch.tensor([ids[:-1]])).logits[0].double()
        chances = torch.log_softmax(logits, dim=-1)
        scores.append(float(chances[-2, ids[-2]] + chances[-1, ids[-1]]))
    return int(np.argmax(scores))


@pytest.mark.parametrize(
    ("task", "name", "words"),
    [
        (ROLLING | {"metric_list": [{"metric": "./mine"}]}, "pages", "metric './mine'"),
        (ROLLING, "page", "no task 'page'; it has pages"),
    ],
)
def test_wrong_tasks_are_refused(
    task: dict[str, Any], name: str, words: str, tmp_path: Path
) -> None:
    with harness_task(tmp_path, task, [{"page": "x"}]) as folder:
        options = {"source": "task", "path": str(folder), "task": name}
        with pytest.raises(InputError, match=words), open_evaluation("t", options):
            pass


CODE = "task: pages\nprocess_docs: {} utils.target\n"


@pytest.mark.parametrize(
    "files",
    [
        {"t/x.yaml": CODE.format("!function")},
        {"t/x.yaml": CODE.format("!%66unction")},
        {"t/x.yaml": "%TAG !f! !func\n---\n" + CODE.format("!f!tion")},
        {"t/x.yaml": "include: ../base.txt\n", "base.txt": CODE.format("!function")},
        {"t/x.yaml": "include: [b]\n", "t/b": "include: c\n", "t/c": CODE.format("!function")},
    ],
)
def test_code_of_a_task_never_runs(files: dict[str, str], tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "t"):
        folder.mkdir(exist_ok=True)
        (folder / "utils.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    options = {"source": "task", "path": str(tmp_path / "t"), "task": "pages"}
    with (
        pytest.raises(InputError, match="no code of a task is run"),
        open_evaluation("t", options),
    ):
        pass
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("{{page.__class__.__mro__}}", "SecurityError"),
        ("{{cycler.__init__.__globals__.os.getcwd()}}", "SecurityError"),
        ("{{absent}}", "absent"),
    ],
)
def test_templates_reach_the_fields_of_the_data_alone(
    template: str, words: str, model: LanguageModel, tmp_path: Path
) -> None:
    task = ROLLING | {"doc_to_target": template}
    with harness_task(tmp_path, task, [{"page": "x"}]) as folder:
        options = {"source": "task", "path": str(folder), "task": "pages"}
        with pytest.raises(InputError, match=words), open_evaluation("t", options) as opened:
            opened.measure(model)


def test_a_task_without_its_data_is_refused(tmp_path: Path) -> None:
    with harness_task(tmp_path, ROLLING, [{"page": "x"}]) as folder:
        (folder / "data.jsonl").unlink()
        options = {"source": "task", "path": str(folder), "task": "pages"}
        with pytest.raises(InputError, match="cannot be loaded"), open_evaluation("t", options):
            pass


def test_a_metric_that_is_no_number_is_refused(model: LanguageModel, tmp_path: Path) -> None:
    choice = {
        "task": "choice",
        "output_type": "multiple_choice",
        "doc_to_text": "{{question}}",
        "doc_to_choice": ["A", "B"],
        "doc_to_target": "answer",
        "metric_list": [{"metric": "acc"}],
    }
    with harness_task(tmp_path, choice, [{"question": "x", "answer": 0}]) as folder:
        options = {"source": "task", "path": str(folder), "task": "choice", "metric": "f1"}
        with (
            open_evaluation("t", options) as opened,
            pytest.raises(InputError, match=r"no metric 'f1'.*it has acc"),
        ):
            opened.measure(model)


def test_a_likelihood_that_is_no_number_is_refused(model: LanguageModel) -> None:
    broken = tiny_olmoe()
    with torch.no_grad():
        broken.model.norm.weight.fill_(math.inf)
    with pytest.raises(InputError, match="precision: fp32"):
        rolling_likelihoods(broken, [[3, 4, 5]], 2, 16)


def test_unknown_sources_are_refused() -> None:
    with (
        pytest.raises(InputError, match="did you mean 'wikitext'"),
        open_evaluation("t", {"source": "wikitex"}),
    ):
        pass
