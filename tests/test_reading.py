"""Vectors of every format read alike, and what is wrong with a bad one is told with its place."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse

from whencount.engine.storage import open_index, write_index
from whencount.errors import InputError
from whencount.exporting import write_ciff
from whencount.reading import Vocabulary, gather, open_vectors, read_collection
from whencount.reading import json_lines as json_lines_module
from whencount.reading import rows as rows_module
from whencount.vector_files import read_vectors
from whencount.vectors import SparseVectors

ROWS: dict[str, dict[str, float]] = {
    "a": {"0": 1.0, "3": 2.5},
    "b": {},
    "c": {"4": 3.0, "0": 3.0, "1": 0.5},
    "d": {"2": 7.0},
}
SIZE = 6
Writer = Callable[[Path, dict[str, dict[str, float]]], Path]


def matrix(rows: dict[str, dict[str, float]]) -> scipy.sparse.csr_matrix:
    dense = np.zeros((len(rows), SIZE))
    for row, vector in enumerate(rows.values()):
        for name, weight in vector.items():
            dense[row, int(name)] = weight
    return scipy.sparse.csr_matrix(dense)


def lines(path: Path, records: list[Any]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def as_json(folder: Path, rows: dict[str, dict[str, float]]) -> Path:
    records = [{"id": one, "contents": "text", "vector": v} for one, v in rows.items()]
    return lines(folder / "d.jsonl", records)


def as_gzip(folder: Path, rows: dict[str, dict[str, float]]) -> Path:
    path = folder / "d.jsonl.gz"
    path.write_bytes(gzip.compress(as_json(folder, rows).read_bytes()))
    return path


def as_zstd(folder: Path, rows: dict[str, dict[str, float]]) -> Path:
    path = folder / "d.json.zst"
    plain = as_json(folder, rows).read_bytes()
    half = len(plain) // 2
    # Two frames, as parallel compressors write them.
    parts = (pa.compress(part, "zstd", asbytes=True) for part in (plain[:half], plain[half:]))
    path.write_bytes(b"".join(parts))
    return path


def as_lists(folder: Path, rows: dict[str, dict[str, float]]) -> Path:
    records = [
        {"_id": one, "indices": list(map(int, v)), "values": list(v.values())}
        for one, v in rows.items()
    ]
    return lines(folder / "d.ndjson", records)


def as_pairs(folder: Path, rows: dict[str, dict[str, float]]) -> Path:
    records = [{"docid": one, "vector": list(v.items())} for one, v in rows.items()]
    return lines(folder / "noname", records)


def as_parts(folder: Path, rows: dict[str, dict[str, float]]) -> Path:
    names = list(rows)
    inside = folder / "parts"
    inside.mkdir()
    for number, one in enumerate(names):
        lines(inside / f"part-{number:03}.jsonl", [{"id": one, "vector": rows[one]}])
    return inside


def as_npz(folder: Path, rows: dict[str, dict[str, float]]) -> Path:
    scipy.sparse.save_npz(folder / "d.npz", matrix(rows))
    (folder / "d.ids.txt").write_text("".join(f"{one}\n" for one in rows))
    return folder / "d.npz"


def as_npz_gz(folder: Path, rows: dict[str, dict[str, float]]) -> Path:
    plain = as_npz(folder, rows)
    packed = folder / "d.npz.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    plain.unlink()
    return packed


def table(rows: dict[str, dict[str, float]]) -> pa.Table:
    return pa.table(
        {
            "id": list(rows),
            "indices": pa.array([list(map(int, v)) for v in rows.values()], pa.list_(pa.int32())),
            "values": pa.array([list(v.values()) for v in rows.values()], pa.list_(pa.float32())),
            "text": ["unused"] * len(rows),
        }
    )


def as_parquet(folder: Path, rows: dict[str, dict[str, float]]) -> Path:
    pq.write_table(table(rows), folder / "d.parquet", row_group_size=3)
    return folder / "d.parquet"


def as_map(folder: Path, rows: dict[str, dict[str, float]]) -> Path:
    vector = pa.array([list(v.items()) for v in rows.values()], pa.map_(pa.string(), pa.float64()))
    inside = folder / "hub" / "data"
    inside.mkdir(parents=True)
    pq.write_table(pa.table({"id": list(rows), "vector": vector}), inside / "train-0.parquet")
    return folder / "hub"


def as_structure(folder: Path, rows: dict[str, dict[str, float]]) -> Path:
    pq.write_table(
        pa.table({"id": list(rows), "vector": pa.array(list(rows.values()))}),
        folder / "s.parquet",
    )
    return folder / "s.parquet"


def as_list_of_pairs(folder: Path, rows: dict[str, dict[str, float]]) -> Path:
    kind = pa.list_(pa.struct([("token", pa.string()), ("weight", pa.float32())]))
    vector = pa.array(
        [[{"token": t, "weight": w} for t, w in v.items()] for v in rows.values()], kind
    )
    pq.write_table(pa.table({"id": list(rows), "vector": vector}), folder / "l.parquet")
    return folder / "l.parquet"


def as_dataset(folder: Path, rows: dict[str, dict[str, float]]) -> Path:
    datasets = pytest.importorskip("datasets")
    # Of 3 rows of the saved file, batches of 2: what is joined must be in order.
    datasets.Dataset(table(rows)).save_to_disk(folder / "saved", num_shards=2)
    return folder / "saved"


def as_arrow(folder: Path, rows: dict[str, dict[str, float]]) -> Path:
    with (
        pa.OSFile(str(folder / "d.arrow"), "wb") as sink,
        pa.ipc.new_file(sink, table(rows).schema) as writer,
    ):
        writer.write_table(table(rows), max_chunksize=1)
    return folder / "d.arrow"


def as_tensor(folder: Path, rows: dict[str, dict[str, float]]) -> Path:
    import torch

    tensor = torch.tensor(matrix(rows).toarray()).to_sparse()
    torch.save({"ids": list(rows), "vectors": tensor}, folder / "d.pt")
    return folder / "d.pt"


def as_ciff(folder: Path, rows: dict[str, dict[str, float]]) -> Path:
    whole = SparseVectors.from_dense(list(rows), matrix(rows).toarray() * 2)
    write_index(folder / "index", [whole])
    write_ciff(folder / "d.ciff", open_index(folder / "index"), list(rows))
    return folder / "d.ciff"


def as_folder(folder: Path, rows: dict[str, dict[str, float]]) -> Path:
    SparseVectors.from_dense(list(rows), matrix(rows).toarray()).save(folder / "own")
    return folder / "own"


WRITERS = (
    as_json, as_gzip, as_zstd, as_lists, as_pairs, as_parts, as_npz, as_npz_gz, as_parquet, as_map,
    as_structure, as_list_of_pairs, as_dataset, as_arrow, as_tensor, as_ciff, as_folder,
)  # fmt: skip


def dictionaries(vectors: SparseVectors, features: Any) -> dict[str, dict[str, float]]:
    return {
        name: {
            features[vectors.features[place]]: float(vectors.values[place])
            for place in range(vectors.indptr[row], vectors.indptr[row + 1])
        }
        for row, name in enumerate(vectors.ids)
    }


@pytest.mark.parametrize("write", WRITERS)
def test_every_format_gives_the_same_vectors(tmp_path: Path, write: Writer) -> None:
    files = gather(tmp_path / "out", open_vectors(write(tmp_path, ROWS)))
    found = dictionaries(files.documents, files.features)
    if write is as_ciff:  # whole numbers only, and terms of ten digits
        found = {k: {str(int(t)): w / 2 for t, w in v.items()} for k, v in found.items()}
    assert found == ROWS
    assert list(found) == list(ROWS)
    # By falling value, equal ones by the smaller feature.
    assert [int(files.features[j]) for j in files.documents.slice(2, 3).features] == [0, 4, 1]
    assert len(files.queries) == 0


@pytest.mark.parametrize("write", [as_npz, as_tensor, as_folder])
def test_columns_without_a_weight_count(tmp_path: Path, write: Writer) -> None:
    files = gather(tmp_path / "out", open_vectors(write(tmp_path, ROWS)))
    assert files.features.tolist() == list(map(str, range(SIZE)))
    assert files.documents.vocabulary_size == SIZE


def test_documents_and_queries_of_two_formats_have_one_vocabulary(tmp_path: Path) -> None:
    queries = lines(tmp_path / "q.jsonl", [{"id": 7, "vector": {"3": 1, "99": 2}}])
    files = read_collection(as_npz(tmp_path, ROWS), queries, folder=tmp_path / "out")
    assert files.queries is not None
    assert dictionaries(files.queries, files.features) == {"7": {"99": 2.0, "3": 1.0}}
    assert files.documents.vocabulary_size == files.queries.vocabulary_size == SIZE + 1


def test_small_blocks_join_to_what_the_reader_of_whole_files_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(1)
    records = [
        {
            "id": f"d{one}",
            "vector": {
                f"w{term}": float(random.integers(1, 4)) for term in random.choice(40, 9, False)
            },
        }
        for one in range(200)
    ]
    path = lines(tmp_path / "d.jsonl", records)
    for module in (json_lines_module, rows_module):
        monkeypatch.setattr(module, "ROWS_AT_ONCE", 7)
    blocks = list(open_vectors(path))
    assert [len(block) for block in blocks] == [7] * 28 + [4]
    whole = read_vectors(path, path)
    files = gather(tmp_path / "out", open_vectors(path))
    assert files.features.tolist() == whole.features.tolist()
    for name in ("indptr", "features", "values"):
        expected = getattr(whole.documents, name)
        assert np.array_equal(getattr(files.documents, name), expected)


def test_weighted_topics_count_repeated_terms(tmp_path: Path) -> None:
    path = tmp_path / "topics.tsv"
    path.write_text("q1\tcat cat dog\nq2\t\n")
    files = gather(tmp_path / "out", open_vectors(path))
    expected = {"q1": {"cat": 2.0, "dog": 1.0}, "q2": {}}
    assert dictionaries(files.documents, files.features) == expected


def test_a_gathered_folder_keeps_the_names_of_features(tmp_path: Path) -> None:
    records = [{"id": "x", "vector": {"zebra": 1.0, "ant": 2.0}}]
    gather(tmp_path / "out", open_vectors(lines(tmp_path / "d.jsonl", records)))
    again = gather(tmp_path / "again", open_vectors(tmp_path / "out" / "documents"))
    assert again.features.tolist() == ["ant", "zebra"]


BAD_LINES = [
    ('{"id": "x", "vector": {"f": NaN}}', "line 2.*'f'.*nan"),
    ('{"id": "x", "vector": {"f": -1}}', "line 2.*'x'.*'f' has weight -1.0"),
    ('{"id": "x", "vector": {"f": 1e60}}', "line 2.*too large"),
    ('{"id": "x", "vector": {"f": "1"}}', "line 2.*a text for a weight"),
    ('{"id": "ok", "vector": {}}', "line 2: id 'ok' was used at .*line 1"),
    ('{"id": "", "vector": {}}', "line 2: 'id' is an empty text"),
    ('{"vector": {}}', "line 2: 'id' is missing"),
    ('{"id": "x"}', "line 2: 'vector' is missing"),
    ('{"id": "x", "vector": [1]}', "line 2: 'vector' is a list"),
    ('{"id": "x", "indices": [1, 1], "values": [1, 2]}', "line 2.*'1' occurs twice"),
    ('{"id": "x", "indices": [1], "values": [1, 2]}', "line 2.*one length"),
    ('{"id": "x", "indices": [-1], "values": [1]}', "line 2.*outside"),
    ("[1", "line 2: not valid JSON"),
]


@pytest.mark.parametrize(("line", "told"), BAD_LINES)
def test_a_bad_line_is_named(tmp_path: Path, line: str, told: str) -> None:
    path = tmp_path / "d.jsonl"
    path.write_text('{"id": "ok", "vector": {"f": 1}}\n' + line + "\n")
    with pytest.raises(InputError, match=told):
        gather(tmp_path / "out", open_vectors(path))
    assert not (tmp_path / "out").exists()


def test_an_id_used_in_an_earlier_block_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_lines_module, "ROWS_AT_ONCE", 3)
    records = [{"id": f"d{one % 31}", "vector": {"f": 1}} for one in range(40)]
    path = lines(tmp_path / "d.jsonl", records)
    with pytest.raises(InputError, match=r"line 32: id 'd0' was used at .*line 1;"):
        list(open_vectors(path))


def bad_table(folder: Path, **columns: Any) -> Path:
    pq.write_table(pa.table(columns), folder / "bad.parquet")
    return folder / "bad.parquet"


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ({"id": ["a"], "text": ["x"]}, "has the columns id, text"),
        ({"id": ["a", None], "indices": [[1], [1]], "values": [[1.0], [1.0]]}, "row 1.*null"),
        ({"id": ["a", "b"], "indices": [[1], [1, 2]], "values": [[1.0], [1.0]]}, "row 1.*as many"),
        ({"id": ["a", "b"], "indices": [[1], [1]], "values": [[1.0], [None]]}, "row 1.*null"),
        ({"id": ["a", "a"], "indices": [[1], [1]], "values": [[1.0], [1.0]]}, "row 1.*'a'.*row 0"),
        ({"id": ["a"], "indices": [[-4]], "values": [[1.0]]}, "-4 lies outside"),
        ({"id": ["a"], "indices": [[1]], "values": [[float("nan")]]}, "row 0.*nan"),
        ({"id": ["a"], "vector": [[0.5, 0.25]]}, "dense vector"),
        ({"id": [0.5], "indices": [[1]], "values": [[1.0]]}, "ids must be"),
    ],
)
def test_a_bad_table_is_named(tmp_path: Path, columns: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        list(open_vectors(bad_table(tmp_path, **columns)))


def test_bad_matrices_are_named(tmp_path: Path) -> None:
    path = as_npz(tmp_path, ROWS)
    (tmp_path / "d.ids.txt").write_text("a\nb\n")
    with pytest.raises(InputError, match="2 ids for the 4 rows"):
        list(open_vectors(path))
    (tmp_path / "d.ids.txt").unlink()
    assert np.concatenate([one.ids for one in open_vectors(path)]).tolist() == list("0123")
    scipy.sparse.save_npz(path, matrix(ROWS).tocsc())
    with pytest.raises(InputError, match="'csc', not 'csr'"):
        list(open_vectors(path))
    np.savez(path, format=np.array(b"csr"), shape=[2, 3], indptr=[0, 1, 2], indices=[0, 9],
             data=[1.0, 1.0])  # fmt: skip
    with pytest.raises(InputError, match=r"row 1: column 9"):
        list(open_vectors(path))
    np.savez(path, format=np.array(b"csr"), shape=[2, 3], indptr=[0, 1, 5], indices=[0, 2],
             data=[1.0, 1.0])  # fmt: skip
    with pytest.raises(InputError, match="breaks off"):
        list(open_vectors(path))


def test_a_file_that_would_run_code_is_refused(tmp_path: Path) -> None:
    import pickle

    class Evil:
        def __reduce__(self) -> Any:
            return (print, ("ran",))

    (tmp_path / "d.pt").write_bytes(pickle.dumps(Evil()))
    with pytest.raises(InputError, match="weights_only"):
        list(open_vectors(tmp_path / "d.pt"))


@pytest.mark.parametrize("write", [as_gzip, as_zstd, as_ciff, as_parquet, as_arrow])
def test_a_truncated_file_is_refused(tmp_path: Path, write: Writer) -> None:
    path = write(tmp_path, ROWS)
    path.write_bytes(path.read_bytes()[:-7])
    with pytest.raises(InputError, match=str(path.name)):
        list(open_vectors(path))


def test_places_without_vectors_are_refused(tmp_path: Path) -> None:
    for path, told in (
        (tmp_path / "none.jsonl", "cannot be read"),
        (lines(tmp_path / "empty.jsonl", []), "holds no vectors"),
        (lines(tmp_path / "text.unknown", ["x"]), "neither its name nor"),
    ):
        with pytest.raises(InputError, match=told):
            list(open_vectors(path))
    mixed = tmp_path / "mixed"
    mixed.mkdir()
    as_json(mixed, ROWS)
    as_parquet(mixed, ROWS)
    with pytest.raises(InputError, match="several formats"):
        open_vectors(mixed)


def test_large_whole_numbers_are_names_like_others() -> None:
    vocabulary = Vocabulary()
    found = vocabulary.of_whole_numbers(np.array([2**31 - 1, 5, 2**31 - 1]))
    assert found[0] == found[2] != found[1]
    assert vocabulary.of_whole_numbers(np.array([5]))[0] == found[1]


def test_the_example_of_the_documentation_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (Path(__file__).parents[1] / "docs" / "formats.md").read_text()
    example = page.split("```python\n")[1].split("```")[0]
    scipy.sparse.save_npz(tmp_path / "documents.npz", matrix(ROWS))
    line = b'{"id": "q", "vector": {"3": 1}}\n'
    (tmp_path / "queries.jsonl.gz").write_bytes(gzip.compress(line))
    monkeypatch.chdir(tmp_path)
    found: dict[str, Any] = {}
    exec(example, found)
    assert capsys.readouterr().out == "0 6\n"
    assert dictionaries(found["collection"].queries, found["collection"].features) == {
        "q": {"3": 1.0}
    }
