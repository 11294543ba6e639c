"""The explorer of rows in a real browser: by mouse, by keys alone, on a narrow screen."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import chromium
import numpy as np
import pandas as pd
import pytest
from site_study import HOSTILE, SiteStudy, site_study

from whencount.site import write_site

pytestmark = pytest.mark.skipif(chromium.find() is None, reason="no Chromium on this machine")


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> SiteStudy:
    return site_study(tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="module")
def site(study: SiteStudy, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reports")
    (folder / "retrieval.html").write_text("<h1>When?</h1>")
    out = folder / "index.html"
    write_site(
        folder, out, study="tiny", rows=study.rows, per_query=study.per_query,
        moved=study.moved, texts_out=folder / "index.texts.js",
    )  # fmt: skip
    # As the step writes it for prepared collections, with a text that is markup.
    texts = {"animals": {"queries": {"q0": HOSTILE}, "documents": {"d1": "a text"}}}
    hostile = json.dumps(texts).replace("<", "\\u003c")
    (folder / "index.texts.js").write_text(f"window.whencountTexts = {hostile};")
    return out


@pytest.fixture(scope="module")
def opened(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[chromium.Page]:
    with chromium.browser(tmp_path_factory.mktemp("profile")) as page:
        page.open(site)
        yield page


@pytest.fixture
def page(opened: chromium.Page, site: Path) -> Iterator[chromium.Page]:
    """The page as it opens; at the end nothing was complained of, and nothing else loaded."""
    for name, value in (("x", "value_cv"), ("y", "gain"), ("colour", "basis"), ("comparison", "0")):
        choose(opened, name, value)
    opened.value("document.getElementById('reset').click(); explorer.choose(null); scroll(0, 0)")
    opened.value("document.activeElement.blur()")
    yield opened
    assert opened.value("typeof window.broken") == "undefined"
    assert opened.value("document.images.length") == 0
    assert opened.complaints() == []
    files = {site.resolve().as_uri(), site.with_name("index.texts.js").resolve().as_uri()}
    assert {one for one in opened.requests() if not one.startswith("data:")} == files


def choose(page: chromium.Page, name: str, value: str) -> None:
    """Set a list of choices as a person does."""
    page.value(
        f"(() => {{ const one = document.getElementById({name!r}); one.value = {value!r};"
        " one.dispatchEvent(new Event('input', {bubbles: true})); })()"
    )


def column(page: chromium.Page, number: int) -> list[str]:
    cells = f"[...document.querySelectorAll('#table tbody tr td:nth-child({number})')]"
    found: list[str] = page.value(f"{cells}.map((cell) => cell.textContent)")
    return found


POINTS = "document.querySelectorAll('#plot .points path').length"


def text(page: chromium.Page, name: str) -> str:
    return str(page.value(f"document.getElementById({name!r}).textContent"))


def test_filters_leave_the_rows_that_meet_all_of_them(
    page: chromium.Page, study: SiteStudy
) -> None:
    assert text(page, "count") == f"{len(study.rows)} of {len(study.rows)} rows"
    choose(page, "filter-collection", "=plants")
    choose(page, "filter-control", "=")
    choose(page, "filter-budget", "=4/8")
    choose(page, "filter-k1", "=0.6")
    rows = study.rows
    wanted = rows[(rows["collection"] == "plants") & (rows["control"] == "") & (rows["k1"] == 0.6)]
    assert 0 < len(wanted) < len(rows)
    assert text(page, "count") == f"{len(wanted)} of {len(rows)} rows"
    assert column(page, 1) == wanted["representation"].tolist()
    assert page.value(POINTS) == len(wanted)
    # Several families stand in one cell; each is a choice of its own.
    page.value("document.getElementById('reset').click()")
    choose(page, "filter-families", "=primary")
    assert text(page, "count") == f"4 of {len(rows)} rows"
    choose(page, "filter-families", "=parameters")
    assert text(page, "count") == f"{len(rows)} of {len(rows)} rows"
    best = rows.filter(regex="^q[01]{3}$").idxmax(axis=1).astype(str).str[1:]
    assert best.nunique() > 1
    choose(page, "filter-best", f"={best.iloc[0]}")
    assert text(page, "count") == f"{(best == best.iloc[0]).sum()} of {len(rows)} rows"


def test_a_heading_sorts_both_ways(page: chromium.Page, study: SiteStudy) -> None:
    head = "document.querySelector('#table [data-column=gain]')"
    place = 1 + page.value(f"[...{head}.closest('tr').children].indexOf({head}.closest('th'))")
    page.value(f"{head}.click()")
    assert page.value(f"{head}.closest('th').getAttribute('aria-sort')") == "descending"
    falling = sorted(study.rows["gain"], reverse=True)
    assert [float(one) for one in column(page, place)] == pytest.approx(falling, abs=6e-4)
    page.value(f"{head}.click()")
    assert page.value(f"{head}.closest('th').getAttribute('aria-sort')") == "ascending"
    assert [float(one) for one in column(page, place)] == pytest.approx(falling[::-1], abs=6e-4)


def test_any_two_columns_are_plotted(page: chromium.Page, study: SiteStudy) -> None:
    choose(page, "x", "length_cv")
    choose(page, "y", "q010")
    choose(page, "colour", "")
    points = "document.getElementById('plot').data[0]"
    assert page.value(f"{points}.x") == pytest.approx(study.rows["length_cv"].tolist(), rel=1e-4)
    assert page.value(f"{points}.y") == pytest.approx(study.rows["q010"].tolist(), rel=1e-4)
    # A native budget has no number, so such rows have no point; names make an axis too.
    choose(page, "x", "document_budget")
    assert page.value(POINTS) == study.rows["document_budget"].notna().sum()
    choose(page, "x", "collection")
    assert set(page.value(f"{points}.x")) == {"animals", "plants"}


def test_a_click_on_a_point_opens_its_row(page: chromium.Page, study: SiteStudy) -> None:
    choose(page, "filter-collection", "=plants")
    choose(page, "filter-families", "=primary")
    choose(page, "filter-representation", "=pca_token")
    place = int(
        study.rows.index[
            (study.rows["collection"] == "plants")
            & study.rows["families"].str.contains("primary")
            & (study.rows["representation"] == "pca_token")
        ][0]
    )
    page.value("document.getElementById('plot').scrollIntoView({block: 'center'})")
    box = page.value(
        "(() => { const one = document.querySelector('#plot .points path').getBoundingClientRect();"
        " return [one.x + one.width / 2, one.y + one.height / 2]; })()"
    )
    page.command("Input.dispatchMouseEvent", type="mouseMoved", x=box[0], y=box[1])
    page.until("document.querySelector('#plot .hovertext') !== null")
    page.click(*box)
    page.until("explorer.state.chosen !== null")
    assert page.value("explorer.state.chosen") == place
    assert text(page, "detail-heading").startswith("pca_token on plants, 4/8, k1 1.2, b 0.75")


def test_an_opened_row_tells_its_queries_and_the_documents_that_moved(
    page: chromium.Page, study: SiteStudy
) -> None:
    place = 0
    row = study.rows.iloc[place]
    page.value(f"document.querySelector('#table tr[data-row=\"{place}\"]').click()")
    name = f"{row['representation']}.{row['collection']}.seed0"
    quality = pd.read_parquet(study.per_query[name])
    keys = ["budget", "k1", "b", "control"]
    quality = quality[(quality[keys] == row[keys].tolist()).all(axis=1)]
    change = quality["q111"] - quality["q000"]
    assert text(page, "changes").startswith(
        f"Of {len(quality)} queries {(change > 0).sum()} are better with 111 than with 000,"
        f" {(change < 0).sum()} worse, {(change == 0).sum()} equal"
    )
    asked = page.value(
        "document.querySelector('#queries tr[aria-current=true] button').textContent"
    )
    listed = page.value(
        "[...document.querySelectorAll('#documents tbody tr')].map((row) =>"
        " [...row.cells].slice(0, 4).map((cell) => cell.textContent))"
    )
    moved = study.moved[row["collection"]]
    keys = ["representation", *keys]
    moved = moved[(moved[keys] == row[keys].tolist()).all(axis=1) & (moved["query_id"] == asked)]
    moved = moved.fillna({"rank_000": 999, "rank_111": 999})
    moved = moved[(moved["rank_000"] <= 10) | (moved["rank_111"] <= 10)]
    moved = moved.sort_values(["rank_111", "rank_000"])
    ranks = moved[["rank_000", "rank_111"]].astype(str).replace("999", "over 100")
    expected = [
        [document, f"{relevance:g}" if relevance else "–", *places]
        for document, relevance, places in zip(
            moved["document_id"], moved["relevance"], ranks.to_numpy().tolist(), strict=True
        )
    ]
    assert len(expected) > 3
    assert listed == expected
    choose(page, "comparison", "2")
    assert "are better with 010 than with 000" in text(page, "changes")
    assert page.value("document.querySelectorAll('#histogram .bars path').length") >= 1


def test_hostile_texts_are_shown_as_texts(page: chromium.Page, study: SiteStudy) -> None:
    moved = study.moved["animals"]
    hostile = moved[moved["document_id"] == HOSTILE].iloc[0]
    keys = ["representation", "collection", "budget", "k1", "b", "control"]
    place = int(study.rows.index[(study.rows[keys] == hostile[keys].tolist()).all(axis=1)][0])
    page.value(f"explorer.choose({place})")
    shown = ""
    for number in range(int(page.value("document.querySelectorAll('#queries button').length"))):
        page.value(f"document.querySelectorAll('#queries button')[{number}].click()")
        shown += text(page, "documents")
    assert HOSTILE.rstrip("\u2028") in shown


def test_everything_is_reached_by_keys_alone(page: chromium.Page, study: SiteStudy) -> None:
    def focus() -> str:
        return str(
            page.value(
                "(() => { const one = document.activeElement; return one.id || one.dataset.column"
                " || (one.dataset.row && 'row ' + one.dataset.row) || one.tagName; })()"
            )
        )

    def tab_to(name: str) -> None:
        for _ in range(80):
            if focus() == name:
                return
            page.press("Tab")
        raise AssertionError(f"Tab never comes to {name}; it is at {focus()}")

    # The plot: from point to point, then the row of one.
    tab_to("filter-collection")
    page.press("p")
    assert page.value("document.getElementById('filter-collection').value") == "=plants"
    tab_to("plot")
    page.press("ArrowRight")
    page.press("ArrowRight")
    plants = study.rows[study.rows["collection"] == "plants"].sort_values("value_cv", kind="stable")
    assert f"{plants['gain'].iloc[1]:.3f}" in text(page, "point")
    page.press("Enter")
    assert focus() == "detail-heading"
    assert page.value("explorer.state.chosen") == plants.index[1]
    # A query of it, then back to the table.
    tab_to("comparison")
    page.press("Tab")
    for _ in range(2):
        page.press("Tab")
    page.press("Enter")
    assert page.value("document.activeElement.closest('#queries') !== null")
    page.press("Escape")
    assert page.value("document.getElementById('detail').hidden")
    assert focus() == f"row {plants.index[1]}"
    # The table: sorted by a heading, a row opened.
    page.press("Home")
    first = page.value("Number(document.querySelector('#table tbody tr').dataset.row)")
    page.press("ArrowDown")
    second = page.value("Number(document.querySelectorAll('#table tbody tr')[1].dataset.row)")
    assert focus() == f"row {second}"
    page.press("ArrowUp")
    assert focus() == f"row {first}"
    page.press("Enter")
    assert page.value("explorer.state.chosen") == first


def test_a_narrow_screen_and_what_a_person_prefers_are_heeded(
    page: chromium.Page, site: Path
) -> None:
    page.open(site, width=400, height=800)
    page.value("explorer.choose(0)")
    assert page.value("document.documentElement.scrollWidth <= window.innerWidth")
    wide = page.value("document.getElementById('plot').getBoundingClientRect().right")
    assert wide <= 400
    light = page.value("getComputedStyle(document.body).backgroundColor")
    ink = "document.getElementById('plot').layout.font.color"
    before = page.value(ink)
    page.prefer(prefers_color_scheme="dark", prefers_reduced_motion="reduce")
    page.until(f"{ink} !== {before!r}")
    assert page.value("getComputedStyle(document.body).backgroundColor") != light
    moving = (
        "[...document.querySelectorAll('*')].filter((one) => { const style ="
        " getComputedStyle(one); return style.transitionDuration.split(', ').some((time) =>"
        " time !== '0s') && style.transitionProperty !== 'none'; }).length"
    )
    assert page.value(moving) == 0
    page.prefer(prefers_color_scheme="light", prefers_reduced_motion="no-preference")


def test_numbers_of_the_study_are_shown_to_three_digits(
    page: chromium.Page, study: SiteStudy
) -> None:
    page.value("explorer.choose(1)")
    values = study.rows.filter(regex="^q[01]{3}$").iloc[1]
    shown = [part.split(" ")[1] for part in text(page, "facts").split(" · ")]
    assert np.abs(np.array(shown, dtype=float) - values.to_numpy(dtype=float)).max() <= 5.1e-4


def test_the_page_works_without_its_file_of_texts(
    opened: chromium.Page, site: Path, tmp_path: Path
) -> None:
    # Last: its browser is asked for a file that is not there.
    alone = tmp_path / "index.html"
    alone.write_bytes(site.read_bytes())
    opened.open(alone)
    opened.value("explorer.choose(0)")
    assert opened.value("document.querySelectorAll('#documents tbody tr').length") > 3
