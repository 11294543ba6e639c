"""Controls: document frequencies put in place of the true ones (study, section 4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from whencount.errors import InputError

if TYPE_CHECKING:
    from whencount.search import CollectionStatistics


def controlled_frequency(
    statistics: CollectionStatistics, control: str, seed: int
) -> NDArray[Any] | None:
    """The document frequencies that a control puts in place of the true ones.

    `shuffled_df` permutes the frequencies across all features; `uniform_df` gives every live
    feature (one that occurs) the mean frequency of the live ones, so that IDF scales every score
    alike (study, section 4).

    Returns:
        Shape (V,), or None for no control.

    Raises:
        InputError: an unknown control.
    """
    frequency = statistics.document_frequency
    if control == "":
        return None
    if control == "shuffled_df":
        return np.random.default_rng(seed).permutation(frequency)
    if control == "uniform_df":
        live = frequency > 0
        mean = float(frequency[live].mean()) if live.any() else 0.0
        return np.where(live, mean, 0.0)
    raise InputError(f"control {control!r} is not known; choose shuffled_df or uniform_df")
