"""Hashes of the code that an artefact depends on, from the sources alone: nothing is imported.

Snakemake does not see a change inside an imported package. A rule that takes `stage_hash("score")`
for a parameter is run again when, and only when, a module changed that its stage uses.

What counts as used: every `import` of whencount in a module, also inside functions, followed to the
end; not those under `if TYPE_CHECKING`, which never run. A package whose `__init__.py` only
re-exports is looked through: `from whencount.collections import load_prepared` uses the module
that defines `load_prepared` and not the readers beside it. Files that are no Python (templates of
the report page) count for the modules beside them that look for files: those that use `__file__`
or `importlib.resources`. A module that only watches (`WATCHERS`) counts for nothing.
Of the command line, only the function of the stage itself and the helpers it names count, so that a
new command changes nothing.
"""

from __future__ import annotations

import ast
import gc
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from whencount.errors import InputError
from whencount.provenance.normal import normal_form
from whencount.provenance.syntax import (
    attributes_of,
    command_of,
    imports_in,
    names_bound,
    names_imported,
    origin_of,
    with_helpers,
)

PACKAGE = "whencount"
COMMANDS = f"{PACKAGE}.cli"
WATCHERS = (f"{PACKAGE}.provenance", f"{PACKAGE}.progress", COMMANDS)
"""Modules that change no byte of an artefact; with them every edit here would redo the study."""

_HERE = Path(__file__).parents[1]
_TEXT = re.compile(r"value='([\w./-]+)'")
_FINDS_FILES = ("'__file__'", "'resources'", "'importlib.resources'")
_NOT_DATA = frozenset({"__pycache__", "py.typed"})


def source_hash(module: str, root: Path | None = None) -> str:
    """Hash a module of whencount and every module that it uses, to the end.

    Args:
        module: `whencount.rows` say.
        root: the folder of the package; the installed one where left out.

    Returns:
        SHA-256 in hexadecimal. It changes with code, not with comments, docstrings or formatting,
        and is the same on every machine and under Python 3.11 to 3.13.

    Raises:
        InputError: there is no such module, or a source cannot be read.
    """
    with _no_collection():
        return _sources(root or _HERE).hash_of([module])


def stage_hash(command: str, notebook: str | Path | None = None, root: Path | None = None) -> str:
    """Hash what one command of `whencount stage` runs: its body, its helpers, all they use.

    Args:
        command: as on the command line, `fit-basis` say.
        notebook: the notebook that a report is drawn by; its text, its code, what that imports.
        root: the folder of the package; the installed one where left out.

    Raises:
        InputError: there is no such command or notebook, or a source cannot be read.
    """
    with _no_collection():
        return _sources(root or _HERE).hash_of_stage(command, notebook)


def stage_modules(command: str, root: Path | None = None) -> list[str]:
    """The modules that `stage_hash` takes in, sorted: why an edit does or does not rerun a rule."""
    sources = _sources(root or _HERE)
    return sources.closure(sources.stage(command)[1])


def package_hash(root: Path | None = None) -> str:
    """Hash the whole package: every module (watchers too) and every other file in it.

    Raises:
        InputError: a source cannot be read.
    """
    sources = _sources(root or _HERE)
    with _no_collection():
        parts = [f"{name} {sources.module(name).digest}" for name in sorted(sources.paths)]
    parts += [
        f"{path.relative_to(sources.root).as_posix()} {_bytes(path)}"
        for path in sources.data(sources.root)
    ]
    return _sha("\n".join(parts))


@contextmanager
def _no_collection() -> Iterator[None]:
    """Parse without the collector of garbage, which takes longer than parsing and finds nothing."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@lru_cache(maxsize=8)
def _sources(root: Path) -> Sources:
    return Sources(root)


@lru_cache(maxsize=1024)
def _parsed(source: bytes) -> tuple[ast.Module, str]:
    tree = ast.parse(source)
    return tree, normal_form(tree)


@dataclass(frozen=True)
class Module:
    """One module: the hash of its normal form, and the modules of whencount it uses itself."""

    digest: str
    uses: frozenset[str]


class Sources:
    """The sources under one folder; each is read and parsed once."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.paths = {
            ".".join((PACKAGE, *path.relative_to(root).with_suffix("").parts)).removesuffix(
                ".__init__"
            ): path
            for path in sorted(root.rglob("*.py"))
        }
        self._trees: dict[str, ast.Module] = {}
        self._forms: dict[str, str] = {}
        self._modules: dict[str, Module] = {}
        self._exports: dict[str, dict[str, str] | None] = {}

    def hash_of(self, modules: Iterable[str], *more: str) -> str:
        """One hash for the closure of `modules` and any further texts."""
        names = self.closure(modules)
        return _sha("\n".join([*more, *(f"{name} {self.module(name).digest}" for name in names)]))

    def hash_of_stage(self, command: str, notebook: str | Path | None) -> str:
        """One hash for a command of `whencount stage`."""
        form, uses = self.stage(command)
        texts = [form]
        if notebook is not None:
            cells, imported = self.notebook(Path(notebook))
            texts.append(cells)
            uses = uses | imported
        return self.hash_of(uses, *texts)

    def closure(self, modules: Iterable[str]) -> list[str]:
        """Every module reached from `modules`, sorted, without the watchers."""
        seen: set[str] = set()
        waiting = [name for name in modules if not _watches(name)]
        while waiting:
            name = waiting.pop()
            if name not in seen:
                seen.add(name)
                waiting += [used for used in self.module(name).uses if not _watches(used)]
        return sorted(seen)

    def module(self, name: str) -> Module:
        """Read one module."""
        if name not in self._modules:
            tree, form = self._tree(name), self._forms[name]
            files = [_bytes(path) for path in self._data_of(name, form)]
            package = name if self.paths[name].name == "__init__.py" else name.rpartition(".")[0]
            uses = self._uses([tree], form, package) - {name}
            self._modules[name] = Module(_sha("\n".join([form, *files])), frozenset(uses))
        return self._modules[name]

    def data(self, folder: Path) -> Iterator[Path]:
        """The files of the package under `folder` that are no Python."""
        for path in sorted(folder.rglob("*")):
            parts = path.relative_to(self.root).parts
            if path.is_file() and path.suffix not in (".py", ".pyc") and not _NOT_DATA & {*parts}:
                yield path

    def stage(self, command: str) -> tuple[str, frozenset[str]]:
        """The normal form of a command with the helpers it names, and the modules these use."""
        for name in sorted(self.paths):
            if name.startswith(f"{COMMANDS}.stage"):
                for node in self._tree(name).body:
                    if isinstance(node, ast.FunctionDef) and command_of(node) == command:
                        return self._command(node, name)
        raise InputError(
            f"whencount stage has no command {command!r}; look at whencount stage --help"
        )

    def _command(self, function: ast.stmt, module: str) -> tuple[str, frozenset[str]]:
        form, uses = "", set()
        waiting, seen = [(module, function)], set()
        while waiting:
            name, node = waiting.pop()
            if id(node) in seen:
                continue
            package = name.rpartition(".")[0]
            parts = [part for part in with_helpers(node, self._tree(name)) if id(part) not in seen]
            # Imports are cut to what is needed and are new each time.
            seen |= {id(part) for part in parts if not isinstance(part, ast.ImportFrom)}
            text = normal_form(*parts)
            form += text
            uses |= self._uses(parts, text, package)
            for statement in imports_in(parts):
                if isinstance(statement, ast.ImportFrom):
                    origin = origin_of(statement, package)
                    if origin in self.paths and _within(origin, COMMANDS):
                        names = {alias.name for alias in statement.names}
                        waiting += [
                            (origin, one)
                            for one in self._tree(origin).body
                            if names & {*names_bound(one)}
                        ]
        return form, frozenset(uses)

    def notebook(self, path: Path) -> tuple[str, frozenset[str]]:
        """The normal form of a notebook (code, and text as it is), and the modules it uses."""
        try:
            cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
            found = [(cell["cell_type"], "".join(cell["source"])) for cell in cells]
            trees = [ast.parse(text) for kind, text in found if kind == "code"]
        except OSError as error:
            raise InputError(f"{path} cannot be read ({error.strerror}); check the path") from error
        except (KeyError, TypeError, ValueError, SyntaxError) as error:
            raise InputError(f"{path} is no notebook of Python code ({error})") from None
        code = iter(trees)
        parts = [normal_form(next(code)) if kind == "code" else text for kind, text in found]
        text = "\n".join(parts)
        return text, frozenset(self._uses(trees, text, PACKAGE))

    def _tree(self, name: str) -> ast.Module:
        if name not in self._trees:
            path = self.paths.get(name)
            if path is None:
                raise InputError(f"there is no module {name} under {self.root}; check its name")
            try:
                self._trees[name], self._forms[name] = _parsed(path.read_bytes())
            except OSError as error:
                raise InputError(f"{path} cannot be read ({error.strerror})") from error
            except (SyntaxError, ValueError) as error:
                raise InputError(f"{path} is no valid Python ({error}); mend it") from None
        return self._trees[name]

    def _data_of(self, name: str, form: str) -> list[Path]:
        """The files beside a module that are no Python, where it is able to find them."""
        if not any(text in form for text in _FINDS_FILES):
            return []
        folder = self.paths[name].parent
        packages = {path.parent for path in folder.glob("*/**/*.py")}
        return [path for path in self.data(folder) if not packages & {*path.parents}]

    def _uses(self, nodes: Sequence[ast.AST], form: str, package: str) -> set[str]:
        """The modules of whencount that `nodes`, whose normal form is `form`, import."""
        # A module named in a string is one that is imported by name.
        used = {text for text in _TEXT.findall(form) if text in self.paths}
        for statement in imports_in(nodes):
            if isinstance(statement, ast.Import):
                for alias in statement.names:
                    if alias.name in self.paths:
                        used |= self._whole(alias.name)
                continue
            origin = origin_of(statement, package)
            for alias in statement.names:
                used |= self._name(origin, alias.name, alias.asname or alias.name, nodes)
        return used

    def _name(self, origin: str, name: str, bound: str, scope: Sequence[ast.AST]) -> set[str]:
        """What `from origin import name as bound` makes a user of."""
        if origin not in self.paths:
            return set()
        if name == "*":
            return self._whole(origin)
        exports = self._re_exports(origin)
        if exports is not None and exports.get(name, origin) != origin:
            return self._name(exports[name], name, bound, scope)
        module = f"{origin}.{name}"
        if module not in self.paths:
            return self._with_packages(origin)
        inner = self._re_exports(module)
        attributes = attributes_of(bound, scope) if inner is not None else None
        if inner is None or attributes is None or not attributes <= inner.keys():
            return self._whole(module)
        return {used for one in attributes for used in self._name(module, one, one, [])}

    def _whole(self, module: str) -> set[str]:
        exports = self._re_exports(module) or {}
        return self._with_packages(module) | {one for one in exports.values() if one in self.paths}

    def _with_packages(self, module: str) -> set[str]:
        """A module, and the packages around it whose `__init__.py` does something."""
        parts = module.split(".")
        around = [".".join(parts[:count]) for count in range(1, len(parts))]
        return {module, *(name for name in around if self._re_exports(name) is None)}

    def _re_exports(self, name: str) -> dict[str, str] | None:
        """{name: module it comes from} of a package that only re-exports; else None."""
        if name not in self._exports:
            path = self.paths.get(name)
            if path is None:  # A folder without an `__init__.py` does nothing.
                self._exports[name] = {}
            elif path.name == "__init__.py":
                self._exports[name] = names_imported(self._tree(name), name)
            else:
                self._exports[name] = None
        return self._exports[name]


def _watches(module: str) -> bool:
    return any(_within(module, name) for name in WATCHERS)


def _within(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def _bytes(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror})") from error


def _sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
