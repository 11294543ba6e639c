"""The `_bulk` body of OpenSearch and Elasticsearch for a `rank_features` field."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from whencount.exporting.formats.naming import numbers_of, rows_of
from whencount.files import atomic_file

if TYPE_CHECKING:
    from whencount.exporting.formats import Baked

FIELD = "whencount"
"""The field of a document that holds its features."""


def feature_name(name: str) -> str:
    """The name in the field: dots, which such a field refuses, and percent signs are escaped."""
    return name.replace("%", "%25").replace(".", "%2E")


def write(path: Path, baked: Baked) -> None:
    """Two lines per document, `{"index": {"_id": ...}}` and `{"whencount": {feature: weight}}`.

    Such a field keeps nine significant bits of a weight, a relative error of up to 0.4 %, whatever
    is written. Ask with one `rank_feature` clause per query feature, `linear` function, the query
    weight as its boost.
    """
    with atomic_file(path) as temporary, temporary.open("wb") as stream:
        for block in baked.blocks():
            names = [feature_name(name) for name in baked.names.of(block.features)]
            weights = numbers_of(block)
            for name, low, high in rows_of(block):
                features = dict(zip(names[low:high], weights[low:high], strict=True))
                stream.write(orjson.dumps({"index": {"_id": name}}) + b"\n")
                stream.write(orjson.dumps({FIELD: features}) + b"\n")
