"""Predictors fitted in retrieval, frozen, put to the test on other settings (study, section 11)."""

from __future__ import annotations

from whencount.transfer.applying import PREDICTED_COLUMNS, apply
from whencount.transfer.freezing import Criteria, Frozen, freeze
from whencount.transfer.frozen_file import digest_of, read_frozen, settle, write_frozen
from whencount.transfer.outcomes import outcomes, started_before, too_early
from whencount.transfer.predictors import SETTING_REFERENCES
from whencount.transfer.testing import TRANSFER_COLUMNS, assess

__all__ = [
    "PREDICTED_COLUMNS",
    "SETTING_REFERENCES",
    "TRANSFER_COLUMNS",
    "Criteria",
    "Frozen",
    "apply",
    "assess",
    "digest_of",
    "freeze",
    "outcomes",
    "read_frozen",
    "settle",
    "started_before",
    "too_early",
    "write_frozen",
]
