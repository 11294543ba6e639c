from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from whencount.errors import InputError
from whencount.tables import read_table, write_table

FRAME = pd.DataFrame({"name": ["a", "b"], "budget": pd.array([1, None], dtype="Int64")})


def test_a_table_reads_back_with_its_types_and_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_table(FRAME, tmp_path / name)
    pd.testing.assert_frame_equal(read_table(tmp_path / "one"), FRAME)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_a_missing_or_truncated_table_is_named(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    with pytest.raises(InputError, match=r"rows\.parquet cannot be read as a Parquet table"):
        read_table(path)
    write_table(FRAME, path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(InputError, match="delete it and run again"):
        read_table(path)
