"""What an index costs, against the worked figures of the study and against plain loops."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from whencount import economics as costs
from whencount.errors import InputError
from whencount.vectors import SparseVectors

GOLDEN = Path(__file__).parents[2] / "shared" / "golden" / "economics.json"
MIB, GIB = 2**20, 2**30


@pytest.fixture(scope="module")
def golden() -> dict[str, Any]:
    if not GOLDEN.is_file():
        pytest.skip(f"{GOLDEN} is not here")
    found: dict[str, Any] = json.loads(GOLDEN.read_text())
    return found


def close(value: float, digits: int = 6) -> Any:
    return pytest.approx(value, rel=10.0**-digits)


def capped(total: float, features: int) -> tuple[float, np.ndarray[Any, np.dtype[np.float64]]]:
    """`min(1, c / j)` with the c that gives the total, by bisection."""
    low, high = 0.0, float(features)
    ranks = np.arange(1, features + 1)
    for _ in range(200):
        c = (low + high) / 2
        low, high = (c, high) if np.minimum(1, c / ranks).sum() < total else (low, c)
    return c, np.minimum(1, c / ranks)


def test_log_saturation(golden: dict[str, Any]) -> None:
    twelve, one = (5 * float(costs.log_saturation(logit)) for logit in (12.0, 1.0))
    assert twelve == close(golden["log_saturation"]["five_logits_of_12"], 9)
    assert one == close(golden["log_saturation"]["five_logits_of_1"], 9)
    assert twelve / one == close(golden["log_saturation"]["ratio"], 9)
    assert float(costs.log_saturation(-3.0)) == 0.0


def test_effective_support(golden: dict[str, Any]) -> None:
    harmonic, zipf = golden["effective_support"]
    assert costs.effective_support(1 / np.arange(1, 30523)) == close(harmonic["value"])
    c, profile = capped(160, 30522)
    assert c == close(zipf["c"])
    assert (profile == 1).sum() == zipf["ones"]
    assert costs.effective_support(profile) == close(zipf["value"])
    assert costs.effective_support(np.full(37, 0.2)) == close(37)


def test_posting_work(golden: dict[str, Any]) -> None:
    uniform, balanced, zipf = golden["posting_work"]
    n, v = uniform["N"], uniform["V"]
    p, q = np.full(v, 40 / v), np.full(v, 8 / v)
    assert costs.posting_work(n, p, q) == close(uniform["macs"])
    p, q = (np.r_[np.full(4000, nnz / 4000), np.zeros(v - 4000)] for nnz in (160, 30))
    assert costs.posting_work(n, p, q) == close(balanced["macs"])
    _, profile = capped(160, v)
    assert costs.posting_work(n, profile, profile * 30 / 160) == close(zipf["macs"])
    support = zipf["effective_support"]
    assert costs.posting_work_of_means(n, 160, 30, support) == close(zipf["macs"])


def test_the_flops_regulariser_presses_frequent_features_in_proportion(
    golden: dict[str, Any],
) -> None:
    means = golden["flops_gradient_ratio"]["mean_weights"]
    first, second = costs.flops_gradient(means)
    assert first / second == close(golden["flops_gradient_ratio"]["value"])
    step = 1e-6
    slope = (costs.flops([means[0] + step, means[1]]) - costs.flops(means)) / step
    assert slope == pytest.approx(first, rel=1e-5)


def test_payload(golden: dict[str, Any]) -> None:
    expected = golden["payload"]
    assert costs.postings_payload(expected["N"], 160) / 1e9 == close(expected["postings_160x8B_GB"])
    assert costs.dense_payload(expected["N"], 768) / 1e9 == close(expected["dense_768_fp32_GB"])


def test_late_interaction(golden: dict[str, Any]) -> None:
    expected = golden["late_interaction"]
    names = ("passages", "tokens", "query_tokens", "width", "candidates", "encoder_parameters")
    model = costs.LateInteraction(*(expected[name] for name in names))
    assert model.query_flops == expected["query_flops"]
    assert model.token_dot_flops == expected["token_dot_flops"]
    assert model.total_flops == expected["total_flops"]
    assert model.cross_encoder_ratio == close(expected["cross_encoder_ratio"])
    assert model.index_bytes(2) / GIB == close(expected["fp16_GiB"])
    assert model.index_bytes(2, width=24) / GIB == close(expected["width24_fp16_GiB"])
    one = costs.dense_payload(model.passages, model.width, 2) / GIB
    assert one == close(expected["one_vector_GiB"])
    for bits, name in ((2, "two_bit_with_codebook_GiB"), (1, "one_bit_with_codebook_GiB")):
        assert model.residual_bytes(bits, expected["centroids"]) / GIB == close(expected[name])

    plaid = golden["plaid"]
    count, survivors = plaid["unique_candidates"], plaid["survivors"]
    full = model.read_in_full(count, 2)
    funnel = model.read_in_a_funnel(count, survivors, 2)
    codebook = model.codebook_bytes(expected["centroids"])
    assert full / MIB == close(plaid["full_MiB"])
    assert funnel / MIB == close(plaid["total_MiB"])
    assert full / funnel == close(plaid["ratio"], 5)
    assert (full + codebook) / (funnel + codebook) == close(plaid["ratio_with_codebook"])


def vectors(rows: list[dict[int, float]], vocabulary: int) -> SparseVectors:
    triples = [(row, j, value) for row, one in enumerate(rows) for j, value in one.items()]
    row, feature, value = (np.array(column) for column in zip(*triples, strict=True))
    ids = [str(number) for number in range(len(rows))]
    return SparseVectors.from_coo(ids, row, feature, value, vocabulary)


def test_vectors_are_counted_as_a_loop_over_query_and_document_would() -> None:
    documents = [{0: 2.0, 3: 1.0}, {}, {0: 1.0}, {1: 4.0, 3: 0.5, 4: 1.0}]
    queries = [{0: 1.0, 3: 2.0}, {5: 1.0}, {3: 1.0, 4: 1.0}]
    found = costs.economics(vectors(documents, 6), vectors(queries, 6))
    products = [len(query.keys() & document.keys()) for query in queries for document in documents]
    assert found.posting_work == close(sum(products) / len(queries), 12)
    assert found.posting_work_share == close(found.posting_work / (4 * 6), 12)
    assert (found.documents, found.queries, found.live_features) == (4, 3, 4)
    assert (found.document_nnz, found.query_nnz) == (1.5, close(5 / 3, 12))
    shares = [2 / 4, 1 / 4, 0, 2 / 4, 1 / 4, 0]
    assert found.activation_support == close(sum(shares) ** 2 / sum(p * p for p in shares), 12)
    means = [3 / 4, 1, 0, 1.5 / 4, 1 / 4, 0]
    assert found.weight_support == close(sum(means) ** 2 / sum(a * a for a in means), 12)
    assert found.payload_bytes == 6 * 8
    assert set(found.columns()) >= {"posting_work", "weight_support"}


def test_nothing_and_other_vocabularies_are_refused() -> None:
    some = vectors([{0: 1.0}], 2)
    empty = SparseVectors.from_coo([], np.array([], int), np.array([], int), np.array([]), 2)
    with pytest.raises(InputError, match="no queries"):
        costs.economics(some, empty)
    with pytest.raises(InputError, match="2 and 3 features"):
        costs.economics(some, vectors([{0: 1.0}], 3))
    with pytest.raises(InputError, match="feature 1 of the profile is nan"):
        costs.effective_support([1.0, float("nan")])
