"""Hashes of sources: what changes them, and what does not.

Every edit is made in a copy of the whole package.
"""

from __future__ import annotations

import ast
import importlib
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

import whencount
from whencount.cli.stages import STAGES
from whencount.errors import InputError
from whencount.provenance import package_hash, source_hash, sources, stage_hash, stage_modules
from whencount.provenance.normal import normal_form

ROOT = Path(__file__).parents[1]
PACKAGE = Path(whencount.__file__).parent
NOTEBOOK = ROOT / "workflow" / "notebooks" / "retrieval.ipynb"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    root = tmp_path / "whencount"
    shutil.copytree(PACKAGE, root, ignore=shutil.ignore_patterns("__pycache__"))
    return root


def _is_there(place: str) -> bool:
    module, _, name = place.partition(":")
    return hasattr(importlib.import_module(module), name)


STAGE_NAMES = [name for name, (place, _) in STAGES.items() if _is_there(place)]


def hashes(root: Path) -> dict[str, str]:
    """The hash of every stage, sources read anew."""
    sources._sources.cache_clear()
    return {
        name: stage_hash(name, NOTEBOOK if name == "report" else None, root=root)
        for name in STAGE_NAMES
    }


def changed(root: Path, edit: Callable[[], object]) -> set[str]:
    """The stages whose hash an edit changes."""
    before = hashes(root)
    edit()
    after = hashes(root)
    return {name for name in before if before[name] != after[name]}


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text, f"{path} no longer holds {old!r}; name another place"
    path.write_text(text.replace(old, new, 1))


def append(path: Path, text: str) -> None:
    path.write_text(path.read_text() + text)


def users(root: Path, module: str) -> set[str]:
    """The stages that run a module."""
    sources._sources.cache_clear()
    notebook = sources._sources(root).notebook(NOTEBOOK)[1]
    from_report = set(sources._sources(root).closure(notebook))
    return {
        name
        for name in STAGE_NAMES
        if module in stage_modules(name, root) or (name == "report" and module in from_report)
    }


def test_a_change_in_a_module_changes_exactly_the_stages_that_use_it(copy: Path) -> None:
    edits = {
        "whencount.scoring": copy / "scoring.py",
        "whencount.references.dense": copy / "references" / "dense.py",
        "whencount.references.lexical": copy / "references" / "lexical.py",
        "whencount.reports.figures": copy / "reports" / "figures.py",
        "whencount.bases.sae_training": copy / "bases" / "sae_training.py",
        "whencount.collections.limit": copy / "collections" / "limit.py",
    }
    for module, path in edits.items():
        expected = users(copy, module)
        assert expected, module
        assert changed(copy, partial(append, path, "\nMORE = 1\n")) == expected, module


def test_the_stages_that_use_a_module_are_those_that_run_it(copy: Path) -> None:
    assert users(copy, "whencount.references.lexical") >= {"bm25", "fusion-job", "latent-beside"}
    assert users(copy, "whencount.references.dense") >= {"dense", "latent-beside"}
    for module in ("lexical", "dense"):
        apart = {"score", "rrf", "encode", "shares", "latent-score", "latent-learned-frequencies"}
        assert not users(copy, f"whencount.references.{module}") & apart
    assert "report" in users(copy, "whencount.reports.figures")
    assert not users(copy, "whencount.reports.figures") & {"score", "shares", "encode"}
    assert users(copy, "whencount.collections.limit") >= {"collection"}
    assert not users(copy, "whencount.collections.limit") & {"score", "dense", "bm25", "report"}
    assert users(copy, "whencount.bases.sae_training") >= {"fit-basis", "encode"}
    assert "score" not in users(copy, "whencount.bases.sae_training")
    assert users(copy, "whencount.search") >= {"score", "bm25"}
    # `encode` has an argument that is called like the command `collection`.
    assert "encode" not in users(copy, "whencount.collections.registry")
    # Imported inside a function of the engine alone.
    assert "score" in users(copy, "whencount.engine.storage")
    # Imported for its types alone.
    assert "whencount.collections.model" not in _direct("whencount.judgements")


def _direct(module: str) -> frozenset[str]:
    return sources._sources(PACKAGE).module(module).uses


def test_comments_docstrings_and_formatting_change_nothing(copy: Path) -> None:
    def edit() -> None:
        for path in copy.rglob("*.py"):
            lines = path.read_text().splitlines(keepends=True)
            place = next(
                (i for i, line in enumerate(lines) if line.startswith(("import ", "from "))), 0
            )
            path.write_text("".join([*lines[:place], "# A remark.\n\n\n", *lines[place:], "\n# x"]))
        replace(copy / "scoring.py", '"""', '"""Other words. ')
        append(copy / "scoring.py", '\n"""A text that stands alone."""\n')

    assert changed(copy, edit) == set()


def test_quotes_brackets_and_line_breaks_change_nothing() -> None:
    one = 'def f(a, b):\n    """Words."""\n    return [a, "x", f"{a:>{b}}!" "t"]  # why\n'
    two = "def f(\n  a,\n  b,\n):\n  return [\n    (a),\n    'x',\n    f'{a:>{b}}!t',\n  ]\n"
    other = one.replace('"x"', '"y"')
    assert form(one) == form(two)
    assert form(one) != form(other)


def form(text: str) -> str:
    return normal_form(ast.parse(text))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = 1", "x = 1.0"),
        ("x = 1", "x = True"),
        ("x = 'a'", "x = b'a'"),
        ("x = None", "x = 0"),
        ("f(a, *b)", "f(a, b)"),
        ("f(a=1)", "f(b=1)"),
        ("def f(a, /): return a", "def f(a): return a"),
        ("def f(a): return a", "async def f(a): return a"),
        ("a < b", "a <= b"),
        ("x: int = 1", "x: float = 1"),
        ("if a:\n  b\nelse:\n  c", "if a:\n  b\n  c"),
        ("a[1:2]", "a[1:2:2]"),
        ("f'{a}'", "f'{a!r}'"),
        ("from a import b", "from .a import b"),
        ("x = [None]", "x = []"),
        ("x = {**a}", "x = {a: a}"),
    ],
)
def test_every_change_of_meaning_is_seen(before: str, after: str) -> None:
    assert form(before) != form(after)


def test_an_unrelated_module_a_new_command_and_a_release_change_nothing(copy: Path) -> None:
    def edit() -> None:
        (copy / "unrelated.py").write_text("VALUE = 1\n")
        append(copy / "provenance" / "verification.py", "\nVALUE = 1\n")
        append(copy / "progress.py", "\nVALUE = 1\n")
        append(copy / "cli" / "__init__.py", "\nVALUE = 1\n")
        replace(copy / "__init__.py", '__version__ = "', '__version__ = "9.')

    assert changed(copy, edit) == set()


def test_the_function_of_a_stage_and_its_helpers_count_for_it_alone(copy: Path) -> None:
    rankings = copy / "cli" / "stages" / "rankings.py"
    edit = lambda: replace(rankings, "references.bm25(", "references.bm25(*[], ")  # noqa: E731
    assert changed(copy, edit) == {"bm25"}
    options = copy / "cli" / "stages" / "options.py"
    threads = changed(copy, lambda: replace(options, "limits=count", "limits=count + 0"))
    assert threads >= {"encode", "score", "fit-basis", "bm25", "dense"}
    assert not threads & {"collection", "shares", "report"}
    helped = changed(copy, lambda: replace(rankings, "type=float,", 'type=float, help="Of BM25.",'))
    assert helped == set()


def test_a_new_export_of_a_package_does_not_concern_users_of_another(copy: Path) -> None:
    def edit() -> None:
        (copy / "collections" / "news.py").write_text("def open_news() -> None: ...\n")
        first = "from whencount.collections.model import"
        more = "from whencount.collections.news import open_news\n"
        replace(copy / "collections" / "__init__.py", first, more + first)

    assert changed(copy, edit) == set()


def test_a_template_and_the_notebook_count_for_the_report(copy: Path, tmp_path: Path) -> None:
    css = copy / "reports" / "templates" / "page.css"
    rendered = users(copy, "whencount.reports.rendering")
    assert "report" in rendered
    assert changed(copy, lambda: append(css, "\nbody { color: red }\n")) == rendered
    notebook = tmp_path / "retrieval.ipynb"
    shutil.copy(NOTEBOOK, notebook)
    first = stage_hash("report", notebook)
    cells = json.loads(notebook.read_text())
    code = next(cell for cell in cells["cells"] if cell["cell_type"] == "code")
    code["source"] = ["# A remark.\n", *code["source"]]
    code["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "x"}]
    notebook.write_text(json.dumps(cells))
    assert stage_hash("report", notebook) == first
    code["source"] = [*code["source"], "\nmore = 1"]
    notebook.write_text(json.dumps(cells))
    second = stage_hash("report", notebook)
    assert second != first
    words = next(cell for cell in cells["cells"] if cell["cell_type"] == "markdown")
    words["source"] = ["Other words on the page"]
    notebook.write_text(json.dumps(cells))
    assert stage_hash("report", notebook) not in (first, second)


def test_the_hash_of_the_package_sees_every_module_and_file_but_no_comment(copy: Path) -> None:
    def now() -> str:
        sources._sources.cache_clear()
        return package_hash(copy)

    first = now()
    append(copy / "provenance" / "verification.py", "\n# A remark.\n")
    assert now() == first
    append(copy / "provenance" / "verification.py", "\nVALUE = 1\n")
    second = now()
    append(copy / "reports" / "templates" / "page.css", "\n")
    assert len({first, second, now()}) == 3


def test_a_module_that_is_moved_or_added_on_the_way_changes_the_hash(copy: Path) -> None:
    before = source_hash("whencount.tables", copy)
    (copy / "extra.py").write_text("VALUE = 1\n")
    replace(copy / "files.py", "import errno\n", "import errno\nimport whencount.extra\n")
    sources._sources.cache_clear()
    middle = source_hash("whencount.tables", copy)
    (copy / "extra.py").write_text("VALUE = 2\n")
    sources._sources.cache_clear()
    assert len({before, middle, source_hash("whencount.tables", copy)}) == 3


def test_unknown_names_are_told(copy: Path) -> None:
    with pytest.raises(InputError, match="no command 'scores'"):
        stage_hash("scores")
    with pytest.raises(InputError, match=r"no module whencount\.rowss"):
        source_hash("whencount.rowss")
    with pytest.raises(InputError, match=r"absent\.ipynb cannot be read"):
        stage_hash("report", "absent.ipynb")
    (copy / "scoring.py").write_text("def broken(:\n")
    sources._sources.cache_clear()
    with pytest.raises(InputError, match=r"scoring\.py is no valid Python"):
        stage_hash("score", root=copy)


def test_hashing_imports_nothing_heavy() -> None:
    program = (
        "import sys; from whencount.provenance import stage_hash; stage_hash('score');"
        "print({'torch', 'numpy', 'pandas', 'pyarrow'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "set()"


@pytest.mark.parametrize("version", ["3.12", "3.13"])
def test_other_versions_of_python_agree(version: str) -> None:
    interpreter = _python(version)
    if interpreter is None:
        pytest.skip(f"there is no Python {version} on this machine")
    # It need not have what whencount is installed with: hashing uses the standard library alone.
    program = (
        f"import sys, types; sys.path.insert(0, {str(PACKAGE.parent)!r});"
        "sys.modules['orjson'] = types.ModuleType('orjson');"
        "from whencount.provenance import package_hash; print(package_hash())"
    )
    done = subprocess.run([interpreter, "-c", program], capture_output=True, text=True, check=True)
    sources._sources.cache_clear()
    assert done.stdout.strip() == package_hash()


def _python(version: str) -> str | None:
    """An interpreter of that version that starts; a shim of an uninstalled one does not."""
    found = [shutil.which(f"python{version}")]
    found += [str(path) for path in Path.home().glob(f".pyenv/versions/{version}.*/bin/python")]
    for path in found:
        if (
            path
            and subprocess.run([path, "-c", ""], capture_output=True, check=False).returncode == 0
        ):
            return path
    return None
