from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from whencount import config as configuration
from whencount import grid, naming

ROOT = Path(__file__).parents[1]
SCHEMA = ROOT / "workflow" / "schemas" / "config.schema.yaml"
MS_MARCO = {"msmarco-dev", "trec-dl-2019", "trec-dl-2020"}


@pytest.fixture(scope="module")
def full() -> dict[str, Any]:
    return configuration.load(ROOT / "configs" / "full.yaml", SCHEMA)


def test_the_published_grid_has_the_published_counts(full: dict[str, Any]) -> None:
    """Study, section 4."""
    families: Counter[str] = Counter()
    union_on_the_ten = 0
    for job, cells in grid.expand(full).items():
        for members in cells.values():
            families.update(members)
            union_on_the_ten += job.collection not in MS_MARCO
    assert families["primary"] == 182
    assert families["budgets"] + families["budgets_native"] == 462
    assert families["parameters"] == 630
    assert families["seeds"] == 100
    assert families["controls"] == 84
    assert families["shared_dictionary"] == 20
    assert families["held_back"] == 84
    assert union_on_the_ten == 1226


def test_a_cell_that_two_families_share_stands_once(full: dict[str, Any]) -> None:
    cells = grid.expand(full)[naming.Job("sae_token", "scifact", 0)]
    assert cells[naming.Cell("32/128", 1.2, 0.75)] == ["primary", "budgets", "parameters"]


def test_bases_without_random_numbers_are_not_repeated_over_seeds(full: dict[str, Any]) -> None:
    seeded = dict(full)
    seeded["families"] = {
        "seeds": {"budgets": ["native"], "k1": [1.2], "b": [0.75], "seeds": [0, 1]}
    }
    found = {(job.representation, job.seed) for job in grid.expand(seeded)}
    assert ("pca_pooled", 1) not in found
    assert ("kmeans_pooled", 1) in found


def test_a_shared_dictionary_is_fitted_on_token_states() -> None:
    pooled = naming.Representation.parse("sae_shared_pooled")
    assert (pooled.basis, pooled.granularity, pooled.fitted_on) == ("sae", "pooled", "token")
    assert pooled.name == "sae_shared_pooled"
    own = naming.Representation.parse("sae_pooled")
    assert (own.basis, own.fitted_on, own.shared) == ("sae", "pooled", False)


def test_vectors_that_no_basis_makes_are_used_where_a_family_lists_them() -> None:
    parsed = naming.Representation.parse("splade_external")
    assert (parsed.basis, parsed.granularity, parsed.shared) == ("splade", "external", False)
    assert parsed.name == "splade_external"
    assert parsed.external
    assert naming.Representation.parse("splade_shared_external").name == "splade_shared_external"
    cells = {"budgets": ["native"], "k1": [1.2], "b": [0.75]}
    config = {
        "bases": {"pca": {}, "sae": {}},
        "granularities": ["pooled"],
        "shared": ["sae"],
        "external": {"splade": {}},
        "collections": {"toy": {}},
        "families": {
            "primary": cells,
            "learned_sparse": {**cells, "representations": ["splade_external"], "seeds": [0, 1]},
        },
    }
    found = {job.name: list(cells.values()) for job, cells in grid.expand(config).items()}
    assert found == {
        "pca_pooled.toy.seed0": [["primary"]],
        "sae_pooled.toy.seed0": [["primary"]],
        "splade_external.toy.seed0": [["learned_sparse"]],
    }


def test_budgets_parse_to_query_and_document_limits() -> None:
    assert naming.parse_budget("16/64") == (16, 64)
    assert naming.parse_budget("native") == (None, None)


def test_every_basis_has_the_family_of_the_study(full: dict[str, Any]) -> None:
    """Study, section 2."""
    assert set(naming.BASIS_FAMILIES) == {*configuration.BASES, "sae_shared"}
    assert [naming.basis_family(basis) for basis in configuration.BASES] == [
        *["linear"] * 3,
        "clustered",
        *["quantised"] * 2,
        "learned",
    ]
    assert naming.basis_family("splade") == "splade"
