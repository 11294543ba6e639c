"""Two arms, one decision: a dense and a lexical ranking of the same rows (study, section 14).

`arms` holds what the two arms say of one query's rows, `rules` a file per way of making one order
of it, `reversals` when a rule turns a pair of the dense order round, `stages` and `gates` what a
pipeline lets through, `worlds` laws under which no rule that sees one row at a time is always
right.
"""

from __future__ import annotations

from whencount.fusion.arms import Arms

__all__ = ["Arms"]
