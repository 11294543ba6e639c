"""The pages per representation and collection: whole, linked, safe against any name."""

from __future__ import annotations

import html
import re
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pytest
from study_tables import study_tables

from whencount import published
from whencount.errors import InputError
from whencount.reports.markup import page_name
from whencount.reports.pages import links, write_pages
from whencount.reports.tables import StudyTables
from whencount.wording import signed

MARKUP = '<script>alert("x")</script>'
PATH = "../../x"
NAMES = {"wiki-sections": MARKUP, "api-docs": PATH}
SETTINGS = {"encoder": {"source": "packaged"}, "fit": {}, "bases": {"identity": {}}}


class Elements(HTMLParser):
    """Every start tag of a page with its attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def some(names: dict[str, str]) -> StudyTables:
    """Three representations of a made-up study, its collections under other names."""
    made = study_tables()
    for old, new in names.items():
        made = made.replace(old, new)
    kept = ["sae_token", "pq_pooled", "sae_shared_token"]
    rows = made.rows[made.rows["representation"].isin(kept)]
    return StudyTables(
        rows=rows,
        significance=made.significance,
        shares=made.shares,
        references=made.references,
        reported=rows[rows["families"].str.contains("primary")],
        decisions=made.decisions,
    )


def write(tables: StudyTables, folder: Path) -> dict[str, str]:
    write_pages(
        tables,
        SETTINGS,
        folder / "representations",
        folder / "collections",
        study="made-up",
        family="primary",
    )
    return {
        str(path.relative_to(folder)): path.read_text(encoding="utf-8")
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture(scope="module")
def tables() -> StudyTables:
    return some(NAMES)


@pytest.fixture(scope="module")
def pages(tables: StudyTables, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return write(tables, tmp_path_factory.mktemp("pages") / "reports")


def test_every_representation_and_collection_has_its_page(pages: dict[str, str]) -> None:
    assert set(pages) == {
        "representations/pq_pooled.html",
        "representations/sae_shared_token.html",
        "representations/sae_token.html",
        "collections/limit.html",
        f"collections/{page_name(MARKUP)}.html",
        f"collections/{page_name(PATH)}.html",
    }


def test_names_from_data_break_neither_page_nor_path(
    tables: StudyTables, pages: dict[str, str]
) -> None:
    for text in [*pages.values(), links(tables).markup]:
        tags = {tag for tag, _ in Elements(text).tags}
        assert not tags & {"script", "img", "iframe", "object", "link"}
        assert "<script" not in text
    page = pages[f"collections/{page_name(MARKUP)}.html"]
    assert f"<h1>{html.escape(MARKUP).replace('&quot;', '&#34;')}</h1>" in page
    assert html.escape(MARKUP, quote=False) in pages["representations/sae_token.html"].replace(
        "&quot;", '"'
    )


def test_links_lead_to_pages_of_the_report(tables: StudyTables, pages: dict[str, str]) -> None:
    for name, text in pages.items():
        targets = [str(attrs["href"]) for tag, attrs in Elements(text).tags if tag == "a"]
        assert "../retrieval.html" in targets
        for target in targets:
            if not target.startswith("#") and target != "../retrieval.html":
                assert target.removeprefix("../") in pages, (name, target)
    listed = [attrs["href"] for tag, attrs in Elements(links(tables).markup).tags if tag == "a"]
    assert sorted(str(one) for one in listed) == sorted(pages)


def test_a_page_shows_its_own_rows_and_no_others(
    tables: StudyTables, pages: dict[str, str]
) -> None:
    rows = tables.rows[tables.rows["representation"] == "sae_token"]
    page = pages["representations/sae_token.html"]
    for _, row in rows[rows["families"].str.contains("primary")].iterrows():
        assert f"{row['q111']:.3f}" in page
    other = rows[~rows["families"].str.contains("primary")]
    assert f"{len(other)} rows" in page
    assert "PQ pooled" not in page
    assert "Whether to use IDF and length" not in page
    page = pages["collections/limit.html"]
    assert "PQ pooled" in page
    assert "Whether to use IDF and length" in page
    assert "api-docs" not in page


def test_figures_of_a_page_have_captions_and_ids_of_their_own(pages: dict[str, str]) -> None:
    for text in pages.values():
        elements = Elements(text)
        figures = [attrs for tag, attrs in elements.tags if tag == "figure"]
        assert text.count("<figcaption>") == len(figures)
        ids = [attrs["id"] for _, attrs in elements.tags if "id" in attrs]
        assert len(ids) == len(set(ids))
        assert set(re.findall(r'(?:href="#|url\(#)([^")]+)', text)) <= set(ids)


def test_a_representation_outside_the_reported_family_says_so(pages: dict[str, str]) -> None:
    page = pages["representations/sae_shared_token.html"]
    assert "No row of it belongs to the reported family" in page
    assert "Rows under other settings" in page


def test_the_same_tables_give_the_same_pages_and_old_ones_go(
    tables: StudyTables, pages: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "collections").mkdir()
    (tmp_path / "collections" / "gone.html").write_text("old", encoding="utf-8")
    shuffled = StudyTables(
        **{
            **{name: getattr(tables, name) for name in tables.__dataclass_fields__},
            "rows": tables.rows.sample(frac=1, random_state=1),
        }
    )
    assert write(shuffled, tmp_path) == pages


def test_pages_that_cannot_be_written_are_told(tables: StudyTables, tmp_path: Path) -> None:
    (tmp_path / "representations").write_text("a file", encoding="utf-8")
    with pytest.raises(InputError, match="representations"):
        write(tables, tmp_path)
    assert (tmp_path / "representations").read_text(encoding="utf-8") == "a file"


@pytest.mark.parametrize("name", ["limit", "trec-dl-2019", "sae_shared_token", "a" * 80])
def test_a_name_that_a_configuration_allows_is_the_name_of_its_page(name: str) -> None:
    assert page_name(name) == name


@pytest.mark.parametrize(
    "name", ["", ".", "..", PATH, "a/b", "CON", "Limit", "limit ", "a" * 81, "é\0", "\udc80", "x.y"]
)
def test_any_other_name_is_a_plain_file_of_its_own(name: str) -> None:
    stem = page_name(name)
    assert re.fullmatch(r"[a-z0-9-]+\.[0-9a-f]{10}", stem)
    assert stem != page_name(name + "x")


def test_published_values_stand_beside_those_of_the_published_configuration(
    tmp_path: Path,
) -> None:
    tables = some({})
    keys = (tables.rows["representation"] == "sae_token") & (tables.rows["collection"] == "limit")
    rows = tables.rows[keys & (tables.rows["seed"] == 0)]
    one = StudyTables(rows, tables.significance, tables.shares, tables.references, reported=rows)
    full = {**published.SETTINGS}
    write_pages(one, full, tmp_path / "representations", tmp_path / "collections", family="primary")
    page = (tmp_path / "representations" / "sae_token.html").read_text(encoding="utf-8")
    theirs = published.rows()
    line = theirs[(theirs["representation"] == "sae_token") & (theirs["collection"] == "limit")]
    phi = float(line["shapley_length"].iloc[0])
    assert f"<small>{signed(phi)}</small>" in page
    mine = float(rows.loc[rows["families"].str.contains("primary"), "shapley_length"].iloc[0])
    assert f"<small>{signed(mine - phi, 4)}</small>" in page


def test_rows_without_any_table_beside_them_have_pages(tmp_path: Path) -> None:
    tables = some({})
    rows = tables.rows.assign(margin=float("nan"), value_cv=float("nan"))
    none = pd.DataFrame(columns=tables.references.columns)
    bare = StudyTables(rows, tables.significance, tables.shares, none, reported=rows)
    assert len(write(bare, tmp_path)) == 6
