"""Nothing that is read can run code, and no id becomes the name of a file."""

from __future__ import annotations

import ast
import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from click.testing import CliRunner
from study_tables import SCHEMA

from whencount.cli import main
from whencount.config import load
from whencount.errors import InputError
from whencount.vectors import SparseVectors

ROOT = Path(__file__).parents[1]
UNSAFE_MODULES = {
    "pickle",
    "cPickle",
    "_pickle",
    "cloudpickle",
    "dill",
    "joblib",
    "shelve",
    "marshal",
}
UNSAFE_CALLS = {"eval", "exec", "read_pickle", "to_pickle", "system", "unsafe_load", "full_load"}
SAFE_LOADERS = {"SafeLoader", "CSafeLoader"}
EVIL = [
    "../../evil",
    "/etc/evil",
    "..",
    ".",
    "a/b",
    "a\\b",
    "~",
    "CON",
    "x" * 300,
    "é\u202e",
    "-rf",
]


def code_of_the_study() -> Iterator[tuple[str, ast.AST]]:
    for folder in ("src", "benchmarks"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield str(path.relative_to(ROOT)), ast.parse(path.read_bytes())
    for path in sorted((ROOT / "workflow").rglob("*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        for cell in cells:
            if cell["cell_type"] == "code":
                yield str(path.relative_to(ROOT)), ast.parse("".join(cell["source"]))


def faults(tree: ast.AST) -> Iterator[str]:
    """What in a module could run what it reads."""
    safe = SAFE_LOADERS | {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and {_last(base) for base in node.bases} & SAFE_LOADERS
    }
    yield from remote_code(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.name for alias in node.names] + [getattr(node, "module", None) or ""]
            yield from (name for name in names if name.split(".")[0] in UNSAFE_MODULES)
        if not isinstance(node, ast.Call):
            continue
        called, owner = _last(node.func), _last(getattr(node.func, "value", None))
        options = {one.arg: one.value for one in node.keywords}
        # `model.eval()` and `platform.system()` are other matters than those that take a text.
        if called in UNSAFE_CALLS and node.args:
            yield f"{called}()"
        if owner == "torch" and called == "load" and not _is(options.get("weights_only"), True):
            yield "torch.load without weights_only"
        if "allow_pickle" in options and not _is(options["allow_pickle"], False):
            yield "allow_pickle"
        if "shell" in options and not _is(options["shell"], False):
            yield "shell"
        if (
            owner == "yaml"
            and called in ("load", "load_all")
            and _last(options.get("Loader")) not in safe
        ):
            yield "yaml.load without a SafeLoader"


def remote_code(tree: ast.AST) -> Iterator[str]:
    """Every mention of trust_remote_code that is not a literal False given for it.

    A mention in a docstring is none; one in another text may be an option that is parsed later.
    """
    harmless: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            harmless.add(node.value)
        if isinstance(node, ast.Dict):
            pairs = zip(node.keys, node.values, strict=True)
            harmless |= {key for key, value in pairs if key and _is(value, False)}
        named = {
            str(getattr(node, field, None)) for field in ("arg", "attr", "id", "name", "asname")
        }
        text = node.value if isinstance(node, ast.Constant) and node not in harmless else None
        text = text.decode("latin-1") if isinstance(text, bytes) else text
        given = isinstance(node, ast.keyword) and _is(node.value, False)
        if ("trust_remote_code" in named and not given) or (
            isinstance(text, str) and "trust_remote_code" in text
        ):
            yield "trust_remote_code"


def _last(node: ast.AST | None) -> str:
    return node.attr if isinstance(node, ast.Attribute) else str(getattr(node, "id", ""))


def _is(node: ast.AST | None, value: bool) -> bool:
    return isinstance(node, ast.Constant) and node.value is value


def test_no_module_reads_pickles_or_runs_what_it_reads() -> None:
    found = {(name, fault) for name, tree in code_of_the_study() for fault in faults(tree)}
    assert found == set()


@pytest.mark.parametrize(
    "text",
    [
        "import pickle",
        "from joblib import load",
        "def f():\n    import dill.source",
        "torch.load(path)",
        "torch.load(path, weights_only=False)",
        "np.load(path, allow_pickle=True)",
        "np.load(path, allow_pickle=flag)",
        "yaml.load(text)",
        "yaml.load(text, Loader=yaml.Loader)",
        "yaml.unsafe_load(text)",
        "pd.read_pickle(path)",
        "eval(text)",
        "subprocess.run(line, shell=True)",
        "AutoModel.from_pretrained(name, trust_remote_code=True)",
        "AutoModel.from_pretrained(name, trust_remote_code=settings.trust)",
        "AutoModel.from_pretrained(name, trust_remote_code=not False)",
        "AutoModel.from_pretrained(name, trust_remote_code=0)",
        "AutoModel.from_pretrained(name, **{'trust_remote_code': True})",
        "options['trust_remote_code'] = True",
        "settings.trust_remote_code = True",
        "def load(name, trust_remote_code=False): ...",
        "evaluate(model_args=f'pretrained={name},trust_remote_code=True')",
    ],
)
def test_the_search_for_unsafe_reading_finds_it(text: str) -> None:
    assert list(faults(ast.parse(text)))


def test_the_search_lets_safe_reading_pass() -> None:
    text = (
        "class Strict(yaml.SafeLoader): ...\n"
        "yaml.load(text, Loader=Strict)\nyaml.safe_load(text)\nnp.load(path, mmap_mode='r')\n"
        "torch.load(path, weights_only=True)\nmodel.eval()\nnp.load(path, allow_pickle=False)\n"
        "AutoModel.from_pretrained(name, trust_remote_code=False)\n"
        "options = {'trust_remote_code': False}\n"
        "def load():\n    'Never with trust_remote_code.'\n"
    )
    assert list(faults(ast.parse(text))) == []


class Trap:
    """An object that would write a file when it is unpickled."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return open, (self.path, "w")


def test_vectors_with_a_pickle_in_an_array_are_refused_and_not_run(tmp_path: Path) -> None:
    folder, sprung = tmp_path / "vectors", tmp_path / "sprung"
    SparseVectors.from_dense(["d1"], np.array([[1.0]])).save(folder)
    SparseVectors.load(folder)
    array = np.empty(1, dtype=object)
    array[0] = Trap(str(sprung))
    np.save(folder / "values.npy", array, allow_pickle=True)
    with pytest.raises(InputError):
        SparseVectors.load(folder)
    assert not sprung.exists()
    # The trap is a real one.
    pickle.loads(pickle.dumps(Trap(str(sprung)))).close()
    assert sprung.exists()


def test_ids_that_look_like_paths_become_no_file_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = tmp_path / "a" / "b" / "work"
    work.mkdir(parents=True)
    monkeypatch.chdir(work)
    vectors = [
        {"id": one, "vector": {f"../{one}": 1.0, "shared": 1.0 + i}} for i, one in enumerate(EVIL)
    ]
    for name in ("documents", "queries"):
        Path(f"{name}.jsonl").write_text("".join(json.dumps(one) + "\n" for one in vectors))
    rows = [f"{one}\t{one}\t1\n" for one in EVIL]
    Path("qrels.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(rows))
    files = ["--documents", "documents.jsonl", "--queries", "queries.jsonl"]
    call("decompose", *files, "--qrels", "qrels.tsv", "--out", "result", "--draws", "10")
    call("score", *files, "--out", "runs")
    data = Path("data")
    (data / "qrels").mkdir(parents=True)
    texts = [{"_id": one, "title": one, "text": f"text of {one}"} for one in EVIL]
    (data / "corpus.jsonl").write_text("".join(json.dumps(one) + "\n" for one in texts))
    (data / "queries.jsonl").write_text("".join(json.dumps(one) + "\n" for one in texts))
    (data / "qrels" / "test.tsv").write_text(Path("qrels.tsv").read_text())
    source = json.dumps({"source": "beir", "path": "data", "split": "test"})
    call("stage", "collection", "--name", "mine", "--source", source, "--out", "collection")
    call(
        *("stage", "bm25", "--collection", "collection", "--k1", "1.2", "--b", "0.75"),
        *("--depth", "10", "--threads", "1", "--out", "run.parquet"),
    )
    written = {path.relative_to(work).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    own = ("collection", "run.parquet")
    written -= {f"{name}.manifest.json" for name in own} | {f".{name}.checked.json" for name in own}
    runs = {f"runs/{bits:03b}.trec" for bits in range(8)}
    assert written == {
        *("documents.jsonl", "queries.jsonl", "qrels.tsv", "run.parquet"),
        *("data/corpus.jsonl", "data/queries.jsonl", "data/qrels/test.tsv"),
        *("result/rows.parquet", "result/per_query.parquet", *runs),
        *(f"collection/{name}.parquet" for name in ("documents", "queries", "qrels")),
        "collection/collection.json",
    }


def call(*arguments: str) -> None:
    done = CliRunner().invoke(main, list(arguments))
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize(
    "name", ["../evil", "/evil", "a/b", "..", "a.b", "-rf", "A", "a b", "a\\b"]
)
def test_names_in_a_configuration_that_look_like_paths_are_refused(
    tmp_path: Path, name: str
) -> None:
    study = yaml.safe_load((ROOT / "config.yaml").read_text())
    study["collections"][name] = {"source": "limit"}
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(study))
    with pytest.raises(InputError, match="does not match"):
        load(path, SCHEMA)
