"""The torch kernel on CPU tensors gives what the CPU kernel gives, in every bit."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from oracle import vectors
from test_search_exact import GRID, random_collection, same

from whencount.engine import torch_kernel
from whencount.engine.index import Index
from whencount.errors import InputError
from whencount.search import search

pytest.importorskip("torch")
Array = NDArray[Any]


@pytest.mark.parametrize("kind", ["continuous", "counts", "codes"])
@pytest.mark.parametrize("depth", [5, 60, 4000])
def test_torch_equals_the_cpu_kernel(kind: str, depth: int) -> None:
    dense, wanted = random_collection(21, kind, 1500, 64, 10)
    index = Index.build(vectors(dense), 256)
    usual = search(index, vectors(wanted), GRID, depth=depth)
    assert same(usual, search(index, vectors(wanted), GRID, depth=depth, device="torch:cpu"))


def test_a_small_memory_budget_changes_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    dense, wanted = random_collection(22, "continuous", 1500, 64, 40)
    index = Index.build(vectors(dense), 128)
    usual = search(index, vectors(wanted), depth=30)
    monkeypatch.setattr(torch_kernel, "MEMORY_BYTES", 200_000)
    assert len(torch_kernel._chunks(index, 8, 100_000)) > 5
    assert same(usual, search(index, vectors(wanted), depth=30, device="torch:cpu"))


def test_nothing_to_find_is_no_fault() -> None:
    nothing = vectors(np.zeros((3, 5), dtype=np.float32))
    full = vectors(np.eye(5, dtype=np.float32))
    for documents, queries in ((nothing, full), (full, nothing), (full.slice(0, 0), full)):
        assert not search(documents, queries, device="torch:cpu").counts.any()


def test_an_unknown_device_is_refused_by_name() -> None:
    with pytest.raises(InputError, match="'nowhere'"):
        search(vectors(np.eye(2)), vectors(np.eye(2)), device="nowhere")


def test_without_torch_the_fault_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(InputError, match="needs torch"):
        search(vectors(np.eye(2)), vectors(np.eye(2)), device="cuda")
