"""Reading JSON lines of vectors: what is read, and what is said of a bad line."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whencount import vector_files
from whencount.errors import InputError
from whencount.vector_files import read_vectors
from whencount.vectors import SparseVectors

QUERY = {"id": "q", "vector": {"1": 1.0}}


def write(path: Path, *records: Any) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def as_dicts(vectors: SparseVectors, features: Any) -> list[dict[str, float]]:
    return [
        {
            features[vectors.features[place]]: float(vectors.values[place])
            for place in range(vectors.indptr[row], vectors.indptr[row + 1])
        }
        for row in range(len(vectors))
    ]


@given(
    st.lists(
        st.dictionaries(st.text(min_size=1, max_size=3), st.floats(0, 1e6, width=32), max_size=6),
        min_size=1,
        max_size=20,
    )
)
@settings(max_examples=60, deadline=None)
def test_reading_gives_what_was_written(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, float]]
) -> None:
    folder = tmp_path_factory.mktemp("vectors")
    records = [{"id": f"d{number}", "vector": row} for number, row in enumerate(rows)]
    path = write(folder / "d.jsonl", *records)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vector_files, "_ROWS_PER_BLOCK", 3)
        files = read_vectors(path, path)
    for vectors in (files.documents, files.queries):
        assert vectors.ids.tolist() == [record["id"] for record in records]
        assert as_dicts(vectors, files.features) == [
            {name: weight for name, weight in row.items() if weight > 0} for row in rows
        ]
        rebuilt = SparseVectors.from_coo(
            vectors.ids.tolist(),
            np.repeat(np.arange(len(vectors)), vectors.row_sizes()),
            vectors.features,
            vectors.values,
            vectors.vocabulary_size,
        )
        np.testing.assert_array_equal(rebuilt.features, vectors.features)
        np.testing.assert_array_equal(rebuilt.values, vectors.values)


def test_whole_number_features_are_ordered_as_numbers(tmp_path: Path) -> None:
    documents = write(tmp_path / "d", {"id": "d", "vector": {"10": 1.0, "9": 1.0, "100": 1.0}})
    files = read_vectors(documents, write(tmp_path / "q", QUERY))
    assert files.features.tolist() == ["1", "9", "10", "100"]
    assert as_dicts(files.documents.cap(1), files.features) == [{"9": 1.0}]


@pytest.mark.parametrize("odd", ["010", "x", "", "-3", "1.5", "²"])
def test_other_features_are_ordered_as_text(tmp_path: Path, odd: str) -> None:
    documents = write(tmp_path / "d", {"id": "d", "vector": {"10": 1.0, "9": 1.0, odd: 0.5}})
    files = read_vectors(documents, write(tmp_path / "q", QUERY))
    assert files.features.tolist() == sorted(["1", "10", "9", odd])
    assert as_dicts(files.documents.cap(1), files.features) == [{"10": 1.0}]


def test_order_of_lines_does_not_change_the_features(tmp_path: Path) -> None:
    records = [{"id": "a", "vector": {"z": 1}}, {"id": "b", "vector": {"y": 2, "x": 2}}]
    query = write(tmp_path / "q", {"id": "q", "vector": {}})
    first = read_vectors(write(tmp_path / "1", *records), query)
    second = read_vectors(write(tmp_path / "2", *records[::-1]), query)
    assert first.features.tolist() == second.features.tolist() == ["x", "y", "z"]
    assert first.documents.features.tolist() == [2, 0, 1]
    assert second.documents.features.tolist() == [0, 1, 2]


def test_gzip_blank_lines_whole_number_ids_and_a_byte_order_mark_are_read(tmp_path: Path) -> None:
    documents = tmp_path / "d.jsonl.gz"
    documents.write_bytes(
        gzip.compress(b'\xef\xbb\xbf{"id": 7, "vector": {"a": 1}}\n\n{"vector": {}, "id": "x"}\r\n')
    )
    files = read_vectors(documents, write(tmp_path / "q", QUERY))
    assert files.documents.ids.tolist() == ["7", "x"]
    assert files.documents.row_sizes().tolist() == [1, 0]


def test_zero_and_vanishing_weights_are_dropped(tmp_path: Path) -> None:
    documents = write(
        tmp_path / "d", {"id": "d", "vector": {"a": 0, "b": -0.0, "c": 1e-60, "d": 1}}
    )
    files = read_vectors(documents, write(tmp_path / "q", QUERY))
    assert as_dicts(files.documents, files.features) == [{"d": 1.0}]


GOOD = '{"id": "d0", "vector": {"a": 1.0}}'
BAD_LINES = {
    '{"id": "d1", "vector": {"a": 1.0}': "not valid JSON",
    "[1, 2]": "found a list; each line must be",
    '{"vector": {}}': "'id' is missing",
    '{"id": "d1", "contents": {}}': "'vector' is missing",
    '{"id": "d1", "vector": [1]}': "'vector' is a list; it must be an object",
    '{"id": "d1", "vector": null}': "'vector' is null",
    '{"id": null, "vector": {}}': "'id' is null; it must be a text or a whole number",
    '{"id": true, "vector": {}}': "'id' is true or false",
    '{"id": 1.5, "vector": {}}': "'id' is a number",
    '{"id": "", "vector": {}}': "'id' is an empty text",
    '{"id": "d0", "vector": {}}': "id 'd0' was used on line 1; ids must be unique",
    '{"id": "d1", "vector": {"f": "3"}}': "feature 'f' has a text for a weight",
    '{"id": "d1", "vector": {"f": true}}': "feature 'f' has true or false for a weight",
    '{"id": "d1", "vector": {"f": -0.5}}': "feature 'f' has weight -0.5; weights must be finite",
    '{"id": "d1", "vector": {"f": NaN}}': "feature 'f' has weight nan; weights must be finite",
    '{"id": "d1", "vector": {"f": Infinity}}': "feature 'f' has weight inf; weights must be finite",
    '{"id": "d1", "vector": {"f": 1e400}}': "feature 'f' has weight inf; weights must be finite",
    '{"id": "d1", "vector": {"f": 1e39}}': "feature 'f' has weight 1e+39; it is too large",
    '{"id": "d1", "vector": {"\\ud800": 1}}': "not valid JSON",
}


@pytest.mark.parametrize("bad", BAD_LINES)
@pytest.mark.parametrize("which", [0, 1])
def test_bad_line_is_named_with_its_file(tmp_path: Path, bad: str, which: int) -> None:
    paths = [tmp_path / "documents.jsonl", tmp_path / "queries.jsonl"]
    for path in paths:
        path.write_text(GOOD + "\n")
    paths[which].write_text(f"{GOOD}\n{bad}\n" + '{"id": "d9", "vector": {"b": 1}}\n')
    with pytest.raises(InputError) as caught:
        read_vectors(*paths)
    assert str(caught.value).startswith(f"{paths[which]}, line 2: ")
    assert BAD_LINES[bad] in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("[" * 100_000, "nested too deeply"),
        ('{"id": "b", "vector": {"1": ' + "9" * 5_000 + "}}", "too many digits"),
        ('{"id": "\\ud800", "vector": {}}', "half of a surrogate pair"),
        ('{"id": ' + "1" * 25 + ', "vector": {}}', "more than 64 bits"),
    ],
)
def test_json_beyond_what_the_readers_hold_is_named(tmp_path: Path, line: str, reason: str) -> None:
    documents = tmp_path / "documents.jsonl"
    documents.write_text('{"id": "a", "vector": {"1": 1}}\n' + line + "\n")
    with pytest.raises(InputError, match=f"documents.jsonl, line 2: .*{reason}"):
        read_vectors(documents, documents)


def test_first_of_two_faults_is_told(tmp_path: Path) -> None:
    documents = tmp_path / "d"
    documents.write_text(f'{GOOD}\n{{"id": "d1", "vector": {{"f": -1}}}}\nnot json\n')
    with pytest.raises(InputError, match="line 2: feature 'f' has weight -1"):
        read_vectors(documents, documents)


def test_missing_empty_and_truncated_files_are_told(tmp_path: Path) -> None:
    query = write(tmp_path / "q", QUERY)
    with pytest.raises(InputError, match="absent cannot be read"):
        read_vectors(tmp_path / "absent", query)
    empty = tmp_path / "empty"
    empty.write_text("\n")
    with pytest.raises(InputError, match="empty holds no vectors"):
        read_vectors(query, empty)
    truncated = tmp_path / "t.gz"
    truncated.write_bytes(gzip.compress(GOOD.encode() * 50)[:-12])
    with pytest.raises(InputError, match="damaged or truncated"):
        read_vectors(truncated, query)
