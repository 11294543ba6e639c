"""Files of installed packages, found without importing them, and the docstrings in them."""

from __future__ import annotations

import ast
import inspect
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path, PurePosixPath

from whencount.errors import InputError

# Directories whose Python files are not the package's own documented interface.
_SKIPPED = {
    "test", "tests", "testing", "_vendor", "_vendored", "vendored", "_vendored_packages",
    "external", "externals", "_external", "_externals", "__pycache__",
}  # fmt: skip


@dataclass(frozen=True)
class Docstring:
    """A docstring and where it stands.

    Attributes:
        name: the qualified name, `package.module.Class.method`.
        kind: `module`, `class` or `function` (methods too).
        public: no part of the name inside the module begins with an underscore.
        text: the docstring with its indentation taken away.
    """

    name: str
    kind: str
    public: bool
    text: str


def installed(name: str) -> Distribution:
    """An installed distribution.

    Raises:
        InputError: it is not installed.
    """
    try:
        return distribution(name)
    except PackageNotFoundError:
        raise InputError(
            f"the package {name!r} is not installed, and its text is part of this study; install"
            " requirements.lock"
        ) from None


def package_files(name: str, suffixes: tuple[str, ...]) -> Iterator[tuple[str, Path]]:
    """Yield (relative name, path) of the files of a distribution with one of the suffixes.

    In the order of the names, so that the answer does not depend on the installer. Tests,
    vendored packages and the metadata folder are left out.

    Raises:
        InputError: the distribution is not installed, or its list of files is lost.
    """
    entries = installed(name).files
    if entries is None:
        raise InputError(f"the package {name!r} has no list of its files; install it again")
    for entry in sorted(entries, key=str):
        relative = PurePosixPath(str(entry))
        if relative.suffix not in suffixes or ".." in relative.parts:
            continue
        folders = relative.parts[:-1]
        if any(part in _SKIPPED or part.endswith(".dist-info") for part in folders):
            continue
        yield str(relative), Path(str(entry.locate()))


def docstrings(name: str) -> Iterator[Docstring]:
    """Yield all docstrings of a distribution, in the order of files and lines.

    The source is parsed, never run. Files that do not parse, and test files, are left out.

    Raises:
        InputError: as `package_files`.
    """
    for relative, path in package_files(name, (".py",)):
        yield from docstrings_of_file(relative, path)


def docstrings_of_file(relative: str, path: Path) -> Iterator[Docstring]:
    """Yield the docstrings of one source file; none where it is a test or does not parse.

    `relative` is its name inside the distribution, from which the module's name follows.
    """
    stem = PurePosixPath(relative)
    if stem.name.startswith("test_") or stem.name == "conftest.py":
        return
    try:
        with warnings.catch_warnings():
            # Doubtful escapes in other people's source are no concern of ours.
            warnings.simplefilter("ignore")
            tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError, OSError):
        return
    parts = stem.with_suffix("").parts
    module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    yield from _inside(tree, module, public=True)


def _inside(node: ast.Module | ast.ClassDef, prefix: str, public: bool) -> Iterator[Docstring]:
    if isinstance(node, ast.Module):
        text = ast.get_docstring(node)
        if text:
            yield Docstring(prefix, "module", public, text)
    for child in _statements(node.body):
        name = f"{prefix}.{child.name}"
        shown = public and not child.name.startswith("_")
        text = ast.get_docstring(child, clean=False)
        kind = "class" if isinstance(child, ast.ClassDef) else "function"
        if text:
            yield Docstring(name, kind, shown, inspect.cleandoc(text))
        if isinstance(child, ast.ClassDef):
            yield from _inside(child, name, shown)


def _statements(
    body: list[ast.stmt],
) -> Iterator[ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]:
    for statement in body:
        if isinstance(statement, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield statement
        elif isinstance(statement, ast.If | ast.Try):
            yield from _statements(statement.body)
            yield from _statements(statement.orelse)
