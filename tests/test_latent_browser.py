"""The browser of features: what a hostile text can do, and what a person can, in a real browser."""

from __future__ import annotations

import csv
import json
import re
import time
from html.parser import HTMLParser
from pathlib import Path

import chromium
import numpy as np
import pandas as pd
import pytest

from whencount.latent_terms.browser import write_browser
from whencount.latent_terms.browser.page import page_data

HOSTILE = (
    "</script><script>window.broken=1</script><img src=x onerror='window.broken=2'> & \u2028 <b>"
)
SETTINGS = {"study": "test", "model": "toy", "collection": "texts", "seed": 0}


def tables(number: int = 12) -> tuple[pd.DataFrame, pd.DataFrame]:
    features = pd.DataFrame(
        {
            "feature": np.arange(number) * 3,
            "df": np.arange(number) + 1,
            "idf": np.linspace(4, 1, number),
            "mean_weight": np.linspace(0.5, 1.5, number),
            "documents": 40,
            "live": 100,
        }
    )
    lines = [
        {
            "kind": kind,
            "feature": feature * 3,
            "rank": 1,
            "id": f"{kind}-{feature}",
            "weight": 1.25,
            "text": HOSTILE if feature == 0 else f"the text of {kind} {feature}",
            "spans": json.dumps([[4, 8]] if feature else []),
        }
        for feature in range(number)
        for kind in ("passage", "query")
    ]
    return features, pd.DataFrame(lines)


class _Scripts(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)


def test_a_hostile_text_is_data_and_nothing_else(tmp_path: Path) -> None:
    write_browser(*tables(), SETTINGS, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    parser = _Scripts()
    parser.feed(page)
    assert parser.tags.count("script") == 2
    assert "img" not in parser.tags
    block = re.search(r'id="data">(.*?)</script>', page, re.DOTALL)
    assert block is not None
    assert not set("<>&\u2028") & set(block[1])
    assert ["passage-0", HOSTILE] in json.loads(block[1])["texts"]
    assert not re.search(r"https?://", page)


def test_equal_tables_give_equal_pages_and_other_tables_other_labels(tmp_path: Path) -> None:
    write_browser(*tables(), SETTINGS, tmp_path / "one.html")
    write_browser(*tables(), SETTINGS, tmp_path / "two.html")
    assert (tmp_path / "one.html").read_bytes() == (tmp_path / "two.html").read_bytes()
    keys = {json.loads(page_data(*tables(number), SETTINGS))["key"] for number in (12, 11)}
    assert len(keys) == 2


@pytest.mark.skipif(chromium.find() is None, reason="no Chromium on this machine")
def test_a_person_sets_categories_by_keyboard_and_exports_them(tmp_path: Path) -> None:
    write_browser(*tables(), SETTINGS, tmp_path / "page.html")
    with chromium.browser(tmp_path / "profile") as page:
        page.keep_downloads(tmp_path)
        page.open(tmp_path / "page.html")
        assert page.value("document.querySelectorAll('#list li').length") == 12
        # The first of the list has the most documents.
        assert page.value("document.querySelector('#detail h2').textContent") == "Feature 33"
        assert page.value("document.querySelector('#detail mark').textContent") == "text"
        page.press("1")
        page.press("ArrowDown")
        page.press("c")
        page.write('odd, "one"')
        page.press("Enter")
        page.press("j")
        page.press("2")
        page.press("0")
        page.press("e")
        exported = tmp_path / "features-toy-texts-seed0.csv"
        end = time.monotonic() + 30
        while not exported.exists():
            assert time.monotonic() < end
            time.sleep(0.05)
        with exported.open(encoding="utf-8", newline="") as stream:
            found = [
                (line["feature"], line["category"], line["df"]) for line in csv.DictReader(stream)
            ]
        assert found == [("30", 'odd, "one"', "11"), ("33", "topic", "12")]

        # Kept by this browser, found again.
        page.open(tmp_path / "page.html", width=360, height=640)
        assert "2 with a category" in page.value("document.getElementById('count').textContent")
        assert page.value("document.documentElement.scrollWidth <= window.innerWidth")
        # Search, filters, a hostile text.
        page.press("/")
        page.write("ONERROR")
        assert page.value("document.querySelectorAll('#list li').length") == 1
        page.press("Escape")
        page.press("j")
        assert page.value("document.querySelector('#detail h2').textContent") == "Feature 0"
        assert HOSTILE in page.value("document.querySelector('#detail').textContent")
        assert page.value("typeof window.broken") == "undefined"
        assert page.value("document.images.length") == 0

        # A file of another person comes back in.
        (tmp_path / "theirs.csv").write_text(
            '\ufefffeature,category,df,idf\r\n3,"two\nlines, ""quoted""",2,1\r\n'
            "999,none,1,1\r\n6,,3,1\r\n",
            encoding="utf-8",
        )
        page.choose_file("#import", tmp_path / "theirs.csv")
        page.until("document.getElementById('told').textContent.startsWith('Imported 1 ')")
        kept = json.loads(page.value("localStorage.getItem(localStorage.key(0))"))
        assert [3, 'two\nlines, "quoted"'] in kept["labels"]
        assert len(kept["labels"]) == 3
