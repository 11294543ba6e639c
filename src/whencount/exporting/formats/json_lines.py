"""JSON lines as Anserini's JsonVectorCollection and whencount read them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from whencount.exporting.formats.naming import numbers_of, rows_of
from whencount.files import atomic_file

if TYPE_CHECKING:
    from whencount.exporting.formats import Baked


def write(path: Path, baked: Baked) -> None:
    """`{"id": ..., "contents": "", "vector": {feature: weight}}` per document.

    Anserini repeats a term as often as its weight says, so it wants whole numbers: give bits.
    """
    with atomic_file(path) as temporary, temporary.open("wb") as stream:
        for block in baked.blocks():
            names, weights = baked.names.of(block.features), numbers_of(block)
            for name, low, high in rows_of(block):
                vector = dict(zip(names[low:high], weights[low:high], strict=True))
                record = {"id": name, "contents": "", "vector": vector}
                stream.write(orjson.dumps(record) + b"\n")
