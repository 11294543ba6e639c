"""The published scorer cases: top 20 of all eight configurations, and their nDCG order."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from whencount.scoring import CONFIGURATIONS, Parameters
from whencount.search import search
from whencount.vectors import SparseVectors

GOLDEN = Path(__file__).parents[2] / "shared" / "golden" / "scorer.json"


def read(entries: list[dict[str, Any]], vocabulary: int) -> SparseVectors:
    triples = [
        (row, int(feature), value)
        for row, entry in enumerate(entries)
        for feature, value in entry["vector"].items()
    ]
    rows, features, values = (np.array(column) for column in zip(*triples, strict=True))
    ids = [entry["id"] for entry in entries]
    return SparseVectors.from_coo(
        ids, rows.astype(np.int64), features.astype(np.int64), values, vocabulary
    )


def cases() -> list[dict[str, Any]]:
    if not GOLDEN.exists():
        return []
    return list(json.loads(GOLDEN.read_text())["cases"])


@pytest.mark.skipif(not GOLDEN.exists(), reason="the golden files lie outside the repository")
@pytest.mark.parametrize("case", cases(), ids=lambda case: f"k1={case['k1']}-b={case['b']}")
def test_the_published_cases_hold_to_float32_tolerance(case: dict[str, Any]) -> None:
    entries = case["documents"] + case["queries"]
    vocabulary = 1 + max(int(feature) for entry in entries for feature in entry["vector"])
    documents = read(case["documents"], vocabulary).cap(case["document_budget"])
    queries = read(case["queries"], vocabulary).cap(case["query_budget"])
    found = search(documents, queries, [Parameters(case["k1"], case["b"])], depth=20)
    for number, configuration in enumerate(CONFIGURATIONS):
        for query, name in enumerate(queries.ids):
            expected = case["expected"][str(configuration)]["top"][name]
            count = int(found.counts[0, number, query])
            assert count == len(expected)
            scores = found.scores[0, number, query, :count]
            np.testing.assert_allclose(scores, [score for _, score in expected], rtol=1e-6)
            ids = documents.ids[found.positions[0, number, query, :count]]
            for rank, (wanted, score) in enumerate(expected):
                near = [other for other, value in expected if abs(value - score) <= 2e-6 * score]
                assert ids[rank] in near
                assert len(near) > 1 or ids[rank] == wanted
