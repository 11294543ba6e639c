"""Points of Qdrant with a sparse vector."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from whencount.exporting.formats.naming import numbers_of, rows_of
from whencount.files import atomic_file

if TYPE_CHECKING:
    from whencount.exporting.formats import Baked

VECTOR = "whencount"
"""The name of the sparse vector in the collection."""


def write(path: Path, baked: Baked) -> None:
    """A point per line, as the body of an upsert holds it.

    Ids of points are numbers from 0, since Qdrant takes no other text than UUIDs; the document's id
    is the payload `id`. `FILE.features.txt` names the features.
    """
    number = width = 0
    with atomic_file(path) as temporary, temporary.open("wb") as stream:
        for block in baked.blocks():
            width = max(width, block.vocabulary_size)
            features, weights = block.features.tolist(), numbers_of(block)
            for name, low, high in rows_of(block):
                vector = {"indices": features[low:high], "values": weights[low:high]}
                point = {"id": number, "vector": {VECTOR: vector}, "payload": {"id": name}}
                stream.write(orjson.dumps(point) + b"\n")
                number += 1
    baked.names.write(path.with_name(f"{path.name}.features.txt"), width)
