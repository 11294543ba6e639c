"""Rows of setting B: tables of what the examples of a job gave (docs/tables.md)."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from whencount import attribution
from whencount.naming import SETTING_KEYS
from whencount.pages.evaluation import ExampleResult, PagesJob, PagesOptions
from whencount.ranking_diagnostics import DISRUPTION_COLUMNS, DROP_COLUMNS, SPREAD_COLUMNS, pseudo_columns
from whencount.tables import read_table, write_table

if TYPE_CHECKING:
    import pandas as pd
