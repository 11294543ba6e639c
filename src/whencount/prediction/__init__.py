"""Predicting without labels when the three switches help (study, section 7)."""

from __future__ import annotations

from whencount.prediction.models import ALPHAS, DEFAULT_ALPHA, Ridge, fit_ridge

__all__ = ["ALPHAS", "DEFAULT_ALPHA", "Ridge", "fit_ridge"]
