"""Rows of Milvus for bulk insert: Parquet with a sparse vector as JSON text."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from whencount.exporting.formats.naming import numbers_of, rows_of
from whencount.files import atomic_file

if TYPE_CHECKING:
    from whencount.exporting.formats import Baked

SCHEMA = pa.schema([("id", pa.string()), ("sparse", pa.string())])


def write(path: Path, baked: Baked) -> None:
    """Columns id (VARCHAR) and sparse (SPARSE_FLOAT_VECTOR, `{"feature": weight}` by number).

    The form in which pymilvus's bulk writer puts a sparse vector into Parquet. Milvus takes no
    empty vector, so a document without features is left out. `FILE.features.txt` has the names.
    """
    width = 0
    with atomic_file(path) as temporary, pq.ParquetWriter(temporary, SCHEMA) as writer:
        for block in baked.blocks():
            width = max(width, block.vocabulary_size)
            keys, weights = list(map(str, block.features.tolist())), numbers_of(block)
            ids, vectors = [], []
            for name, low, high in rows_of(block):
                if high > low:
                    vector = dict(zip(keys[low:high], weights[low:high], strict=True))
                    ids.append(name)
                    vectors.append(orjson.dumps(vector).decode())
            writer.write_table(pa.table({"id": ids, "sparse": vectors}, schema=SCHEMA))
    baked.names.write(path.with_name(f"{path.name}.features.txt"), width)
