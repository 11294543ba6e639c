"""What rows say to a file of hypotheses, and whether that may be called confirmatory."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from whencount.hypotheses.definitions import Hypothesis, HypothesisFile, load_file
from whencount.hypotheses.selection import NotTestable
from whencount.hypotheses.testing import Finding, Resampling, run
from whencount.registration import Record, read_record, row_keys, written_before
from whencount.significance import holm

if TYPE_CHECKING:
    import pandas as pd

CONFIRMATORY = "confirmatory"
EXPLORATORY = "exploratory"
NOT_TESTABLE = "not testable"

COLUMNS: Mapping[str, str] = {
    "registration": "str",
    "hypothesis": "str",
    "setting": "str",
    "statement": "str",
    "test": "str",
    "rows": "int64",
    "estimate": "float64",
    "comparison": "float64",
    "threshold": "float64",
    "p": "float64",
    "holm_p": "float64",
    "passes": "boolean",
    "status": "str",
    "reason": "str",
    "published": "float64",
    "published_comparison": "float64",
    "published_p": "float64",
}
"""The columns of hypotheses.parquet and their types; docs/tables.md explains them."""


@dataclass(frozen=True)
class _Line:
    """A hypothesis at one of its settings: what was found, or why nothing was."""

    hypothesis: Hypothesis
    setting: str
    finding: Finding | None
    reason: str


def confirm(
    file: str | Path,
    record: str | Path | None,
    rows: pd.DataFrame,
    *,
    source: str | Path | None = None,
    draws: int = 2_000,
    seed: int = 0,
) -> pd.DataFrame:
    """Test the hypotheses of a file on rows, and say whether the tests are confirmatory.

    They are where the record is whole, holds the hash of the file as it is now, was made before
    `source` and the tables that it was collected from were written, and did not list the rows that
    the test uses; `source` must be a table of the folder of results that was looked at. Otherwise
    they are exploratory, and `reason` says why.

    Args:
        file: of hypotheses.
        record: its registration (`whencount.registration.register`); None for none.
        rows: rows.parquet, or what `whencount.foreign_rows.read_rows` makes of another table.
        source: the file that `rows` were read from; None where that is not known.
        draws: resamples of the decision rule's interval.
        seed: of them.

    Returns:
        One line per hypothesis and setting, in the order of the file, with COLUMNS. A failed
        hypothesis has `passes` False; one that cannot be tested has a missing `passes`.

    Raises:
        InputError: the file or the record is missing or not valid.
    """
    checked = load_file(file)
    known = None if record is None else read_record(record)
    general = _why_exploratory(checked, known, source)
    table, lines = _tested(checked, rows, Resampling(draws, seed))
    status, reasons = [], []
    for line in lines:
        if line.finding is None:
            status.append(NOT_TESTABLE)
            reasons.append(line.reason)
            continue
        reason = general
        if not reason and known is not None and source is not None:
            reason = _existed(known, line.finding.used, Path(source))
        status.append(EXPLORATORY if reason else CONFIRMATORY)
        reasons.append(reason)
    return table.assign(status=status, reason=reasons)[list(COLUMNS)].astype(dict(COLUMNS))


def run_tests(
    file: HypothesisFile, rows: pd.DataFrame, *, draws: int = 2_000, seed: int = 0
) -> pd.DataFrame:
    """Test the hypotheses of a file on rows, without a word on when they were fixed.

    All p-values of the file are one family of Holm's; a test that cannot be made counts there with
    p 1, so that missing rows make no other test easier.

    Returns:
        As `confirm`, without the columns status and reason.
    """
    table, _ = _tested(file, rows, Resampling(draws, seed))
    return table


def _tested(
    file: HypothesisFile, rows: pd.DataFrame, resampling: Resampling
) -> tuple[pd.DataFrame, list[_Line]]:
    import pandas as pd

    lines = [
        _line(hypothesis, setting, choice, rows, resampling)
        for hypothesis in file.hypotheses
        for setting, choice in hypothesis.settings.items()
    ]
    corrected = _corrected(lines)
    table = pd.DataFrame(
        [
            _values(file, line, holm_p, file.alpha)
            for line, holm_p in zip(lines, corrected, strict=True)
        ]
    )
    types = {name: kind for name, kind in COLUMNS.items() if name in table.columns}
    return table[list(types)].astype(types), lines


def _line(
    hypothesis: Hypothesis,
    setting: str,
    choice: Mapping[str, Any],
    rows: pd.DataFrame,
    resampling: Resampling,
) -> _Line:
    try:
        return _Line(hypothesis, setting, run(hypothesis, rows, choice, resampling), "")
    except NotTestable as error:
        return _Line(hypothesis, setting, None, str(error))


HAS_P = frozenset({"paired_greater", "rank_correlation", "model_ranking"})
"""The kinds of test with a p; the others say yes or no and stand outside Holm's family."""


def _corrected(lines: Sequence[_Line]) -> list[float]:
    """Holm's p of every line; NaN where there is none."""
    raw = [
        (1.0 if line.finding is None or line.finding.p is None else line.finding.p)
        for line in lines
        if line.hypothesis.test in HAS_P
    ]
    adjusted = iter(holm(raw).tolist() if raw else [])
    result = []
    for line in lines:
        value = next(adjusted) if line.hypothesis.test in HAS_P else math.nan
        result.append(math.nan if line.finding is None else value)
    return result


def _values(file: HypothesisFile, line: _Line, holm_p: float, alpha: float) -> dict[str, Any]:
    import pandas as pd

    hypothesis, finding = line.hypothesis, line.finding
    published = hypothesis.published.get(line.setting, {})
    values: dict[str, Any] = {
        "registration": file.name,
        "hypothesis": hypothesis.name,
        "setting": line.setting,
        "statement": hypothesis.statement,
        "test": hypothesis.test,
        "rows": 0,
        "estimate": math.nan,
        "comparison": math.nan,
        "threshold": math.nan,
        "p": math.nan,
        "holm_p": holm_p,
        "passes": pd.NA,
        "published": _number(published.get("estimate")),
        "published_comparison": _number(published.get("comparison")),
        "published_p": _number(published.get("p")),
    }
    if finding is not None:
        values |= {
            "rows": finding.rows,
            "estimate": finding.estimate,
            "comparison": _number(finding.comparison),
            "threshold": _number(finding.threshold),
            "p": _number(finding.p),
            # A p below alpha is not enough where the estimate misses what was claimed.
            "passes": bool(finding.holds and (finding.p is None or holm_p <= alpha)),
        }
    return values


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


def _why_exploratory(file: HypothesisFile, record: Record | None, source: str | Path | None) -> str:
    """Why no test of the file can be confirmatory; empty where one can."""
    if record is None:
        return "not registered"
    if record.faults:
        return f"the registration is not whole: {record.faults[0]}"
    if record.sha256 != file.sha256:
        return "the file was changed after its registration"
    if source is None:
        return "where the rows are from is not known"
    path, results = Path(source).resolve(), record.results.resolve()
    if path != results / "rows.parquet" and path.parent != results / "rows":
        return f"the rows are not those of the registered folder of results, {record.results.name}"
    return ""


def _existed(record: Record, used: pd.DataFrame, source: Path) -> str:
    """Why a test of these rows is not confirmatory although the registration is in order."""
    existing = np.array([key in record.rows for key in row_keys(used)])
    if existing.any():
        return (
            f"{int(existing.sum()):,} of the {len(used):,} rows it uses existed before the"
            " registration"
        )
    older = written_before(record, source, used)
    if older == 1:
        return "a table of its rows was written before the registration"
    return f"{older:,} tables of its rows were written before the registration" if older else ""
