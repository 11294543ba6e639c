"""Parquet with lists."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from whencount.files import atomic_file

if TYPE_CHECKING:
    from whencount.exporting.formats import Baked

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("indices", pa.list_(pa.int32())),
        ("values", pa.list_(pa.float32())),
    ]
)


def write(path: Path, baked: Baked) -> None:
    """Columns id, indices (int32) and values (float32); `FILE.features.txt` names the features."""
    width = 0
    with atomic_file(path) as temporary, pq.ParquetWriter(temporary, SCHEMA) as writer:
        for block in baked.blocks():
            width = max(width, block.vocabulary_size)
            offsets = pa.array(np.asarray(block.indptr), type=pa.int32())
            columns = [
                pa.array(block.ids, type=pa.string()),
                pa.ListArray.from_arrays(offsets, pa.array(np.asarray(block.features))),
                pa.ListArray.from_arrays(offsets, pa.array(np.asarray(block.values))),
            ]
            writer.write_table(pa.Table.from_arrays(columns, schema=SCHEMA))
    baked.names.write(path.with_name(f"{path.name}.features.txt"), width)
