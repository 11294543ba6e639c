"""Text from data is text on every page: no tag of it becomes one, no script, no address."""

from __future__ import annotations

import html
import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pytest
import yaml
from click.testing import CliRunner
from study_tables import ALPHA, DRAWS, ROOT, study_tables

from whencount import reports
from whencount.cli import main

HOSTILE = "<script>alert('x')</script><img src=x onerror=alert(1)>"
QUOTES = '"\' onmouseover="alert(1)" <svg/onload=alert(2)>'
# Everything that a page of ours is made of; none of it loads or runs anything.
HARMLESS = set(
    """
    html head meta title style body header main footer nav section article h1 h2 h3 h4 p a ul ol
    li b i em strong small span div br hr code pre sup sub table thead tbody tr th td caption
    dl dt dd details summary figure figcaption svg defs g path use text tspan rect line circle
    ellipse polyline polygon clippath image lineargradient stop marker metadata
    """.split()  # noqa: SIM905
)


class Elements(HTMLParser):
    """Tags and attributes as a browser reads them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def assert_harmless(page: str) -> Elements:
    """A page has no element that runs or loads, no handler, no address outside of itself."""
    elements = Elements(page)
    odd = {tag for tag, _ in elements.tags if ":" not in tag} - HARMLESS
    assert not odd
    for tag, attributes in elements.tags:
        handlers = [name for name in attributes if name.startswith("on")]
        assert not handlers, (tag, attributes)
        for name in ("href", "src", "xlink:href", "action", "formaction"):
            address = attributes.get(name)
            if address is not None and tag not in ("image", "use"):
                assert re.fullmatch(r"(#|\.\./)?[\w./-]*", address), (tag, address)
            elif address is not None:
                assert re.match(r"#|data:image/png;base64,", address), (tag, address)
    return elements


@pytest.mark.parametrize(
    "text",
    [
        HOSTILE,
        "<svg/onload=alert(2)>",
        '<a href="javascript:alert(1)">x</a>',
        '<image href="https://example.org/x.png">',
        '<form action="x">',
    ],
)
def test_the_look_at_pages_finds_what_does_harm(text: str) -> None:
    with pytest.raises(AssertionError):
        assert_harmless(f"<p>{text}</p>")
    assert_harmless(f"<p>{html.escape(text)}</p>")


def foreign_rows() -> pd.DataFrame:
    """Rows whose every name is markup, of five collections so that all tables are made."""
    tables = study_tables()
    rows = tables.rows[tables.rows["families"].str.contains("primary")].copy()
    names = {name: f"{HOSTILE}{QUOTES}{name}" for name in rows["collection"].unique()}
    rows["collection"] = rows["collection"].replace(names)
    rows["corpus"] = rows["collection"]
    rows["families"] = rows["families"].str.replace("primary", "<b>mine</b>")
    return rows


def test_the_page_of_an_analysis_shows_names_as_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    name = "<img src=x onerror=alert(1)>.csv"
    foreign_rows().to_csv(name, index=False)
    arguments = ["--rows", name, "--out", "out", "--family", "<b>mine</b>", "--draws", "10"]
    done = CliRunner().invoke(main, ["analyse", *arguments, "--predictors", "ridge"])
    assert done.exit_code == 0, done.output
    elements = assert_harmless(Path("out/analysis.html").read_text(encoding="utf-8"))
    for text in (HOSTILE, QUOTES, name, "<b>mine</b>"):
        assert text in elements.text, text


def test_the_page_of_hypotheses_shows_names_and_statements_as_text(tmp_path: Path) -> None:
    tables = study_tables().replace("wiki-sections", HOSTILE)
    columns = {"statement": HOSTILE, "reason": QUOTES, "published": HOSTILE}
    hostile = tables.hypotheses.assign(
        **{column: text for column, text in columns.items() if column in tables.hypotheses}
    )
    paths = tables.write(tmp_path)
    hostile.to_parquet(paths["hypotheses"])
    parameters = {
        "study": HOSTILE,
        "family": "primary",
        "alpha": ALPHA,
        "draws": DRAWS,
        "settings": {"encoder": {"source": HOSTILE, QUOTES: QUOTES}},
        "formats": ["svg"],
        **paths,
    }
    notebook = ROOT / "workflow" / "notebooks" / "hypotheses.ipynb"
    reports.render(notebook, parameters, tmp_path / "figures", tmp_path / "page.html")
    elements = assert_harmless((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert HOSTILE in elements.text
    assert QUOTES in elements.text


IDS = [HOSTILE, QUOTES, "../../up", "a/b", "..", "~", "javascript:alert(1)", "&lt;b&gt;"]


@pytest.mark.slow
def test_a_study_of_hostile_texts_and_ids_has_harmless_pages_and_files(tmp_path: Path) -> None:
    data, work = tmp_path / "data", tmp_path / "work"
    (data / "qrels").mkdir(parents=True)
    words = ["fern", "moss", "stone", "shade", "river", "cloud", "ember", "frost"]
    texts = [
        {"_id": one, "title": HOSTILE, "text": f"{HOSTILE} about {word} {QUOTES}"}
        for one, word in zip(IDS, words, strict=True)
    ]
    for name in ("corpus", "queries"):
        lines = [json.dumps(one) + "\n" for one in texts]
        (data / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
    judged = [f"{one}\t{one}\t1\n" for one in IDS if not set(one) & set('\t\n"')]
    (data / "qrels" / "test.tsv").write_text(
        "query-id\tcorpus-id\tscore\n" + "".join(judged), encoding="utf-8"
    )
    config = yaml.safe_load((ROOT / "tests" / "faults" / "small.yaml").read_text())
    config["study"] = HOSTILE
    config["collections"] = {"mine": {"source": "beir", "path": str(data), "split": "test"}}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config))
    command = [sys.executable, "-m", "snakemake", "-s", str(ROOT / "Snakefile"), "-d", str(work)]
    command += ["--configfile", str(tmp_path / "config.yaml"), "--cores", "2", "study"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    pages = list((work / "reports").rglob("*.html"))
    assert len(pages) >= 5
    for page in pages:
        elements = assert_harmless(page.read_text(encoding="utf-8"))
        assert HOSTILE in elements.text
    for path in work.rglob("*"):
        if ".snakemake" not in path.parts:
            assert re.fullmatch(r"[\w.-]+", path.name), path
    assert {path.name for path in tmp_path.iterdir()} == {"data", "work", "config.yaml"}
