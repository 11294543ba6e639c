"""The memory of building and searching an index stays within the stated formula."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's /proc")
@pytest.mark.parametrize("documents", [30_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_building_and_searching_stay_within_the_stated_memory(
    documents: int, tmp_path: Path
) -> None:
    probe = Path(__file__).with_name("memory_probe.py")
    done = subprocess.run(
        [sys.executable, str(probe), str(tmp_path / "index"), str(documents)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["nonzeros"] == documents * 128
    assert found["index"] <= 8.2 * found["nonzeros"]
    # Building holds the shard at hand, the next one while it is made, and one block.
    assert found["building"] <= 3 * found["one_shard"] + (64 << 20)
    # Statistics read the document constants; everything else is in the formula.
    assert found["searching"] <= found["stated"] + 4 * found["per_document"]
