"""Rows of an external encoder stand beside the study's own and change nothing said of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from study_tables import ALPHA, DRAWS, ROOT, SCHEMA, StudyTables, study_tables

from whencount import attribution, summaries
from whencount.config import load
from whencount.reports import figures, pieces, sweeps
from whencount.reports.drawing import Drawing, Gallery
from whencount.study_rows import reported

CELLS = {"budgets": ["32/128", "native"], "k1": [0.6, 1.2], "b": [0.75]}


@pytest.fixture(scope="module")
def config() -> dict[str, Any]:
    config = load(ROOT / "config.yaml", SCHEMA)
    config["external"] = {"splade": {"source": "folder", "path": "splade"}}
    config["families"]["learned_sparse"] = {**CELLS, "representations": ["splade_external"]}
    return config


@pytest.fixture(scope="module")
def with_external(config: dict[str, Any]) -> StudyTables:
    return study_tables(config)


@pytest.fixture(scope="module")
def without() -> StudyTables:
    return study_tables()


def test_external_rows_belong_to_the_families_that_list_them(with_external: StudyTables) -> None:
    rows = with_external.rows
    external = rows[rows["granularity"] == "external"]
    assert set(external["representation"]) == {"splade_external"}
    assert set(external["basis"]) == {"splade"}
    assert set(external["families"]) == {"learned_sparse"}
    assert len(external) == 4 * rows["collection"].nunique()


def test_external_rows_change_no_summary_of_the_primary_family(
    with_external: StudyTables, without: StudyTables
) -> None:
    found = []
    for tables in (with_external, without):
        chosen = reported(tables.rows, "primary")
        shares = attribution.share_table(chosen, draws=200)
        same = summaries.reported_rows(tables.rows, tables.significance, "primary")
        pd.testing.assert_frame_equal(same, chosen.reset_index(drop=True))
        answer = summaries.answer(same, tables.significance, shares, alpha=ALPHA, draws=DRAWS)
        varied = [
            len(summaries.varied(tables.rows, column, same)) for column in summaries.CELL_KEYS
        ]
        found.append((answer, varied))
    assert found[0] == found[1]


def test_external_rows_can_be_reported_themselves(
    with_external: StudyTables, tmp_path: Path
) -> None:
    rows = reported(with_external.rows, "learned_sparse")
    drawings: list[Drawing | None] = [
        figures.quality(rows, with_external.references),
        figures.saturation(rows),
        figures.collection_gain(rows),
        sweeps.budgets(with_external.rows, rows),
    ]
    gallery = Gallery(tmp_path)
    for drawing in drawings:
        assert drawing is not None
        gallery.show(drawing)
    page = str(pieces.quality(rows, with_external.references))
    assert "splade external" in page
