"""The site: what it says of reports and rows, what it leaves out, what a hostile name can do."""

from __future__ import annotations

import json
import math
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from site_study import COLLECTIONS, HOSTILE, SiteStudy, collection, site_study

from whencount.errors import InputError
from whencount.site import write_site
from whencount.site.catalogue import find_parts, find_reports
from whencount.site.choosing import most_changed
from whencount.site.columns import numeric_columns
from whencount.site.moving import RANK_COLUMNS, moved_documents
from whencount.site.page_data import page_data

CELL = ["representation", "collection", "seed", "budget", "k1", "b", "control"]


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> SiteStudy:
    return site_study(tmp_path_factory.mktemp("site"))


@pytest.fixture
def reports(tmp_path: Path) -> Path:
    folder = tmp_path / "reports"
    (folder / "collections").mkdir(parents=True)
    (folder / "collections" / "plants.html").write_text("<h1>Plants &amp; trees</h1>")
    (folder / "fusion.html").write_text(
        '<title>t</title><h1>Two arms</h1><div class="tiles"><div><b>3</b><span>claims'
        " held</span><small>of 12</small></div><div><b>&lt;1 %</b><span>lost</span></div></div>"
        '<p class="answer">No rule helps everywhere. Another sentence.</p>'
    )
    (folder / "retrieval.html").write_text(
        '<h1>When?</h1><p class="answer">Of <b>8</b> rows, 3 gain. More.</p><p class="answer">x</p>'
    )
    (folder / "mine.html").write_text("<title>My own page</title><p>text</p>")
    (folder / "index.html").write_text("<h1>old</h1>")
    return folder


class Tags(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)


def written(study: SiteStudy, reports: Path) -> str:
    write_site(
        reports, reports / "index.html", study="tiny", rows=study.rows,
        per_query=study.per_query, moved=study.moved,
    )  # fmt: skip
    return (reports / "index.html").read_text(encoding="utf-8")


def embedded(page: str, name: str) -> dict[str, Any]:
    block = re.search(rf'id="{name}">(.*?)</script>', page, re.DOTALL)
    assert block is not None
    content: dict[str, Any] = json.loads(block[1])
    return content


def test_every_report_is_listed_with_what_its_page_puts_first(reports: Path) -> None:
    found = find_reports(reports)
    assert [one.address for one in found] == ["retrieval.html", "fusion.html", "mine.html"]
    retrieval, fusion, mine = found
    assert fusion.figures == (("3", "claims held"), ("<1 %", "lost"))
    assert fusion.answer == "No rule helps everywhere."
    assert (retrieval.figures, retrieval.answer) == ((), "Of 8 rows, 3 gain.")
    assert (mine.title, mine.question) == ("My own page", "")
    assert find_parts(reports) == {"collections": [("collections/plants.html", "Plants & trees")]}


def test_a_page_that_is_no_text_is_named(tmp_path: Path) -> None:
    (tmp_path / "fusion.html").write_bytes(b"\xff\xfe\xff")
    with pytest.raises(InputError, match=r"fusion\.html cannot be read"):
        find_reports(tmp_path)


def test_queries_that_change_most_are_chosen_and_unchanged_ones_never() -> None:
    lines = pd.DataFrame({f"q{number:03b}": np.zeros(6) for number in range(8)})
    lines.loc[:, "q111"] = [0, 0.1, 0, -0.5, 0, 0.1]
    lines.loc[2, "q101"] = 1.0  # No comparison looks at it.
    assert most_changed(lines, 1).tolist() == [3]
    assert most_changed(lines, 2).tolist() == [1, 3]
    assert most_changed(lines).tolist() == [1, 3, 5]
    lines.loc[4, ["q010", "q111"]] = 0.9
    assert most_changed(lines, 1).tolist() == [3, 4]
    assert most_changed(lines.iloc[:0]).tolist() == []


def test_ranks_of_moved_documents_give_the_qualities_of_the_study(study: SiteStudy) -> None:
    """The oracle is nDCG@10 by its definition (study, section 4), from ranks and relevance."""
    ideal = 2 / math.log2(2) + 1 / math.log2(3)
    compared = 0
    for name in COLLECTIONS:
        for key, lines in study.moved[name].groupby([*CELL, "query_id"]):
            *cell, query = key
            quality = pd.read_parquet(study.per_query[f"{cell[0]}.{name}.seed0"])
            is_cell = (quality[CELL[3:]] == cell[3:]).all(axis=1)
            here = quality[is_cell & (quality["query_id"] == query)]
            for column in RANK_COLUMNS:
                top = lines[lines[column] <= 10]
                assert sorted(top[column]) == list(range(1, len(top) + 1))
                discount = np.log2(top[column].to_numpy(dtype=float) + 1)
                gain = float((top["relevance"].to_numpy(dtype=float) / discount).sum())
                assert gain / ideal == pytest.approx(
                    here[column.replace("rank_", "q")].item(), abs=1e-12
                )
                compared += 1
    assert compared > 100


def test_a_query_that_the_collection_lacks_is_named(study: SiteStudy) -> None:
    from whencount.naming import Job

    made = collection("animals")
    table = pd.read_parquet(study.per_query["pca_token.animals.seed0"])
    with pytest.raises(InputError, match="query 'q0' of its table is not one of animals"):
        moved_documents(
            Job("pca_token", "animals", 0),
            table[table["query_id"] == "q0"].assign(q111=1.0, q000=0.0),
            made.documents, made.queries, made.judgements,
            np.array([f"other{one}" for one in range(20)], dtype=object), made.documents.ids,
        )  # fmt: skip


def test_rows_and_details_are_those_of_the_tables(study: SiteStudy, reports: Path) -> None:
    page = written(study, reports)
    data = embedded(page, "data")
    numbers, blocks = data["numbers"], data["blocks"]
    assert numbers["gain"] == pytest.approx(study.rows["gain"].tolist(), rel=1e-4)
    assert None not in blocks
    for place, row in study.rows.iterrows():
        detail = embedded(page, f"detail-{blocks[int(str(place))]}")[str(place)]
        better, equal, worse, mean, bins = detail["c"][0]
        assert better + equal + worse == row["queries"]
        assert sum(bins) == better + worse
        assert mean == pytest.approx(row["gain"], rel=1e-4, abs=1e-9)


def test_names_are_data_and_nothing_else(study: SiteStudy, reports: Path) -> None:
    page = written(study, reports)
    tags = Tags(page).tags
    assert "img" not in tags
    data = re.search(r'id="data">(.*?)</script>', page, re.DOTALL)
    assert data is not None
    assert not set("<>&\u2028") & set(data[1])
    assert HOSTILE in json.loads(data[1])["names"]["animals"]["documents"]
    # Nothing but plotly.js itself has addresses in it.
    ours = page.replace(max(re.findall(r"<script>(.*?)</script>", page, re.DOTALL), key=len), "")
    assert not re.search(r"https?://", ours)


def test_equal_tables_give_equal_pages(study: SiteStudy, reports: Path) -> None:
    assert written(study, reports) == written(study, reports)


def test_without_rows_the_page_is_one_of_links(reports: Path) -> None:
    write_site(reports, reports / "index.html", study="<b>tiny</b>")
    page = (reports / "index.html").read_text(encoding="utf-8")
    assert "script" not in Tags(page).tags
    assert '<a href="fusion.html">Two arms</a>' in page
    assert "There are no rows to explore" in page
    assert "<b>tiny" not in page


def test_what_is_missing_or_too_much_is_said(study: SiteStudy) -> None:
    one = dict(list(study.per_query.items())[:1])
    found = page_data(study.rows, one, {}, "primary")
    assert "Queries of 12 rows, whose tables per query are not there." in found.left_out
    assert any(text.startswith("Documents of 4 rows") for text in found.left_out)
    assert json.loads(found.rows)["blocks"].count(None) == 12

    cut = page_data(study.rows, study.per_query, study.moved, "primary", maximum_bytes=3000)
    assert any("would make the page larger" in text for text in cut.left_out)
    assert sum(map(len, cut.blocks)) < 3000 + 20_000
    # The reported family is told of first.
    primary = study.rows["families"].str.contains("primary").to_numpy()
    told = np.array([block is not None for block in json.loads(cut.rows)["blocks"]])
    assert told.any()
    assert primary[told].all()

    few = page_data(study.rows, {}, {}, "primary", maximum_rows=3)
    assert len(json.loads(few.rows)["blocks"]) == 3
    assert few.left_out[0].startswith("13 rows of rows.parquet")


def test_rows_without_a_column_are_refused_by_its_name(study: SiteStudy) -> None:
    with pytest.raises(InputError, match="no column 'families'"):
        page_data(study.rows.drop(columns="families"), {}, {}, "primary")


def test_every_numeric_column_of_a_study_can_be_plotted(study: SiteStudy) -> None:
    columns = numeric_columns(study.rows)
    assert {one.name for one in columns} == set(study.rows.select_dtypes("number").columns)
    assert len({one.label for one in columns}) == len(columns)
