"""Hypotheses fixed beforehand: named tests in a file, and what rows say (study, section 8)."""

from __future__ import annotations

from whencount.hypotheses.confirmation import COLUMNS, confirm, run_tests
from whencount.hypotheses.definitions import Hypothesis, HypothesisFile, load_file, shipped_files

__all__ = [
    "COLUMNS",
    "Hypothesis",
    "HypothesisFile",
    "confirm",
    "load_file",
    "run_tests",
    "shipped_files",
]
