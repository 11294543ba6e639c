"""The site of a study: every report linked, and an explorer of its rows on one page."""

from __future__ import annotations

from whencount.site.moving import moved_documents, no_documents
from whencount.site.page import write_site

__all__ = ["moved_documents", "no_documents", "write_site"]
