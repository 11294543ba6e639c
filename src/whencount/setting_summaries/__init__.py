"""What the studies of KV pages and of expert routing found, as numbers: the answers of their pages.

Tables in (docs/tables.md), numbers out; `whencount.reports` puts them into words and figures.
"""

from __future__ import annotations

from whencount.setting_summaries.experts import ExpertsAnswer
from whencount.setting_summaries.identities import Identity
from whencount.setting_summaries.intervals import Difference
from whencount.setting_summaries.kv_pages import PagesAnswer

__all__ = ["Difference", "ExpertsAnswer", "Identity", "PagesAnswer"]
