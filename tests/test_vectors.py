from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whencount.errors import InputError
from whencount.vectors import SparseVectors, VectorsWriter

rows = st.lists(
    st.dictionaries(st.integers(0, 12), st.sampled_from([0.0, 0.25, 0.5, 1.0, 2.5]), max_size=12),
    max_size=8,
)


def build(mappings: list[dict[int, float]], vocabulary_size: int = 13) -> SparseVectors:
    triples = [
        (row, feature, value)
        for row, mapping in enumerate(mappings)
        for feature, value in mapping.items()
    ]
    columns = np.array(triples, dtype=np.float64).reshape(-1, 3)
    return SparseVectors.from_coo(
        [f"d{row}" for row in range(len(mappings))],
        columns[:, 0].astype(np.int64),
        columns[:, 1].astype(np.int64),
        columns[:, 2],
        vocabulary_size,
    )


def as_mappings(vectors: SparseVectors) -> list[dict[int, float]]:
    bounds = zip(vectors.indptr[:-1], vectors.indptr[1:], strict=True)
    return [
        dict(zip(vectors.features[a:b].tolist(), vectors.values[a:b].tolist(), strict=True))
        for a, b in bounds
    ]


@given(rows)
def test_rows_stand_by_falling_value_then_rising_feature(mappings: list[dict[int, float]]) -> None:
    vectors = build(mappings)
    assert as_mappings(vectors) == [
        {feature: value for feature, value in mapping.items() if value} for mapping in mappings
    ]
    for mapping in as_mappings(vectors):
        pairs = [(-value, feature) for feature, value in mapping.items()]
        assert pairs == sorted(pairs)


@given(rows, st.integers(1, 13))
def test_a_budget_keeps_the_largest_values_and_the_smaller_features(
    mappings: list[dict[int, float]], budget: int
) -> None:
    expected = [
        dict(
            sorted(((f, v) for f, v in mapping.items() if v), key=lambda pair: (-pair[1], pair[0]))[
                :budget
            ]
        )
        for mapping in mappings
    ]
    assert as_mappings(build(mappings).cap(budget)) == expected


@given(rows, rows)
@settings(deadline=None, max_examples=25)
def test_blocks_written_one_by_one_read_back_as_one(
    tmp_path_factory: pytest.TempPathFactory,
    first: list[dict[int, float]],
    second: list[dict[int, float]],
) -> None:
    path = tmp_path_factory.mktemp("vectors") / "v"
    with VectorsWriter(path, 13) as writer:
        writer.append(build(first))
        writer.append(build(second))
    loaded = SparseVectors.load(path)
    assert as_mappings(loaded) == as_mappings(build(first + second))
    assert len(loaded.ids) == len(first) + len(second)
    whole = build(first + second)
    assert as_mappings(loaded.slice(len(first), len(loaded))) == as_mappings(
        whole.slice(len(first), len(whole))
    )


def test_a_dense_matrix_keeps_its_positive_entries() -> None:
    vectors = SparseVectors.from_dense(["a", "b"], np.array([[0, 2, 3], [0, 0, 0]]))
    assert as_mappings(vectors) == [{2: 3.0, 1: 2.0}, {}]


@pytest.mark.parametrize("value", [-1.0, float("nan"), float("inf"), 1e39])
def test_a_weight_that_is_no_weight_is_named(value: float) -> None:
    with pytest.raises(InputError, match="vector 'd0', feature 3: weight"):
        build([{3: value}])


def test_a_feature_outside_the_vocabulary_is_refused() -> None:
    with pytest.raises(InputError, match=r"0\.\.12"):
        build([{13: 1.0}])


def test_a_budget_below_one_is_refused() -> None:
    with pytest.raises(InputError, match="budget 0"):
        build([{1: 1.0}]).cap(0)


def test_a_failed_write_leaves_nothing(tmp_path: Path) -> None:
    def fail() -> None:
        with VectorsWriter(tmp_path / "v", 13) as writer:
            writer.append(build([{1: 1.0}]))
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError):
        fail()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["indptr.npy", "features.npy", "values.npy", "ids.parquet"])
def test_a_truncated_or_missing_part_is_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / "v"
    build([{feature: 1.0 for feature in range(13)} for _ in range(9)]).save(path)
    part = path / name
    part.write_bytes(part.read_bytes()[: part.stat().st_size // 2])
    with pytest.raises(InputError, match="build it again"):
        SparseVectors.load(path)
    part.unlink()
    with pytest.raises(InputError, match="build it again"):
        SparseVectors.load(path)


def test_sizes_that_disagree_with_the_declaration_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "v"
    build([{1: 1.0}]).save(path)
    meta = json.loads((path / "meta.json").read_text())
    (path / "meta.json").write_text(json.dumps({**meta, "nonzeros": 2}))
    with pytest.raises(InputError, match="do not have the sizes"):
        SparseVectors.load(path)


def test_another_format_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "v"
    build([{1: 1.0}]).save(path)
    meta = json.loads((path / "meta.json").read_text())
    (path / "meta.json").write_text(json.dumps({**meta, "format": "other"}))
    with pytest.raises(InputError, match="format 'other'"):
        SparseVectors.load(path)


def test_the_same_vectors_give_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        build([{1: 1.0, 2: 3.0}, {}]).save(tmp_path / name)
    for part in sorted((tmp_path / "a").iterdir()):
        assert part.read_bytes() == (tmp_path / "b" / part.name).read_bytes()
