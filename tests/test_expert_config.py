"""What a configuration of the study of experts may say."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from whencount.config import load, validate
from whencount.errors import InputError

ROOT = Path(__file__).parents[1]
SCHEMA = ROOT / "workflow" / "schemas" / "config.schema.yaml"
STUDY: dict[str, Any] = {
    "study": "small",
    "experts": {
        "texts": {
            "documentation": {"source": "packages", "packages": ["click"]},
            "wikipedia": {"source": "wiki-sections", "parts": {"evaluation": 1}},
        },
        "models": {"toy": {"source": "trained", "text": "documentation"}},
        "calibration": {"text": "documentation", "tokens": 256},
        "evaluations": {"wikipedia": {"source": "text", "text": "wikipedia"}},
    },
}


def changed(path: str, value: Any) -> dict[str, Any]:
    """The study with one value of `experts` put in."""
    study = copy.deepcopy(STUDY)
    *folders, last = path.split(".")
    place = study["experts"]
    for name in folders:
        place = place[name]
    place[last] = value
    return study


def test_defaults_are_those_of_the_published_study() -> None:
    experts = validate(STUDY, SCHEMA)["experts"]
    assert (experts["k1"], experts["b"], experts["active"]) == (1.2, 0.75, [8])
    assert experts["variants"] == ["token", "expert"]
    assert experts["calibration"]["documents"] == 256
    assert sum(experts["texts"]["documentation"]["parts"].values()) == pytest.approx(1)


@pytest.mark.parametrize("name", ["config.yaml", "configs/experts.yaml"])
def test_the_studies_that_come_along_are_valid(name: str) -> None:
    experts = load(ROOT / name, SCHEMA)["experts"]
    assert experts["models"]


def test_the_published_grid_names_model_and_calibration_of_the_study() -> None:
    experts = load(ROOT / "configs" / "experts.yaml", SCHEMA)["experts"]
    (model,) = experts["models"].values()
    assert model["name"] == "allenai/OLMoE-1B-7B-0924"
    assert (model["precision"], model["cards"]) == ("fp16", 2)
    assert (experts["calibration"]["documents"], experts["calibration"]["tokens"]) == (256, 2048)
    assert {one["source"] for one in experts["evaluations"].values()} == {"wikitext", "mmlu"}


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("models.toy.text", "docs", r"no text is called 'docs'.*documentation"),
        ("models.toy.text", "wikipedia", "keeps no documents for train"),
        ("calibration.text", "wikipedia", "keeps no documents for calibration"),
        ("calibration.tokens", 512, "512 tokens are more than the 256"),
        ("texts.wikipedia.parts", {"evaluation": 0.5}, "add up to 0.5"),
        ("texts.wikipedia.parts", {"test": 1}, "unknown key 'test'"),
        ("active", [65], "65 are more than the 64"),
        ("models.toy.hidden", 20, "even number of dimensions"),
        ("models.toy.layer", 4, r"unknown key 'layer' \(did you mean 'layers'"),
        ("models.toy", {"source": "hub", "name": "x/y"}, "'revision' is a required property"),
        ("evaluations.wikipedia", {"source": "wikitxt"}, "choose one of text, wikitext"),
        ("evaluations.wikipedia", {"source": "task", "task": "t"}, "'path' is a required property"),
        ("evaluations.wikipedia.context", 300, "300 tokens are more than the 256"),
        ("comparisons", ["native"], "choose one of balanced"),
    ],
)
def test_what_cannot_be_is_refused_with_its_place(path: str, value: Any, words: str) -> None:
    key = path.split(".", maxsplit=1)[0]
    with pytest.raises(InputError, match=rf"configuration, experts\.{key}.*{words}"):
        validate(changed(path, value), SCHEMA)


def test_nothing_is_evaluated_that_calibration_reads() -> None:
    config = yaml.safe_load((ROOT / "configs" / "experts.yaml").read_text())
    evaluations = config["experts"]["evaluations"]
    evaluations["again"] = {"source": "wikitext", "split": "train"}
    with pytest.raises(
        InputError, match=r"evaluations\.again: it reads what the text 'wikitext-tr"
    ):
        validate(config, SCHEMA)
    evaluations["again"] = {"source": "wikitext", "split": "validation"}
    validate(config, SCHEMA)
    package = {"source": "packages", "packages": ["click"], "parts": {"evaluation": 1}}
    with pytest.raises(InputError, match="it reads what the text 'documentation' reads"):
        validate(changed("texts.wikipedia", package), SCHEMA)
