"""Should an index use collection statistics? What can be told of it without relevance labels."""

from __future__ import annotations

from whencount.advising.advice import Advice, advise
from whencount.advising.evidence import Evidence, Grid

__all__ = ["Advice", "Evidence", "Grid", "advise"]
