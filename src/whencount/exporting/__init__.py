"""Corrected weights for other engines: a configuration folded in, whole numbers, CIFF.

`folding_of` folds, `steps_of` rounds, `write_ciff` and `write_json_lines` write; `pisa` searches
what was written with block-max or MaxScore pruning.
"""

from __future__ import annotations

from whencount.exporting.ciff import CiffFile, write_ciff
from whencount.exporting.impacts import Folding, Steps, folding_of, score_bound, steps_of
from whencount.exporting.json_lines import write_json_lines

__all__ = [
    "CiffFile",
    "Folding",
    "Steps",
    "folding_of",
    "score_bound",
    "steps_of",
    "write_ciff",
    "write_json_lines",
]
