"""The index in memory and on disk, and shards: the same bits however the collection is cut."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import vectors
from test_search_exact import GRID, random_collection, same

from whencount.engine.index import Index, block_size, eight_bit_levels, rounded
from whencount.engine.storage import write_index
from whencount.errors import InputError
from whencount.scoring import Parameters
from whencount.search import (
    CollectionStatistics,
    collection_statistics,
    merge_rankings,
    search,
    search_shards,
)
from whencount.vectors import SparseVectors


def arrays(index: Index) -> dict[str, object]:
    return {
        name: value.tolist() if isinstance(value, np.ndarray) else value
        for name, value in vars(index).items()
    }


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    kind=st.sampled_from(["continuous", "counts", "codes"]),
    cuts=st.lists(st.integers(0, 200), max_size=4),
    depth=st.sampled_from([1, 10, 300]),
)
def test_shards_merge_to_the_whole(seed: int, kind: str, cuts: list[int], depth: int) -> None:
    dense, wanted = random_collection(seed, kind, 200, 48, 4)
    whole, queries = vectors(dense), vectors(wanted)
    edges = [0, *sorted(cuts), 200]
    shards = [whole.slice(low, high) for low, high in pairwise(edges)]
    cells = (Parameters(), Parameters(0.6, 1.0))
    usual = search(whole, queries, cells, depth=depth)
    assert same(usual, search_shards(shards, queries, cells, depth=depth))
    indexed = [Index.build(shard, 32) for shard in shards]
    assert same(usual, search_shards(indexed, queries, cells, depth=depth, threads=2))


def test_rankings_of_shards_found_apart_merge_to_the_whole() -> None:
    dense, wanted = random_collection(31, "counts", 900, 48, 6)
    whole, queries = vectors(dense), vectors(wanted)
    starts, shards = [0, 250, 600], [whole.slice(0, 250), whole.slice(250, 600)]
    shards.append(whole.slice(600, 900))
    statistics = CollectionStatistics.merge([collection_statistics(shard) for shard in shards])
    parts = [search(shard, queries, GRID, depth=40, statistics=statistics) for shard in shards]
    assert same(search(whole, queries, GRID, depth=40), merge_rankings(parts, starts))


def test_vectors_too_many_for_one_index_are_searched_in_pieces(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    dense, wanted = random_collection(32, "continuous", 900, 48, 6)
    usual = search(vectors(dense), vectors(wanted), depth=40)
    monkeypatch.setattr("whencount.search.SHARD_NONZEROS", 1000)
    assert same(usual, search(vectors(dense), vectors(wanted), depth=40))


def test_rankings_of_different_shapes_do_not_merge() -> None:
    documents, queries = vectors(np.eye(3)), vectors(np.eye(3))
    parts = [search(documents, queries, depth=depth) for depth in (1, 2)]
    with pytest.raises(InputError, match="same shape"):
        merge_rankings(parts, [0, 3])
    with pytest.raises(InputError, match="at least one"):
        merge_rankings([], [])


@pytest.mark.parametrize("cuts", [[], [100], [0, 64, 64, 130, 499]])
def test_an_index_streamed_from_shards_is_the_one_built_in_memory(
    tmp_path: Path, cuts: list[int]
) -> None:
    dense, wanted = random_collection(33, "continuous", 500, 48, 6)
    whole, queries = vectors(dense), vectors(wanted)
    edges = [0, *cuts, 500]
    shards = (whole.slice(low, high) for low, high in pairwise(edges))
    write_index(tmp_path / "index", shards, block_documents=64)
    expected = Index.build(whole, 64)
    found = Index.load(tmp_path / "index", verify=True)
    assert arrays(found) == arrays(expected)
    assert same(search(found, queries, GRID, depth=20), search(whole, queries, GRID, depth=20))


def test_an_index_saved_is_the_one_loaded(tmp_path: Path) -> None:
    for number, dense in enumerate([np.eye(4), np.zeros((3, 4)), np.zeros((0, 4))]):
        index = Index.build(vectors(dense))
        index.save(tmp_path / str(number))
        assert arrays(Index.load(tmp_path / str(number), verify=True)) == arrays(index)


def test_vectors_on_disk_are_indexed_as_they_are(tmp_path: Path) -> None:
    dense, wanted = random_collection(34, "continuous", 300, 48, 6)
    vectors(dense).save(tmp_path / "vectors")
    loaded = SparseVectors.load(tmp_path / "vectors")
    assert same(search(loaded, vectors(wanted)), search(vectors(dense), vectors(wanted)))


@pytest.mark.parametrize(
    ("documents", "nonzeros", "vocabulary"),
    [(8_841_823, 8, 2_048), (8_841_823, 256, 8_192), (1_000_000, 128, 20_000),
     (500_000, 16, 32_768), (1_000_000, 1_536, 1_536), (60_000, 4, 4_096)],
)  # fmt: skip
def test_an_index_takes_at_most_eight_bytes_and_a_fifth_per_nonzero(
    documents: int, nonzeros: int, vocabulary: int
) -> None:
    size = block_size(documents, documents * nonzeros, vocabulary)
    assert size <= 1 << 16
    blocks = -(-documents // size)
    total = 6 * documents * nonzeros + 12 * documents
    total += 4 * blocks * (vocabulary + 1) + 8 * (blocks + 1) + 8 * vocabulary
    # Rows of four have three bytes of document constants per non-zero whatever the postings do.
    assert total / (documents * nonzeros) <= (8.2 if nonzeros >= 8 else 9.7)


def test_the_stated_size_is_the_size() -> None:
    dense, _ = random_collection(35, "continuous", 700, 48, 1)
    index = Index.build(vectors(dense), 256)
    stated = 6 * index.nonzeros + 12 * 700 + 4 * 3 * 49 + 8 * 4 + 8 * 48
    assert index.nbytes() == stated


def test_eight_bit_values_search_exactly_what_they_store(tmp_path: Path) -> None:
    dense, wanted = random_collection(36, "continuous", 700, 48, 8)
    whole, queries = vectors(dense), vectors(wanted)
    smallest, largest = float(whole.values.min()), float(whole.values.max())
    levels = eight_bit_levels(smallest, largest)
    index = Index.build(whole, 256, levels)
    assert index.values.dtype == np.uint8
    off = np.abs(np.log(rounded(whole, levels).values / whole.values)).max()
    assert off <= np.log(largest / smallest) / 510 * 1.0001
    expected = search(Index.build(rounded(whole, levels)), queries, GRID, depth=40)
    assert same(expected, search(index, queries, GRID, depth=40))
    assert same(expected, search(index, queries, GRID, depth=40, device="torch:cpu"))
    write_index(tmp_path / "index", [whole.slice(0, 90), whole.slice(90, 700)], 256, levels)
    found = Index.load(tmp_path / "index", verify=True)
    assert arrays(found) == arrays(index)
    assert same(expected, search(found, queries, GRID, depth=40))


def test_levels_need_a_range() -> None:
    for smallest, largest in ((1.0, 1.0), (0.0, 1.0), (1.0, 1.0 + 1e-6), (1.0, float("inf"))):
        with pytest.raises(InputError, match="store 32-bit values"):
            eight_bit_levels(smallest, largest)


def test_a_damaged_index_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    Index.build(vectors(np.eye(6))).save(folder)
    with (folder / "values.npy").open("r+b") as stream:
        stream.seek(-1, 2)
        stream.write(b"\x7f")
    Index.load(folder)
    with pytest.raises(InputError, match=r"values\.npy: the checksum differs"):
        Index.load(folder, verify=True)
    np.save(folder / "ids.npy", np.zeros(3, dtype=np.uint16))
    with pytest.raises(InputError, match="do not have the sizes"):
        Index.load(folder)
    (folder / "ids.npy").unlink()
    with pytest.raises(InputError, match="not a complete index"):
        Index.load(folder)
    meta = json.loads((folder / "meta.json").read_text()) | {"format": "other"}
    (folder / "meta.json").write_text(json.dumps(meta))
    with pytest.raises(InputError, match="format 'other'"):
        Index.load(folder)
    with pytest.raises(InputError, match="not a complete index"):
        Index.load(tmp_path / "nowhere")


def test_shards_that_do_not_fit_together_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="at least one shard"):
        write_index(tmp_path / "index", [])
    with pytest.raises(InputError, match="same basis"):
        write_index(tmp_path / "index", [vectors(np.eye(3)), vectors(np.eye(4))])
    assert not (tmp_path / "index").exists()


def test_a_block_of_more_documents_than_ids_can_number_is_refused() -> None:
    with pytest.raises(InputError, match="70000 documents"):
        Index.build(vectors(np.eye(3)), 70_000)


def test_postings_beyond_two_to_the_thirty_one_are_addressed_in_64_bits() -> None:
    index = Index.build(vectors(np.eye(3)))
    assert index.block_starts.dtype == np.int64
    assert vectors(np.eye(3)).indptr.dtype == np.int64
