"""Whole-number weights as JSON lines, for queries, and for engines that read no CIFF."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

import numpy as np
import orjson

from whencount.errors import InputError
from whencount.exporting.ciff import term_of
from whencount.files import atomic_file
from whencount.vectors import SparseVectors


def write_json_lines(path: str | Path, blocks: Iterable[SparseVectors]) -> None:
    """Write `{"id": ..., "vector": {term: weight}}` per row, in order; whole or not at all.

    This is the layout that whencount reads too, and, with terms named as in a CIFF file, that of
    Anserini's JsonVectorCollection. A block is held at a time.

    Args:
        path: the file.
        blocks: of impacts (`Steps.round`).

    Raises:
        InputError: a weight is no whole number.
    """
    with atomic_file(path) as temporary, temporary.open("wb") as stream:
        for block in blocks:
            if (np.asarray(block.values) != np.rint(block.values)).any():
                raise InputError(
                    f"{path}: some weights are no whole numbers; round them first"
                    " (whencount.exporting.steps_of)"
                )
            terms = [term_of(feature) for feature in block.features.tolist()]
            weights = block.values.astype(np.int64).tolist()
            for name, (low, high) in zip(block.ids, pairwise(block.indptr.tolist()), strict=True):
                vector = dict(zip(terms[low:high], weights[low:high], strict=True))
                stream.write(orjson.dumps({"id": name, "vector": vector}) + b"\n")
