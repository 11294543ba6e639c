"""The pages on KV pages and on experts: self-contained, escaped, whole where tables are not."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from setting_tables import BUDGETS, ExpertsTables, PagesTables, experts_tables, pages_tables
from study_tables import ROOT
from test_security_pages import HOSTILE, assert_harmless

from whencount import reports
from whencount.errors import InputError
from whencount.reports import (
    expert_figures,
    expert_pieces,
    expert_words,
    kv_page_figures,
    kv_page_pieces,
    kv_page_words,
    selection_figures,
    setting_figures,
    setting_pieces,
    setting_words,
)
from whencount.reports.drawing import Drawing
from whencount.reports.setting_tables import load_experts, load_pages
from whencount.setting_summaries.experts import experts_answer
from whencount.setting_summaries.identities import identities
from whencount.setting_summaries.kv_pages import pages_answer
from whencount.setting_summaries.routing import shifts

NOTEBOOKS = ROOT / "workflow" / "notebooks"
PAGES_FIGURES = [
    "budgets_1",
    "configurations_1",
    "shapley",
    "pages_read",
    "answer_read",
    "page_statistics",
]
EXPERTS_FIGURES = ["training", "changes", "shapley", "frequencies", "shifts"]


def rendered(
    name: str, tables: PagesTables | ExpertsTables, folder: Path, *without: str, **settings: Any
) -> str:
    paths = tables.write(folder)
    for table in without:
        Path(paths[table]).unlink()
    parameters = {"study": HOSTILE, "settings": settings, "tables": paths, "formats": ["svg"]}
    notebook = NOTEBOOKS / f"{name}.ipynb"
    reports.render(notebook, parameters, folder / "figures", folder / "page.html")
    return (folder / "page.html").read_text(encoding="utf-8")


def drawn(page: str) -> list[str]:
    return re.findall(r'<figure id="figure-([a-z0-9_]+)">', page)


def assert_self_contained(page: str) -> str:
    """Look for all that a page must not hold; return its text."""
    elements = assert_harmless(page)
    assert "<script" not in page.lower()
    assert not re.search(r"https?://", page)
    assert set(re.findall(r"url\((.)", page)) <= {"#"}
    assert "default-src 'none'" in page
    ids = re.findall(r'\bid="([^"]*)"', page)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'(?:href="#|url\(#)([^")]+)', page)) <= set(ids)
    return elements.text


@pytest.fixture(scope="module")
def pages() -> PagesTables:
    return pages_tables()


@pytest.fixture(scope="module")
def experts() -> ExpertsTables:
    return experts_tables()


def test_the_page_on_kv_pages_has_every_figure_and_shows_names_as_text(tmp_path: Path) -> None:
    page = rendered(
        "pages", pages_tables(text=HOSTILE), tmp_path, models={"m": {"source": HOSTILE}}
    )
    text = assert_self_contained(page)
    assert drawn(page) == PAGES_FIGURES
    assert f"the number is 4711{HOSTILE}" in text
    assert f"no file of questions was given{HOSTILE}" in text
    assert sorted(path.stem for path in (tmp_path / "figures").iterdir()) == sorted(PAGES_FIGURES)


def test_the_page_on_experts_has_every_figure_and_shows_names_as_text(tmp_path: Path) -> None:
    page = rendered(
        "experts", experts_tables(text=HOSTILE), tmp_path, models={HOSTILE: {"source": "trained"}}
    )
    text = assert_self_contained(page)
    assert drawn(page) == EXPERTS_FIGURES
    assert f"library{HOSTILE}" in text
    assert "trained from scratch" in text


def test_a_study_of_pages_without_rows_or_further_tables_has_a_page_that_says_so(
    tmp_path: Path, pages: PagesTables
) -> None:
    empty = replace(
        pages,
        rows=pages.rows.iloc[:0],
        per_example=pages.per_example.iloc[:0],
        baselines=pages.baselines.iloc[:0],
    )
    page = rendered("pages", empty, tmp_path, "selected", "page_statistics")
    assert drawn(page) == []
    assert html.escape(kv_page_words.EMPTY) in page
    assert "This run has no table selected, so" in page
    assert "no file of questions was given" in page


def test_a_study_of_experts_without_rows_or_further_tables_has_a_page_that_says_so(
    tmp_path: Path, experts: ExpertsTables
) -> None:
    empty = replace(
        experts,
        rows=experts.rows.iloc[:0],
        per_document=experts.per_document.iloc[:0],
        baselines=experts.baselines.iloc[:0],
        routing=experts.routing.drop(columns="share"),
    )
    page = rendered("experts", empty, tmp_path, "training")
    assert drawn(page) == []
    assert "has no rows, so there is nothing to tell" in page
    assert "The table routing lacks the columns share, so" in page
    assert "This run has no table training, so" in page


def test_a_needed_table_that_is_missing_or_lacks_a_column_is_refused(
    tmp_path: Path, pages: PagesTables, experts: ExpertsTables
) -> None:
    paths = pages.write(tmp_path)
    pages.rows.drop(columns="q010").to_parquet(paths["rows"])
    with pytest.raises(InputError, match=r"rows\.parquet lacks the columns q010"):
        load_pages(paths)
    with pytest.raises(InputError, match="needs the table baselines"):
        load_pages({key: path for key, path in pages.write(tmp_path).items() if key != "baselines"})
    paths = experts.write(tmp_path)
    experts.per_document.drop(columns=["nll", "accuracy"]).to_parquet(paths["per_document"])
    with pytest.raises(InputError, match=r"per_document\.parquet has neither a column nll"):
        load_experts(paths)


def test_tasks_that_could_not_be_run_may_stand_in_a_json_list(
    tmp_path: Path, pages: PagesTables
) -> None:
    paths = pages.write(tmp_path)
    path = tmp_path / "unavailable.json"
    path.write_text('[{"task": "qa_1", "reason": "no <file>", "remedy": "name it"}]')
    shown = kv_page_pieces.unavailable(load_pages({**paths, "unavailable": path})).markup
    assert "no &lt;file&gt;" in shown
    assert "name it" in shown
    path.write_text("[]")
    every = kv_page_pieces.unavailable(load_pages({**paths, "unavailable": path})).markup
    assert "Every task that was asked for was run" in every
    path.write_text("{}")
    with pytest.raises(InputError, match=r"unavailable\.json holds no list"):
        load_pages({**paths, "unavailable": path})


def test_the_answer_says_what_selectors_and_corrections_come_to(pages: PagesTables) -> None:
    found = pages_answer(pages.rows, pages.per_example, pages.baselines)
    said = " ".join(kv_page_words.sentences(found))
    full, quest = found.level("full", BUDGETS[0]), found.level("quest", BUDGETS[0])
    assert full is not None
    assert quest is not None
    assert f"of full attention is {full.score:.3f}" in said
    assert f"Quest {quest.score:.3f}" in said
    assert "Per query head, budget 128: no correction has a higher mean score than all-off" in said
    weak = pages.baselines.assign(score=pages.baselines["score"] / 3)
    told = kv_page_words.sentences(pages_answer(pages.rows, pages.per_example, weak))
    assert "With full attention the model itself has a mean score of 0.315" in " ".join(told)
    nothing = pages.baselines.assign(score=0.0)
    told = kv_page_words.sentences(pages_answer(pages.rows, pages.per_example, nothing))
    assert "finds no answer at all" in " ".join(told)


def test_a_better_configuration_is_said_with_its_interval(pages: PagesTables) -> None:
    chosen = (pages.per_example["selector"] == "101") & (pages.per_example["variant"] == "group")
    outputs = pages.per_example.assign(score=pages.per_example["score"].mask(chosen, 1.0))
    rows = pages.baselines
    chosen = (rows["selector"] == "101") & (rows["variant"] == "group")
    found = pages_answer(pages.rows, outputs, rows.assign(score=rows["score"].mask(chosen, 1.0)))
    best = [one for one in found.best if one.variant == "group"]
    assert {one.configuration for one in best} == {"101"}
    said = " ".join(kv_page_words.sentences(found))
    assert "The best is 101 with 1.000" in said
    few = outputs[outputs["example"].isin(["0", "1", "2"])]
    said = " ".join(kv_page_words.sentences(pages_answer(pages.rows, few, rows)))
    assert "too few examples to tell any of them from it" in said
    assert "chance" not in said


def test_a_broken_identity_is_shouted(pages: PagesTables) -> None:
    rows = pages.rows.assign(q010=pages.rows["q010"] + 0.1 * (pages.rows["variant"] == "head"))
    said = setting_words.identities(identities(rows))
    assert "BROKEN" in said
    assert "010 = 000 (head" in said
    shown = setting_pieces.identities(identities(rows), kv_page_pieces.WHY).markup
    assert 'class="verdict failed"' in shown
    assert "all hold" in setting_words.identities(identities(pages.rows))


def test_long_tables_are_cut_and_say_so(pages: PagesTables) -> None:
    many = pd.concat([pages.rows] * 100, ignore_index=True)
    shown = setting_pieces.qualities(many, kv_page_pieces.ROW_KEYS, "rows.parquet")
    assert shown is not None
    assert shown.markup.count("<tr>") == setting_pieces.LINES_SHOWN + 1
    assert f"400 of {len(many):,} lines; all are in rows.parquet" in shown.markup
    drawing = setting_figures.shapley(
        many.assign(task=[f"task{n}" for n in range(len(many))]), kv_page_pieces.KEYS, "mean score"
    )
    assert drawing is not None
    assert "60 rows" in drawing.alternative
    long = pages.per_example.assign(prediction="\x1bword\x00 " * 10_000)
    told = kv_page_pieces.outputs(long, None)
    assert told is not None
    assert len(told.markup) < 20_000
    assert "\N{REPLACEMENT CHARACTER}word" in told.markup
    assert not {"\x1b", "\x00"} & set(told.markup)


def test_many_models_and_contexts_have_a_bounded_number_of_figures(pages: PagesTables) -> None:
    parts = [pages.baselines.assign(context=context) for context in range(1_000, 1_020)]
    many = pd.concat(parts, ignore_index=True)
    assert len(kv_page_figures.cells(many)) == kv_page_figures.CELLS_SHOWN
    shown = kv_page_pieces.scores(many)
    assert shown is not None
    assert "Figures show 4 of 20 pairs" in shown.markup


def test_the_same_tables_draw_the_same_bytes(pages: PagesTables, experts: ExpertsTables) -> None:
    documents = experts.per_document.assign(quality=-experts.per_document["nll"])
    found = experts_answer(experts.rows, documents, experts.baselines)

    def once() -> list[str]:
        drawings: list[Drawing | None] = [
            next(kv_page_figures.accuracy(pages.baselines)),
            selection_figures.reads(selection_figures.shown_selections(pages.selected)),
            expert_figures.changes(found),
            expert_figures.shifts(shifts(experts.routing)),
        ]
        return [drawing._repr_html_() for drawing in drawings if drawing is not None]

    first = once()
    assert len(first) == 4
    assert once() == first


def test_a_far_rule_stands_as_a_number_at_the_border(experts: ExpertsTables) -> None:
    documents = experts.per_document.assign(
        quality=(-experts.per_document["nll"]).fillna(experts.per_document["accuracy"])
    )
    found = experts_answer(experts.rows, documents, experts.baselines)
    drawing = expert_figures.changes(found)
    assert drawing is not None
    assert "◂ −2.40" in drawing._repr_html_()


def test_a_model_that_does_not_depend_on_its_router_is_called_so(experts: ExpertsTables) -> None:
    documents = experts.per_document.assign(quality=-experts.per_document["nll"])
    found = experts_answer(experts.rows, documents, experts.baselines)
    assert "which ones run hardly matters" not in " ".join(expert_words.sentences(found))
    random = documents["rule"] == "random"
    documents["quality"] = documents["quality"].mask(random, documents["quality"] + 2.35)
    found = experts_answer(experts.rows, documents, experts.baselines)
    assert "Random experts cost less than 0.1 nats" in " ".join(expert_words.sentences(found))


def test_subjects_stand_only_where_accuracy_was_measured(experts: ExpertsTables) -> None:
    tables = experts_tables(accuracy=False)
    documents = tables.per_document.assign(quality=-tables.per_document["nll"])
    found = experts_answer(tables.rows, documents, tables.baselines)
    assert expert_pieces.subjects(documents, found) is None
    documents = experts.per_document.assign(
        quality=(-experts.per_document["nll"]).fillna(experts.per_document["accuracy"])
    )
    found = experts_answer(experts.rows, documents, experts.baselines)
    shown = expert_pieces.subjects(documents, found)
    assert shown is not None
    assert "loss-free balancing" in shown.markup
    native = documents[(documents["rule"] == "native") & (documents["evaluation"] == "mmlu")]
    expected = native.loc[native["subject"] == "subject 2", "quality"].mean()
    assert re.search(rf"subject 2</th>.*<td>{expected:.3f}</td>", shown.markup)
    assert "(3 subjects)" in shown.markup


def test_without_pages_of_the_answer_their_figure_is_left_out(pages: PagesTables) -> None:
    untold = pages.selected[pages.selected["selector"] != "answer"]
    found = selection_figures.shown_selections(untold)
    assert selection_figures.answer_found(found) is None
    assert kv_page_pieces.answer_shares(found) is None
    drawing = selection_figures.reads(found)
    assert drawing is not None
    assert "does not tell which pages hold the answer" in drawing.caption
    assert selection_figures.shown_selections(untold.iloc[:0]) is None


def test_a_selector_of_ones_own_has_a_line_a_mark_and_a_number(pages: PagesTables) -> None:
    own = pages.baselines[pages.baselines["selector"] == "random"].assign(selector="recent-half")
    more = replace(pages, baselines=pd.concat([pages.baselines, own], ignore_index=True))
    figure = next(kv_page_figures.accuracy(more.baselines)).figure
    assert "recent-half" in [text.get_text() for text in figure.legends[0].get_texts()]
    found = pages_answer(more.rows, more.per_example, more.baselines)
    assert "recent-half" in " ".join(kv_page_words.sentences(found))


def test_switches_that_carry_the_same_share_are_named_together(pages: PagesTables) -> None:
    found = pages_answer(pages.rows, pages.per_example, pages.baselines)
    effects = found.effects[0]
    even = tuple(replace(one, share=1 / 3) for one in effects.shares)
    text = setting_words.switches(replace(effects, shares=even), "mean score")
    assert "IDF, saturation and length carry equal shares" in text
