from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from whencount import config as configuration
from whencount.errors import InputError

ROOT = Path(__file__).parents[1]
SCHEMA = ROOT / "workflow" / "schemas" / "config.schema.yaml"


@pytest.fixture(scope="module")
def valid() -> dict[str, Any]:
    return configuration.load(ROOT / "config.yaml", SCHEMA)


@pytest.mark.parametrize(
    "name", ["config.yaml", "configs/full.yaml", "configs/multilingual.yaml", "configs/test.yaml"]
)
def test_every_shipped_configuration_is_valid(name: str) -> None:
    configuration.load(ROOT / name, SCHEMA)


def test_a_fault_names_the_file_and_the_key(tmp_path: Path) -> None:
    text = (ROOT / "config.yaml").read_text()
    for wrong in ("sead: 0\n", "passages_per_shard: .nan\n", "seed: -1\n"):
        path = tmp_path / "my.yaml"
        key = wrong.split(":")[0]
        path.write_text(text.replace("seed: 0\n", "") + wrong)
        with pytest.raises(InputError, match=rf"^\S*my\.yaml: configuration\b.*{key}"):
            configuration.load(path, SCHEMA)


def test_defaults_are_filled_in_where_a_key_is_left_out(valid: dict[str, Any]) -> None:
    del valid["search"]
    again = configuration.validate(valid, SCHEMA)
    assert again["search"] == {"depth": 100}


def test_a_default_is_not_shared_between_two_configurations(valid: dict[str, Any]) -> None:
    first = configuration.validate(valid, SCHEMA)
    first["references"]["bm25"]["k1"] = 9.0
    assert configuration.validate(valid, SCHEMA)["references"]["bm25"]["k1"] == 1.2


FAULTS = [
    (("colections",), {}, "unknown key 'colections' (did you mean 'collections'?)"),
    (("encoder", "devise"), "cpu", "encoder: unknown key 'devise' (did you mean 'device'?)"),
    (("encoder", "device"), "tpu", "choose one of auto, cpu, cuda"),
    (("encoder", "max_tokens"), 4, "must be at least 8"),
    (("families", "primary", "b"), [1.5], "families.primary.b.0: 1.5"),
    (("families", "primary", "k1"), [-1], "must be at least 0"),
    (("families", "primary", "k1"), [1.2, float("nan")], "families.primary.k1.1: nan"),
    (("statistics", "alpha"), float("nan"), "statistics.alpha: nan"),
    (("families", "primary", "budgets"), ["32-128"], "families.primary.budgets.0"),
    (("families", "primary", "collections"), ["limits"], "did you mean 'limit'?"),
    (("families", "primary", "representations"), ["sea_token"], "did you mean 'sae_token'?"),
    (("statistics", "family"), "primry", "did you mean 'primary'?"),
    (("collections", "limit", "source"), "limet", "collections.limit.source: 'limet'"),
    (("collections", "limit", "corpus"), "limits", "collections.limit.corpus"),
    (("collections", "limit", "documnets"), 5, "limit: unknown key 'documnets' (did you mean"),
    (("collections", "limit", "documents"), "zzz", "collections.limit.documents: 'zzz'"),
    (("collections", "limit", "source"), "beir", "collections.limit"),
    (("fit", "text", "packages"), -1, "fit.text.packages: -1"),
    (("fit", "text", "pasages"), 9, "fit.text: unknown key 'pasages' (did you mean 'passages'?)"),
    (("bases", "kmeans"), {"centroids": 0}, "bases.kmeans.centroids: 0"),
    (("bases", "identity"), {"a": 1}, "bases.identity: unknown key 'a'; it takes no keys"),
    (("bases", "kmean"), {}, "bases: no basis is called 'kmean' (did you mean 'kmeans'?)"),
    (("shared",), ["sea"], "no basis is called 'sea'"),
    (("granularities",), ["words"], "choose one of pooled, token"),
]


@pytest.mark.parametrize(("path", "value", "sentence"), FAULTS)
def test_a_fault_is_told_with_its_path_and_what_is_allowed(
    valid: dict[str, Any], path: tuple[str, ...], value: Any, sentence: str
) -> None:
    faulty = copy.deepcopy(valid)
    place = faulty
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with pytest.raises(InputError) as caught:
        configuration.validate(faulty, SCHEMA)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_encoder_needs_the_key_that_its_source_names(valid: dict[str, Any]) -> None:
    faulty = copy.deepcopy(valid)
    faulty["encoder"] = {"source": "hub", "name": "intfloat/multilingual-e5-base"}
    with pytest.raises(InputError, match="revision"):
        configuration.validate(faulty, SCHEMA)


def test_a_corpus_may_not_be_borrowed_from_a_borrower(valid: dict[str, Any]) -> None:
    faulty = copy.deepcopy(valid)
    faulty["collections"]["limit"]["corpus"] = "api-docs"
    faulty["collections"]["wiki-sections"]["corpus"] = "limit"
    with pytest.raises(InputError, match="name 'api-docs'"):
        configuration.validate(faulty, SCHEMA)


def test_folders_become_collections_named_after_them(valid: dict[str, Any]) -> None:
    given = valid | {"folders": ["data/My Texts", "elsewhere/scifact/"]}
    checked = configuration.validate(given, SCHEMA)
    assert checked["collections"]["my-texts"]["path"] == "data/My Texts"
    assert checked["collections"]["scifact"] == {
        "source": "beir",
        "path": "elsewhere/scifact/",
        "shards": 1,
    }
    assert configuration.validate(checked, SCHEMA) == checked
    assert given["folders"] == ["data/My Texts", "elsewhere/scifact/"]


def test_a_large_corpus_is_split_by_its_size(valid: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "corpus.jsonl").write_bytes(b"x" * 5000)
    given = copy.deepcopy(valid)
    for options in given["collections"].values():
        del options["shards"]
    given["collections"] |= {
        "msmarco-dev": {},
        "trec-dl-2019": {"corpus": "msmarco-dev"},
        "mine": {"source": "beir", "path": str(tmp_path)},
        "absent": {"source": "beir", "path": str(tmp_path / "absent")},
        "by-hand": {"source": "beir", "path": str(tmp_path), "shards": 2},
    }
    checked = configuration.validate(given | {"passages_per_shard": 3}, SCHEMA)["collections"]
    assert checked["msmarco-dev"]["shards"] == -(-8_841_823 // 3)
    assert checked["mine"]["shards"] == 4
    assert checked["absent"]["shards"] == 1
    assert checked["by-hand"]["shards"] == 2
    assert checked["limit"]["shards"] == 1


def test_a_folder_whose_name_is_taken_is_refused(valid: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="would be called 'limit', which is taken"):
        configuration.validate(valid | {"folders": ["data/limit"]}, SCHEMA)


def test_a_collection_without_a_source_is_told_by_its_name(valid: dict[str, Any]) -> None:
    given = copy.deepcopy(valid)
    given["collections"] |= {"scifact": None, "api-docs": {"documents": 10}}
    given["collections"]["real-limit"] = {"source": "published", "id": "limit"}
    checked = configuration.validate(given, SCHEMA)["collections"]
    assert checked["scifact"]["source"] == "published"
    assert checked["api-docs"]["source"] == "api-docs"
    assert checked["real-limit"]["id"] == "limit"


@pytest.mark.parametrize(
    ("name", "options"), [("scifcat", {}), ("mine", {"source": "published", "id": "scifcat"})]
)
def test_an_unknown_published_name_suggests_the_nearest(
    valid: dict[str, Any], name: str, options: dict[str, str]
) -> None:
    given = copy.deepcopy(valid)
    given["collections"][name] = options
    with pytest.raises(InputError, match="'scifcat' \\(did you mean 'scifact'"):
        configuration.validate(given, SCHEMA)


def test_the_reported_family_has_rows_on_the_reported_collections(valid: dict[str, Any]) -> None:
    given = copy.deepcopy(valid)
    given["families"]["primary"]["collections"] = ["limit"]
    given["statistics"]["collections"] = ["api-docs", "limit"]
    configuration.validate(given, SCHEMA)
    given["statistics"]["collections"] = ["api-docs"]
    with pytest.raises(InputError, match="'primary' is about limit alone"):
        configuration.validate(given, SCHEMA)


def test_the_reported_family_has_rows_at_its_seeds(valid: dict[str, Any]) -> None:
    given = copy.deepcopy(valid)
    given["families"]["primary"]["seeds"] = [1]
    configuration.validate(given, SCHEMA)
    given["families"]["primary"]["representations"] = ["identity_pooled", "pca_token"]
    with pytest.raises(InputError, match=r"families\.primary\.seeds: none of .* add 0"):
        configuration.validate(given, SCHEMA)


def test_fusion_needs_the_rankings_that_it_fuses(valid: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"references\.rrf: it fuses bm25 and dense; add dense"):
        configuration.validate(valid | {"references": {"bm25": {}, "rrf": {}}}, SCHEMA)


def test_an_external_encoder_gives_a_representation(valid: dict[str, Any]) -> None:
    given = copy.deepcopy(valid)
    given["external"] = {"splade": {"source": "folder", "path": "models/splade"}}
    given["families"]["external"] = {
        "representations": ["splade_external"],
        "budgets": ["native"],
        "k1": [1.2],
        "b": [0.75],
    }
    checked = configuration.validate(given, SCHEMA)
    assert "splade_external" in configuration.representation_names(checked)
    del given["families"]["external"]
    given["external"] = {"dense": given["external"]["splade"]}
    with pytest.raises(InputError, match="called so already"):
        configuration.validate(given, SCHEMA)


@pytest.mark.parametrize(
    ("text", "sentence"), [("", "empty"), ("- a", "not a mapping"), ("a: [", "not valid YAML")]
)
def test_a_file_that_is_no_configuration_is_named(tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=sentence) as caught:
        configuration.load(path, SCHEMA)
    assert str(path) in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"absent\.yaml cannot be read"):
        configuration.load(tmp_path / "absent.yaml", SCHEMA)


def test_every_basis_of_the_registry_is_known_to_the_check() -> None:
    from whencount import bases

    assert set(configuration.BASES) == set(bases.BASES)


def test_every_source_of_a_collection_declares_its_keys() -> None:
    from whencount.collections import SOURCES

    rules = yaml.safe_load(SCHEMA.read_text())
    declared = rules["properties"]["collections"]["additionalProperties"]["properties"]["source"]
    assert set(declared["enum"]) == set(SOURCES)
    assert {source.replace("-", "_") for source in SOURCES} <= set(rules["$defs"])


def test_the_word_on_the_command_line_turns_the_transfer_test_on_and_off(
    valid: dict[str, Any],
) -> None:
    assert configuration.validate(valid | {"transfer": "false"}, SCHEMA)["transfer"] is False
    on = configuration.validate(valid | {"transfer": "true"}, SCHEMA)
    assert on["transfer"] == {
        "settings": ["pages", "experts"],
        "reference": "dense",
        "sign_accuracy": 0.7,
        "mae_ratio": 1.5,
        "draws": 2000,
    }
    configuration.check_transfer(on)


UNTESTABLE: dict[str, tuple[dict[str, Any], str]] = {
    "off": ({"transfer": False}, "no transfer is tested"),
    "no setting": ({"pages": None, "experts": None}, "no setting to put predictors"),
    "no such setting": ({"experts": None, "transfer": {"settings": ["experts"]}}, "has no experts"),
    "no reference": ({"references": {"bm25": {}}}, "has no reference 'dense'"),
    "one corpus": ({"statistics": {"collections": ["limit"]}}, "not limit alone"),
}


@pytest.mark.parametrize("name", UNTESTABLE)
def test_a_study_that_cannot_test_transfer_is_told_so_when_it_is_asked_to(
    valid: dict[str, Any], name: str
) -> None:
    changes, sentence = UNTESTABLE[name]
    given = {key: value for key, value in (valid | changes).items() if value is not None}
    if "transfer" not in changes:
        given["transfer"] = True
    checked = configuration.validate(given, SCHEMA)
    with pytest.raises(InputError, match=sentence):
        configuration.check_transfer(checked)
