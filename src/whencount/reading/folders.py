"""Folders of vectors in the house's own format."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from whencount.errors import InputError
from whencount.reading.places import Places
from whencount.reading.rows import ROWS_AT_ONCE, Rows
from whencount.reading.vocabulary import Vocabulary
from whencount.vectors import SparseVectors

NAMES = "features.parquet"
"""In the folder or beside it: the names of the features, column `feature`; else their numbers."""


def read(places: Places, vocabulary: Vocabulary) -> Iterator[Rows]:
    """Rows of all folders, in order, memory-mapped.

    Raises:
        InputError: a folder is incomplete, or has a feature outside its vocabulary.
    """
    for file, path in enumerate(places.files):
        vectors = SparseVectors.load(path)
        size = vectors.vocabulary_size
        numbers = np.arange(size, dtype=np.int32)
        named = next((one / NAMES for one in (path, path.parent) if (one / NAMES).is_file()), None)
        if named is not None:
            try:
                names = pq.read_table(named).column("feature").to_pylist()
            except (OSError, KeyError, pa.ArrowException) as error:
                raise InputError(f"{named} cannot be read ({error})") from error
            if len(names) != size:
                raise InputError(f"{named} has {len(names)} names for {size} features")
            numbers = vocabulary.of_names(names)
        else:
            numbers = vocabulary.of_whole_numbers(numbers.astype(np.int64))
        for low in range(0, len(vectors), ROWS_AT_ONCE):
            part = vectors.slice(low, min(low + ROWS_AT_ONCE, len(vectors)))
            features = np.asarray(part.features)
            if len(features) and not 0 <= features.min() <= features.max() < size:
                raise InputError(
                    f"{path}: a feature lies outside 0..{size - 1}, the declared vocabulary; build"
                    " the vectors again"
                )
            yield Rows(
                part.ids.tolist(),
                places.of(file, np.arange(low, low + len(part), dtype=np.int64)),
                part.row_sizes(),
                numbers[features],
                np.asarray(part.values, dtype=np.float64),
            )
