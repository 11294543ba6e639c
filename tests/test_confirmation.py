"""What makes a test of rows exploratory, or no test at all, whatever its numbers say."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from whencount.hypotheses import confirm
from whencount.provenance.manifest import FileRecord, Manifest, write_manifest
from whencount.registration import record_path, register
from whencount.tables import write_table

LENGTH = """\
hypotheses:
  A:
    statement: Length is worth nothing
    test: exactly_zero
    value: shapley_length
"""


def rows(count: int = 6) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "representation": [f"r{number}_token" for number in range(count)],
            "collection": "c",
            "seed": 0,
            "budget": "32/128",
            "k1": 1.2,
            "b": 0.75,
            "control": "",
            "shapley_length": 0.0,
        }
    )


@pytest.fixture
def study(tmp_path: Path) -> Path:
    (tmp_path / "study.yaml").write_text(LENGTH)
    return tmp_path / "study.yaml"


def outcome(file: Path, table: pd.DataFrame, source: Path | None = None) -> tuple[Any, Any]:
    record = record_path(file) if record_path(file).exists() else None
    (line,) = confirm(file, record, table, source=source).to_dict("records")
    return line["status"], line["reason"]


@pytest.mark.parametrize("trace", ["file", "manifest"])
def test_rows_collected_anew_from_older_tables_are_exploratory(study: Path, trace: str) -> None:
    # The tables of jobs were out of the way when the file was registered, and came back.
    register(study, results=study.parent / "results", now=datetime(2026, 1, 1, tzinfo=UTC))
    source, table = study.parent / "results" / "rows.parquet", rows()
    write_table(table, source)
    before = datetime(2025, 12, 31, tzinfo=UTC)
    for number in range(6):
        one = source.parent / "rows" / f"r{number}_token.c.seed0.parquet"
        write_table(table[number : number + 1], one)
        if number < 4:
            continue
        if trace == "file":
            os.utime(one, (before.timestamp(), before.timestamp()))
        else:
            run = {"ended": before.isoformat(timespec="seconds")}
            files = {".": FileRecord(one.stat().st_size, "0" * 64)}
            write_manifest(Manifest(one.name, "table", files, "score", "", run=run), one)
    assert outcome(study, table, source) == (
        "exploratory",
        "2 tables of its rows were written before the registration",
    )
    assert outcome(study, table[:4], source) == ("confirmatory", "")


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (["much"] * 6, "the column shapley_length holds no numbers"),
        ([float("inf")] + [0.1] * 5, "1 of the 6 rows have an infinite shapley_length"),
        ([None] + [0.1] * 5, "1 of the 6 rows have no shapley_length"),
    ],
)
def test_what_is_no_number_cannot_be_tested(study: Path, values: list[Any], reason: str) -> None:
    assert outcome(study, rows().assign(shapley_length=values)) == ("not testable", reason)
