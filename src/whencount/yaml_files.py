"""Reading a YAML file that a person wrote, whatever stands in it."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

from whencount.errors import InputError

MOST_VALUES = 100_000
"""Values that a file may stand for once its aliases are followed; nine lines can mean a billion."""


def read_yaml(content: bytes, path: str | Path) -> Any:
    """Parse one document of plain values.

    Args:
        content: of the file.
        path: of it, for messages.

    Raises:
        InputError: the content is not YAML or not Unicode, gives a key twice, asks for an object,
            contains itself, is nested too deeply, or stands for more than MOST_VALUES values.
    """
    try:
        # _Loader is a SafeLoader.
        loader = _Loader(content)
        node = loader.get_single_node()
        if node is None:
            return None
        if _values(node, {}) > MOST_VALUES:
            raise InputError(
                f"{path} stands for more than {MOST_VALUES:,} values once its aliases are followed;"
                " write out what you need"
            )
        return loader.construct_document(node)
    except RecursionError:
        raise InputError(f"{path} is nested too deeply to be read; make it flatter") from None
    except (yaml.YAMLError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        mark = getattr(error, "problem_mark", None)
        place = f", line {mark.line + 1}" if mark is not None else ""
        reason = getattr(error, "problem", None) or " ".join(str(error).split())[:200]
        raise InputError(f"{path}{place}: not valid YAML: {reason}; correct it") from None


class _Loader(yaml.SafeLoader):
    """SafeLoader that refuses a key given twice: the second would silently replace the first."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue
            key = self.construct_object(key_node, deep=True)  # type: ignore[no-untyped-call]
            if isinstance(key, Hashable) and key in seen:
                raise yaml.MarkedYAMLError(
                    problem=f"the key {key!r} stands twice", problem_mark=key_node.start_mark
                )
            if isinstance(key, Hashable):
                seen.add(key)
        return super().construct_mapping(node, deep)


def _values(node: yaml.Node, known: dict[int, int | None]) -> int:
    """How many values a node stands for; an alias counts each time, but is looked at once."""
    place = id(node)
    if place in known:
        found = known[place]
        if found is None:
            raise yaml.MarkedYAMLError(
                problem="an alias stands inside what it names", problem_mark=node.start_mark
            )
        return found
    known[place] = None
    parts: list[yaml.Node] = []
    if isinstance(node, yaml.SequenceNode):
        parts = node.value
    elif isinstance(node, yaml.MappingNode):
        parts = [part for pair in node.value for part in pair]
    total = 1 + sum(_values(part, known) for part in parts)
    known[place] = total
    return total
