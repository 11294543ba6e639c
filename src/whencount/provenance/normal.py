"""Python source in a form that only a change of meaning changes.

Comments, docstrings, quotes, brackets and line breaks are no part of a syntax tree; but what
`ast.dump` prints of one differs between versions of Python (3.12 added `type_params`, 3.13 leaves
out empty fields). The form here is written by hand, so that 3.11, 3.12 and 3.13 agree on it: the
name of each node, then its fields that are neither empty nor a matter of spelling.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

_SPELLING = frozenset({"ctx", "kind", "type_comment", "type_ignores"})
_STATEMENTS = frozenset({"body", "orelse", "finalbody"})
_NO_RESULT = frozenset({"__all__", "__version__"})
"""Names whose value no result depends on: a release must not make every artefact stale."""


def normal_form(*nodes: ast.AST) -> str:
    """Write syntax trees without comments, docstrings, formatting and version of Python.

    Left out too: every other statement that is a bare string (the docstring of an attribute), the
    help texts of command-line options, and assignments to `__all__` and `__version__`.
    """
    parts: list[str] = []
    for node in nodes:
        _write(node, parts)
    return "".join(parts)


_FIELDS: dict[type[ast.AST], tuple[str, ...]] = {}
"""The fields of each kind of node that are no matter of spelling."""


def _write(node: ast.AST, parts: list[str]) -> None:
    kind = type(node)
    fields = _FIELDS.get(kind)
    if fields is None:
        fields = _FIELDS[kind] = tuple(name for name in kind._fields if name not in _SPELLING)
    parts.append(f"{kind.__name__}(")
    for name in fields:
        value = getattr(node, name, None)
        if value is None:
            if kind is ast.Constant:
                parts.append("value=None,")
        elif isinstance(value, ast.AST):
            parts.append(f"{name}=")
            _write(value, parts)
        elif isinstance(value, list):
            kept = _kept(kind, name, value) if value else value
            if kept:
                parts.append(f"{name}[")
                for item in kept:
                    if isinstance(item, ast.AST):
                        _write(item, parts)
                    else:
                        parts.append(f"{item!r},")
                parts.append("]")
        else:
            parts.append(f"{name}={value!r},")
    parts.append(")")


def _kept(kind: type[ast.AST], name: str, items: list[object]) -> Sequence[object]:
    """The items of a list that mean something."""
    if name in _STATEMENTS:
        return [
            item
            for item in items
            if not (isinstance(item, ast.Expr) and _is_text(item.value))
            and not (isinstance(item, ast.Assign) and _is_about_the_package(item))
        ]
    if name == "keywords":
        return [
            item
            for item in items
            if not (isinstance(item, ast.keyword) and item.arg == "help" and _is_text(item.value))
        ]
    return _merged(items) if kind is ast.JoinedStr else items


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _is_about_the_package(node: ast.Assign) -> bool:
    return all(isinstance(to, ast.Name) and to.id in _NO_RESULT for to in node.targets)


def _merged(items: list[object]) -> Sequence[object]:
    """The parts of an f-string, neighbouring texts as one; versions of Python split differently."""
    merged: list[object] = []
    for item in items:
        if isinstance(item, ast.Constant) and isinstance(item.value, str):
            before = merged[-1] if merged else None
            if isinstance(before, ast.Constant):
                merged[-1] = ast.Constant(value=str(before.value) + item.value)
            elif item.value:
                merged.append(item)
        else:
            merged.append(item)
    return merged
