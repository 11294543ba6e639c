"""The page of hypotheses: what passed, what failed, what could not be tested, and why."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest
from study_tables import ALPHA, DRAWS, ROOT, StudyTables, study_tables

from whencount import reports
from whencount.hypotheses.definitions import load_file, shipped_files
from whencount.reports import hypothesis_pieces
from whencount.reports.hypothesis_figures import figure_of

NOTEBOOK = ROOT / "workflow" / "notebooks" / "hypotheses.ipynb"


@pytest.fixture(scope="module")
def tables() -> StudyTables:
    return study_tables()


@pytest.fixture(scope="module")
def page(tables: StudyTables, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("hypotheses")
    parameters = {
        "study": "made-up",
        "family": "primary",
        "alpha": ALPHA,
        "draws": DRAWS,
        "settings": {},
        "formats": ["svg"],
        **tables.write(folder),
    }
    reports.render(NOTEBOOK, parameters, folder / "figures", folder / "page.html")
    assert len(list((folder / "figures").iterdir())) == 6
    return (folder / "page.html").read_text(encoding="utf-8")


def section(page: str, name: str) -> str:
    """The text of the section of a hypothesis, without markup."""
    part = page[page.index(f">{name}: A claim") :]
    part = part[: part.index("<figure")]
    return " ".join(re.sub("<[^>]*>", " ", part).replace("\xa0", " ").split())


def test_failures_are_told_as_failures(page: str) -> None:
    text = section(page, "H2")
    assert "FAILED" in text
    assert "mean +0.0500 against +0.0600, over 28 pairs; p 0.7, after Holm's correction 1" in text
    assert "passed" not in text
    assert "Failed: H2." in page


def test_every_line_says_whether_it_is_confirmatory_and_why_not(page: str) -> None:
    assert "Exploratory: the rows existed before. Published: 39.3 %" in section(page, "H1")
    assert "Confirmatory: registered before the rows were computed." in section(page, "H5")
    assert "6 of them are confirmatory (the rows existed before)." in page


def test_what_cannot_be_tested_has_its_reason(page: str) -> None:
    text = section(page, "H4")
    assert "At k1 0.6: not testable . 4 rows, and at least 5 are needed. Published: +0.87." in text
    assert "At k1 2.4: passed" in text


def test_every_hypothesis_has_a_figure_with_a_caption(page: str) -> None:
    drawn = re.findall(r'<figure id="figure-(\w+)">', page)
    assert drawn == [f"hypothesis_{number}" for number in range(1, 7)]
    assert page.count("<figcaption>") == 6


def test_statements_are_escaped(page: str) -> None:
    assert "<i>H1</i>" not in page
    assert "&lt;i&gt;H1&lt;/i&gt;" in page


def test_the_caption_of_pairs_counts_them(tables: StudyTables) -> None:
    file = load_file(shipped_files()[0])
    second = next(one for one in file.hypotheses if one.name == "H2")
    drawing = figure_of(second, tables.rows, "pairs")
    assert drawing is not None
    rows = tables.rows[
        tables.rows["families"].str.contains("parameters") & (tables.rows["b"] == 0.75)
    ]
    wide = rows.pivot_table(
        index=["representation", "collection"], columns="k1", values="shapley_saturation"
    )
    above = int((wide[0.6] > wide[2.4]).sum())
    same = int((wide[0.6] == wide[2.4]).sum())
    assert f"{above} of {len(wide)} do, {same} lie on it" in drawing.caption


def test_rows_that_a_hypothesis_lacks_leave_its_figure_out(tables: StudyTables) -> None:
    file = load_file(shipped_files()[0])
    bare = tables.rows[tables.rows["families"].str.contains("primary")]
    bare = bare[bare["families"] == "primary"]
    assert [figure_of(one, bare, "x") for one in file.hypotheses] == [None] * 6
    rule = load_file(shipped_files()[1]).hypotheses[0]
    assert figure_of(rule, tables.rows, "x") is None


def test_the_decision_rule_has_its_figure(tables: StudyTables) -> None:
    rule = load_file(shipped_files()[1]).hypotheses[0]
    rows = tables.rows.head(4).assign(
        families="held_back",
        collection=["msmarco-dev", "trec-dl-2019", "trec-dl-2020", "msmarco-dev"],
        collection_gain=[0.1, 0.1, -0.1, -0.1],
        pseudo_dense_010=0.0,
        pseudo_dense_111=[0.2, -0.2, -0.2, 0.2],
    )
    drawing = figure_of(rule, rows, "rule")
    assert drawing is not None
    assert "in 2 of 4 rows" in drawing.caption


def test_a_run_without_hypotheses_says_so() -> None:
    assert "tested no hypotheses" in hypothesis_pieces.summary(None).markup
    assert hypothesis_pieces.overview(None) is None
    assert list(hypothesis_pieces.sections(None, pd.DataFrame())) == []


def test_hypotheses_of_a_file_of_ones_own_are_shown(tables: StudyTables, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(
        "hypotheses:\n  mine:\n    statement: Length is worth nothing without b\n"
        "    test: exactly_zero\n    rows: {b: 0}\n    value: shapley_length\n",
        encoding="utf-8",
    )
    table = tables.hypotheses[tables.hypotheses["hypothesis"] == "H5"].assign(
        registration="mine", hypothesis="mine", status="exploratory", reason="not registered"
    )
    ((text, drawing),) = hypothesis_pieces.sections(table, tables.rows, [path])
    assert drawing is not None
    assert "b 0" in drawing.title
    assert "Exploratory: not registered." in text.markup
    ((_, drawing),) = hypothesis_pieces.sections(table, tables.rows)
    assert drawing is None
    assert "None of them is confirmatory (not registered)." in hypothesis_pieces.in_words(table)[0]
