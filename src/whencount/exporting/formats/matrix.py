"""A matrix as `scipy.sparse.load_npz` reads it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np

from whencount.files import atomic_file
from whencount.vectors import VectorsWriter

if TYPE_CHECKING:
    from whencount.exporting.formats import Baked

_ARRAYS = ("indptr", "features", "values")


def write(path: Path, baked: Baked) -> None:
    """CSR, a row per document, float32; `NAME.ids.txt` and `FILE.features.txt` beside it.

    Rows have their features in rising order. Arrays pass through files; memory holds a block.
    """
    with TemporaryDirectory(dir=path.parent) as scratch:
        folder = Path(scratch) / "rows"
        width = 1
        with VectorsWriter(folder, 0) as writer:
            for block in baked.blocks():
                width = max(width, block.vocabulary_size)
                rows = np.repeat(np.arange(len(block)), block.row_sizes())
                order = np.lexsort((block.features, rows))
                writer.append(
                    replace(block, features=block.features[order], values=block.values[order])
                )
        arrays = {name: np.load(folder / f"{name}.npy", mmap_mode="r") for name in _ARRAYS}
        with atomic_file(path) as temporary, temporary.open("wb") as stream:
            np.savez(
                stream,
                indices=arrays["features"],
                indptr=arrays["indptr"],
                format=np.array(b"csr"),
                shape=np.array([baked.rows, width]),
                data=arrays["values"],
            )
    ids = path.with_suffix(".ids.txt")
    with atomic_file(ids) as temporary, temporary.open("w", encoding="utf-8") as lines:
        for block in baked.blocks():
            lines.writelines(f"{name}\n" for name in block.ids)
    baked.names.write(path.with_name(f"{path.name}.features.txt"), width)
