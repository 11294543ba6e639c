"""Every command and every piece of code of the tutorial and the how-to pages, run as it stands."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

ROOT = Path(__file__).parents[1]
FENCE = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
SUBJECTS = ("wing", "layer", "flow", "shock", "heat", "model", "speed", "pressure", "angle", "tube")


def blocks(page: str, language: str) -> list[str]:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return [code for kind, code in FENCE.findall(text) if kind == language]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in BEIR's layout, called as the tutorial calls it."""
    root = tmp_path_factory.mktemp("tutorial")
    folder = root / "scifact"
    (folder / "qrels").mkdir(parents=True)
    random = np.random.default_rng(0)
    texts = [
        " ".join(random.choice(SUBJECTS, random.integers(5, 40))) + f" number{n}" for n in range(80)
    ]
    asked = [f"{SUBJECTS[n % 10]} number{n}" for n in range(60)]
    for name, lines in (("corpus", texts), ("queries", asked)):
        (folder / f"{name}.jsonl").write_text(
            "".join(
                json.dumps({"_id": f"{name[0]}{n}", "text": text}) + "\n"
                for n, text in enumerate(lines)
            )
        )
    (folder / "qrels" / "test.tsv").write_text(
        "query-id\tcorpus-id\tscore\n" + "".join(f"q{n}\tc{n}\t1\n" for n in range(60))
    )
    return root


def test_the_tutorial_runs_from_its_first_command_to_its_last(place: Path) -> None:
    commands = blocks("own-index.md", "sh")
    assert len(commands) == 7
    shell = shutil.which("sh")
    assert shell is not None
    whencount = f"{sys.executable} -c 'from whencount.cli import main; main()'"
    for command in commands:
        script = re.sub(r"^whencount", whencount, command, flags=re.MULTILINE)
        done = subprocess.run(
            [shell, "-ec", script], cwd=place, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    for made in (
        "vectors/documents.jsonl",
        "runs/111.trec",
        "advice/advice.html",
        "baked.jsonl",
        "baked.npz",
        "baked.ids.txt",
        "baked-queries.jsonl",
        "index.ciff",
        "compared/comparison.html",
    ):
        assert (place / made).stat().st_size > 0, made
    advice = json.loads((place / "advice" / "advice.json").read_text())
    assert any("nearly repeated" in warning for warning in advice["warnings"])


@pytest.mark.parametrize("number", range(4))
def test_a_piece_of_code_runs_as_it_stands(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = blocks("how-to.md", "python")
    assert len(code) == 4
    monkeypatch.chdir(tmp_path)
    from whencount.bases import BASES

    before = dict(BASES)
    try:
        exec(compile(code[number], f"docs/how-to.md, example {number + 1}", "exec"), {})
    finally:
        BASES.clear()
        BASES.update(before)


def test_the_code_that_exports_for_another_engine_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from whencount.vectors import SparseVectors

    (code,) = blocks("economics.md", "python")
    random = np.random.default_rng(0)
    ids = [f"d{n}" for n in range(20)]
    dense = random.random((20, 6)) * (random.random((20, 6)) < 0.5)
    dense[:, 0] += 0.1
    monkeypatch.chdir(tmp_path)
    given = {
        "ids": ids,
        "shards": [SparseVectors.from_dense(ids, dense)],
        "queries": SparseVectors.from_dense(["q"], np.ones((1, 6))),
    }
    exec(compile(code, "docs/economics.md", "exec"), given)
    assert (tmp_path / "impacts.ciff").stat().st_size > 0
    assert json.loads((tmp_path / "queries.jsonl").read_text())["id"] == "q"


def test_the_small_example_of_the_readme_gives_the_figures_it_tells(tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    part = text[text.index("## Your own vectors") : text.index("## Your own rows")]
    documents, queries, qrels = re.findall(r"^```\n(.*?)^```", part, re.MULTILINE | re.DOTALL)
    for name, content in (
        ("docs.jsonl", documents),
        ("queries.jsonl", queries),
        ("qrels.trec", qrels),
    ):
        (tmp_path / name).write_text(content, encoding="utf-8")
    said = ""
    for command in re.findall(r"^    \.venv/bin/whencount ((?:score|decompose) .*)$", part, re.M):
        call = [sys.executable, "-c", "from whencount.cli import main; main()", *command.split()]
        done = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        said += done.stdout
    assert (tmp_path / "runs" / "111.trec").is_file()
    for figure in re.findall(r"\+0\.\d{4}", part):
        assert figure in said, f"{figure} is not in\n{said}"


def test_the_example_of_a_collection_is_a_configuration(place: Path) -> None:
    from whencount import config

    (written,) = blocks("how-to.md", "yaml")
    study = yaml.safe_load((ROOT / "configs" / "test.yaml").read_text(encoding="utf-8"))
    study["collections"] |= yaml.safe_load(written)["collections"]
    checked = config.validate(study, ROOT / "workflow" / "schemas" / "config.schema.yaml")
    assert checked["collections"]["mine"]["path"] == "my-collection"


def test_pages_link_to_files_that_are_there() -> None:
    for page in (ROOT / "docs").glob("*.md"):
        for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name}: {target}"
