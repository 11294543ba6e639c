"""What a module's syntax tree says of names: imported, defined, used."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from whencount.provenance.normal import normal_form


def names_imported(tree: ast.Module, package: str) -> dict[str, str] | None:
    """{name: module} where a module holds nothing but `from ... import name`; else None."""
    found: dict[str, str] = {}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            if any(alias.asname is not None for alias in node.names):
                return None
            if node.module != "__future__":
                found |= {alias.name: origin_of(node, package) for alias in node.names}
        elif normal_form(ast.Module(body=[node], type_ignores=[])) != "Module()":
            return None
    return found


def imports_in(nodes: Iterable[ast.AST]) -> Iterator[ast.Import | ast.ImportFrom]:
    """Every import that can run: those under `if TYPE_CHECKING` cannot."""
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
            continue
        if not (isinstance(node, ast.If) and _is_type_checking(node.test)):
            waiting += getattr(node, "body", []) if not isinstance(node, ast.expr) else []
        for name in ("orelse", "finalbody", "handlers", "cases"):
            waiting += getattr(node, name, []) if not isinstance(node, ast.expr) else []


def _is_type_checking(test: ast.AST) -> bool:
    name = test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", None)
    return name == "TYPE_CHECKING"


def origin_of(statement: ast.ImportFrom, package: str) -> str:
    """The full name of the module that `from ... import` names, seen from `package`."""
    if not statement.level:
        return statement.module or ""
    parts = package.split(".")
    base = parts[: len(parts) - statement.level + 1]
    return ".".join([*base, *([statement.module] if statement.module else [])])


def attributes_of(name: str, scope: Iterable[ast.AST]) -> set[str] | None:
    """The attributes taken of a name; None where the name is used in any other way."""
    attributes: set[str] = set()
    taken: set[int] = set()
    others: list[int] = []
    for root in scope:
        for node in ast.walk(root):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                if node.value.id == name:
                    attributes.add(node.attr)
                    taken.add(id(node.value))
            elif isinstance(node, ast.Name) and node.id == name:
                others.append(id(node))
    return attributes if taken.issuperset(others) else None


def command_of(function: ast.FunctionDef) -> str | None:
    """The name of the command that a function is, by its decorator; None where it is none."""
    for decorator in function.decorator_list:
        call = decorator if isinstance(decorator, ast.Call) else None
        target = decorator if call is None else call.func
        if isinstance(target, ast.Attribute) and target.attr == "command":
            for given in call.args if call is not None else []:
                if isinstance(given, ast.Constant) and isinstance(given.value, str):
                    return given.value
            return function.name.replace("_", "-")
    return None


def with_helpers(function: ast.stmt, tree: ast.Module) -> list[ast.stmt]:
    """A function and every statement at the top of its module that it needs, in their order.

    Of an import, only the names that are needed are kept.
    """
    defined: dict[str, ast.stmt] = {}
    for node in tree.body:
        for name in names_bound(node):
            defined[name] = node
    needed: set[int] = set()
    names: set[str] = set()
    waiting: list[ast.stmt] = [function]
    while waiting:
        node = waiting.pop()
        if id(node) not in needed:
            needed.add(id(node))
            used = _names_from_outside(node)
            names |= used
            waiting += [defined[name] for name in used if name in defined]
    return [_with_names(node, names) for node in tree.body if id(node) in needed]


def _names_from_outside(node: ast.stmt) -> set[str]:
    """The names in a statement that can mean one of its module.

    An argument or variable of a function that is called like another command is not that command.
    """
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return _names_in([node])
    arguments = node.args
    own = {one.arg for one in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]}
    own |= {one.arg for one in (arguments.vararg, arguments.kwarg) if one is not None}
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
            own.add(part.id)
        elif isinstance(part, ast.Import | ast.ImportFrom):
            own |= {*names_bound(part)}
        elif isinstance(part, ast.Global):
            return _names_in([node])
    return _names_in(node.body) - own | _names_in(
        [*node.decorator_list, arguments, *([node.returns] if node.returns is not None else [])]
    )


def _names_in(nodes: Iterable[ast.AST]) -> set[str]:
    return {part.id for node in nodes for part in ast.walk(node) if isinstance(part, ast.Name)}


def _with_names(node: ast.stmt, names: set[str]) -> ast.stmt:
    if not isinstance(node, ast.ImportFrom):
        return node
    kept = [alias for alias in node.names if (alias.asname or alias.name) in names]
    return ast.ImportFrom(module=node.module, names=kept, level=node.level)


def names_bound(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [(alias.asname or alias.name).split(".")[0] for alias in node.names]
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return [target.id for target in targets if isinstance(target, ast.Name)]
