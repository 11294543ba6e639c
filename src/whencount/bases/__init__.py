"""The seven bases: each turns states into non-negative codes, one file per basis."""

from __future__ import annotations

from whencount.bases.base import Basis, Codes, TrainingStates, load_basis

__all__ = ["Basis", "Codes", "TrainingStates", "load_basis"]
