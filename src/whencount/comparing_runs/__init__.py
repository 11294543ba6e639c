"""Runs of several systems on the same queries, compared query by query."""

from __future__ import annotations

from whencount.comparing_runs.comparison import Comparison, compare

__all__ = ["Comparison", "compare"]
