"""The report: one self-contained page with every figure, the same bytes for the same tables."""

from __future__ import annotations

import html
import json
import re
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from study_tables import ALPHA, DRAWS, ROOT, StudyTables, study_tables

from whencount import reports
from whencount.errors import InputError
from whencount.reports import agreement_pieces, figures, pieces, sweeps
from whencount.reports import prediction_figures as foresight
from whencount.reports.drawing import Drawing, Gallery

NOTEBOOK = ROOT / "workflow" / "notebooks" / "retrieval.ipynb"
HOSTILE = '<script>alert("$x$ & y")</script>'
FIGURES = [
    "quality",
    "shares",
    "saturation",
    "collection_gain",
    "tests",
    "ties",
    "tiers",
    "predicted",
    "disruption",
    "decisions",
    "budgets",
    "parameters",
    "seeds",
    "controls",
    "shared_dictionary",
]


class Elements(HTMLParser):
    """Every start tag of a page with its attributes, and the text outside of styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text.append(data)


@dataclass(frozen=True)
class Rendered:
    page: Path
    figures: Path

    @property
    def text(self) -> str:
        return self.page.read_text(encoding="utf-8")


def hostile(tables: StudyTables) -> StudyTables:
    """The tables with a collection whose name is markup."""
    return tables.replace("wiki-sections", HOSTILE)


def rendered(tables: StudyTables, folder: Path, notebook: Path = NOTEBOOK) -> Rendered:
    parameters = {
        "study": "made-up",
        "family": "primary",
        "alpha": ALPHA,
        "draws": DRAWS,
        "settings": {"encoder": {"source": "packaged", "package": "<none>"}},
        "formats": ["svg"],
        **tables.write(folder),
    }
    reports.render(notebook, parameters, folder / "figures", folder / "page.html")
    return Rendered(folder / "page.html", folder / "figures")


@pytest.fixture(scope="module")
def tables() -> StudyTables:
    return hostile(study_tables())


@pytest.fixture(scope="module")
def report(tables: StudyTables, tmp_path_factory: pytest.TempPathFactory) -> Rendered:
    return rendered(tables, tmp_path_factory.mktemp("one"))


def code(source: str, *tags: str) -> dict[str, Any]:
    return {
        "cell_type": "code",
        "id": f"cell{abs(hash(source))}",
        "metadata": {"tags": list(tags)},
        "source": source,
        "outputs": [],
        "execution_count": None,
    }


def write_notebook(path: Path, *cells: dict[str, Any]) -> Path:
    notebook = {
        "nbformat": 4,
        "nbformat_minor": 5,
        "metadata": {"language_info": {"name": "python"}},
        "cells": cells,
    }
    path.write_text(json.dumps(notebook), encoding="utf-8")
    return path


def test_every_section_and_figure_is_on_the_page(report: Rendered) -> None:
    elements = Elements(report.text)
    drawn = [attrs["id"] for tag, attrs in elements.tags if tag == "figure"]
    assert drawn == [f"figure-{name}" for name in FIGURES]
    described = [attrs for tag, attrs in elements.tags if tag == "svg"]
    assert len(described) == len(FIGURES)
    assert all(attrs["aria-label"] and attrs["role"] == "img" for attrs in described)
    assert report.text.count("<figcaption>") == len(FIGURES)
    anchors = {attrs.get("id") for tag, attrs in elements.tags if tag == "h2"}
    linked = {str(attrs["href"]) for tag, attrs in elements.tags if tag == "a"}
    assert {f"#{anchor}" for anchor in anchors} == {one for one in linked if one.startswith("#")}
    assert "hypotheses.html" in linked
    assert "Saturation carries the largest share" in report.text
    assert "made-up" in report.text


def test_the_figures_are_kept_as_files(report: Rendered) -> None:
    assert sorted(path.name for path in report.figures.iterdir()) == sorted(
        f"{name}.svg" for name in FIGURES
    )


def test_the_page_loads_nothing(report: Rendered) -> None:
    elements = Elements(report.text)
    assert not {"script", "link", "iframe", "object", "img"} & {tag for tag, _ in elements.tags}
    for tag, attrs in elements.tags:
        for name in ("src", "srcset", "xlink:href", "data", "poster"):
            assert (attrs.get(name) or "#").startswith("#"), (tag, name)
        # A link may lead to another page of the report, nothing else.
        place = r"#[\w-]+|hypotheses\.html|(representations|collections)/[a-z0-9._-]+\.html"
        assert re.fullmatch(place, attrs.get("href") or "#x"), (tag, attrs.get("href"))
    assert set(re.findall(r"url\((.)", report.text)) <= {"#"}
    assert "@import" not in report.text
    assert not re.search(r"https?://", report.text)
    assert "default-src 'none'" in report.text


def test_ids_are_unique_though_figures_stand_side_by_side(report: Rendered) -> None:
    ids = [attrs["id"] for _, attrs in Elements(report.text).tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    used = set(re.findall(r'(?:href="#|url\(#)([^")]+)', report.text))
    assert used <= set(ids)


def test_names_from_data_are_escaped(report: Rendered) -> None:
    assert "<script" not in report.text.lower()
    assert html.escape(HOSTILE, quote=False) in report.text
    assert "&lt;none&gt;" in report.text
    assert "$x$" in (report.figures / "quality.svg").read_text(encoding="utf-8")


def test_no_code_of_the_notebook_is_shown(report: Rendered) -> None:
    shown = "".join(Elements(report.text).text)
    assert "gallery.show" not in shown
    assert "reports.load" not in shown
    assert "parquet" not in shown


def test_the_same_tables_give_the_same_bytes(
    tables: StudyTables,
    report: Rendered,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    other = rendered(tables, tmp_path / "elsewhere")
    assert other.page.read_bytes() == report.page.read_bytes()
    for path in report.figures.iterdir():
        assert (other.figures / path.name).read_bytes() == path.read_bytes()


def test_a_notebook_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    notebook = write_notebook(
        tmp_path / "broken.ipynb",
        code("one = 1"),
        code("# the answer\nraise ValueError('no such <thing>')"),
    )
    page, folder = tmp_path / "out" / "page.html", tmp_path / "out" / "figures"
    with pytest.raises(InputError, match=r"'# the answer'.*ValueError: no such <thing>"):
        reports.render(notebook, {}, folder, page)
    assert list((tmp_path / "out").iterdir()) == []
    page.write_text("yesterday", encoding="utf-8")
    with pytest.raises(InputError, match="nothing was written"):
        reports.render(notebook, {}, folder, page)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["page.html"]
    assert page.read_text(encoding="utf-8") == "yesterday"


def test_a_notebook_of_ones_own_shows_its_text_images_and_printed_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    notebook = write_notebook(
        tmp_path / "own.ipynb",
        {
            "cell_type": "markdown",
            "id": "words",
            "metadata": {},
            "source": "# Mine\n\n## Twice\n\nSome *text*.\n\n## Twice",
        },
        code("who = 'nobody'", "parameters"),
        code("import sys\nprint('hello <b>', who); print('aside', file=sys.stderr)"),
        code("import pandas as pd\npd.DataFrame({'<i>': ['<u>']})"),
        code("%matplotlib inline\nimport pylab; pylab.plot([1, 2]); None"),
    )
    reports.render(notebook, {"who": "me"}, tmp_path / "figures", tmp_path / "own.html")
    page = (tmp_path / "own.html").read_text(encoding="utf-8")
    assert "<title>Mine</title>" in page
    # The notebook keeps no figure; what a rule of the workflow writes must not be empty.
    assert [path.name for path in (tmp_path / "figures").iterdir()] == ["none.json"]
    assert re.findall(r'id="twice[^"]*"', page) == ['id="twice"', 'id="twice-2"']
    assert "hello &lt;b&gt; me" in page
    assert "<td>&lt;u&gt;</td>" in page
    assert '<img alt="Figure" src="data:image/png;base64,' in page
    assert "aside" not in page
    assert "aside" in capsys.readouterr().err


@pytest.mark.parametrize("content", [None, "", "{}", '{"cells": 3}', "not json"])
def test_what_is_no_notebook_is_refused_in_a_sentence(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "odd.ipynb"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=r"odd\.ipynb") as caught:
        reports.render(path, {}, tmp_path / "figures", tmp_path / "page.html")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "page.html").exists()
    assert not (tmp_path / "figures").exists()


def test_a_table_without_a_column_is_refused_by_name(tables: StudyTables, tmp_path: Path) -> None:
    paths = tables.write(tmp_path)
    tables.rows.drop(columns="value_cv").to_parquet(paths["rows"])
    with pytest.raises(InputError, match=r"rows\.parquet lacks the columns value_cv"):
        reports.load(**paths, family="primary")
    Path(paths["shares"]).unlink()
    tables.rows.to_parquet(paths["rows"])
    with pytest.raises(InputError, match=r"shares\.parquet cannot be read"):
        reports.load(**paths, family="primary")


def test_a_study_that_varies_nothing_has_no_figures_of_variations(tables: StudyTables) -> None:
    reported = tables.rows[tables.rows["families"].str.contains("primary")]
    assert sweeps.budgets(reported, reported) is None
    assert sweeps.parameters(reported, reported) is None
    assert sweeps.seeds(reported, reported) is None
    assert sweeps.controls(reported, reported) is None
    assert sweeps.shared_dictionary(reported, reported, tables.references) is None
    assert Gallery("nowhere").show(None) is None


def test_figures_stand_up_to_rows_without_any_difference(tables: StudyTables) -> None:
    rows = tables.rows[tables.rows["families"].str.contains("primary")]
    same = rows.assign(q010=0.2, q011=0.2, q111=0.2, shapley_saturation=0.0, value_cv=0.0)
    assert "from 0 to 0" in figures.collection_gain(same).alternative
    assert "not defined" in figures.saturation(same)._repr_html_()
    undefined = tables.shares.assign(share=float("nan"), low=float("nan"), high=float("nan"))
    assert "all rows (42)" in figures.shares(undefined)._repr_html_()


def test_tables_without_a_line_leave_their_sections_empty(tables: StudyTables) -> None:
    none, nothing = tables.predictors.iloc[:0], tables.predictions.iloc[:0]
    for absent in (None, none):
        assert foresight.tiers(absent) is None
        assert foresight.predicted(nothing, absent) is None
        assert agreement_pieces.held_out(absent, {}) is None
        assert agreement_pieces.signs(absent) is None
        assert "predicted nothing" in agreement_pieces.predictors(absent).markup
    assert foresight.decisions(tables.decisions.iloc[:0]) is None
    assert agreement_pieces.decision_table(None, {}) is None
    assert "no pseudo-labels" in agreement_pieces.decisions(None).markup
    bare = tables.reported.drop(columns="disruption_idf")
    assert foresight.disruption(bare) is None


def test_what_predicts_best_is_said_with_its_score_and_the_majority(tables: StudyTables) -> None:
    lines = tables.predictors
    keys = (lines["target"] == "length") & (lines["axis"] == "corpus") & (lines["model"] == "ridge")
    best = lines[keys].sort_values("r2").iloc[-1]
    told = agreement_pieces.predictors(lines).markup
    assert f"R² {best['r2']:.2f} for φ of length" in told
    better = lines.assign(sign_accuracy=0.9, majority_accuracy=0.5)
    assert "φ of length (90\N{NO-BREAK SPACE}% against 50\N{NO-BREAK SPACE}%)" in (
        agreement_pieces.predictors(better).markup
    )
    useless = agreement_pieces.predictors(lines.assign(r2=-0.1)).markup
    assert "nothing predicts φ of saturation, φ of length, φ of IDF and G better than" in useless


def test_the_rule_is_said_beside_both_constant_choices(tables: StudyTables) -> None:
    one = tables.decisions[tables.decisions["scope"] == "all"].head(1)
    one = one.assign(never=0.3, always=0.2, rule=0.19, oracle=0.4, gain_over_always=-0.01)
    told = agreement_pieces.decisions(one.assign(recovered=-0.05)).markup
    assert "0.1900, 0.0100 below always using the collection statistics (0.2000; never" in told
    assert "never using them 0.3000" in told
    assert "recovers none of the headroom" in told
    assert "no headroom" in agreement_pieces.decisions(one.assign(recovered=float("nan"))).markup


def test_rows_of_several_settings_are_told_apart(tables: StudyTables) -> None:
    swept = tables.rows[tables.rows["families"].str.contains("budgets")]
    shown = pieces.quality(swept, tables.references).markup
    assert shown.count("SAE token, budget native<") == 3
    assert "SAE token, budget 16/64<" in shown
    default = swept[swept["budget"] == "32/128"]
    assert "SAE token<" in pieces.quality(default, tables.references).markup
    assert figures.quality(swept, tables.references).name == "quality"
    assert "14 representations" in figures.collection_gain(swept).alternative


def test_a_gallery_refuses_odd_names_and_formats(tables: StudyTables, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="'gif'"):
        Gallery(tmp_path, ["gif"])
    drawing = figures.shares(tables.shares)
    odd = Drawing("../up", drawing.figure, "", "", "")
    with pytest.raises(InputError, match="lower-case"):
        Gallery(tmp_path).show(odd)


def test_settings_are_told_on_one_line(tables: StudyTables) -> None:
    settings = {
        "bases": {"identity": {}, "sae": {"features": 2048}},
        "fit": {"packages": ["a", "b"]},
    }
    shown = pieces.making(
        tables.rows, study="s", family="primary", alpha=ALPHA, settings=settings
    ).markup
    assert "<dd>identity, sae (features 2,048)</dd>" in shown
    assert "<dd>packages (a, b)</dd>" in shown


@pytest.mark.parametrize(
    "path", sorted(NOTEBOOK.parent.glob("*.ipynb")), ids=lambda path: path.stem
)
def test_the_notebooks_are_kept_clean(path: Path) -> None:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    assert notebook["metadata"]["language_info"]["name"] == "python"
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
    tagged = [cell for cell in code if "parameters" in cell["metadata"].get("tags", [])]
    assert len(tagged) == 1
