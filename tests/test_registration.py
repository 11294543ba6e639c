"""Registering a file of hypotheses: what a record holds, and what is noticed later."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from whencount.checkpoints import parts_of, save_arrays
from whencount.cli import main
from whencount.errors import InputError
from whencount.naming import Cell, Job
from whencount.registration import (
    code_version,
    existing_rows,
    read_record,
    record_path,
    register,
    source_hash,
)
from whencount.tables import write_table

HYPOTHESES = """\
# a comment
hypotheses:
  H5:
    statement: Nothing comes of nothing
    test: exactly_zero
    rows: {b: 0}
    value: shapley_length
"""


def rows(collection: str, **settings: Any) -> pd.DataFrame:
    values = {
        "representation": "sae_token",
        "collection": collection,
        "seed": 0,
        "budget": "32/128",
        "k1": 1.2,
        "b": 0.75,
        "control": "",
    }
    return pd.DataFrame([values | settings])


@pytest.fixture
def study(tmp_path: Path) -> Path:
    (tmp_path / "study.yaml").write_text(HYPOTHESES)
    return tmp_path / "study.yaml"


def test_a_record_holds_the_hash_of_the_bytes_and_the_time(study: Path) -> None:
    now = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    record = register(study, results=study.parent / "results", now=now)
    assert record.path == study.with_name("study.registration.json") == record_path(study)
    assert record.sha256 == hashlib.sha256(HYPOTHESES.encode()).hexdigest()
    assert record.registered == now
    assert record.file == "study.yaml"
    assert record.rows == frozenset()
    assert record.faults == ()
    assert record.results.resolve() == (study.parent / "results").resolve()
    body = json.loads(record.path.read_text())
    assert body["registered"] == "2026-01-02T03:04:05+00:00"
    assert body["rows"]["count"] == 0


def test_a_record_lists_the_rows_of_the_study_and_of_single_jobs(study: Path) -> None:
    results = study.parent / "results"
    both = pd.concat([rows("limit"), rows("limit", control="uniform_df", budget="native")])
    write_table(both, results / "rows.parquet")
    write_table(rows("fiqa", seed=2, k1=0.6, b=0.0), results / "rows" / "job.parquet")
    write_table(rows("limit"), results / "rows" / "again.parquet")
    record = register(study, results=results)
    assert record.rows == {
        (Job("sae_token", "limit", 0), Cell("32/128", 1.2, 0.75)),
        (Job("sae_token", "limit", 0), Cell("native", 1.2, 0.75, "uniform_df")),
        (Job("sae_token", "fiqa", 2), Cell("32/128", 0.6, 0.0)),
    }
    assert record.rows == existing_rows(results)
    assert record.faults == ()


def test_qualities_per_query_are_rows_that_exist(study: Path) -> None:
    results = study.parent / "results"
    details = pd.DataFrame(
        {"budget": "32/128", "k1": [1.2, 0.6, 1.2], "b": 0.75, "control": "", "query_id": "q"}
    )
    write_table(details, results / "per_query" / "sae_shared_token.my.corpus.seed3.parquet")
    job = Job("sae_shared_token", "my.corpus", 3)
    assert register(study, results=results).rows == {
        (job, Cell("32/128", k1, 0.75)) for k1 in (0.6, 1.2)
    }


def test_cells_that_a_job_finished_before_it_was_broken_off_are_rows_that_exist(
    study: Path,
) -> None:
    results = study.parent / "results"
    table = results / "rows" / "sae_token.my.corpus.seed3.parquet"
    cells = [["32/128", 1.2, 0.75, ""], ["32/128", 0.6, 0.75, ""], ["native", 1.2, 0.75, ""]]
    with suppress(KeyboardInterrupt), parts_of(table, {"cells": cells}) as parts:
        cell = Cell("32/128", 1.2, 0.75)
        save_arrays(parts / cell.checkpoint, {"quality": np.zeros(8)})
        raise KeyboardInterrupt
    job = Job("sae_token", "my.corpus", 3)
    assert existing_rows(results) == {(job, Cell("32/128", k1, 0.75)) for k1 in (0.6, 1.2)}
    assert register(study, results=results).rows == existing_rows(results)
    (results / "rows" / f".{table.name}.partial" / "key.json").write_text("{")
    with pytest.raises(InputError, match="the parts of a job that was broken off"):
        existing_rows(results)


def test_a_second_registration_refuses_to_overwrite_the_first(study: Path) -> None:
    register(study, results=study.parent / "results")
    before = record_path(study).read_bytes()
    with pytest.raises(InputError, match=r"exists already.*file of another name"):
        register(study, results=study.parent / "results")
    assert record_path(study).read_bytes() == before


def test_a_damaged_table_of_rows_stops_the_registration(study: Path) -> None:
    table = study.parent / "results" / "rows" / "job.parquet"
    table.parent.mkdir(parents=True)
    table.write_bytes(b"PAR1 and then nothing")
    with pytest.raises(InputError, match=r"job\.parquet cannot be read"):
        register(study, results=study.parent / "results")
    assert not record_path(study).exists()


def test_an_invalid_file_is_not_registered(study: Path) -> None:
    study.write_text(HYPOTHESES.replace("exactly_zero", "exactly_one"))
    with pytest.raises(InputError, match="'exactly_one' is not allowed"):
        register(study, results=study.parent)
    assert not record_path(study).exists()


def edited(path: Path, change: Any) -> Path:
    body = json.loads(path.read_text())
    change(body)
    path.write_text(json.dumps(body))
    return path


@pytest.mark.parametrize(
    "change",
    [
        lambda body: body.update(sha256="0" * 64),
        lambda body: body.update(registered="2020-01-01T00:00:00+00:00"),
        lambda body: body["rows"]["keys"].clear(),
        lambda body: body["rows"].update(count=0),
        lambda body: body["code"].update(version="9"),
        lambda body: body.update(results="elsewhere"),
    ],
    ids=["hash", "time", "list of rows", "count", "code", "folder"],
)
def test_an_edited_record_is_noticed(study: Path, change: Any) -> None:
    results = study.parent / "results"
    write_table(rows("limit"), results / "rows.parquet")
    path = register(study, results=results).path
    assert any("edited" in fault for fault in read_record(edited(path, change)).faults)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "not valid JSON"),
        ("[]", "is no registration"),
        ('{"format": "whencount registration 1"}', "lacks file, sha256"),
    ],
)
def test_what_is_no_record_is_named(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "x.registration.json"
    path.write_text(content)
    with pytest.raises(InputError, match=message):
        read_record(path)


def test_a_record_without_rows_to_read_is_called_damaged(study: Path) -> None:
    path = edited(
        register(study, results=study.parent / "results").path,
        lambda body: body["rows"].update(keys={"sae_token": "limit"}),
    )
    with pytest.raises(InputError, match="is damaged"):
        read_record(path)


def test_the_hash_of_the_sources_follows_every_byte_and_name(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    first = source_hash(tmp_path)
    (tmp_path / "notes.txt").write_text("no source")
    assert source_hash(tmp_path) == first
    (tmp_path / "a.py").write_text("x = 2\n")
    second = source_hash(tmp_path)
    (tmp_path / "a.py").rename(tmp_path / "b.py")
    assert len({first, second, source_hash(tmp_path)}) == 3


def test_the_code_is_named_by_version_sources_and_commit() -> None:
    code = code_version()
    assert set(code) == {"version", "sources", "commit", "uncommitted_changes"}
    assert len(code["sources"]) == 64
    assert code["commit"] is None or len(code["commit"]) == 40


def test_the_command_registers_and_warns_of_results_that_are_not_there(study: Path) -> None:
    arguments = ["register", str(study), "--results", str(study.parent / "nowhere")]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0
    assert "no row existed" in result.output
    assert "does not exist" in result.stderr
    again = CliRunner().invoke(main, arguments)
    assert again.exit_code == 2
    assert "exists already" in again.stderr
    assert "Traceback" not in again.output
