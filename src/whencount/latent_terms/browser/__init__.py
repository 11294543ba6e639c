"""The browser of features: one page that a person reads and labels features in."""

from __future__ import annotations

from whencount.latent_terms.browser.page import write_browser

__all__ = ["write_browser"]
